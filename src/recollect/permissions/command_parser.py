"""Parses a command line, so that it can be judged: the words of every sub-command.

The part of bash that ordinary work uses is understood: words with quotes and expansions,
pipelines, lists, loops, conditions, sub-shells, redirections, here-documents, assignments. Two
readers go over the same bytes: one of our own (`shell_grammar`), which says what each word is after
quoting, and tree-sitter-bash as an allow-list of node types (`syntax_tree`). They must agree on
where every word, assignment, redirection and expansion begins and ends and to which sub-command it
belongs. Anything else in a line is its `problem`, and the user has to judge such a line. `source`
holds the very bytes that were read, and only these may be run. The time is linear in the length;
nothing raises.
"""

from __future__ import annotations

import re
from itertools import accumulate, pairwise, product

import msgspec

from recollect.permissions.command_glimpse import glimpse_commands
from recollect.permissions.parsed_line import (
    Assignment,
    CommandWords,
    ParsedLine,
    Redirection,
    SubCommand,
    UnsupportedSyntax,
    word_set,
)
from recollect.permissions.shell_characters import check_characters, check_scripts
from recollect.permissions.shell_commands import CommandRecord
from recollect.permissions.shell_grammar import RESERVED, LineReader
from recollect.permissions.shell_variables import (
    MAX_VALUES,
    WordValues,
    can_assign,
    changes_reading,
    substitute_values,
)
from recollect.permissions.shell_words import OPERATOR_CHARACTERS, Word, WordReader
from recollect.permissions.syntax_tree import (
    Span,
    collect_spans,
    mask_here_documents,
    parse_source,
)

__all__ = [
    "MAX_CHARACTERS",
    "Assignment",
    "CommandWords",
    "ParsedLine",
    "Redirection",
    "SubCommand",
    "UnsupportedSyntax",
    "Word",
    "parse_line",
    "program_name",
    "tokenize",
    "word_set",
]

MAX_CHARACTERS = 8_000
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_./+][A-Za-z0-9_./+@:-]*\Z|:\Z")
_HOME_PROGRAM = re.compile(r"(?:~|\$HOME|\$\{HOME\})(?:/[A-Za-z0-9_.+@:-]+)+\Z")
# They change how the rest of a line is read, or what a name means.
_REDEFINING = word_set("alias compgen complete compopt enable hash unalias")
_HARMLESS_SET = re.compile(r"[-+][eux]+\Z|[-+][eux]*o\Z|pipefail\Z|--\Z")
_HARMLESS_SHOPT = word_set("-s -u -q nullglob globstar dotglob failglob nocaseglob")
_SUBSCRIPT = re.compile(r"[A-Za-z0-9_]\[")
_EXPANSION = re.compile(r"[$`]")
_DECLARATIONS = word_set("export declare local readonly typeset")
_MAX_SIGNS = 40  # of `@` in a declaration: tree-sitter reads each in several ways
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z|\]\Z|[-=!]")
_SHELL_SYNTAX = word_set("[ time export declare local readonly typeset unset")
_OPERATOR = re.compile(r"[|&;<>()]+")


def parse_line(text: str) -> ParsedLine:
    """Parse every sub-command's words, or say why the user has to look."""
    try:
        source = text.encode()
    except UnicodeEncodeError:
        return ParsedLine(source=b"", problem="it has half a character", runnable=False)
    if "\0" in text:
        return ParsedLine(source=source, problem="it has a NUL character", runnable=False)
    if len(text) > MAX_CHARACTERS:
        return ParsedLine(source=source, problem=f"it has more than {MAX_CHARACTERS:,} characters")
    reader = LineReader(text)
    try:
        check_characters(text)
        reader.read_line()
        line = _build_line(source, reader)
        _check_agreement(reader, source)  # last, because tree-sitter takes longest
        return line
    except UnsupportedSyntax as problem:
        glimpsed = glimpse_commands(text)
        return ParsedLine(source=source, commands=glimpsed, problem=str(problem))


