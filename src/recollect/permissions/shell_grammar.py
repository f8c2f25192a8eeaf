"""Reads the grammar of a shell line: lists, pipelines, loops, conditions.

`LineReader` finds every simple command wherever it stands. It reads strictly: where bash and dash
or the releases of bash differ, or where a construct is rare, the line is `UnsupportedSyntax`.
"""

from __future__ import annotations

import re

from recollect.permissions.parsed_line import UnsupportedSyntax, word_set
from recollect.permissions.shell_commands import CommandReader, value_of
from recollect.permissions.shell_variables import can_assign
from recollect.permissions.shell_words import Word

RESERVED = word_set(
    "! [[ ]] case coproc do done elif else esac fi for function if in select then until while { }"
)
_RESERVED_WORD = re.compile(r"(?:[a-z]{2,8}|[{}!]|\[\[|\]\])(?=[\s|&;<>()]|\Z)")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_INTEGER_TESTS = word_set("-eq -ne -lt -le -gt -ge")


class LineReader(CommandReader):
    def read_line(self) -> None:
        self.read_commands()
        if self._pending:
            raise UnsupportedSyntax("a here-document has no body")
        for command in self.commands:
            if command.words and can_assign(tuple(word.value for word in command.words)):
                self.variables.forget_values()
        self.variables.check_arithmetic()

    # --- lists ---------------------------------------------------------------------------------

    def read_commands(self, stop_words: frozenset[str] = frozenset(), closer: str = "") -> str:
        """Read statements up to one of the words, which is read too, or up to the closer."""
        self.descend()
        assigned, empty = self.assigned_here, True
        while not (stop := self._find_stop(stop_words, closer)):
            if self.at >= self.end and not stop_words and not closer:
                break
            before = self.assigned_here
            self._read_and_or()
            empty = False
            if not self._read_separator(before):
                stop = self._find_stop(stop_words, closer)
                if not stop and (self.at < self.end or stop_words or closer):
                    raise UnsupportedSyntax("a command does not end where it should")
                break
        if empty and stop not in (";;", "esac"):
            raise UnsupportedSyntax("a command is missing")
        self.assigned_here = assigned
        self.depth -= 1
        return stop

    def _find_stop(self, stop_words: frozenset[str], closer: str) -> str:
        self.skip_lines()
        if closer and self.peek() == closer:
            return closer
        if ";;" in stop_words and self.text.startswith((";;", ";&"), self.at, self.end):
            return ";;"
        word = self._peek_reserved()
        if word in stop_words:
            self.at += len(word)
            return word
        if self.at >= self.end and (stop_words or closer):
            raise UnsupportedSyntax("it ends too early")
        return ""

    def _read_separator(self, before: frozenset[str]) -> bool:
        self.skip_blanks()
        character = self.peek()
        if character == ";" and self.peek(1) not in (";", "&"):
            self.at += 1
            return True
        if character == "&" and self.peek(1) not in ("&", ">"):
            self.at += 1
            self.compound = True
            self.assigned_here = before  # what runs in the background assigns there
            return True
        return character == "\n"

    def _read_and_or(self) -> None:
        self._read_pipeline()
        while self.text.startswith(("&&", "||"), self.at, self.end):
            self.at += 2
            self.skip_lines()
            before = self.assigned_here
            self._read_pipeline()
            self.assigned_here = before  # it may not have run

    def _read_pipeline(self) -> None:
        if self._peek_reserved() == "!":
            self.compound = True
            self.at += 1
            self.skip_blanks()
            if self._peek_reserved() == "!":
                raise UnsupportedSyntax("it has '!' twice")
        before = self.assigned_here
        first = len(self.commands)
        self._read_command()
        self.skip_blanks()
        while self.peek() == "|" and self.peek(1) != "|":
            self._capture(first)
            self.assigned_here = before  # each part of a pipeline has variables of its own
            self.compound = self.compound or self.peek(1) == "&"
            self.at += 2 if self.peek(1) == "&" else 1
            self.skip_lines()
            first = len(self.commands)
            self._read_command()
            for command in self.commands[first:]:
                command.piped = True
            self.assigned_here = before
            self.skip_blanks()

    def _capture(self, first: int) -> None:
        for command in self.commands[first:]:
            command.captured = True

    def read_substituted(self, closer: str) -> None:
        self._outer_pending.append(self._pending)
        self._pending = []
        bodies, first = len(self.here_bodies), len(self.commands)
        self.read_commands(closer=closer)
        self._capture(first)
        if self._pending:
            raise UnsupportedSyntax("a here-document has no body")
        self._pending = self._outer_pending.pop()
        self._check_here_documents(self.here_bodies[bodies:])

    def _check_here_documents(self, within: list[tuple[int, int]]) -> None:
        """Only at its end: bash 5.2 writes a substitution anew, and loses separators after one."""
        if within and (len(within) > 1 or self.text[within[0][1] : self.at].strip()):
            raise UnsupportedSyntax("a command follows a here-document within an expansion")

    def _peek_reserved(self) -> str:
        found = _RESERVED_WORD.match(self.text, self.at, self.end)
        return found[0] if found and found[0] in RESERVED else ""

    # --- commands ------------------------------------------------------------------------------

    def _read_command(self) -> None:
        reserved = self._peek_reserved()
        first = len(self.commands)
        if self.peek() == "(" and self.peek(1) != "(":
            self.at += 1
            self.read_commands(closer=")")
            self.at += 1
        elif reserved:
            self.at += len(reserved)
            self._read_compound(reserved)
        else:
            self.read_simple_command()
            return
        self.compound = True
        while self.read_redirection(self.commands[first:]):
            pass

    def _read_compound(self, word: str) -> None:
        if word == "{":
            self.read_commands(frozenset("}"))
        elif word in ("while", "until"):
            self.read_commands(frozenset({"do"}))
            self.read_commands(frozenset({"done"}))
        elif word == "if":
            self._read_if()
        elif word == "for":
            self._read_for()
        elif word == "case":
            self._read_case()
        elif word == "[[":
            self._read_test()
        else:
            raise UnsupportedSyntax(f"it has {word!r}, which is not understood there")

    def _read_if(self) -> None:
        self.read_commands(frozenset({"then"}))
        after = frozenset({"elif", "else", "fi"})
        while (stop := self.read_commands(after)) != "fi":
            if stop == "elif":
                self.read_commands(frozenset({"then"}))
            else:
                after = frozenset({"fi"})

    def _expect(self, reserved: str) -> None:
        if self._peek_reserved() != reserved:
            raise UnsupportedSyntax(f"it lacks {reserved!r}")
        self.at += len(reserved)

    def _read_for(self) -> None:
        self.skip_blanks()
        name = self.read_word()
        if not name.is_literal or name.quoted or not _VARIABLE_NAME.match(name.value):
            raise UnsupportedSyntax("a loop's variable is not plain")
        self.skip_lines()
        self._expect("in")
        values: list[Word] = []
        while self.at_word():
            values.append(self.read_word())
        if self.peek() not in (";", "\n"):
            raise UnsupportedSyntax("a loop's values do not end where they should")
        self.at += self.peek() == ";"
        for word in values:
            self.variables.assign(name.value, value_of(word, self.text, in_loop=True))
        self.loop_words += values
        if name.value.isupper():  # it looks like a variable of the environment
            self.statements += [(name.value, word) for word in values]
        self.skip_lines()
        self._expect("do")
        assigned = self.assigned_here
        self.assigned_here |= {name.value}
        self.read_commands(frozenset({"done"}))
        self.assigned_here = assigned

    def _read_case(self) -> None:
        self.skip_blanks()
        self.other_words.append(self.read_word())
        self.skip_lines()
        self._expect("in")
        self.skip_lines()
        stop = ""
        while stop != "esac" and self._peek_reserved() != "esac":
            self.at += self.peek() == "("
            while True:
                self.skip_blanks()
                self.other_words.append(self.read_word())
                self.skip_blanks()
                if self.peek() != "|":
                    break
                self.at += 1
            if self.peek() != ")":
                raise UnsupportedSyntax("a pattern of 'case' does not end where it should")
            self.at += 1
            stop = self.read_commands(frozenset({";;", "esac"}))
            if stop == ";;":
                self.at += 3 if self.text.startswith(";;&", self.at, self.end) else 2
                self.skip_lines()
        if stop != "esac":
            self.at += len("esac")

    def _read_test(self) -> None:
        """Read `[[ … ]]`. Its integer comparisons are arithmetic, which evaluates variables."""
        before: Word | None = None
        arithmetic = opened = 0
        start = self.at
        while True:
            self.skip_blanks()
            character = self.peek()
            if self._peek_reserved() == "]]" and not opened:
                break
            if self.text.startswith(("&&", "||"), self.at, self.end):
                self.at += 2
                before = None
            elif character in ("(", ")") or (character in ("<", ">") and self.peek(1) == " "):
                opened += {"(": 1, ")": -1}.get(character, 0)
                self.at += 1
            else:
                word = self.read_word()
                if arithmetic or word.value in _INTEGER_TESTS:
                    self._check_compared(word if arithmetic else before)
                arithmetic = word.value in _INTEGER_TESTS
                if before and before.value in ("-v", "-R") and not word.is_literal:
                    raise UnsupportedSyntax("it tests a variable whose name is not plain")
                if before and before.value in ("-v", "-R") and not _VARIABLE_NAME.match(word.value):
                    raise UnsupportedSyntax("it tests a variable whose name is not plain")
                self.other_words.append(word)
                before = word
        if arithmetic or opened:
            raise UnsupportedSyntax("a test is not complete")
        self.at += 2
        self.check_test_length(start)

    def _check_compared(self, word: Word | None) -> None:
        raw = self.text[word.start : word.end].strip('"') if word else ""
        name = raw.removeprefix("$").removeprefix("{").removesuffix("}")
        if raw.startswith("$") and _VARIABLE_NAME.match(name):
            self.variables.evaluated.add(name)
        elif not raw.removeprefix("-").isdigit() and raw not in ("$#", "$?"):
            raise UnsupportedSyntax("a number is compared with something that is not plain")
