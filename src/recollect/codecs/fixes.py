"""What is sent differently from what a session holds: one `Fix` for each change, with a reason."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

FixKind: TypeAlias = Literal[
    "interrupted",  # a result was made for a call that has none
    "orphan",  # a result without a call was left out
    "duplicate",  # a further result for an answered call was left out
    "misplaced",  # a call outside a model's message was left out
    "moved",  # results were put right behind their calls, or media behind the results
    "id",  # a call, a result or both got another id
    "name",  # a tool is sent under another name, or a result under its call's
    "thought",  # thoughts of another model, or that the wire cannot carry, were left out
    "signature",  # signatures of another model were taken off calls
    "empty",  # blank text, or a message without parts, was left out
    "system",  # an instruction in mid-conversation is sent as a user's message
    "merged",  # neighbours of one role became one message
    "split",  # results and the user's text became two messages
    "uncarried",  # the wire cannot carry it
    "opened",  # a message was inserted: at the start, or between results and a user message
]
_SHOWN = 40  # characters of foreign text in a line of the trace


class Fix(msgspec.Struct, frozen=True):
    """One change, the message it concerns (as counted in the input), and one readable line."""

    kind: FixKind
    message: int
    text: str
    call: str = ""  # the id of the call concerned, as it is sent; of an orphan, as it came


def leave_out(fixes: list[Fix], line: str) -> None:
    """Report an option that is not sent, or sent differently."""
    fixes.append(Fix("uncarried", -1, line))


def leave_out_choice(fixes: list[Fix], choice: str) -> None:
    """Of a tool, in a request that declares none. `auto` and `none` change nothing there."""
    if choice not in ("auto", "none"):
        leave_out(fixes, f"the tool choice {quote_text(choice)} is left out: there are no tools")


def quote_text(text: str) -> str:
    """Foreign text for users: quoted, escaped, short."""
    return repr(text[:_SHOWN]) + ("…" if len(text) > _SHOWN else "")
