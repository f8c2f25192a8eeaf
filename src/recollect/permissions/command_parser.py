"""Parses a command line, so that it can be judged: the words of each sub-command.

Only a small part of bash is understood, on purpose: plain and quoted words, pipelines, `&&`, `||`,
`;` and simple redirections. Two readers go over the same bytes: a scanner of our own, which says
what each word is after quoting, and tree-sitter-bash as an allow-list of node types. They must
agree on where every word begins and ends and to which sub-command it belongs. Anything else in a
line (an expansion, an assignment, a comment, a control or look-alike character, more than 8,000
characters) is its `problem`, and the user has to judge such a line. `source` holds the very bytes
that were read, and only these may be run. The length bounds the time; nothing raises.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import accumulate
from string import ascii_letters, digits
from typing import NamedTuple, TypeAlias

import msgspec
import tree_sitter
import tree_sitter_bash

MAX_CHARACTERS = 8_000
CommandWords: TypeAlias = tuple[str, ...]


def word_set(text: str) -> frozenset[str]:
    """A set of names, written as one text."""
    return frozenset(text.split())


class SubCommand(msgspec.Struct, frozen=True):
    words: CommandWords
    globs: bool = False  # a word has `*`, `?` or `[` outside quotes, which bash replaces by files


class Redirection(msgspec.Struct, frozen=True):
    operator: str  # > >> < or &>
    target: str


class ParsedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line's sub-commands. With a `problem` they are only those that could be made out."""

    source: bytes
    commands: tuple[SubCommand, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    problem: str = ""
    runnable: bool = True  # False: no process accepts these characters


class Word(NamedTuple):
    """A word after quoting, its position, and whether bash may replace it by files."""

    value: str
    start: int
    end: int
    globs: bool = False
    quoted: bool = False


class UnsupportedSyntax(Exception):
    """Why a line is not in the part of bash that is understood."""


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
    tree = _PARSER.parse(source)
    try:
        _check_characters(text)
        tokens = tokenize(text)
        _check_scripts(tokens)
        lines = _group_tokens(tokens)
        _check_agreement(text, lines, _collect_spans(tree.root_node))
        commands = tuple(_build_sub_command(line.words) for line in lines)
    except UnsupportedSyntax as problem:
        glimpsed = _glimpse_commands(tree.root_node, source)
        return ParsedLine(source=source, commands=glimpsed, problem=str(problem))
    redirections = tuple(
        Redirection(operator, target.value)
        for line in lines
        for operator, target in line.redirections
        if operator != ">&"
    )
    return ParsedLine(source=source, commands=commands, redirections=redirections)


_VERSIONED_PROGRAM = re.compile(
    r"(python|pypy|perl|ruby|php|lua|node|pip|gcc|g\+\+|clang|tclsh|vim|awk)[\d.-]+\Z"
)


def program_name(name: str) -> str:
    """`/usr/bin/python3.11` is python."""
    base = name.rpartition("/")[2]
    match = _VERSIONED_PROGRAM.match(base)
    return match.group(1) if match else base


# --- characters --------------------------------------------------------------------------------

# Scripts with letters that look like Latin ones; they deceive in one word with Latin letters.
_LOOK_ALIKE = frozenset({"ARMENIAN", "CHEROKEE", "COPTIC", "CYRILLIC", "GREEK", "LISU"})
_BLANK_LETTERS = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Me", "Mn", "Zl", "Zp", "Zs"})


def _check_characters(text: str) -> None:
    for character in set(text.rstrip("\n")):
        if " " <= character < "\x7f":
            continue
        code = f"U+{ord(character):04X}"
        if unicodedata.category(character) in _HIDDEN or character in _BLANK_LETTERS:
            raise UnsupportedSyntax(f"it has a control or invisible character ({code})")
        if unicodedata.normalize("NFKC", character) != character:
            raise UnsupportedSyntax(f"it has a look-alike character ({code})")


def _check_scripts(tokens: list[Word | str]) -> None:
    for word in (token.value for token in tokens if isinstance(token, Word)):
        if word.isascii():
            continue
        names = {unicodedata.name(letter, "") for letter in word if letter.isalpha()}
        scripts = {name.partition(" ")[0] for name in names}
        if scripts & _LOOK_ALIKE and len(scripts) > 1:
            raise UnsupportedSyntax("a word mixes scripts whose letters look alike")
        if word.startswith("-"):
            raise UnsupportedSyntax("an option has letters that are not ASCII")


# --- the scanner -------------------------------------------------------------------------------

_PLAIN_CHARACTERS = frozenset(ascii_letters + digits + "!%+,-./:=@^_")
_GLOB_CHARACTERS = frozenset("*?[]")
_OPERATOR_CHARACTERS = frozenset("|&;<>()")
_OPERATOR = re.compile(r"[|&;<>()]+")
_SEPARATORS = frozenset({"|", "||", "&&", ";"})
_REDIRECTIONS = frozenset({">", ">>", "<", ">&", "&>"})
_RESERVED = word_set(
    "! [ [[ ]] case coproc do done elif else esac fi for function if in select then time until"
    " while { }"
)
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_./+][A-Za-z0-9_./+@:-]*\Z")


