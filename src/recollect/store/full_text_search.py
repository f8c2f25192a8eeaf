"""Full-text search over entries. The index names candidates; the text itself decides."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple

from recollect.entries import Entry
from recollect.errors import Damaged, NotFound
from recollect.store import search_tokenizer
from recollect.store.contract import SearchHit, SearchQuery, SessionInfo
from recollect.store.search_scope import has_role
from recollect.store.search_source import RowKey, SearchSource
from recollect.store.search_tokenizer import SearchTerm
from recollect.store.word_places import has_word

_MOST_JOINED = 500  # entries to read for words that may be two parts of an identifier


class _Found(NamedTuple):
    key: RowKey
    owner: RowKey
    entry: Entry
    text: str


def search_entries(source: SearchSource, query: SearchQuery) -> tuple[SearchHit, ...]:
    """The newest segments first. Identifiers of which a word is two parts come in where there is
    room for them."""
    terms = search_tokenizer.parse_query(query.words)
    match = partial(search_tokenizer.match_expression, terms, role=query.role, tool=query.tool)
    found = list(islice(_read_all(source, query, terms, match()), query.limit))
    if len(found) < query.limit and any(term.joined for term in terms if not term.excluded):
        known = {one.key for one in found}
        others = _read_all(source, query, terms, match(joined=True), most=_MOST_JOINED)
        found += (one for one in others if one.key not in known)
        found = sorted(found, key=lambda one: one.key, reverse=True)[: query.limit]
    owners = {owner: source.session(owner) for owner in {one.owner for one in found}}
    return tuple(_hit(one, owners[one.owner], terms) for one in found)


def _read_all(
    source: SearchSource,
    query: SearchQuery,
    terms: tuple[SearchTerm, ...],
    match: str,
    most: int | None = None,
) -> Iterator[_Found]:
    """The entries that match, if their text says so too; at most so many are read."""
    for key, owner in islice(source.candidates(match), most):
        try:
            entry = source.up_to(key, 1)[0]
        except (Damaged, NotFound):
            continue  # reading its session reports the damage
        if not has_role(entry.body, query.role):
            continue
        text = search_tokenizer.searchable_text(entry.body)
        if search_tokenizer.contains_literals(text, terms) and (
            most is None or _has_joined_words(text, terms)
        ):
            yield _Found(key, owner, entry, text)


def _has_joined_words(text: str, terms: tuple[SearchTerm, ...]) -> bool:
    """Whether each word that may be two is one, or one identifier."""
    return all(has_word(text, term.literal) for term in terms if term.joined and not term.excluded)


def _hit(found: _Found, owner: SessionInfo, terms: tuple[SearchTerm, ...]) -> SearchHit:
    shown, marks = search_tokenizer.make_snippet(found.text, terms)
    return SearchHit(owner, found.entry, shown, marks)
