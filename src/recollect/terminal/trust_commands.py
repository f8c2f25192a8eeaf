"""`/trust`: what a folder brings along, shown whole, and approved part by part exactly as shown.
`/hooks`: which programs run at which event."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress

from recollect.agent.hooks import CommandHook, HookOutcome, Hooks
from recollect.display.dates import format_age
from recollect.display.display_text import one_line, sanitize
from recollect.display.trust_report import TrustReview, approve_review, review_trust
from recollect.errors import BadInput, BadSettings
from recollect.runtime.coding_agent import is_hook_of
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
    hooks = runner.active.workspace.hooks if runner.active is not None else Hooks()
    groups = (
        ("yours", found.settings.hooks),
        ("of this project, approved", found.project_hooks),
    )
    lines = [line for title, some in groups for line in _hook_lines(title, some, hooks)]
    lines += _hook_lines("of this project, not approved, so they do not run", waiting, None)
    if not lines:
        return "no hooks; docs/hooks.md says how to add one"
    fired = hooks.activity.events
    names = [type(event).__name__ for event in fired]
    if names:
        counts = (f"{name} {names.count(name)}" for name in dict.fromkeys(names))
        lines.append(f"events of this session: {', '.join(counts)}")
    if waiting:
        lines.append("/trust shows them, /trust hooks lets them run")
    return "\n".join(lines)


def _hook_lines(
    title: str, commands: tuple[HookCommand, ...], hooks: Hooks | None
) -> Iterator[str]:
    """Each command, and what came of it, unless it is one that does not run."""
    if commands:
        yield f"{title}:"
    for command in commands:
        yield f"  {one_line(command.event)}: {one_line(command.command)[:_WHOLE]}"
        if hooks is not None:
            yield from (f"    {line}" for line in _outcome_lines(_find_outcome(command, hooks)))


def _find_outcome(command: HookCommand, hooks: Hooks) -> HookOutcome | None:
    """Of those that are configured alike, the newest."""
    found = [
        outcome
        for hook, outcome in hooks.outcomes
        if isinstance(hook, CommandHook) and is_hook_of(hook, command)
    ]
    return max(found, key=lambda outcome: outcome.time, default=None)


def _outcome_lines(outcome: HookOutcome | None) -> Iterator[str]:
    if outcome is None:
        yield "has not run since this session was opened"
        return
    decision = outcome.decision
    result = "ok"
    if not decision.allowed:
        result = "refused"
    elif decision.warnings:
        result = "failed"
    elif decision.ask:
        result = "asked you"
    when = format_age(outcome.time)
    yield f"last: {result} at {outcome.event}, {when}, in {outcome.seconds:.2f} s"
    for text in (decision.reason, *decision.warnings):
        if text:
            yield f"  {one_line(text)[:_WHOLE]}"
