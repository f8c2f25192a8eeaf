"""What a tool's function returns or raises, as the result that the store has after a run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import InlineData, Text, ToolResult, tool
from recollect.entries import FileRef
from recollect.testing import call, says
from recollect.tools.tool import ToolContext, ToolOutput
from tests.tools.agent_runs import run_script, run_tool

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


class Colour(Enum):
    RED = "red"


@dataclass
class Place:
    name: str
    at: tuple[float, float]


class Weather(msgspec.Struct):
    city: str
    degrees: float


class Pair(NamedTuple):
    one: int
    two: str


class Model:
    """As pydantic's models are."""

    def model_dump(self) -> dict[str, Any]:
        return {"day": date(2026, 11, 16), "colour": Colour.RED}


class Word(str):
    __slots__ = ()


def text(result: ToolResult) -> str:
    assert all(isinstance(part, Text) for part in result.content)
    return "".join(part.text for part in result.content if isinstance(part, Text))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("as it is\n", "as it is\n"),
        ("", ""),
        (None, "null"),
        (True, "true"),
        (7, "7"),
        (0.5, "0.5"),
        ({"a": [1, None, "é"]}, '{"a": [1, null, "é"]}'),
        ({1: "one"}, '{"1": "one"}'),
        (["x", "y"], '["x", "y"]'),
        ((1, 2), "[1, 2]"),
        (range(3), "[0, 1, 2]"),
        (MappingProxyType({"a": 1}), '{"a": 1}'),
        (Place("Oslo", (59.9, 10.7)), '{"name": "Oslo", "at": [59.9, 10.7]}'),
        (Weather("Oslo", 3.5), '{"city": "Oslo", "degrees": 3.5}'),
        (Pair(1, "b"), '[1, "b"]'),
        (Model(), '{"day": "2026-11-16", "colour": "red"}'),
        ([Model()], '[{"day": "2026-11-16", "colour": "red"}]'),
        (date(2026, 11, 16), '"2026-11-16"'),
        (Decimal("1.50"), '"1.50"'),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (Colour.RED, '"red"'),
        (Path("/a/b"), '"/a/b"'),
        ({"at": Path("b"), "w": Word("x")}, '{"at": "b", "w": "x"}'),
        (Word("word"), "word"),
        (b"bytes that are text", "bytes that are text"),
        (10**30, "1" + "0" * 30),
        (float("nan"), "NaN"),
        ("lone \ud800", "lone \ud800"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_json_like_value_is_a_result(tmp_path: Path, value: object, shown: str) -> None:
    @tool
    def give() -> object:
        """Gives it."""
        return value

    result = run_tool(tmp_path, give)
    assert (text(result), result.is_error, result.status) == (shown, False, "success")


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (PNG, (InlineData(mime="image/png", data=PNG),)),
        (Text(text="part"), (Text(text="part"),)),
        (["see", FileRef(mime="text/plain", uri="file:///a")], None),
        (ToolOutput(content=(Text(text="x"),), status="fine"), (Text(text="x"),)),
        (ToolOutput(content=[Text(text="x")]), (Text(text="x"),)),  # type: ignore[arg-type]
        (ToolOutput(content="x"), (Text(text="x"),)),  # type: ignore[arg-type]
        (ToolOutput(), ()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_content_parts_and_images_stay_what_they_are(
    tmp_path: Path, value: object, content: tuple[Any, ...] | None
) -> None:
    @tool
    async def give() -> object:
        """Gives it."""
        return value

    result = run_tool(tmp_path, give)
    assert not result.is_error
    wanted = content
    if wanted is None:
        wanted = (Text(text="see"), FileRef(mime="text/plain", uri="file:///a"))
    assert result.content == wanted


class Opaque:
    pass


def _contains_itself() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (Opaque(), "test_tool_result.Opaque"),
        ({"deep": [Opaque()]}, "Opaque"),
        ({(1, 2): "x"}, "dict"),
        ((n for n in range(3)), "generator"),
        (lambda: 1, "function"),
        (Opaque, "type"),
        (object(), "object"),
        (asyncio, "module"),
        (b"\x00\xff\xfe", "3 bytes"),
        (_contains_itself(), "list"),
        (Text(text=5), "Text"),  # type: ignore[arg-type]
        (ToolOutput(content=(Opaque(),)), "Opaque"),  # type: ignore[arg-type]
        (ToolOutput(content=7, status=Opaque()), ""),  # type: ignore[arg-type]
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_other_value_is_an_error_that_names_its_type(
    tmp_path: Path, value: object, named: str
) -> None:
    @tool
    def give() -> object:
        """Gives it."""
        return value

    result = run_tool(tmp_path, give)
    assert named in text(result)
    if named:
        assert result.is_error
        assert text(result).startswith("Error: give returned ")


@pytest.mark.parametrize(
    "error",
    [SystemExit(3), StopIteration("x"), asyncio.CancelledError(), ZeroDivisionError("oh")],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("in_thread", [True, False])
def test_no_exception_of_a_tool_ends_the_run(
    tmp_path: Path, error: BaseException, in_thread: bool
) -> None:
    def fail() -> str:
        """Fails."""
        raise error

    async def fail_async() -> str:
        """Fails."""
        raise error

    result = run_tool(tmp_path, tool(fail if in_thread else fail_async, name="fail"))
    assert result.is_error
    assert "fail" in text(result)


def test_a_function_that_returns_an_awaitable_is_awaited(tmp_path: Path) -> None:
    async def later() -> int:
        return 5

    @tool
    def give() -> object:
        """Gives it later."""
        return later()

    assert text(run_tool(tmp_path, give)) == "5"


def test_one_bad_result_beside_good_ones_leaves_every_call_with_its_own(tmp_path: Path) -> None:
    @tool
    def give(what: str) -> object:
        """Gives it.

        what: good or bad
        """
        return what if what == "good" else Opaque()

    calls = [call("give", id=f"c{n}", what=what) for n, what in enumerate(["good", "bad", "good"])]
    results = run_script(tmp_path, [says(*calls), "done"], tools=(give,))
    assert [result.is_error for result in results] == [False, True, False]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=9,
)


@given(JSON_VALUES)
def test_json_comes_back_from_the_result_as_it_was(value: object) -> None:
    @tool
    def give() -> object:
        """Gives it."""
        return value

    output = asyncio.run(give("{}", ToolContext((Path(),))))
    (part,) = output.content
    assert isinstance(part, Text)
    assert not output.is_error
    assert (part.text if isinstance(value, str) else json.loads(part.text)) == value


def test_a_result_has_a_limit(tmp_path: Path) -> None:
    @tool
    def give() -> str:
        """Gives too much."""
        return "x" * 100_000_001

    assert "the limit is 100,000,000" in text(run_tool(tmp_path, give))


def test_mappings_of_other_kinds_are_read(tmp_path: Path) -> None:
    class Lazy(Mapping[str, int]):
        def __getitem__(self, key: str) -> int:
            return len(key)

        def __iter__(self) -> Any:
            return iter(("a", "bb"))

        def __len__(self) -> int:
            return 2

    @tool
    def give() -> object:
        """Gives it."""
        return Lazy()

    assert json.loads(text(run_tool(tmp_path, give))) == {"a": 1, "bb": 2}
