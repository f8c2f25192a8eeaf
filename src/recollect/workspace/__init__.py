"""The folder a session is about."""
