"""Writes docs/api.md: every public name with its signature and docstring, by subject.

    .venv/bin/python scripts/api_reference.py

The subjects and their order are those of `help(recollect)`. The text is the same on every machine;
a test fails when the file is out of date or a docstring is missing (`missing_docstrings`).
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ForwardRef, get_overloads

import msgspec

import recollect
from recollect import api

PAGE = Path(__file__).parent.parent / "docs" / "api.md"
MODULES = ("entries", "events", "hook_events", "errors", "engine", "testing")
_EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.M)
HEAD = """# API reference

`scripts/api_reference.py` writes this page from the docstrings. `import recollect` has all of these
names, and `help(recollect)` lists them. What fewer programs need is in [modules](#more-modules).
"""


def groups() -> dict[str, list[str]]:
    """The public names by subject, as the docstring of the package lists them."""
    found: dict[str, list[str]] = {}
    for line in (recollect.__doc__ or "").splitlines():
        if re.fullmatch(r"[A-Z][a-z]+", line):
            found[line] = []
        elif found and (name := re.match(r"    (\w+) +\S", line)):
            found[list(found)[-1]].append(name[1])
    return found


def missing_docstrings() -> list[str]:
    """Public names, and public methods of public classes, without a docstring of their own."""
    return [path for name in api.__all__ for path, text in _documented(name) if not text]


def _documented(name: str) -> Iterator[tuple[str, str]]:
    value = getattr(recollect, name)
    yield name, _docstring(value)
    if inspect.isclass(value):
        yield from ((f"{name}.{key}", _docstring(found)) for key, found in _members(value))


def _docstring(value: object) -> str:
    """As written; nothing for what a class inherits or Python made up."""
    text = value.__dict__.get("__doc__") if isinstance(value, type) else value.__doc__
    return _EXAMPLE.sub(r"```pycon\n\g<0>\n```", inspect.cleandoc(text)) if text else ""


def _members(owner: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties, in the order of the source, those of a parent last."""
    seen: set[str] = set()
    for kind in owner.__mro__:
        if not kind.__module__.startswith("recollect"):
            continue
        for key, found in vars(kind).items():
            function = found.fget if isinstance(found, property) else found
            function = getattr(function, "__func__", function)
            if key.startswith("_") or key in seen or not inspect.isfunction(function):
                continue
            seen.add(key)
            yield key, found if isinstance(found, property) else function


def _signatures(name: str, function: Any) -> str:
    """Those of its overloads, if there are any."""
    return "\n".join(_signature(name, each) for each in get_overloads(function) or [function])


def _signature(name: str, function: Any) -> str:
    """With the annotations as they are written, one parameter to a line if it is long."""
    found = inspect.signature(function)
    parameters = [_parameter(p) for p in found.parameters.values() if p.name != "self"]
    kinds = [p.kind for p in found.parameters.values() if p.name != "self"]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        parameters.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    if inspect.Parameter.POSITIONAL_ONLY in kinds:
        count = kinds.count(inspect.Parameter.POSITIONAL_ONLY)
        parameters.insert(count, "/")
    empty, returns = inspect.Signature.empty, ""
    if found.return_annotation is not empty:
        returns = f" -> {_type(found.return_annotation)}"
    is_context = inspect.isasyncgenfunction(getattr(function, "__wrapped__", None))
    if is_context:
        name, returns = f"async with {name}", returns.replace("AsyncIterator[", "")[:-1]
    line = f"{name}({', '.join(parameters)}){returns}"
    if len(line) > 88 and parameters:
        inner = "".join(f"    {each},\n" for each in parameters)
        line = f"{name}(\n{inner}){returns}"
    is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    return f"async {line}" if is_async and not is_context else line


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
    text = stars.get(parameter.kind, "") + parameter.name
    if parameter.annotation is not parameter.empty:
        text += f": {_type(parameter.annotation)}"
    if parameter.default is not parameter.empty:
        text += f" = {_default(parameter.default)}"
    return text


def _type(annotation: object) -> str:
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        return annotation
    name = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return re.sub(r"\b[a-z_]+(?:\.\w+)*\.(?=\w)", "", name)


def _default(value: object) -> str:
    """A default without an address in memory or a path of this machine."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if value is None or isinstance(value, int | float | tuple):
        return repr(value)
    if isinstance(value, msgspec.Struct):
        return f"{type(value).__name__}()"
    name = str(getattr(value, "__name__", "_"))
    return "…" if name.startswith(("_", "<")) else name


def _fields(owner: type) -> Iterator[str]:
    """The fields of a value class, with the types as written, defaults, and comments beside."""
    is_value = issubclass(owner, msgspec.Struct) or dataclasses.is_dataclass(owner)
    if not is_value and not hasattr(owner, "_fields"):
        return
    kinds = [kind for kind in reversed(owner.__mro__) if kind.__module__.startswith("recollect")]
    types: dict[str, object] = {}
    comments: dict[str, str] = {}
    for kind in kinds:
        types |= vars(kind).get("__annotations__", {})
        for line in inspect.getsource(kind).splitlines():
            if match := re.match(r"    (\w+): [^#]*#\s*(?!noqa|type:)(.*)", line):
                comments[match[1]] = match[2]
    for key, parameter in inspect.signature(owner).parameters.items():
        comment = f"  # {comments[key]}" if key in comments else ""
        yield _parameter(parameter.replace(annotation=types[key])) + comment


def _function_text(function: Any) -> str:
    """The docstring, with its descriptions of parameters as a list."""
    known, lines = set(inspect.signature(function).parameters), list[str]()
    for line in _docstring(function).splitlines():
        named = re.match(r"(\w+(?:, \w+)*): (.*)", line)
        if named and set(named[1].split(", ")) <= known:
            if lines and lines[-1] and not lines[-1].startswith(("- ", " ")):
                lines.append("")
            lines.append(f"- `{named[1]}`: {named[2]}")
        else:
            lines.append(line)
    return "\n".join(lines)


def _class_section(name: str, value: type) -> Iterator[str]:
    if issubclass(value, BaseException):
        bases = [base.__name__ for base in value.__mro__[1:] if base is not object]
        yield f"```python\nclass {name}({bases[0]})\n```\n"
    elif fields := list(_fields(value)):
        yield "```python\nclass {}:\n{}\n```\n".format(name, "\n".join(f"    {f}" for f in fields))
    yield f"{_docstring(value)}\n"
    for key, found in _members(value):
        is_property = isinstance(found, property)
        shown = f"{name}.{key}" if is_property else _signatures(f"{name}.{key}", found)
        returns = inspect.signature(found.fget).return_annotation if is_property else ""  # type: ignore[arg-type]
        yield f"```python\n{shown}{f': {_type(returns)}' if is_property else ''}\n```\n"
        yield f"{_docstring(found) if is_property else _function_text(found)}\n"


def _module_section(name: str) -> Iterator[str]:
    module = importlib.import_module(f"recollect.{name}")
    names = getattr(module, "__all__", None) or [
        key
        for key, value in vars(module).items()
        if not key.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]
    first = inspect.cleandoc(module.__doc__ or "").split("\n\n")[0].replace("\n", " ")
    yield f"### recollect.{name}\n"
    yield f"{first}\n"
    yield ", ".join(f"`{each}`" for each in sorted(names)) + "\n"


def build_page() -> str:
    """The whole page."""
    parts = [HEAD]
    for subject, names in groups().items():
        parts.append(f"## {subject}\n")
        for name in names:
            value = getattr(recollect, name)
            parts.append(f"### {name}\n")
            if inspect.isclass(value):
                parts += _class_section(name, value)
            else:
                parts.append(f"```python\n{_signatures(name, value)}\n```\n")
                parts.append(f"{_function_text(value)}\n")
    parts.append("## More modules\n")
    parts += [section for name in MODULES for section in _module_section(name)]
    return "\n".join(parts)


if __name__ == "__main__":
    if missing := missing_docstrings():
        sys.exit(f"no docstring: {', '.join(missing)}")
    PAGE.write_text(build_page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(Path.cwd()) if PAGE.is_relative_to(Path.cwd()) else PAGE}")
