"""Reads simple commands: their words, assignments, redirections and here-documents.

`CommandReader` stands between the words (`shell_words`) and the grammar around simple commands
(`shell_grammar`). It also skips blanks, comments and line ends, because the first line end after
`<<END` is where the body of the here-document begins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from recollect.permissions.parsed_line import UnsupportedSyntax, word_set
from recollect.permissions.shell_variables import AssignedValue, names_shell_setting
from recollect.permissions.shell_words import BLANKS, OPERATOR_CHARACTERS, Word, WordReader

MAX_COMMANDS = 200
MAX_HERE_TEXTS = 20
MAX_TEST = 1_000  # characters of `[ … ]` and `[[ … ]]`; tree-sitter takes long over more
_REDIRECTION = re.compile(r"([0-9]?)(<<<|<<-|<<|<&|>&|>>|>\||<>|[<>])|&>>|&>")
_DELIMITER = re.compile(r"(\\?|'|\")([A-Za-z_][A-Za-z0-9_.-]*)(['\"]?)(?=[\s|&;<>()]|\Z)")
_DESCRIPTOR = re.compile(r"(?:[0-9]|-)(?=[\s|&;<>()]|\Z)")
_LINE_END = re.compile(r"[ \t]*\n")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_SUBSCRIPT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[")
_NUMBER_RANGE = re.compile(r"\{-?[0-9]{1,9}\.\.-?[0-9]{1,9}\}\Z")
_NUMBER = re.compile(r"\$\(\(|\$[?#]\Z|\$\{#\w+\}\Z|\$\((?:date \+%s(?:%N)?|nproc)\)\Z")
_PERSISTING_BUILTINS = word_set(  # POSIX keeps the assignments before them
    ". : break builtin command continue eval exec exit export readonly return set shift source"
    " times trap unset"
)
_SAME_EFFECT = {">|": ">", "&>>": "&>", "<>": ">"}


@dataclass
class CommandRecord:
    """A simple command while it is read."""

    words: list[Word] = field(default_factory=list)
    assignments: list[tuple[str, Word]] = field(default_factory=list)
    stdin_text: str | None = None
    piped: bool = False
    captured: bool = False


class HereDocument(NamedTuple):
    delimiter: str
    quoted: bool
    strips_tabs: bool
    readers: list[CommandRecord]


class CommandReader(WordReader):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.commands: list[CommandRecord] = []
        self.statements: list[tuple[str, Word]] = []  # assignments of their own
        self.targets: list[tuple[str, Word]] = []  # of redirections; no operator: no file
        self.loop_words: list[Word] = []
        self.other_words: list[Word] = []  # of cases, tests, here-strings
        self.here_texts: list[str] = []
        self.here_operators: list[tuple[int, int]] = []  # positions of `<<` and `<<-`
        self.here_bodies: list[tuple[int, int]] = []  # positions, each with its last line
        self._pending: list[HereDocument] = []  # here-documents whose body comes next
        self._outer_pending: list[list[HereDocument]] = []

    # --- blanks, comments, lines ---------------------------------------------------------------

    def skip_blanks(self) -> None:
        while (character := self.peek()) and character in BLANKS + "\\#":
            if character in BLANKS:
                self.at += 1
            elif character == "#":
                newline = self.text.find("\n", self.at, self.end)
                self.at = newline if newline >= 0 else self.end
                self.compound = True
            elif self.peek(1) == "\n":
                self._skip_continuation()
            else:
                return

    def _skip_continuation(self) -> None:
        before = self.text[self.at - 1] if self.at else " "
        after = self.peek(2)
        if (before not in " \t\n" and after not in (" ", "\t")) or after == "" or self._pending:
            raise UnsupportedSyntax("it has a backslash before the end of a line, within a word")
        self.compound = True
        self.at += 2

    def skip_lines(self) -> None:
        """Skip blanks, comments and newlines; a newline begins the bodies of here-documents."""
        self.skip_blanks()
        while self.peek() == "\n":
            self.at += 1
            self.compound = self.compound or self.at < self.end
            if any(self._outer_pending):
                raise UnsupportedSyntax("a here-document begins within an expansion")
            pending, self._pending = self._pending, []
            for number, document in enumerate(pending):
                self.at += number > 0  # past the end of the line that ended the one before
                self._read_here_document(document)
            self.skip_blanks()

    def read_word(self) -> Word:
        word = self.read_parts()
        if word.end == word.start:
            raise UnsupportedSyntax(f"it has {self.text[self.at : self.at + 2]!r}")
        self._check_word_end(word)
        return word

    def _check_word_end(self, word: Word) -> None:
        waiting = self._pending or any(self._outer_pending)
        if waiting and "\n" in self.text[word.start : word.end]:
            raise UnsupportedSyntax("a here-document begins within a word")
        if self.peek() in ("<", ">"):
            raw = self.text[word.start : word.end]
            if self.peek(1) == "(" or raw.isdigit() or raw.startswith("{"):
                raise UnsupportedSyntax("a redirection is not simple")

    def at_word(self) -> bool:
        """Skip blanks; whether a word follows."""
        self.skip_blanks()
        following = self.peek()
        if following in ("<", ">"):
            return self.peek(1) == "("
        return bool(following) and following != "\n" and following not in OPERATOR_CHARACTERS

    # --- simple commands -----------------------------------------------------------------------

    def read_simple_command(self) -> None:
        if len(self.commands) >= MAX_COMMANDS:
            raise UnsupportedSyntax(f"it has more than {MAX_COMMANDS} commands")
        command, redirects = CommandRecord(), False
        self.commands.append(command)
        while True:
            if self.read_redirection([command]):
                redirects = True
            elif self.at_word():
                self._read_command_word(command)
            else:
                break
        if command.words:
            self._check_assignments(command)
            if command.words[0].value == "[":
                self.check_test_length(command.words[0].start)
            return
        if not command.assignments and not redirects:
            raise UnsupportedSyntax("a command is missing")
        for name, word in command.assignments:
            self.variables.assign(name, value_of(word, self.text))
        self.statements += command.assignments
        self.compound = True
        if not redirects:
            self.assigned_here |= {name for name, _ in command.assignments}

    def check_test_length(self, start: int) -> None:
        if self.at - start > MAX_TEST:
            raise UnsupportedSyntax(f"it has a test of more than {MAX_TEST:,} characters")

    def _read_command_word(self, command: CommandRecord) -> None:
        if command.words:
            command.words.append(self.read_word())
        elif _SUBSCRIPT.match(self.text, self.at, self.end):
            raise UnsupportedSyntax("it may assign to a part of an array")
        elif assignment := _ASSIGNMENT.match(self.text, self.at, self.end):
            self._read_assignment(command, assignment)
        else:
            command.words.append(self.read_word())

    def _read_assignment(self, command: CommandRecord, assignment: re.Match[str]) -> None:
        self.compound = True
        start = self.at
        self.at = assignment.end()
        value = self.read_parts()
        if self.peek() == "(":
            raise UnsupportedSyntax("it assigns an array")
        word = value._replace(start=start, uncertain=value.uncertain or bool(assignment[2]))
        self._check_word_end(word)
        command.assignments.append((assignment[1], word))

    def _check_assignments(self, command: CommandRecord) -> None:
        name = command.words[0].value
        for variable, word in command.assignments:
            if not names_shell_setting(variable):
                self.variables.assign(variable, value_of(word, self.text))
            elif name in _PERSISTING_BUILTINS or (variable == "IFS" and name != "read"):
                raise UnsupportedSyntax(f"it assigns {variable}, which has a meaning for the shell")

    # --- redirections --------------------------------------------------------------------------

    def read_redirection(self, readers: list[CommandRecord]) -> bool:
        """Read one, if one is next. `readers` can read from it."""
        self.skip_blanks()
        found = _REDIRECTION.match(self.text, self.at, self.end)
        if found is None or self.text.startswith(("<(", ">("), self.at, self.end):
            return False
        descriptor, operator = found[1], found[2] or found[0]
        self.at = found.end()
        self.compound = self.compound or operator not in (">", ">>", "<", ">&", "&>")
        self.compound = self.compound or descriptor not in (None, "", "1", "2")
        if operator in ("<<", "<<-"):
            self.here_operators.append((found.end() - len(operator), found.end()))
            self._read_delimiter(descriptor, operator, readers)
            return True
        if operator in (">&", "<&"):
            self._read_descriptor(operator)
            return True
        self.skip_blanks()
        word = self.read_word()
        if operator == "<<<":
            self.other_words.append(word)
            self._give_text(word.value + "\n", readers)
            return True
        self.compound = self.compound or not word.is_literal
        substituted = self.text.startswith(("<(", ">("), word.start)
        self.targets.append(("" if substituted else _SAME_EFFECT.get(operator, operator), word))
        return True

    def _read_descriptor(self, operator: str) -> None:
        self.skip_blanks()
        found = _DESCRIPTOR.match(self.text, self.at, self.end)
        if found is None:
            raise UnsupportedSyntax("the target of a redirection is not plain")
        self.targets.append(("", Word(found[0], self.at, found.end())))
        self.at = found.end()
        self.compound = self.compound or operator != ">&" or found[0] not in "12"

    def _read_delimiter(self, descriptor: str, operator: str, readers: list[CommandRecord]) -> None:
        self.skip_blanks()
        found = _DELIMITER.match(self.text, self.at, self.end)
        if found is None or descriptor not in ("", "0"):
            raise UnsupportedSyntax("a here-document is not plain")
        opening, delimiter, closing = found.groups()
        if closing != opening.replace("\\", ""):
            raise UnsupportedSyntax("a here-document's delimiter is not plain")
        self.targets.append(("", Word(delimiter, self.at, found.end())))
        self.at = found.end()
        if self._outer_pending and not _LINE_END.match(self.text, self.at, self.end):
            raise UnsupportedSyntax("more follows a here-document within an expansion")
        strips_tabs = operator == "<<-"
        self._pending.append(HereDocument(delimiter, bool(opening), strips_tabs, readers))

    def _read_here_document(self, document: HereDocument) -> None:
        lines: list[str] = []
        start = self.at
        while True:
            if self.at >= self.end:
                raise UnsupportedSyntax("a here-document does not end")
            newline = self.text.find("\n", self.at, self.end)
            line_end = newline if newline >= 0 else self.end
            line = self.text[self.at : line_end]
            line = line.lstrip("\t") if document.strips_tabs else line
            if line == document.delimiter:
                break
            if line.startswith(document.delimiter) and ")" in line:
                # within a substitution bash takes it for the end, and runs the rest of the line
                raise UnsupportedSyntax("a line of a here-document begins like its end")
            lines.append(line + "\n")
            self.at = min(line_end + 1, self.end)
        if not document.quoted:
            self.read_here_text(start, self.at)
        self.at = line_end
        self.here_bodies.append((start, line_end))
        self._give_text("".join(lines), document.readers)

    def _give_text(self, text: str, readers: list[CommandRecord]) -> None:
        self.compound = True
        self.here_texts.append(text)
        if len(self.here_texts) > MAX_HERE_TEXTS:
            raise UnsupportedSyntax(f"it has more than {MAX_HERE_TEXTS} here-documents")
        for command in readers:
            command.stdin_text = (command.stdin_text or "") + text


def value_of(word: Word, text: str, *, in_loop: bool = False) -> AssignedValue:
    """What an assignment or a loop gives its variable; only a loop expands globs."""
    source = text[word.start : word.end]
    if in_loop and _NUMBER_RANGE.match(source):
        return AssignedValue(computed=True)
    if word.uncertain and word.parts and len(word.parts) == 1:
        return AssignedValue(computed=bool(_NUMBER.match(word.parts[0].text)))
    if word.uncertain:
        return AssignedValue()
    return AssignedValue(word.value, pattern=in_loop and word.globs)
