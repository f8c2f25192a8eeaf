"""Running commands: isolation, processes and their output, jobs in the background."""
