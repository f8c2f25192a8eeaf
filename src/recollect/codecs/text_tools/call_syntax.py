"""The meaning of a candidate's text: calls, calls that cannot run, or no call at all.

Only declared names are calls. `{"tool_call": {…}}` is plainly meant as a call, so the model is told
what is wrong with it; a bare `{"name", "arguments"}` with another name is just JSON. `parameters`
and `args` stand for `arguments`, and arguments may be an object in a string, as in OpenAI's format.
A call runs only if its arguments fit the declared schema. Two readings of one call are none: it
does not run if it has two sets of arguments, arguments beside them, or a tag inside a value.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, NamedTuple, TypeAlias

from recollect.codecs.argument_names import find_name_conflict
from recollect.codecs.fixes import quote_text
from recollect.codecs.text_tools.argument_check import find_argument_problem
from recollect.codecs.text_tools.argument_coercion import DeclaredTools, properties_of
from recollect.codecs.text_tools.lenient_json import JsonDamage, JsonRepairer
from recollect.entries import json_text

MAX_NAMED = 20  # tools that a problem lists
_ARGUMENTS = ("arguments", "parameters", "args")
_BARE_KEYS = frozenset((*_ARGUMENTS, "name", "id", "type"))
_PARAMETER_END = re.compile(r"</parameter>\s{0,64}(?=<parameter=|\Z)")
_PARAMETER = re.compile(r"\s{0,64}<parameter=([^>\n]{1,100})>")
_INNER_TAG = re.compile(r"<(?:parameter|function)=")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NAME = re.compile(r"[\"']name[\"']\s{0,8}:\s{0,8}[\"']([^\"'\n]{1,64})[\"']")
_HEAD = 400  # characters in which a call names its tool
_ANY_ARGUMENTS = re.compile(r"[\"'](?:arguments|parameters|args)[\"']")


class ParsedCall(NamedTuple):
    name: str
    arguments: dict[str, Any]  # as the tool expects them


class CallProblem(NamedTuple):
    text: str  # empty if no call was meant
    source: str = ""  # of one call among others: what stays in its place


# Calls, and calls of the same list that cannot run; or the one reason why nothing runs.
ParseOutcome: TypeAlias = tuple[ParsedCall | CallProblem, ...]
NO_CALL = CallProblem("")


def parse_calls(value: Any, tools: DeclaredTools, repairer: JsonRepairer) -> ParseOutcome:
    """The calls of a JSON value."""
    if not isinstance(value, list):
        return (_parse_call(value, tools, repairer),)
    outcomes = [_parse_call(item, tools, repairer) for item in value]
    meant = [number for number, outcome in enumerate(outcomes) if outcome != NO_CALL]
    if not meant:
        return (NO_CALL,)
    strays = [item for item, outcome in zip(value, outcomes, strict=True) if outcome == NO_CALL]
    if any(not _is_bare_call(item) for item in strays):
        explicit = any(isinstance(item, dict) and "tool_call" in item for item in value)
        return (CallProblem("a list of calls holds something else") if explicit else NO_CALL,)
    found: list[ParsedCall | CallProblem] = []
    for item, outcome in zip(value, outcomes, strict=True):
        if isinstance(outcome, ParsedCall):
            found.append(outcome)
        else:
            problem = outcome.text or _describe_unknown(item.get("name"), tools.names)
            found.append(CallProblem(problem, json_text(item)))
    return tuple(found)


def parse_function_call(name: str, body: str, tools: DeclaredTools) -> ParsedCall | CallProblem:
    """`<parameter=K>value</parameter>` …, up to `</function>`. Values are plain text."""
    if name not in tools.names:
        return CallProblem(_describe_unknown(name, tools.names))
    arguments: dict[str, Any] = {}
    written = body.strip()
    if written and not _PARAMETER.match(written):
        return not_run(name, f"<parameter=…> is expected before {quote_text(written[:20])}")
    pieces = _PARAMETER_END.split(written)
    if pieces.pop().strip():
        return not_run(name, "a parameter has no closing </parameter>")
    for piece in pieces:
        opening = _PARAMETER.match(piece)
        if opening is None:
            return not_run(name, "there is text where <parameter=…> is expected")
        key, value = opening[1].strip(), piece[opening.end() :]
        if _INNER_TAG.search(value):
            why = f"{quote_text(key)} holds a tag of calls; write this call as a block of JSON"
            return not_run(name, why)
        if _SURROGATE.search(value):
            return not_run(name, f"{quote_text(key)} holds half of a surrogate pair")
        # the tags are on lines of their own; those line ends are not part of the value
        value = value.removeprefix("\n").removesuffix("\n")
        if arguments.setdefault(key, value) != value:
            return not_run(name, f"the parameter {quote_text(key)} has two values")
    return _fit(name, arguments, tools)


def describe_damage(text: str, damage: JsonDamage) -> CallProblem:
    """For a call whose JSON cannot be read."""
    return not_run(find_name(text), damage.problem)


def describe_cut(text: str) -> CallProblem:
    """For a call that the end of the reply cut off."""
    return not_run(find_name(text), "it was cut off before its end")


def not_run(name: str, why: str) -> CallProblem:
    which = f"the call of {quote_text(name)}" if name else "a call"
    return CallProblem(f"{which} was not run: {why}")


def find_name(text: str) -> str:
    """The tool that a damaged call names."""
    found = _NAME.search(text[:_HEAD])
    return found[1] if found else ""


def is_begun_bare_call(text: str, names: Collection[str]) -> bool:
    """Whether an object that cannot be read names a declared tool and its arguments."""
    return find_name(text) in names and _ANY_ARGUMENTS.search(text[:_HEAD]) is not None


def _parse_call(
    value: Any, tools: DeclaredTools, repairer: JsonRepairer
) -> ParsedCall | CallProblem:
    if not isinstance(value, dict):
        return NO_CALL
    explicit = "tool_call" in value
    call = value["tool_call"] if explicit else value
    if not isinstance(call, dict):
        return CallProblem("tool_call must be an object with name and arguments")
    if not explicit and not _is_bare_call(call):
        return NO_CALL
    name = call.get("name")
    if not isinstance(name, str) or name not in tools.names:
        return CallProblem(_describe_unknown(name, tools.names)) if explicit else NO_CALL
    keys = [key for key in _ARGUMENTS if key in call]
    if len({repr(call[key]) for key in keys}) > 1:
        return not_run(name, f"it has {' and '.join(keys)}; write one of them")
    known = properties_of(tools.schema(name))
    beside = [key for key in call if key in known and key not in _BARE_KEYS]
    if beside or (not keys and not call.keys() <= _BARE_KEYS):
        return not_run(name, f"{quote_text(next(iter(beside), 'a key'))} stands beside arguments")
    arguments = _read_arguments(call.get(keys[0]) if keys else None, repairer)
    if isinstance(arguments, JsonDamage):
        return not_run(name, f"its arguments are a string that is not JSON: {arguments.problem}")
    if not isinstance(arguments, dict):
        return not_run(name, "its arguments must be a JSON object")
    return _fit(name, arguments, tools)


def _is_bare_call(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("name"), str)
        and any(key in value for key in _ARGUMENTS)
        and value.keys() <= _BARE_KEYS
    )


def _read_arguments(given: Any, repairer: JsonRepairer) -> Any:
    if given in (None, ""):
        return {}
    # the string was closed, so brackets that are missing in it were never written
    return repairer.read(given, complete=False) if isinstance(given, str) else given


def _fit(name: str, arguments: dict[str, Any], tools: DeclaredTools) -> ParsedCall | CallProblem:
    fitted = tools.fit(name, arguments)
    schema = tools.schema(name)
    problem = find_name_conflict(name, fitted, properties_of(schema))
    problem = problem or find_argument_problem(fitted, schema)
    return not_run(name, problem) if problem else ParsedCall(name, fitted)


def _describe_unknown(name: object, names: Collection[str]) -> str:
    known = sorted(names)
    listed = ", ".join(known[:MAX_NAMED]) + (" …" if len(known) > MAX_NAMED else "")
    said = quote_text(name) if isinstance(name, str) else "no name"
    return f"there is no tool {said}; the tools are {listed or 'none'}"
