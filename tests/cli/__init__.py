"""The command line, run as a user runs it: with a store in a folder, a pipe or a terminal."""
