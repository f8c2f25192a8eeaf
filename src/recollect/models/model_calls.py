"""The one place where a model is called, whoever asks for it.

A `ModelCaller` sends requests beside the session: to write a snapshot, to summarize, to judge. It
knows the window of its model and how that model counts, which may differ from the session's.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import msgspec

from recollect.codecs.endings import judge_reply
from recollect.codecs.wire_protocol import Generation, RequestOptions
from recollect.entries import Message, Text
from recollect.models.http_model import HttpModel
from recollect.models.model_protocol import Model, ModelEvent, RequestMessages
from recollect.profiles import Profile, find_profile
from recollect.tokens import Counter, counter_for
from recollect.workspace.learned_windows import learned_window

REPLY_SHARE = 4  # at most a quarter of the window is for the reply
# Tokens: in longer requests a small model forgets what it was told to write, and on the user's own
# machine it reads them for ten minutes.
SMALL_REQUEST = 8_192


def send(
    model: Model, messages: RequestMessages, options: RequestOptions
) -> AsyncGenerator[ModelEvent, None]:
    """Send a request: pieces of the reply as they arrive, then the whole message."""
    return model.stream(messages, options)


def profile_of(model: Model) -> Profile:
    # the profile of a model that the settings define is not known by its name
    return model.chosen.profile if isinstance(model, HttpModel) else find_profile(model.name)


class ModelCaller(msgspec.Struct, frozen=True):
    """Sends messages and an instruction, and returns the text of the reply: empty unless the
    reply is an answer, complete or cut off at its limit."""

    model: Model
    profile: Profile
    limit: int  # tokens of a request and its reply, at most

    @staticmethod
    def of(model: Model) -> ModelCaller:
        profile = profile_of(model)
        limit = profile.window if profile.summarises else min(profile.window, SMALL_REQUEST)
        return ModelCaller(model, profile, limit)

    def within(self, limit: int) -> ModelCaller:
        """The same model, with requests and replies of at most so many tokens."""
        return msgspec.structs.replace(self, limit=min(self.limit, limit))

    @property
    def window(self) -> int:
        """Tokens, with the reply. Read anew each time: a provider may have named its window since
        the caller was made."""
        return min(self.limit, learned_window(self.model.name) or self.limit)

    @property
    def reply(self) -> int:
        """Tokens that a reply may have."""
        return min(self.profile.output, self.window // REPLY_SHARE)

    @property
    def counter(self) -> Counter:
        return counter_for(self.model.name)

    async def __call__(self, messages: Sequence[Message], instruction: str) -> str:
        request = (*messages, Message(role="user", parts=(Text(text=instruction),)))
        # named, because servers refuse a request whose reply might not fit, and because the length
        # that the settings want of an answer is not meant for this
        generation = Generation(max_output=self.reply)
        options = RequestOptions(model=self.model.name, generation=generation)
        async with aclosing(send(self.model, request, options)) as events:
            async for event in events:
                if isinstance(event, Message):
                    usable = judge_reply(event).outcome in ("answer", "cut_off")
                    texts = (part.text for part in event.parts if isinstance(part, Text))
                    return "".join(texts) if usable else ""
        return ""
