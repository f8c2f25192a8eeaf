"""Gemini CLI's session files, read and written."""
