"""Names in a text: identifiers, dotted names, and mentioned files.

An identifier is a word that only code would use (`snake_case`, `CamelCase`, at least five
characters). A dotted name is a chain such as `Map.get` or `el.classList.add`. A file has a known
extension. Text may be hostile: at most `MAX_SCANNED` characters of it are read (its beginning and
its end), tokens are bounded, and every expression is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

MAX_SCANNED = 120_000
_TOKEN = re.compile(r"[A-Za-z0-9_.~/@][A-Za-z0-9_./@~+-]{3,}")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{4,}")
_CHAIN = re.compile(r"[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)+", re.A)
_FILE = re.compile(r"(?:[\w.@~+-]*/)*[\w.@+-]*\.[A-Za-z]\w{0,9}", re.A)
_LONGEST_TOKEN, _LONGEST_NAME, _SHORTEST_CHAIN = 250, 80, 5
_HASH = re.compile(r"(?=[A-Za-z_]*\d)(?=(?:[a-z_]*[A-Z0-9]){6})\w{20,}", re.A)

_EXTENSION_LIST = """
astro bash bat bazel c cc cfg cjs clj cljs cmake conf config cpp cs css csv cts cu cxx dart
diff ejs elm eex env erb erl ex exs fish fs fsx gitignore go gql gradle graphql groovy h haml
hbs heex hpp hrl hs htm html ini ipynb java jl js json json5 jsonc jsonl jsx kt kts leex less
lisp lock log lua m4 mako md mdx mjs mk ml mli mm mts nim nix patch php pl plist po prisma
proto ps1 pug py pyi pyx r rake rb rs rst sass sbt scala scm scss service sh sol sql sqlite
svelte svg swift tcl template tex tf tfvars toml ts tsv tsx txt vim vue wasm xml xsd yaml yml
zig zsh png jpg jpeg gif pdf ico db zip gz tar
"""
FILE_EXTENSIONS = frozenset(_EXTENSION_LIST.split())


class FoundNames(NamedTuple):
    words: frozenset[str]
    chains: frozenset[str]
    files: frozenset[str]


_NO_NAMES = FoundNames(frozenset(), frozenset(), frozenset())


def find_names(text: str) -> FoundNames:
    # quoted text has line ends as two characters, of which the second begins no name
    tokens = set(_TOKEN.findall(take_ends(text).replace("\\n", " ")))
    found = [_classify_token(token) for token in tokens if len(token) <= _LONGEST_TOKEN]
    return merge_names(found) if found else _NO_NAMES


def merge_names(found: Iterable[FoundNames]) -> FoundNames:
    words, chains, files = zip(_NO_NAMES, *found, strict=True)
    none = frozenset[str]()
    return FoundNames(none.union(*words), none.union(*chains), none.union(*files))


def take_ends(text: str, most: int = MAX_SCANNED) -> str:
    """The beginning and the end of a text, at most `most` characters."""
    if len(text) <= most:
        return text
    return text[: most * 2 // 3] + "\n" + text[-(most // 3) :]


@lru_cache(maxsize=50_000)
def _classify_token(token: str) -> FoundNames:
    token = token.strip("-+@").rstrip("./~")
    words = frozenset(w for w in _WORD.findall(token) if is_identifier(w))
    if "." not in token:
        return FoundNames(words, frozenset(), frozenset())
    file = _as_file(token)
    if file or "/" in token:
        return FoundNames(words, frozenset(), frozenset((file,)) if file else frozenset())
    return FoundNames(words, frozenset(_as_chains(token)), frozenset())


@lru_cache(maxsize=100_000)
def is_identifier(word: str) -> bool:
    inner = word.strip("_")
    if len(word) < 5 or len(word) > _LONGEST_NAME or _HASH.fullmatch(word):
        return False
    if "_" in inner:
        return True
    if inner.isupper() or inner[1:] == inner[1:].lower():
        return False
    # people choose names that can be spoken; keys and tokens cannot be
    vowels = sum(letter in "aeiouAEIOU" for letter in inner)
    return vowels > 0 and (len(inner) < 12 or vowels / len(inner) > 0.14)


def _as_file(token: str) -> str:
    if token.startswith("//") or not _FILE.fullmatch(token):
        return ""  # after a scheme it is an address, not a file
    name = token.rsplit("/", 1)[-1]
    ending = name.rsplit(".", 1)[-1].lower()
    known = ending in FILE_EXTENSIONS and (
        len(name) > len(ending) + 1 or ending in ("gitignore", "env")
    )
    return token if known else ""


def _as_chains(token: str) -> list[str]:
    """A chain and its beginnings: `a.b.c` also serves readers who need `a.b`."""
    match = _CHAIN.fullmatch(token)
    if match is None or not _SHORTEST_CHAIN <= len(token) <= _LONGEST_NAME:
        return []
    pieces = token.split(".")
    return [".".join(pieces[:n]) for n in range(2, min(len(pieces), 4) + 1)]
