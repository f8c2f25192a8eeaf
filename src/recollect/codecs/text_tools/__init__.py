"""Tools for models without native tool calls: declared, called and answered in text."""

from recollect.codecs.text_tools.text_tools_wire import TextToolsWire

__all__ = ["TextToolsWire"]
