"""What a command line holds, as values: its sub-commands, redirections, assignments and texts.

A word is given as the program receives it. Where the shell decides that (an expansion, a glob, a
brace, a tilde) the word keeps its source text, and its position is in `uncertain`: such a word may
become any text and, unless it is quoted, any number of words.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

CommandWords: TypeAlias = tuple[str, ...]
Assignment: TypeAlias = tuple[str, str]  # a name, and its value as a word


def word_set(text: str) -> frozenset[str]:
    """A set of names, written as one text."""
    return frozenset(text.split())


class SubCommand(msgspec.Struct, frozen=True):
    words: CommandWords
    globs: bool = False  # a word has `*`, `?` or `[` outside quotes, which bash replaces by files
    uncertain: frozenset[int] = frozenset()  # positions of words whose value the shell decides
    splitting: frozenset[int] = frozenset()  # of these, words that may become several or none
    assignments: tuple[Assignment, ...] = ()  # before the command: `CI=1 make`
    stdin_text: str | None = None  # a here-document or here-string that it can read
    piped: bool = False  # it can read what another command of the line writes
    captured: bool = False  # another command, or the line itself, gets what it writes


class Redirection(msgspec.Struct, frozen=True):
    operator: str  # > >> < or &>
    target: str
    uncertain: bool = False  # the shell decides which file it is


class ParsedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line's sub-commands. With a `problem` they are only those that could be made out."""

    source: bytes
    commands: tuple[SubCommand, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    assignments: tuple[Assignment, ...] = ()  # statements of their own: `x=1`
    here_texts: tuple[str, ...] = ()
    other_words: CommandWords = ()  # of loops, cases, tests, assignments and here-strings
    compound: bool = False  # more than plain words, pipelines, `&&`, `||`, `;`, redirections
    problem: str = ""
    runnable: bool = True  # False: no process accepts these characters


class UnsupportedSyntax(Exception):
    """Why a line is not in the part of bash that is understood."""
