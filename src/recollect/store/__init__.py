"""Where sessions are kept: the contract, SQLite, and search."""
