"""`/rewind`, `/tree`, `/fork` and `/rename` in text: they work on the screen and in the line-based
program. A rewind is shown first; the same line with `yes` does it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from recollect.display.dates import format_age
from recollect.display.display_text import one_line, pluralize, sanitize, truncate
from recollect.display.rewind_points import (
    PointGroup,
    RewindPoint,
    describe_preview,
    list_points,
)
from recollect.display.session_tree import read_tree
from recollect.display.short_ids import find_entry
from recollect.errors import RecollectError
from recollect.runtime.session_outline import SessionOutline
from recollect.runtime.session_rewind import RewindScope, SentPrompt, session_roots
from recollect.session import Session
from recollect.terminal.rewind_steps import (
    RewindChoice,
    RewindDone,
    current_session,
    fork_here,
    go_back,
    look_ahead,
    read_current,
)
from recollect.terminal.session_runner import SessionRunner

MAX_LISTED = 60
MAX_ROWS = 200
LINE = 76
_SCOPES: dict[str, RewindScope] = {
    "conversation": "conversation",
    "files": "files",
    "both": "both",
}
USAGE = "/rewind N [files|both] [beside] [yes]; /rewind lists the points with their numbers"


class UnknownPoint(RecollectError):
    def __init__(self, given: str) -> None:
        super().__init__(f"there is no point {one_line(given)[:40]!r} to go back to; {USAGE}")


class RewindWish(msgspec.Struct, frozen=True):
    """What `/rewind` was given."""

    point: str = ""  # a number of the list
    entry: str = ""  # or the entry to go on after
    choice: RewindChoice = RewindChoice("conversation")
    confirmed: bool = False


def parse_rewind(arguments: str) -> RewindWish:
    """`N`, or `to ENTRY`, and then what to take back."""
    point, *words = arguments.split()
    entry = ""
    if point == "to":
        point, entry = "", words.pop(0) if words else ""
    scope, beside, confirmed = "conversation", False, False
    for word in words:
        if word in _SCOPES:
            scope = word
        elif word == "beside":
            beside = True
        elif word == "yes":
            confirmed = True
        else:
            raise RecollectError(f"/rewind does not know {one_line(word)[:40]!r}; {USAGE}")
    if not point and not entry:
        raise RecollectError(f"say where to; {USAGE}")
    return RewindWish(point, entry, RewindChoice(_SCOPES[scope], beside), confirmed)


async def rewind_in_text(runner: SessionRunner, arguments: str) -> str:
    done = await rewind_by_words(runner, arguments)
    return "\n".join(map(sanitize, (done.notice, *_prompt_lines(done.prompt))))


async def rewind_by_words(runner: SessionRunner, arguments: str) -> RewindDone:
    """What to say, and the prompt to edit if it was gone back to before one."""
    outline = await read_current(runner, "go back to")
    groups = list_points(outline)
    if not arguments:
        return RewindDone("\n".join(_list_lines(groups)))
    wish = parse_rewind(arguments)
    where, to, prompt = await _find_point(runner, outline, groups, wish)
    preview = await look_ahead(runner, outline, to)
    if wish.confirmed:
        return await go_back(runner, preview, wish.choice, prompt)
    lines = [f"{where}; nothing was changed yet"]
    lines += describe_preview(preview, session_roots(outline.session)[0])
    name = wish.point or f"to {wish.entry}"
    lines.append(f"`/rewind {name} {_confirmation(wish, files=bool(preview.files))}")
    return RewindDone("\n".join(lines))


def _prompt_lines(prompt: SentPrompt) -> Iterator[str]:
    if prompt.text:
        yield f"the prompt was: {prompt.text}"
    if prompt.files:
        yield f"with it went: {', '.join(one_line(file.label) for file in prompt.files)}"


def _confirmation(wish: RewindWish, *, files: bool) -> str:
    if wish.choice.scope != "conversation":
        beside = " beside" if wish.choice.beside else ""
        return f"{wish.choice.scope}{beside} yes` does it"
    return "yes` does it; `files yes` or `both yes` restores files" if files else "yes` does it"


async def _find_point(
    runner: SessionRunner,
    outline: SessionOutline,
    groups: tuple[PointGroup, ...],
    wish: RewindWish,
) -> tuple[str, str | None, str]:
    """What it is called, the entry to go on after, and the prompt to edit."""
    if wish.entry == "start":
        return "to the start", None, ""
    if wish.entry:
        entry = await find_entry(runner.runtime.store, wish.entry, outline.session)
        return f"to entry {wish.entry}", entry, ""
    point = dict(_numbered(groups)).get(wish.point)
    if point is None:
        raise UnknownPoint(wish.point)
    prompt = point.entry if point.kind == "prompt" else ""
    return f"before: {point.text}", point.to, prompt


def _numbered(groups: tuple[PointGroup, ...]) -> Iterator[tuple[str, RewindPoint]]:
    """Prompts are 1, 2, …, the newest first; the calls of prompt 2 are 2.1, 2.2, …"""
    for number, group in enumerate(groups, 1):
        if group.prompt is not None:
            yield str(number), group.prompt
        for call, point in enumerate(group.calls, 1):
            yield f"{number}.{call}", point


def _list_lines(groups: tuple[PointGroup, ...]) -> Iterator[str]:
    for name, point in [*_numbered(groups)][:MAX_LISTED]:
        files = f" · {pluralize(point.files, 'file')} changed since" if point.files else ""
        lead = "      " if point.kind == "call" else ""
        yield truncate(f"{lead}{name:>4}  {point.text}", LINE)
        yield f"{lead}      {format_age(point.time)}{files}"
    if not groups:
        yield "there is nothing to go back to yet"
    else:
        yield f"the newest first; {USAGE}"


async def print_tree(runner: SessionRunner, arguments: str) -> str:
    del arguments
    session = current_session(runner, "show")
    tree = await read_tree(runner.runtime.store, session.id)
    rows = tree.rows(())
    left = max(0, len(rows) - MAX_ROWS)
    lines = [f"… {left:,} rows before these"] if left else []
    for row in rows[left:]:
        here = " ← here" if row.node == tree.head_node else ""
        about = f"  ({tree.about(row)}){here}"
        at = tree.target(row) if row.session is None else None
        entry = f"  {at[-8:]}" if at is not None else ""
        lines.append(truncate(tree.label(row, LINE), LINE - len(about)) + about + entry)
    lines.append("`/rewind to ENTRY` shows what going there would change")
    return sanitize("\n".join(lines))


async def fork_session(runner: SessionRunner, arguments: str) -> str:
    session: Session = current_session(runner, "fork")
    head = session.view().head
    return await fork_here(runner, await session.info(), head, arguments)


async def rename_session(runner: SessionRunner, arguments: str) -> str:
    if not arguments:
        raise RecollectError("say how to call it: /rename TITLE")
    store = runner.runtime.store
    current_session(runner, "rename")
    renamed = await runner.edit(lambda session: store.rename(session.id, arguments), "rename")
    return f"this session is now called {one_line(renamed.title)!r}"
