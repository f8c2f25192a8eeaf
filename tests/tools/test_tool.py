"""A tool's declaration, compared with msgspec's own schema, and how a tool is called."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import Text
from recollect.tools import builtin
from recollect.tools.tool import Tool, ToolContext, tool

BUILTIN = [value for value in vars(builtin).values() if isinstance(value, Tool)]
KINDS: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=5),
    int: st.integers(-9, 9),
    float: st.floats(-9, 9),
    bool: st.booleans(),
    int | None: st.none() | st.integers(-9, 9),
    Literal["one", "other"]: st.sampled_from(["one", "other"]),
    tuple[str, ...]: st.tuples(st.text(max_size=3)),
}
_NO = object()


def by_msgspec(kind: type[msgspec.Struct]) -> Any:
    """The schema of a flat struct, without its name."""
    schema = msgspec.json.schema(kind)
    (found,) = schema["$defs"].values()
    flat = {key: value for key, value in found.items() if key != "title"}
    return json.loads(json.dumps(flat))


def made(parameters: Sequence[tuple[Any, Any]], lines: Sequence[str]) -> Tool:
    """A tool with these kinds of parameters, their defaults, and lines of a docstring."""

    async def work(**given: Any) -> str:
        return json.dumps(given, sort_keys=True, default=list)

    work.__doc__ = "\n".join(["Works.", "", *lines])
    work.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                f"p{n}",
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if default is _NO else default,
                annotation=kind,
            )
            for n, (kind, default) in enumerate(parameters)
        ]
    )
    return tool("read", "work")(work)


@st.composite
def tools(draw: st.DrawFn) -> Tool:
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), max_size=5))
    parameters = [(kind, draw(st.just(_NO) | KINDS[kind])) for kind in kinds]
    lines = [f"p{n}: the {n}th" for n in range(len(kinds)) if draw(st.booleans())]
    return made(parameters, lines)


@given(tools())
def test_the_schema_of_a_tool_is_what_msgspec_says_of_its_arguments(one: Tool) -> None:
    assert json.loads(one.declaration.parameters) == by_msgspec(one.arguments)


@pytest.mark.parametrize("one", BUILTIN, ids=lambda one: one.name)
def test_a_schema_has_every_parameter_and_no_reference(one: Tool) -> None:
    schema = json.loads(one.declaration.parameters)
    assert list(schema["properties"]) == list(one.arguments.__struct_fields__)
    assert "$ref" not in json.dumps(schema)


def test_the_context_is_recognized_by_its_type_and_is_not_the_models(tmp_path: Path) -> None:
    @tool("read")
    def look(path: str, where: ToolContext) -> str:
        """Looks."""
        return f"{path} in {where.root}"

    assert list(json.loads(look.declaration.parameters)["properties"]) == ["path"]
    output = asyncio.run(look('{"path": "a"}', ToolContext((tmp_path,))))
    assert output.content == (Text(text=f"a in {tmp_path}"),)


def test_a_parameter_that_contains_itself_is_refused() -> None:
    with pytest.raises(TypeError, match="must not contain themselves"):
        made([(Nested, _NO)], [])


class Nested(msgspec.Struct):
    below: tuple[Nested, ...] = ()


def test_arguments_that_do_not_fit_are_an_error_for_the_model(tmp_path: Path) -> None:
    one = made([(int, 3)], [])
    context = ToolContext((tmp_path,))
    assert asyncio.run(one('{"p0": 4}', context)).content[0].text == '{"p0": 4}'  # type: ignore[union-attr]
    for wrong in ('{"p0": "x"}', '{"p1": 1}', "[]", "{"):
        output = asyncio.run(one(wrong, context))
        assert output.is_error
        assert output.content[0].text.startswith("Error: ")  # type: ignore[union-attr]
