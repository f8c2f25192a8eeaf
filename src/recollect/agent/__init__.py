"""What acts: so far the compaction that may ask a model."""
