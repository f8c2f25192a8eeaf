"""Carries out `save_memory`: checks a fact and has it stored for later sessions.

A fact is one line, so that nothing in it can pass for more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from recollect.errors import RecollectError
from recollect.text import one_line
from recollect.tools.tool import ToolFailed

MAX_FACT = 1_000  # characters


async def remember_fact(fact: str, save: Callable[[str], Awaitable[str]]) -> str:
    line = one_line(fact, MAX_FACT + 1)
    if not line:
        raise ToolFailed("a fact needs some words")
    if len(line) > MAX_FACT or len(fact) > 4 * MAX_FACT:
        raise ToolFailed(f"a fact has at most {MAX_FACT:,} characters; say it shorter")
    try:
        where = await save(line)
    except (OSError, RecollectError) as error:
        raise ToolFailed(f"the fact was not stored: {one_line(str(error), 300)}") from None
    return f"Remembered in {one_line(where, 300)}: {line}"
