"""One thing that can be wrong with a reply, with what a careful client makes of it, as data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from recollect.entries import ToolCall
from recollect.profiles import WireName
from recollect.testing.scripted_model import call
from recollect.testing.wire_reply import WireReply

__all__ = ["Fault"]

FORMATS: tuple[WireName, ...] = ("gemini", "openai", "anthropic")
SAMPLE_CALL = call("read_file", absolute_path="/recollect-testing/notes.txt")

# answer       the text is the answer
# calls        its calls can be run
# ask again    the request is sent again, or the model is told what was wrong
# interrupted  kept as far as it came, and not taken for an answer; none of its calls is run
# cut off      kept; the output limit ended it
# blocked      kept; the provider's rules ended it
# error        reported, without another attempt
# retried      sent again after a while, or in another form
Expected: TypeAlias = Literal[
    "answer", "calls", "ask again", "interrupted", "cut off", "blocked", "error", "retried"
]
FaultReply: TypeAlias = "WireReply | Callable[[WireName, ToolCall], WireReply]"


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A named fault. Its reply is made when it is needed: some are large."""

    name: str
    expected: Expected  # what a careful client makes of it
    description: str
    formats: tuple[WireName, ...]
    made_of: FaultReply

    def reply(self, format: WireName, sample: ToolCall = SAMPLE_CALL) -> WireReply:  # noqa: A002
        """The reply in one format; `sample` is the call in it, if there is one."""
        if format not in self.formats:
            known = " and ".join(self.formats)
            raise ValueError(f"{self.name} is a fault of {known}, not of {format}")
        return self.made_of(format, sample) if callable(self.made_of) else self.made_of


def fault(
    name: str,
    expected: Expected,
    description: str,
    made_of: FaultReply,
    formats: tuple[WireName, ...] = FORMATS,
) -> Fault:
    return Fault(
        name=name, expected=expected, description=description, formats=formats, made_of=made_of
    )
