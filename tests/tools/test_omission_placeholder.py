"""Lines that stand for text which a model left out are found, and ordinary lines are not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from recollect.tools.omission_placeholder import find_omissions, first_new_omission
from tests.growth import is_linear

# those of Gemini CLI, which refuses the same lines
UPSTREAM = [
    "(rest of methods ...)",
    "(rest of code ...)",
    "(unchanged code ...)",
    "// rest of methods ...",
    "# rest of methods ...",
    "-- rest of methods ...",
    "/* rest of methods ... */",
    "(Rest Of Methods ...)",
    "rest of ...",
    "unchanged methods....",
]
OURS = [
    "(rest of code unchanged)",
    "// ... existing code ...",
    "# ... rest of the code remains the same ...",
    "    # ... (rest of the function unchanged)",
    "// … rest of the file …",
    "<!-- rest of the file unchanged -->",
    "{/* ... existing code ... */}",
    "// Rest of the implementation stays the same",
    "/* remaining methods unchanged */",
    "// ... rest of the existing imports",
    "[... rest of file unchanged ...]",
    "# The rest of the class is unchanged.",
    "// previous code remains unchanged",
]
ORDINARY = [
    "",
    "...",
    "    ...",
    "# ...",
    "// ...",
    "/* ... */",
    "def f(x): ...",
    "const { a, ...rest } = props;",
    "return { ...existing, code };",
    "call(...rest of)",
    'const note = "(rest of methods ...)";',
    "return value; // rest of methods ...",
    'const message = "loading...";',
    "# Existing code",
    "## The rest of the story ...",
    "// the rest of the day ...",
    "The rest of the code ... is explained below.",
    "rest of the file...",
    "# unchanged",
    "// code is unchanged if the flag is off",
    "# keep the remaining lines",
    "// previous code paths are removed here",
    "# TODO: existing tests ... should pass",
    "- unchanged: the API",
    "(see the rest of the file)",
    "print('# rest of code ...')",
    "# existing methods:",
    "// rest of the bytes",
]


@pytest.mark.parametrize("line", UPSTREAM + OURS)
def test_a_placeholder_is_found_with_its_line(line: str) -> None:
    (found,) = find_omissions(f"class A:\n    x = 1\r\n  {line}\r\n", "a.py")
    assert (found.line, found.text) == (3, line.strip())


@pytest.mark.parametrize("line", ORDINARY)
def test_ordinary_lines_are_left_alone(line: str) -> None:
    assert list(find_omissions(line, "a.ts")) == []


def test_code_blocks_of_markdown_are_examples() -> None:
    text = "# Guide\n```ts\n// ... existing code ...\n```\n"
    assert list(find_omissions(text, "GUIDE.md")) == []
    assert list(find_omissions(text, "guide.ts"))
    assert list(find_omissions(text + "(rest of file unchanged)\n", "GUIDE.md"))


def test_a_placeholder_that_was_there_before_may_stay() -> None:
    old = "(rest of methods ...)\n(unchanged code ...)"
    assert first_new_omission("(unchanged code ...)\n// rest of methods ...", old, "f") is None
    found = first_new_omission("(rest of methods ...)\n(rest of code ...)", old, "f")
    assert found is not None
    assert found.line == 2


@pytest.mark.parametrize(
    "unit", ["// rest of the ", "(((", "... ", "rest of code unchanged ", "\n# "]
)
def test_hostile_text_takes_linear_time(unit: str) -> None:
    def prepare(size: int) -> Callable[[], object]:
        text = unit * size
        return lambda: list(find_omissions(text, "f.md"))

    assert is_linear(prepare, 10_000, 100_000)
