"""How a session and its subagents' sessions name each other, in a note's `extra`."""

from __future__ import annotations

NAME = "claude-code"  # the format whose import wrote the note
PARENT, SUBAGENT = "parent", "subagent"  # the session at the other end
