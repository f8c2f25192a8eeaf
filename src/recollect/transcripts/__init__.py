"""Other programs' session files, in and out."""
