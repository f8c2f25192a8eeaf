"""Making a view smaller: where to cut, what the snapshot keeps, whether it fits. Pure."""
