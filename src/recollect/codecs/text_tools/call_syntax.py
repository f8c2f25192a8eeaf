"""The meaning of a candidate's text: calls, a broken call, or no call at all.

Only declared names are calls. `{"tool_call": {…}}` is plainly meant as a call, so the model is told
what is wrong with it; a bare `{"name", "arguments"}` that does not fit is just JSON. `parameters`
and `args` stand for `arguments`, and arguments may be an object in a string, as in OpenAI's format.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, NamedTuple, TypeAlias

from recollect.codecs.fixes import quote_text
from recollect.codecs.text_tools.lenient_json import JsonRepairer

MAX_NAMED = 20  # tools that a problem lists
_ARGUMENTS = ("arguments", "parameters", "args")
_BARE_KEYS = frozenset((*_ARGUMENTS, "name", "id", "type"))
_PARAMETER_END = re.compile(r"</parameter>\s{0,64}(?=<parameter=|\Z)")
_PARAMETER = re.compile(r"\s{0,64}<parameter=([^>\n]{1,100})>")


class ParsedCall(NamedTuple):
    name: str
    arguments: dict[str, Any]


class CallProblem(NamedTuple):
    text: str  # empty if no call was meant


ParseOutcome: TypeAlias = tuple[ParsedCall, ...] | CallProblem
NO_CALL = CallProblem("")


def parse_calls(value: Any, names: Collection[str], repairer: JsonRepairer) -> ParseOutcome:
    """All calls of a JSON value, or none and why."""
    items = value if isinstance(value, list) else [value]
    found: list[ParsedCall] = []
    for item in items:
        outcome = _parse_call(item, names, repairer)
        if isinstance(outcome, CallProblem):
            return outcome
        found.append(outcome)
    return tuple(found) or NO_CALL


def parse_function_call(name: str, body: str) -> ParseOutcome:
    """`<parameter=K>value</parameter>` …, up to `</function>`. Values are plain text."""
    arguments: dict[str, Any] = {}
    pieces = _PARAMETER_END.split(body.strip())
    if pieces.pop().strip():
        return CallProblem(f"a parameter of {quote_text(name)} has no closing </parameter>")
    for piece in pieces:
        opening = _PARAMETER.match(piece)
        if opening is None:
            return CallProblem(
                f"the call of {quote_text(name)} has text where <parameter=…> is expected"
            )
        value = piece[opening.end() :]
        # the tags are on lines of their own; those line ends are not part of the value
        arguments[opening[1].strip()] = value.removeprefix("\n").removesuffix("\n")
    return (ParsedCall(name, arguments),)


def _parse_call(
    value: Any, names: Collection[str], repairer: JsonRepairer
) -> ParsedCall | CallProblem:
    if not isinstance(value, dict):
        return NO_CALL
    explicit = "tool_call" in value
    call = value["tool_call"] if explicit else value
    if not isinstance(call, dict):
        return CallProblem("tool_call must be an object with name and arguments")
    key = next((key for key in _ARGUMENTS if key in call), "")
    if not explicit and (not key or not call.keys() <= _BARE_KEYS):
        return NO_CALL
    name = call.get("name")
    if not isinstance(name, str) or name not in names:
        return CallProblem(_describe_unknown(name, names)) if explicit else NO_CALL
    arguments = call.get(key, {})
    if isinstance(arguments, str):
        arguments = repairer.read(arguments)
    if arguments is None:
        arguments = {} if call.get(key) in (None, "") else arguments
    if not isinstance(arguments, dict):
        return CallProblem(f"the arguments of {quote_text(name)} must be a JSON object")
    return ParsedCall(name, arguments)


def _describe_unknown(name: object, names: Collection[str]) -> str:
    known = sorted(names)
    listed = ", ".join(known[:MAX_NAMED]) + (" …" if len(known) > MAX_NAMED else "")
    said = quote_text(name) if isinstance(name, str) else "no name"
    return f"there is no tool {said}; the tools are {listed or 'none'}"
