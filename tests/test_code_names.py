"""Which names a text holds."""

from __future__ import annotations

import pytest
from hypothesis import given

from recollect.code_names import MAX_SCANNED, find_names, is_identifier
from tests.snapshot.session_paths import in_linear_time
from tests.strategies import text


@pytest.mark.parametrize(
    "word",
    ["snake_case", "CamelCase", "camelCase", "_private_name", "SCREAMING_CASE", "XMLHttpRequest"],
)
def test_a_word_that_only_code_would_write_is_an_identifier(word: str) -> None:
    assert is_identifier(word)


@pytest.mark.parametrize(
    "word",
    ["plain", "Capital", "HTTP", "a_b", "_____", "GJNNcwzRFTLMhEMF", "toolu_01AbC9xYz8Qw7Er6Ty"],
)
def test_plain_words_and_random_keys_are_none(word: str) -> None:
    assert not is_identifier(word)


def test_words_chains_and_files_are_distinguished() -> None:
    found = find_names(
        "In lib/web/rows.ex, Map.get(row, :row_id) calls el.classList.add; see mix.exs."
    )
    assert found.words == {"row_id", "classList"}
    assert found.chains == {"Map.get", "el.classList", "el.classList.add"}
    assert found.files == {"lib/web/rows.ex", "mix.exs"}


def test_an_address_is_not_a_file() -> None:
    assert find_names("https://example.org/some_page/index.html").files == frozenset()


def test_names_are_found_between_chinese_words() -> None:
    assert find_names("请修改src/rows.py里的parse_rows函数").files == {"src/rows.py"}
    assert find_names("请修改src/rows.py里的parse_rows函数").words == {"parse_rows"}


def test_an_escaped_line_end_is_not_part_of_a_name() -> None:
    assert find_names(r'"text": "first\nInstallIt now"').words == {"InstallIt"}


@given(text)
def test_any_text_has_names_of_bounded_length(said: str) -> None:
    found = find_names(said)
    assert all(len(name) <= 250 for names in found for name in names)


def test_only_the_beginning_and_the_end_of_a_long_text_are_looked_at() -> None:
    found = find_names(
        "first_name " + "x " * MAX_SCANNED + " middle_name " + "x " * MAX_SCANNED + "last_name"
    )
    assert found.words == {"first_name", "last_name"}


@pytest.mark.parametrize("piece", ["a.", "a_", "/", "a/", "-.", "def ", "aA1", "class  class "])
def test_hostile_text_costs_linear_time(piece: str) -> None:
    with in_linear_time():
        find_names(piece * (1_000_000 // len(piece)))
