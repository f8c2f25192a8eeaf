"""The command line, run as a person runs it: a process, a store in a folder, a terminal."""
