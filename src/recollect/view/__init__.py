"""What a reader sees of a session: folds over its log, what was left out of them and why."""
