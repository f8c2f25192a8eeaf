"""What a reader sees of a session: folds over its log, what they leave out and why. Pure."""
