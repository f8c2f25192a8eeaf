"""Making a view smaller: where to cut it, what the snapshot keeps, whether it fits. Pure."""
