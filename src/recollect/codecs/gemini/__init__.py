"""Google's format: `generateContent`."""

from recollect.codecs.gemini.wire import GeminiWire

__all__ = ["GeminiWire"]
