"""Anthropic's messages."""

from recollect.codecs.anthropic.wire import Anthropic

__all__ = ["Anthropic"]
