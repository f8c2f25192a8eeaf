"""The command line. Each command's module is imported only when it is used."""