def tokenize(text: str) -> list[Word | str]:
    """Words and operators in their order; `UnsupportedSyntax` at the first thing not understood."""
    tokens: list[Word | str] = []
    at, end = 0, len(text.rstrip("\n"))
    while at < end:
        if text[at] == " ":
            at += 1
        elif operator := _OPERATOR.match(text, at, end):
            tokens.append(operator[0])
            at = operator.end()
        else:
            word = _scan_word(text, at, end)
            tokens.append(word)
            at = word.end
    return tokens


def _scan_word(text: str, start: int, end: int) -> Word:
    value: list[str] = []
    at, globs, quoted = start, False, False
    while at < end:
        character = text[at]
        if character == " " or character in _OPERATOR_CHARACTERS:
            break
        if character == "'":
            close = text.find("'", at + 1, end)
            if close < 0:
                raise UnsupportedSyntax("a quotation mark is not closed")
            value.append(text[at + 1 : close])
            at, quoted = close + 1, True
        elif character == '"':
            inside, at = _scan_double_quotes(text, at + 1, end)
            value.append(inside)
            quoted = True
        else:
            _check_unquoted(text, at, start)
            globs = globs or character in _GLOB_CHARACTERS
            value.append(character)
            at += 1
    return Word("".join(value), start, at, globs, quoted)


def _check_unquoted(text: str, at: int, start: int) -> None:
    character = text[at]
    if character in _PLAIN_CHARACTERS or character in _GLOB_CHARACTERS or not character.isascii():
        return
    # to bash `~` and `#` mean something only at the start of a word, or after `=` or `:`
    before = text[at - 1] if at > start else " "
    inside = before.isascii() and (before.isalnum() or before in "^~")
    if character not in "~#" or not inside:
        raise UnsupportedSyntax(f"it has {character!r} outside quotes")


def _scan_double_quotes(text: str, at: int, end: int) -> tuple[str, int]:
    value: list[str] = []
    while at < end:
        character = text[at]
        if character == '"':
            return "".join(value), at + 1
        if character in "$`":
            raise UnsupportedSyntax(f"it has {character!r} outside single quotes")
        if character == "\\":
            escaped = text[at + 1 : at + 2]
            if escaped in ("$", "`"):
                raise UnsupportedSyntax(f"it has {escaped!r} outside single quotes")
            value.append(escaped if escaped in ('"', "\\") else "\\" + escaped)
            at += 2
        else:
            value.append(character)
            at += 1
    raise UnsupportedSyntax("a quotation mark is not closed")


# --- from tokens to sub-commands ---------------------------------------------------------------


class _TokenGroup(NamedTuple):
    words: list[Word]
    redirections: list[tuple[str, Word]]


def _group_tokens(tokens: list[Word | str]) -> list[_TokenGroup]:
    lines = [_TokenGroup([], [])]
    waiting = ""  # a redirection whose target comes next
    for position, token in enumerate(tokens):
        if isinstance(token, Word):
            if waiting:
                lines[-1].redirections.append((waiting, _check_target(waiting, token)))
                waiting = ""
            elif not _is_descriptor(token, tokens[position + 1 : position + 2]):
                lines[-1].words.append(token)
        elif waiting or token not in _SEPARATORS | _REDIRECTIONS:
            raise UnsupportedSyntax(f"it has {token[:3]!r}")
        elif token in _REDIRECTIONS:
            waiting = token
        else:
            lines.append(_TokenGroup([], []))
    if len(lines) > 1 and tokens[-1] == ";":
        lines.pop()
    if waiting or not all(line.words for line in lines):
        raise UnsupportedSyntax("a command is missing")
    return lines