_VERSIONED_PROGRAM = re.compile(
    r"(python|pypy|perl|ruby|php|lua|node|pip|gcc|g\+\+|clang|tclsh|vim|awk)[\d.-]+\Z"
)


def program_name(name: str) -> str:
    """`/usr/bin/python3.11` is python."""
    base = name.rpartition("/")[2]
    match = _VERSIONED_PROGRAM.match(base)
    return match.group(1) if match else base


def tokenize(text: str) -> list[Word | str]:
    """The words and operators of a rule; `UnsupportedSyntax` for anything but plain words."""
    tokens: list[Word | str] = []
    reader = WordReader(text.rstrip("\n"))
    while reader.at < reader.end:
        if reader.peek() == " ":
            reader.at += 1
        elif reader.peek() in OPERATOR_CHARACTERS:
            operator = _OPERATOR.match(text, reader.at)
            assert operator is not None
            tokens.append(operator[0])
            reader.at = operator.end()
        else:
            word = reader.read_parts()
            if reader.compound or word.uncertain or word.end == word.start:
                raise UnsupportedSyntax("it has more than plain words")
            tokens.append(word)
    return tokens


def _check_agreement(reader: LineReader, source: bytes) -> None:
    before = [0, *accumulate(len(character.encode()) for character in reader.text)]

    def span(word: Word) -> Span:
        return before[word.start], before[word.end]

    def in_bytes(positions: list[Span]) -> list[Span]:
        return [(before[start], before[end]) for start, end in positions]

    kept = in_bytes(reader.here_expansions)
    if reader.here_operators:
        operators, bodies = in_bytes(reader.here_operators), in_bytes(reader.here_bodies)
        source = mask_here_documents(source, operators, bodies, kept)
    spans = collect_spans(parse_source(source), kept)

    records = reader.commands
    commands = [tuple(map(span, record.words)) for record in records if record.words]
    prefixes = [span(word) for one in records for _, word in one.assignments]
    targets = [span(word) for _, word in reader.targets]
    both = (
        (prefixes, spans.assignments),
        (targets, spans.targets),
        ([span(word) for word in reader.loop_words], spans.loop_words),
        (in_bytes(reader.expansions), spans.expansions),
    )
    agreed = all(sorted(ours) == sorted(theirs) for ours, theirs in both)
    if not agreed or sorted(commands) != sorted(spans.commands):
        raise UnsupportedSyntax("two ways of reading it disagree")


# --- from what was read to values --------------------------------------------------------------


def _build_line(source: bytes, reader: LineReader) -> ParsedLine:
    commands = tuple(
        command
        for record in reader.commands
        if record.words
        for command in _build_sub_commands(record, reader)
    )
    words = (word for command in commands for word in command.words)
    check_scripts(words)
    assigned = [word for record in reader.commands for _, word in record.assignments]
    others = [*reader.loop_words, *reader.other_words, *assigned]
    if not commands and not reader.statements and not reader.targets:
        raise UnsupportedSyntax("a command is missing")
    return ParsedLine(
        source=source,
        commands=commands,
        redirections=tuple(_build_redirections(reader)),
        assignments=tuple((name, word.value) for name, word in reader.statements),
        here_texts=tuple(reader.here_texts),
        other_words=tuple(word.value for word in others),
        compound=reader.compound or any(one.words[0] in _SHELL_SYNTAX for one in commands),
    )


def _build_sub_commands(record: CommandRecord, reader: LineReader) -> list[SubCommand]:
    """One command for each combination of values that its variables are known to have."""
    columns: list[tuple[str, ...]] = []
    uncertain: set[int] = set()
    splitting: set[int] = set()
    count = 1
    for position, word in enumerate(record.words):
        values = _values_of(word, reader)
        if count * len(values.texts) > MAX_VALUES:
            values = WordValues((word.value,))
        if not values.certain:
            uncertain.add(position)
            splitting |= {position} if _may_split(word, reader) else set()
        count *= len(values.texts)
        columns.append(values.texts)
    combinations = list(product(*columns))
    for words in combinations:
        _check_name(words, record.words, reader, uncertain)
    shared = SubCommand(
        (),
        globs=any(word.globs for word in record.words),
        uncertain=frozenset(uncertain),
        splitting=frozenset(splitting),
        assignments=tuple((name, word.value) for name, word in record.assignments),
        stdin_text=record.stdin_text,
        piped=record.piped,
        captured=record.captured,
    )
    return [msgspec.structs.replace(shared, words=words) for words in combinations]


