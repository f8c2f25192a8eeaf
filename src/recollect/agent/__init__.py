"""The agent: its loop, hooks, tool calls, context fitting and sub-agents."""
