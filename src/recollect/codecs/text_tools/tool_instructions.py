"""How a model is told which tools it may call in text.

A preamble, one fenced example, each tool with its parameters (nested objects, enums and list items
too), the rules. The same tools give the same text. Names and descriptions are foreign: each takes
one line, and what is too long or too deep is shortened, with `…` where something is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recollect.codecs.text_tools.argument_coercion import parse_schema, properties_of, types_of
from recollect.codecs.wire_protocol import Declaration
from recollect.entries import json_text

MAX_DESCRIPTION = 2_000
MAX_TOOL = 12_000  # characters for the parameters of one tool
MAX_NESTED = 5
MAX_VALUES = 50  # of an enum
_INDENT = "  "

PREAMBLE = """\
You can use the tools below. To call one, write a JSON object in a fenced block, exactly like this:

```json
{"tool_call": {"name": "tool_name", "arguments": {"param": "value"}}}
```

Available tools:
"""
RULES = """\
Rules:
- Call a tool only when you need it for what the user asked.
- Use exactly the format shown above: one fenced block for each call, and valid JSON in it.
- Give every required parameter, under the name that is listed.
- You may explain in your own words, beside a call, what you are doing.
- After your calls, stop. The results come in the next message; never write a result yourself.
- As soon as the results say what the user asked, answer in plain words, without another call.
- The user does not see results. In your answer, repeat what they say: every name, number and line
  that the user asked for."""
_CLOSING_RULES = {
    "auto": "",
    "none": "\n- Do not call any tool in this reply.",
    "required": "\n- Call a tool in this reply.",
}


def write_tool_instructions(tools: tuple[Declaration, ...], choice: str = "auto") -> str:
    listed = "\n".join("\n".join(_describe_tool(tool)) for tool in tools)
    return f"{PREAMBLE}\n{listed}\n\n{RULES}{_closing_rule(choice)}"


def _closing_rule(choice: str) -> str:
    return _CLOSING_RULES.get(choice, f"\n- Call the tool {json_text(choice)} in this reply.")


def detect_choice(text: str, tools: tuple[Declaration, ...]) -> str | None:
    """The tool choice of these instructions; None if they are not for these tools."""
    plain = write_tool_instructions(tools)
    if not text.startswith(plain):
        return None
    rest = text[len(plain) :]
    choices = (*_CLOSING_RULES, *(tool.name for tool in tools))
    return next((choice for choice in choices if rest == _closing_rule(choice)), None)


def build_call_schema(tools: tuple[Declaration, ...], choice: str) -> str:
    """A JSON Schema for a reply that is a call of one of the chosen tools."""
    allowed = [tool for tool in tools if choice in ("required", tool.name)]
    calls = [
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "enum": [tool.name]},
                "arguments": parse_schema(tool) or {"type": "object"},
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for tool in allowed
    ]
    call = calls[0] if len(calls) == 1 else {"anyOf": calls}
    return json_text(
        {
            "type": "object",
            "properties": {"tool_call": call},
            "required": ["tool_call"],
            "additionalProperties": False,
        }
    )


def _describe_tool(tool: Declaration) -> Iterator[str]:
    yield f"**{on_one_line(tool.name)}**: {on_one_line(tool.description)}"
    schema = parse_schema(tool)
    if not properties_of(schema):
        yield f"{_INDENT}Parameters: none"
        return
    yield f"{_INDENT}Parameters:"
    size = 0
    for line in _parameters(schema, 2):
        size += len(line)
        if size > MAX_TOOL:
            yield f"{_INDENT * 2}…"
            return
        yield line


def _parameters(schema: dict[str, Any], depth: int) -> Iterator[str]:
    if depth > MAX_NESTED + 2:
        yield f"{_INDENT * depth}…"
        return
    required = schema.get("required")
    wanted = required if isinstance(required, list) else []
    for name, inner in properties_of(schema).items():
        need = "required" if name in wanted else "optional"
        described = inner.get("description") if isinstance(inner, dict) else None
        text = f" - {on_one_line(described)}" if isinstance(described, str) and described else ""
        label = json_text(on_one_line(name))
        yield f"{_INDENT * depth}{label}: {describe_type(inner)} ({need}){text}"
        yield from _nested(inner, depth + 1)


def _nested(schema: Any, depth: int) -> Iterator[str]:
    """The fields of an object, or of the objects in a list."""
    for _ in range(MAX_NESTED):
        if properties_of(schema):
            yield from _parameters(schema, depth)
            return
        if not isinstance(schema, dict):
            return
        schema = schema.get("items")


def describe_type(schema: Any, depth: int = 0) -> str:
    if not isinstance(schema, dict) or depth > MAX_NESTED:
        return "any"
    values = schema.get("enum")
    if isinstance(values, list) and values:
        listed = ", ".join(on_one_line(_value(value)) for value in values[:MAX_VALUES])
        return f"one of {listed}" + (" …" if len(values) > MAX_VALUES else "")
    named = " or ".join(on_one_line(kind) for kind in types_of(schema)) or "any"
    items = schema.get("items")
    return f"{named} of {describe_type(items, depth + 1)}" if isinstance(items, dict) else named


def _value(value: Any) -> str:
    try:
        return json_text(value)
    except ValueError:
        return "…"


def on_one_line(text: str) -> str:
    """On one line, so that foreign text cannot look like the instructions' own."""
    line = " ".join(text[: MAX_DESCRIPTION + 1].split())
    return line[:MAX_DESCRIPTION] + "…" if len(text) > MAX_DESCRIPTION else line
