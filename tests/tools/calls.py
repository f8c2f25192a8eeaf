"""Calls of tools that touch no file, and a view of some messages."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from recollect.entries import Entry, Message, Text
from recollect.tools.tool import Tool, ToolContext, ToolOutput
from recollect.view.view import View

ROOT = Path("/work")


def made(tool: Tool, **arguments: object) -> ToolOutput:
    return asyncio.run(tool(json.dumps(arguments), ToolContext(roots=(ROOT,))))


def text(output: ToolOutput) -> str:
    first = output.content[0]
    assert isinstance(first, Text)
    return first.text


def view(*messages: Message) -> View:
    entries = [
        Entry(f"{n:032x}", f"{n - 1:032x}" if n else None, n * 1_000, message)
        for n, message in enumerate(messages)
    ]
    return View.fold(entries)
