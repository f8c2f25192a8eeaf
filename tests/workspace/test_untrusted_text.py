from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.workspace.untrusted_text import (
    code_ranges,
    find_mentions,
    is_prose,
    one_line,
    split_at_mentions,
    strip_invisible,
)

# letters that make fences, spans, mentions and line ends likely
ODD = st.text(alphabet='`~@/. \n\\"ab', max_size=80)


def paths(text: str) -> list[str]:
    return [mention.path for mention in find_mentions(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see @a.md and @./b/c.md.", ["a.md", "./b/c.md"]),
        ("(@a.md), [@b.md]; @c.md!", ["a.md", "b.md", "c.md"]),
        ('@"my notes.md" and @my\\ other.md', ["my notes.md", "my other.md"]),
        ("someone@example.org and a.@b", []),
        ("请看@src/甲.py。", ["src/甲.py"]),
        ("@node/@types/x.ts", ["node/@types/x.ts"]),
        ("`@a.md` ``@b ` .md`` @c.md", ["c.md"]),
        ("```\n@a.md\n```\n@b.md", ["b.md"]),
        ("~~~ x\n@a.md\n```\n@b.md\n~~~~\n@c.md", ["c.md"]),
        ("````\n```\n@a.md\n````\n@b.md", ["b.md"]),
        ("```\n``` x\n@a.md\n```\n@b.md", ["b.md"]),
        ("``` no closing fence\n@a.md", []),
        ("a lone ` tick @a.md", ["a.md"]),
        ("one ` tick\n\nanother ` tick @a.md", ["a.md"]),
        ("   ```\n@a.md\n   ```", []),
        ("    ```\n@a.md\n    ```", []),  # a span of three ticks over three lines
        ("@ @. @...", []),
    ],
)
def test_mentions_are_found_outside_code_and_nowhere_else(text: str, expected: list[str]) -> None:
    assert paths(text) == expected


@given(ODD)
def test_code_ranges_are_in_order_and_inside_the_text(text: str) -> None:
    ends = [0]
    for start, end in code_ranges(text):
        assert ends[-1] <= start < end <= len(text)
        ends.append(end)


@given(ODD)
def test_mentions_are_prose_and_pieces_give_the_text_back(text: str) -> None:
    found, code = find_mentions(text), code_ranges(text)
    assert all(is_prose(mention.start, code) for mention in found)
    assert all(text[mention.start] == "@" for mention in found)
    whole = [
        p if isinstance(p, str) else text[p.start : p.end] for p in split_at_mentions(text, found)
    ]
    assert "".join(whole) == text


@given(st.text(st.characters(exclude_categories=()), max_size=60))
def test_a_foreign_name_becomes_one_printable_line_of_valid_text(text: str) -> None:
    shown = one_line(text)
    assert shown.isprintable()
    shown.encode("utf-8")
    strip_invisible(text).encode("utf-8")


def test_a_name_that_is_not_utf_8_shows_its_bytes() -> None:
    assert one_line(b"a\xff\nb".decode("utf-8", "surrogateescape")) == "a\\xff\\nb"


def test_invisible_characters_are_removed_and_line_ends_stay() -> None:
    assert strip_invisible("a\u202eb\U000e0041\x1b[0m\tc\r\n") == "ab[0m\tc\r\n"


@pytest.mark.parametrize("unit", ["`", "@", '@"', "`a``b", "@a\\", "~~~\n", "\n```", "` \n", "@`"])
def test_a_megabyte_of_anything_is_searched_in_a_moment(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    started = time.process_time()
    find_mentions(text)
    assert time.process_time() - started < 20  # CPU time: other programs may be running