def _may_split(word: Word, reader: LineReader) -> bool:
    opaque = [part for part in word.parts or () if not part.literal]
    numbers = all(reader.variables.holds_number(part.variable) for part in opaque)
    return word.splits and not (opaque and numbers)


def _values_of(word: Word, reader: LineReader) -> WordValues:
    """What a word becomes; its own text, and not certain, where that is not known."""
    if word.is_literal:
        return WordValues((word.value,), certain=True)
    values = substitute_values(word.parts, reader.variables) if word.parts else WordValues()
    return values if values.texts else WordValues((word.value,))


def _build_redirections(reader: LineReader) -> list[Redirection]:
    found: list[Redirection] = []
    for operator, word in reader.targets:
        values = _values_of(word, reader)
        if operator:
            found += [Redirection(operator, text, not values.certain) for text in values.texts]
    return found


def _check_name(
    words: CommandWords, read: list[Word], reader: LineReader, uncertain: set[int]
) -> None:
    name, first = words[0], read[0]
    raw = reader.text[first.start : first.end]
    plain = _HOME_PROGRAM if 0 in uncertain else _PLAIN_NAME
    if raw != "[" and not plain.match(name):
        raise UnsupportedSyntax("the name of a command is not plain")
    if raw in RESERVED:
        raise UnsupportedSyntax("it has a word of the shell's own grammar")
    if first.uncertain and (can_assign(words) or name in _REDEFINING | {"set", "shopt", "time"}):
        raise UnsupportedSyntax("the name of a command is not plain")
    if name in _REDEFINING:
        raise UnsupportedSyntax(f"{name!r} changes what a name means")
    if can_assign(words):
        if changes_reading(words, ascii_only=reader.text.isascii()):
            raise UnsupportedSyntax(f"{name!r} changes how the rest is read")
        if any(map(_has_subscript, words)):
            raise UnsupportedSyntax(f"{name!r} may evaluate the subscript of an array")
    _check_builtin(words)
    if name == "time":  # a word of the grammar: what follows is a command of this shell
        skipped = 2 if words[1:2] == ("-p",) else 1
        if len(words) == skipped or words[skipped] == "time":
            raise UnsupportedSyntax("it has 'time' before something other than a command")
        later = {position - skipped for position in uncertain}
        _check_name(words[skipped:], read[skipped:], reader, later)


def _has_subscript(word: str) -> bool:
    """Whether an expansion stands in `a[…]`; each part is searched once."""
    starts = ((part, _SUBSCRIPT.search(part)) for part in word.split("]"))
    return any(found and _EXPANSION.search(part, found.end()) for part, found in starts)


def _check_builtin(words: CommandWords) -> None:
    name, options = words[0], words[1:]
    if name in _DECLARATIONS and any(word.count("@") > _MAX_SIGNS for word in options):
        raise UnsupportedSyntax(f"{name!r} gets what is not a name")
    if name == "set" and not all(map(_HARMLESS_SET.match, options)):
        raise UnsupportedSyntax("'set' changes how the rest is read")
    if name == "shopt" and not _HARMLESS_SHOPT.issuperset(options):
        raise UnsupportedSyntax("'shopt' changes how the rest is read")
    if name in ("[", "test"):
        # `test -v 'a[$(command)]'` runs the command
        named = (after for before, after in pairwise(options) if before in ("-v", "-R"))
        if any(map(_has_subscript, options)) or not all(map(_VARIABLE_NAME.match, named)):
            raise UnsupportedSyntax("it tests a variable whose name is not plain")
