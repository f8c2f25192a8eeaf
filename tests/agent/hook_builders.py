"""Hooks for tests, and firing them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any

from recollect.agent.hooks import CommandHook, Hook, Hooks
from recollect.hook_events import (
    BeforeAgent,
    BeforeTool,
    HookDecision,
    HookEvent,
)

PROMPT = BeforeAgent(session="s1", time=1_700_000_000_000, prompt="fix it")
CALL = BeforeTool(session="s1", time=1, tool="run", call="c1", arguments='{"command":"ls"}')


def fired(
    *hooks: Hook | Callable[[HookEvent], Any], event: HookEvent = PROMPT, **given: Any
) -> HookDecision:
    return asyncio.run(Hooks(hooks, **given).fire(event))


def program(source: str) -> CommandHook:
    return CommandHook(command=(sys.executable, "-S", "-c", source), name="hook")


def shell(source: str, **given: Any) -> CommandHook:
    return CommandHook(command=("sh", "-c", source), name="hook", **given)


def prints(value: object) -> CommandHook:
    return shell(f"cat <<'END'\n{value if isinstance(value, str) else json.dumps(value)}\nEND")