def _is_descriptor(word: Word, following: list[Word | str]) -> bool:
    """Whether it is the `2` in `2>file`. Only standard output and error may be named."""
    if not following or isinstance(following[0], Word) or following[0][0] not in "<>":
        return False
    if word.quoted or not word.value.isdigit():
        return False
    # we drop spaces; tree-sitter knows whether `2 >file` was written, and must agree
    if word.value not in ("1", "2") or following[0] not in (">", ">>", ">&"):
        raise UnsupportedSyntax("it redirects something other than output and errors")
    return True


def _check_target(operator: str, word: Word) -> Word:
    if word.globs or (operator == ">&" and (word.quoted or word.value not in ("1", "2"))):
        raise UnsupportedSyntax("the target of a redirection is not plain")
    return word


def _build_sub_command(words: list[Word]) -> SubCommand:
    name = words[0]
    if not _PLAIN_NAME.match(name.value) or name.globs:
        raise UnsupportedSyntax("the name of a command is not plain")
    if "=" in name.value or (name.value in _RESERVED and not name.quoted):
        raise UnsupportedSyntax("it has an assignment or a word of the shell's own grammar")
    return SubCommand(tuple(word.value for word in words), any(word.globs for word in words))


# --- tree-sitter: the second reader ------------------------------------------------------------

_CONTAINER_NODES = frozenset({"program", "list", "pipeline", "redirected_statement"})
_WORD_NODES = frozenset({"word", "number", "string", "raw_string", "concatenation"})
_QUOTING = re.compile(r"[\"'\\]")
_PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
_WORD_PART_NODES = _WORD_NODES | {'"', "string_content"}


class _WordSpans(NamedTuple):
    commands: list[tuple[tuple[int, int], ...]]
    targets: list[tuple[int, int]]


def _collect_spans(root: tree_sitter.Node) -> _WordSpans:
    spans = _WordSpans([], [])
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type in _CONTAINER_NODES and not node.is_error and not node.is_missing:
            waiting.extend(reversed(node.children))
        elif node.type == "command":
            spans.commands.append(tuple(_word_span(child) for child in node.children))
        elif node.type == "file_redirect":
            targets = [child for child in node.children if child.type in _WORD_NODES]
            rest = {child.type for child in node.children if child.type not in _WORD_NODES}
            if len(targets) != 1 or not rest <= _REDIRECTIONS | {"file_descriptor"}:
                raise UnsupportedSyntax("a redirection is not simple")
            spans.targets.append(_word_span(targets[0]))
        elif node.type not in _SEPARATORS or node.is_missing:
            raise UnsupportedSyntax(f"it has a {node.type.replace('_', ' ')}")
    return spans


def _word_span(word: tree_sitter.Node) -> tuple[int, int]:
    """A word's position, if all its parts are words and quotes without expansions."""
    waiting = list(word.children) if word.type == "command_name" else [word]
    while waiting:
        node = waiting.pop()
        if node.type not in _WORD_PART_NODES or node.is_missing:
            raise UnsupportedSyntax(f"it has a {node.type.replace('_', ' ')}")
        waiting.extend(node.children)
    return word.start_byte, word.end_byte


def _check_agreement(text: str, lines: list[_TokenGroup], spans: _WordSpans) -> None:
    bytes_before = [0, *accumulate(len(character.encode()) for character in text)]

    def span(word: Word) -> tuple[int, int]:
        return bytes_before[word.start], bytes_before[word.end]

    commands = [tuple(span(word) for word in line.words) for line in lines]
    targets = [span(target) for line in lines for _, target in line.redirections]
    if commands != spans.commands or sorted(targets) != sorted(spans.targets):
        raise UnsupportedSyntax("two ways of reading it disagree")


def _glimpse_commands(root: tree_sitter.Node, source: bytes) -> tuple[SubCommand, ...]:
    """The plain words that commands begin with, at any depth: enough for a deny rule."""
    found: list[SubCommand] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting.extend(reversed(node.children))
        if node.type != "command":
            continue
        words: list[str] = []
        for child in node.children:
            if child.type not in _WORD_NODES | {"command_name"}:
                break
            raw = source[child.start_byte : child.end_byte].decode(errors="replace")
            words.append(_QUOTING.sub("", raw))
        if words:
            found.append(SubCommand(tuple(words)))
    return tuple(found)
