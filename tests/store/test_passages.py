"""Passages: whole lines around the words, whatever the text."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import BadInput
from recollect.store.passages import best_window, cut_passage
from recollect.store.search_tokenizer import fold_text, parse_query
from recollect.store.search_words import SearchWord, split_terms
from recollect.store.word_places import find_places, fold_characters

TEXTS = st.text("ab cX_Z\n.模型ガé\\nİßﬁ…e\u0301한\x85\u2028", max_size=400)


def words_of(query: str) -> tuple[SearchWord, ...]:
    try:
        return split_terms(parse_query(query))
    except BadInput:
        return ()


@given(TEXTS, st.text('abcX_ 模é*"-', max_size=12), st.integers(10, 80))
def test_a_passage_is_a_bounded_part_of_the_text_with_its_words_marked(
    text: str, query: str, length: int
) -> None:
    words = words_of(query)
    places = find_places(text, words)
    weights = [1.0 + number for number in range(len(words))]
    window = best_window(places, weights, length)
    passage, marks = cut_passage(text, window, places, length)
    assert passage.removeprefix("…").removesuffix("…") in text
    assert len(passage) <= 2 * length + 2
    assert all(a < b for a, b in marks)
    assert all(b <= c for (_, b), (c, _) in itertools.pairwise(marks))
    if places:
        assert marks
        total = sum(weights[word] for word in {place.word for place in places})
        assert abs(window.score + window.rest - total) < 1e-6
        assert window.score > 0


@given(TEXTS)
def test_every_folded_character_knows_the_one_it_was_made_of(text: str) -> None:
    folded = fold_characters(text)
    origins = [folded.origin(at) for at in range(len(folded.text))]
    assert origins == sorted(origins)
    made = dict.fromkeys(range(len(text)), "")
    for at, origin in enumerate(origins):
        made[origin] += folded.text[at]
    assert made == {at: fold_text(character) for at, character in enumerate(text)}


def test_the_window_is_where_the_heaviest_words_stand_together() -> None:
    text = "alpha " * 5 + "." * 300 + " alpha beta gamma " + "." * 300 + " beta"
    words = words_of("alpha beta gamma")
    places = find_places(text, words)
    window = best_window(places, [1.0] * len(words), 100)
    assert text[window.start : window.end] == "alpha beta gamma"


def test_lines_are_whole_and_a_longer_line_is_cut_with_a_mark() -> None:
    lines = [f"line {n} of many" for n in range(100)]
    lines[50] = "the needle is here"
    text = "\n".join(lines)
    words = words_of("needle")
    places = find_places(text, words)
    shown = cut_passage(text, best_window(places, [1.0], 200), places, 200).text.split("\n")
    assert set(shown) <= set(lines)
    assert shown.index(lines[50]) < len(shown) / 2  # more follows than precedes
    text = "word " * 400 + "needle" + " word" * 400
    places = find_places(text, words)
    passage, marks = cut_passage(text, best_window(places, [1.0], 200), places, 200)
    assert (passage[0], passage[-1]) == ("…", "…")
    assert [passage[a:b] for a, b in marks] == ["needle"]


def test_a_word_begins_where_a_part_of_an_identifier_does() -> None:
    found = [
        "with_span", "SpanContext", "MySpan", "a.span/b", "spans", "2span", "the span.",
    ]  # fmt: skip
    for text in found:
        assert find_places(text, words_of("span")), text
    for text in ("lifespan", "wingspan", "pan"):
        assert not find_places(text, words_of("span")), text
    assert not find_places("category", words_of("cat"))
