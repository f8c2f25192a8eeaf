"""Anthropic's messages."""

from recollect.codecs.anthropic.wire import AnthropicWire

__all__ = ["AnthropicWire"]
