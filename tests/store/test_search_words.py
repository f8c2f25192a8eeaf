"""The words of a query: their forms, the pairs of a run without spaces, what is missing of it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.store.search_tokenizer import parse_query
from recollect.store.search_words import is_sentence, name_absent, pairs_of, split_terms
from recollect.store.word_places import find_places, has_word

RUNS = st.text("数据库连接成功失败为什么", min_size=2, max_size=12)


@pytest.mark.parametrize(
    ("word", "same", "other"),
    [
        (
            "port",
            "port ports ported porter portNumber PORT port_2 port8080",
            "portion portal porta",
        ),
        ("closed", "close closes closing closure", "cloth closet"),
        ("span", "spanning spanned", "spaniel"),
        ("create", "created creation creator", "credit creatine"),
        ("write", "written writer", "writable writhe"),
        ("type", "typed types", "typescript"),
        ("config", "configs configuration", "conf"),
        ("run", "run RunTime", "runs rung"),
        ("8080", "8080", "80801"),
        ("4f2a91c", "4f2a91c07", "4f2a91"),
        ("http", "HTTPServer http2", "httpd"),
        ("server", "HTTPServer servers", "observer"),
        ("конфиг", "конфигурация", "неконфиг"),
    ],
)
def test_a_word_is_found_in_its_other_forms_and_not_in_other_words(
    word: str, same: str, other: str
) -> None:
    words = split_terms(parse_query(word))
    assert [text for text in same.split() if not find_places(text, words)] == []
    assert [text for text in other.split() if find_places(text, words)] == []


def test_a_quoted_word_is_found_as_it_stands() -> None:
    words = split_terms(parse_query('"close"'))
    assert find_places("close it", words)
    assert not find_places("closed closes", words)


@given(RUNS, st.sets(RUNS.map(lambda run: run[:2])))
def test_what_is_missing_of_a_run_is_what_no_present_pair_covers(
    run: str, absent: set[str]
) -> None:
    terms = parse_query(run)
    named = name_absent(terms, absent)
    present = [pair for pair in pairs_of(run) if pair not in absent]
    assert all(name in run for name in named)
    assert not any(pair in name for pair in present for name in named)
    if not present:
        assert named == (run,)
    if not absent.intersection(pairs_of(run)):
        assert named == ()


@given(RUNS)
def test_every_pair_of_a_run_is_a_word_of_its_own(run: str) -> None:
    words = split_terms(parse_query(run))
    pairs = {a + b for a, b in pairwise(run)}
    assert {word.stem for word in words if word.match} == pairs
    for pair in pairs:
        assert find_places(f"前{pair}后", words)
    assert is_sentence(parse_query(run)) == (len(run) > 8)


def test_other_scripts_beside_a_run_are_words_of_their_own() -> None:
    terms = parse_query("修复HTTPServer的配置")
    names = [word.name for word in split_terms(terms) if word.match]
    assert names == ["修复", "HTTP", "Server", "的配", "配置"]
    assert name_absent(terms, {"Server", "修复"}) == ("修复", "Server")
    assert find_places("修复了server", split_terms(terms))


def test_two_parts_of_an_identifier_are_a_word_and_parts_apart_are_not() -> None:
    assert has_word("call getUserName()", "username")
    assert has_word("call getUserNames", "usernames")
    assert has_word("a username", "username")
    for text in ("user name", "getUserNames", "superusername", "user_name"):
        assert not has_word(text, "username"), text


@given(st.text("abAB_ é模", max_size=30), st.text("abé", min_size=1, max_size=3))
def test_places_lie_inside_the_text_and_hold_the_word(text: str, word: str) -> None:
    for place in find_places(text, split_terms(parse_query(word))):
        assert 0 <= place.start < place.end <= len(text)
