"""What an agent tells while it works, in the order in which it happens."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from recollect.agent.asking import Answered, Conversation
from recollect.agent.room import MadeRoom
from recollect.agent.working import Calling, Ran
from recollect.codecs.wire_protocol import Delta
from recollect.entries import Usage
from recollect.loops import Loop
from recollect.models.model_protocol import Retrying

Why: TypeAlias = Literal["answered", "turns", "loop"]


class Learnt(msgspec.Struct, frozen=True):
    """The model's window is smaller than we thought."""

    model: str
    window: int


class Looping(msgspec.Struct, frozen=True):
    """The model repeats itself; at the second time it is stopped."""

    loop: Loop
    stopped: bool


class Finished(msgspec.Struct, frozen=True):
    """The last event."""

    why: Why
    talk: Conversation
    turns: int
    usage: Usage
    seconds: float


AgentEvent: TypeAlias = (
    Delta | Retrying | Answered | Calling | Ran | MadeRoom | Learnt | Looping | Finished
)
