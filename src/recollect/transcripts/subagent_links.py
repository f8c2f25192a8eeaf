"""How a session and its sub-agents' sessions name each other, in a note's `extra`."""

from __future__ import annotations

NAME = "claude-code"
PARENT, SUBAGENT = "parent", "subagent"  # the session at the other end
