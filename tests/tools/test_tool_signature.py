"""What can become a tool, and the sentence for what cannot. Annotations are texts in this file."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional, TypedDict

import msgspec
import pytest

from recollect import RecollectError, Text, Tool, tool
from recollect.errors import BadTool
from recollect.tools import tool as tools

if TYPE_CHECKING:
    from recollect.tools.tool import ToolContext


def properties(one: Tool) -> Any:
    return json.loads(one.declaration.parameters)["properties"]


def answer(one: Tool, arguments: str) -> str:
    (part,) = asyncio.run(one(arguments, tools.ToolContext((Path("/work"),)))).content
    assert isinstance(part, Text)
    return part.text


def test_a_bare_tool_and_one_with_options() -> None:
    @tool
    def weather(city: str, days: int = 1) -> str:
        """The weather of a city."""
        return f"{city} {days}"

    @tool(effect="write", name="send-mail", description="Sends it.")
    def send(to: str) -> None:
        """Not read."""

    assert (weather.name, weather.effect) == ("weather", "read")
    assert answer(weather, '{"city": "Oslo", "days": null}') == "Oslo 1"
    declared = send.declaration
    assert (declared.name, declared.description, send.effect) == ("send-mail", "Sends it.", "write")


def test_local_types_are_found_and_decoded() -> None:
    @dataclass
    class Point:
        x: int

    class Colour(Enum):
        RED = "red"

    class Options(TypedDict):
        deep: bool

    @tool
    def draw(
        at: Point,
        colour: Colour,
        options: Options,
        mode: Literal["a", "b"],
        day: date,
        more: Optional[int] = None,  # noqa: UP045 - as people write it
        names: list[str] = ["x"],  # noqa: B006 - as people write it
        file: Path = Path("a"),
    ) -> str:
        """Draws."""
        return f"{at.x} {colour.name} {options['deep']} {mode} {day.year} {more} {names} {file}"

    assert properties(draw)["file"] == {"type": "string", "format": "path", "default": "a"}
    given = {"at": {"x": 1}, "colour": "red", "options": {"deep": True}, "mode": "a"}
    given |= {"day": "2026-11-16"}
    assert answer(draw, json.dumps(given)) == "1 RED True a 2026 None ['x'] a"
    assert answer(draw, json.dumps(given | {"file": "b"})).endswith(" b")
    assert answer(draw, json.dumps(given | {"file": 5})).startswith("Error: ")


@pytest.mark.parametrize(
    "doc",
    [
        "Does it.\n\nx: the x,\n  on two lines\ny: the y",
        "Does it.\n\nArgs:\n    x (str): the x,\n        on two lines\n    y: the y",
        "Does it.\n\n:param x: the x, on two lines\n:type x: str\n:param int y: the y",
    ],
)
def test_docstrings_of_three_styles_describe_the_parameters(doc: str) -> None:
    def work(x: str, y: int = 0) -> str:
        return x * y

    work.__doc__ = doc
    one = tool(work)
    described = {key: value["description"] for key, value in properties(one).items()}
    assert described == {"x": "the x, on two lines", "y": "the y"}
    assert one.declaration.description == "Does it."


def test_annotated_describes_a_parameter_and_wins_over_the_docstring() -> None:
    @tool
    def work(
        x: Annotated[str, "the x"], y: Annotated[int, msgspec.Meta(ge=1, description="the y")]
    ) -> str:
        """Works.

        x: something else
        """
        return x * y

    assert properties(work)["x"]["description"] == "the x"
    assert properties(work)["y"] == {"type": "integer", "minimum": 1, "description": "the y"}


def test_the_context_is_found_when_only_type_checkers_import_it() -> None:
    @tool
    def where(context: ToolContext | None = None) -> str:
        """Says where."""
        return str(context and context.root)

    assert properties(where) == {}
    assert answer(where, "{}") == "/work"


class Account:
    def balance(self, currency: str) -> str:
        """The balance."""
        return currency

    async def __call__(self, amount: int) -> str:
        """Pays."""
        return str(amount)


def _pay(amount: int, key: str) -> str:
    """Pays."""
    return f"{amount} with {key}"


def test_methods_objects_and_partials_work_and_hide_what_is_given_already() -> None:
    assert answer(tool(Account().balance), '{"currency": "NOK"}') == "NOK"
    assert answer(tool(Account(), name="pay"), '{"amount": 5}') == "5"
    paid = tool(partial(_pay, key="secret"))
    assert answer(paid, '{"amount": 5}') == "5 with secret"
    assert "key" not in paid.declaration.parameters
    assert answer(paid, '{"amount": 5, "key": "other"}').startswith("Error: ")


def _untyped(x):  # type: ignore[no-untyped-def]
    return x


def _many(*x: int) -> None: ...


def _named(**x: int) -> None: ...


def _by_position(x: int, /) -> None: ...


def _undefined(x: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


def _complex(x: complex) -> None: ...


async def _generator() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (_untyped, "_untyped cannot become a tool: its parameter `x` has no type; write `x: str`"),
        (_many, "`x` takes any number of arguments; write `x: list"),
        (_named, "`x` takes arguments of any name"),
        (_by_position, "remove the `/`"),
        (_undefined, "`Nowhere` is not defined"),
        (_complex, "complex; use str, int"),
        (_generator, "it is a generator"),
        (Account.balance, "it is a method without its object"),
        (Account(), "give one: `tool"),
        (lambda: 1, "give one: `tool"),
        (Account, "it is not a function"),
        (tool(_pay), "it is a tool already"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_function_that_cannot_become_a_tool_is_refused_where_it_is_decorated(
    function: Any, why: str
) -> None:
    with pytest.raises(BadTool) as refused:
        tool(function)
    assert why in str(refused.value)
    assert isinstance(refused.value, RecollectError)
    assert isinstance(refused.value, TypeError)


def test_an_unknown_effect_is_refused() -> None:
    with pytest.raises(BadTool, match="no effect 'reed'; the effects are 'read', 'write', 'run'"):
        tool("reed")(_pay)  # type: ignore[call-overload]
