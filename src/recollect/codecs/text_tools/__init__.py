"""Tools for models without native tool calls: told, called and answered in text."""

from recollect.codecs.text_tools.wire import TextTools, feedback

__all__ = ["TextTools", "feedback"]
