"""The chat format of OpenAI and of all who speak it."""

from recollect.codecs.openai.wire import OpenAIWire

__all__ = ["OpenAIWire"]
