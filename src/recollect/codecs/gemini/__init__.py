"""Google's format: `generateContent`."""

from recollect.codecs.gemini.wire import Gemini

__all__ = ["Gemini"]
