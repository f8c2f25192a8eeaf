"""What an agent did lately, and spans for those who trace.

`Activity` keeps the last hundred events, first in, first out, with long texts shortened, so that
its size is bounded whatever tools print. `span` follows OpenTelemetry's conventions for generative
AI when `opentelemetry` can be imported and does nothing otherwise; a span carries names and
numbers, never what was said.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from recollect.agent.events import Event
from recollect.snapshot.texts import clip_middle

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

KEPT = 100
LONGEST = 2_000  # characters of a text in a kept event
Operation: TypeAlias = Literal["invoke_agent", "chat", "execute_tool"]
Value: TypeAlias = str | bool | int | float | tuple[str, ...]
Mark: TypeAlias = Callable[[Mapping[str, Value]], None]
_LONGEST_NAME = 200
# what the name of a span ends with, and the attribute that says it
_TARGET: dict[Operation, str] = {
    "invoke_agent": "gen_ai.agent.name",
    "chat": "gen_ai.request.model",
    "execute_tool": "gen_ai.tool.name",
}


class Activity:
    """The newest events, oldest first."""

    def __init__(self, kept: int = KEPT) -> None:
        self._events: deque[Event] = deque(maxlen=kept)

    def note(self, event: Event) -> None:
        self._events.append(_shortened(event))

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)


def _shortened(event: Event) -> Event:
    fields = msgspec.structs.asdict(event)
    long = {
        name: clip_middle(value, LONGEST)
        for name, value in fields.items()
        if isinstance(value, str) and len(value) > LONGEST
    }
    return msgspec.structs.replace(event, **long) if long else event


@contextmanager
def span(
    operation: Operation,
    target: str,
    attributes: Mapping[str, Value] | None = None,
    *,
    session: str = "",
    tracer: Tracer | None = None,
) -> Iterator[Mark]:
    """A span around one run of the agent, one request to a model, or one tool.

    What it gives is called with what is only known at the end (`gen_ai.usage.output_tokens` …).
    """
    try:
        from opentelemetry import trace
    except ImportError:
        yield _unseen
        return
    client = operation == "chat"
    target = target[:_LONGEST_NAME]
    known = {"gen_ai.operation.name": operation, _TARGET[operation]: target}
    if session:
        known["gen_ai.conversation.id"] = session
    with (tracer or trace.get_tracer("recollect")).start_as_current_span(
        f"{operation} {target}".rstrip(),
        kind=trace.SpanKind.CLIENT if client else trace.SpanKind.INTERNAL,
        attributes={**known, **(attributes or {})},
        # an exception's message may quote what was said; its type does not
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        try:
            yield lambda more: current.set_attributes(dict(more))
        except BaseException as error:
            current.set_attribute("error.type", type(error).__name__)
            current.set_status(trace.StatusCode.ERROR)
            raise


def _unseen(more: Mapping[str, Value]) -> None:
    del more
