"""Storing sessions: the interface of a store, SQLite, and full-text search."""
