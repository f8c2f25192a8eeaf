"""`/trust`: what a folder brings along, shown whole, and approved part by part exactly as shown.
`/hooks`: which programs run at which event."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress

from recollect.display.display_text import one_line, sanitize
from recollect.display.trust_report import TrustReview, approve_review, review_trust
from recollect.errors import BadInput, BadSettings
from recollect.settings import HookCommand
from recollect.terminal.session_runner import SessionRunner
from recollect.workspace.effective_settings import read_untrusted
from recollect.workspace.trusted_folders import TRUST_PARTS, TrustPart

_WORDS = "/trust takes memory, settings, hooks or all"
_WHOLE = 4_000  # characters: a command has no more


async def run_trust(runner: SessionRunner, arguments: str) -> str:
    runtime = await runner.opened()
    if not arguments:
        review = await asyncio.to_thread(review_trust, runtime.folders.root)
        runner.shown.trust = review
        return sanitize("\n".join(_review_lines(review)))
    shown = runner.shown.trust
    if shown is None:
        raise BadInput("look first: /trust shows what this folder brings along")
    parts = _parts(shown, arguments)
    await asyncio.to_thread(approve_review, shown, parts)
    runner.shown.trust = None
    await runner.reconfigure(runner.overrides)
    when = "it counts from the next prompt on"
    if "hooks" in parts:
        when += "; hooks run in sessions that are opened from now on"
    return f"trusted: {', '.join(parts)} of {one_line(str(shown.place))}; {when}"


def _parts(shown: TrustReview, arguments: str) -> tuple[TrustPart, ...]:
    if arguments == "all":
        return tuple(part for part in TRUST_PARTS if part in shown.digests)
    parts = tuple(part for part in TRUST_PARTS if part in arguments.split())
    if not parts or len(parts) != len(arguments.split()):
        raise BadInput(_WORDS)
    return parts


def _review_lines(review: TrustReview) -> Iterator[str]:
    yield f"{one_line(str(review.place))}: what it brings along for every session here"
    for part, lines in review.lines.items():
        yield ""
        yield from lines
        yield f"  {part}: trusted" if part in review.trusted else f"  {part}: not trusted"
    if review.problem:
        yield f"Its settings and hooks cannot be trusted: {review.problem}"
    waiting = [part for part in review.lines if part not in review.trusted]
    yield ""
    if waiting:
        yield f"/trust {waiting[0]} trusts that part as it is shown here, /trust all every part"
    yield "`recollect trust --remove` takes trust back"


async def show_hooks(runner: SessionRunner, arguments: str) -> str:
    del arguments
    runtime = await runner.opened()
    found = runtime.effective
    waiting = found.unapproved_hooks
    if not waiting and not found.project_hooks:
        with suppress(BadSettings):  # such a file has no hooks that could run
            waiting = (await asyncio.to_thread(read_untrusted, found.root)).unapproved_hooks
    groups = (
        ("yours", found.settings.hooks),
        ("of this project, approved", found.project_hooks),
        ("of this project, not approved, so they do not run", waiting),
    )
    lines = [line for title, hooks in groups for line in _hook_lines(title, hooks)]
    if not lines:
        return "no hooks; docs/hooks.md says how to add one"
    fired = runner.active.workspace.hooks.activity.events if runner.active is not None else ()
    names = [type(event).__name__ for event in fired]
    if names:
        counts = (f"{name} {names.count(name)}" for name in dict.fromkeys(names))
        lines.append(f"events of this session: {', '.join(counts)}")
    if waiting:
        lines.append("/trust shows them, /trust hooks lets them run")
    return "\n".join(lines)


def _hook_lines(title: str, hooks: tuple[HookCommand, ...]) -> Iterator[str]:
    if hooks:
        yield f"{title}:"
    for hook in hooks:
        yield f"  {one_line(hook.event)}: {one_line(hook.command)[:_WHOLE]}"
