"""The chat format of OpenAI and of all who speak it."""

from recollect.codecs.openai.wire import OpenAI

__all__ = ["OpenAI"]
