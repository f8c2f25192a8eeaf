"""Claude Code's session files, read into transcripts."""
