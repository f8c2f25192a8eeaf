"""Examining, repairing and salvaging a damaged store."""
