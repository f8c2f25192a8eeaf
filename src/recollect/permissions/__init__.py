"""Reading and judging commands: which may run, which need approval, which files are protected."""
