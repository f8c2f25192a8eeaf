"""The folder a session works in: its settings, memory, ignore files and trust."""
