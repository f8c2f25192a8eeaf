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
    "// ... unchanged ...",
    "// rest unchanged",
    "# the rest stays the same",
    "# (other methods unchanged)",
    "// other methods stay the same",
    "{/* ... existing JSX ... */}",
    "# ... keep existing imports ...",
    "# keep existing imports ...",
    "... existing code ...",
    "... rest of the file ...",
    "; rest of code unchanged",
    "-- rest of the queries unchanged",
    "* ... existing code ...",
    "pass  # rest of methods ...",
    "...  # rest of methods",
    "} // ... rest of the class unchanged",
    "// remaining methods ...",
    "// ... other handlers",
    "<!-- ... other sections omitted ... -->",
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
    "## Remaining tests...",
    "# Previous test...",
    "[previous section...]",
    "# The remaining cases are the same as before",
    "// Previous implementation is unchanged",
    "# rest of the line is unchanged",
    "// other threads are the same",
    "# rest is a list",
    "... and the rest of the story ...",
    "pass  # the other case",
    "x = 1  # ... existing code ...",
    "} // previous block",
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


PLACEHOLDER = "// ... existing code ..."


@pytest.mark.parametrize(
    ("path", "before", "after", "is_data"),
    [
        ("a.py", 'P = """', '"""', True),
        ("a.py", "P = f'''it's", "'''", True),
        ("a.py", '# """', '# """', False),
        ("a.py", 's = "#" + """', '\\""" "" """', True),
        ("a.py", 'P = """', "", False),
        ("a.py", 'end"""', "x = 1", False),
        ("a.py", 'P = """one"""', 'Q = """two"""', False),
        ("a.py", "P = `", "`", False),
        ("a.ts", "const p = `", "`;", True),
        ("a.ts", "// don't `", "// `", False),
        ("a.ts", "/* ` */", "/* ` */", False),
        ("a.ts", "const p = `a`;", "const q = `b`;", False),
        ("a.go", "var p = `", "`", True),
        ("a.rs", 'let p = "', '";', False),
    ],
)
def test_strings_of_several_lines_are_data(
    path: str, before: str, after: str, is_data: bool
) -> None:
    text = f"{before}\n{PLACEHOLDER}\n{after}\n"
    assert [one.line for one in find_omissions(text, path)] == ([] if is_data else [2])
    assert [one.line for one in find_omissions(f"{text}{PLACEHOLDER}", path)][-1] == 4


def test_a_placeholder_that_was_there_before_may_stay() -> None:
    old = "(rest of methods ...)\n(unchanged code ...)"
    assert first_new_omission("(unchanged code ...)\n// rest of methods ...", old, "f") is None
    found = first_new_omission("(rest of methods ...)\n(rest of code ...)", old, "f")
    assert found is not None
    assert found.line == 2


@pytest.mark.parametrize("path", ["f.md", "f.py", "f.ts"])
@pytest.mark.parametrize(
    "unit",
    [
        *("// rest of the ", "(((", "... ", "rest of code unchanged ", "\n# ", f"{PLACEHOLDER}\n"),
        *('\\"""\n', '"""\n', "'", "`\\`\n", "/*\n", '"\\\n', "``\n"),
    ],
)
def test_hostile_text_takes_linear_time(unit: str, path: str) -> None:
    def prepare(size: int) -> Callable[[], object]:
        text = f"{PLACEHOLDER}\n{unit * size}"
        return lambda: list(find_omissions(text, path))

    assert is_linear(prepare, 10_000, 100_000)
