"""Reads the words of a shell line: quoting, escapes and expansions, each in its strictest form.

`WordReader` goes over the text once, from `at` to `end`, and raises `UnsupportedSyntax` at the
first thing that it does not understand or that shells read differently. It notes the position of
every expansion, for the second reader to confirm, and the variables that arithmetic evaluates. The
grammar reads the commands inside an expansion (`read_substituted`).
"""

from __future__ import annotations

import re
from string import digits
from typing import NamedTuple

from recollect.permissions.parsed_line import UnsupportedSyntax
from recollect.permissions.shell_characters import check_unquoted
from recollect.permissions.shell_variables import AssignedValue, VariableUses, WordPart

MAX_DEPTH = 20
MAX_EXPANSIONS = 500
MAX_WORDS = 1_500
MAX_ARITHMETIC = 200  # characters; tree-sitter takes long over more
BLANKS = " \t"
OPERATOR_CHARACTERS = frozenset("|&;<>()")
_WORD_END = OPERATOR_CHARACTERS | frozenset(" \t\n")
_PLAIN_RUN = re.compile(r"[A-Za-z0-9_!%+,\-./:=@^\]}\u0080-\U0010ffff]+")
_DOUBLE_QUOTED_RUN = re.compile(r'[^"$`\\]+')
_HERE_RUN = re.compile(r"[^$`\\]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PARAMETER = re.compile(r"(#?)([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])")
_PIPE_STATUS = re.compile(r"PIPESTATUS\[[0-9]\]}")  # a number
_PARAMETER_OPERATOR = re.compile(r":?[-=?+]|%%?|##?|//?|\^\^?|,,?")
_SLICE = re.compile(r":(?: ?-)?[0-9]+(?::(?: ?-)?[0-9]+)?(?=})")
_ARGUMENT_RUN = re.compile(r"[A-Za-z0-9_ !%+,\-./:=@^*?\[\]~#\u0080-\U0010ffff]+")
_ARITHMETIC_RUN = re.compile(r"[0-9][0-9A-Za-z]*|[ \t+\-*/%<>=!&|^~?:,]+")
_SPECIAL_PARAMETERS = frozenset(digits + "@*#?$!-")
_SEVERAL_WORDS = frozenset({"$@", "${@}"})
_ANSI_ESCAPES = dict(zip("ntrabfve\\'\"?", "\n\t\r\a\b\f\v\x1b\\'\"?", strict=True))


class Word(NamedTuple):
    """A word after quoting, its position, and whether bash may replace it by files."""

    value: str
    start: int
    end: int
    globs: bool = False
    quoted: bool = False
    uncertain: bool = False  # its value is the shell's to decide, other than by globs
    parts: tuple[WordPart, ...] | None = ()  # None: globs or braces make of it what they will

    @property
    def is_literal(self) -> bool:
        return not self.uncertain and not self.globs

    @property
    def splits(self) -> bool:
        """Whether it may become several words, or none."""
        if self.parts is None:
            return True
        opaque = (part for part in self.parts if not part.literal)
        return any(not part.quoted or part.text in _SEVERAL_WORDS for part in opaque)


class WordReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.end = len(text)
        self.depth = 0
        self.compound = False
        self.word_count = 0
        self.expansions: list[tuple[int, int]] = []
        self.variables = VariableUses()
        self.here_expansions: list[tuple[int, int]] = []  # the outermost ones in here-documents
        self.assigned_here: frozenset[str] = frozenset()  # surely assigned by this line, by now

    def read_substituted(self, closer: str) -> None:
        """Read the commands of an expansion up to its closer. Without a grammar there are none."""
        raise UnsupportedSyntax(f"it has a command inside a word, up to {closer or '`'!r}")

    def peek(self, offset: int = 0) -> str:
        at = self.at + offset
        return self.text[at] if at < self.end else ""

    def descend(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnsupportedSyntax(f"it is nested more than {MAX_DEPTH} deep")

    def read_parts(self) -> Word:
        """Read a word, which may be empty."""
        start, parts = self.at, list[WordPart]()
        self.word_count += 1
        if self.word_count > MAX_WORDS:
            raise UnsupportedSyntax(f"it has more than {MAX_WORDS:,} words")
        globs = quoted = braced = False
        if self.peek() in ("<", ">") and self.peek(1) == "(":
            parts.append(self._read_process_substitution())
        while self.at < self.end and (character := self.text[self.at]) not in _WORD_END:
            if run := _PLAIN_RUN.match(self.text, self.at, self.end):
                if not run[0].isascii():
                    check_unquoted(run[0])
                parts.append(WordPart(run[0]))
                self.at = run.end()
            elif character in "*?[":
                globs = True
                parts.append(WordPart(character))
                self.at += 1
            elif self._at_continuation():
                break
            elif character in "'\"\\":
                quoted = True
                parts += self._read_quoted(character)
            elif character in "$`":
                parts.append(self.read_expansion(quoted=False))
            else:
                braced = braced or character == "{"
                parts.append(self._read_unquoted(character, start))
        raw = self.text[start : self.at]
        braced = braced and "}" in raw and ("," in raw or ".." in raw)
        globs = (globs or "]" in _unquoted(parts)) and raw not in ("[", "]")
        self.compound = self.compound or braced
        uncertain = braced or not all(part.literal for part in parts)
        known = None if braced or globs else tuple(parts)
        value = "".join(part.text for part in parts)
        return Word(value, start, self.at, globs, quoted, uncertain, known)

    def _at_continuation(self) -> bool:
        return self.text.startswith(("\\\n ", "\\\n\t"), self.at, self.end)

    def _read_unquoted(self, character: str, start: int) -> WordPart:
        before = self.text[self.at - 1] if self.at > start else "="
        self.at += 1
        if character == "~":
            # to bash it means a home folder only here; `a=~` and `a:~` count in some places
            named = before in "=:"
            self.compound = self.compound or named
            return WordPart("~", quoted=True, literal=not named)
        if character == "{" or (character == "#" and self.at - 1 > start):
            return WordPart(character)
        raise UnsupportedSyntax(f"it has {character!r} outside quotes")

    def _read_quoted(self, character: str) -> list[WordPart]:
        if character == '"':
            return self._read_double_quotes()
        if character == "\\":
            return self._read_escape()
        close = self.text.find("'", self.at + 1, self.end)
        if close < 0:
            raise UnsupportedSyntax("a quotation mark is not closed")
        inside = self.text[self.at + 1 : close]
        self.at = close + 1
        return [WordPart(inside, quoted=True)]

    def _read_escape(self) -> list[WordPart]:
        escaped = self.peek(1)
        if escaped in ("", "\n"):
            raise UnsupportedSyntax("it has a backslash before the end of a line, within a word")
        self.compound = True
        self.at += 2
        return [WordPart(escaped, quoted=True)]

    def _read_double_quotes(self) -> list[WordPart]:
        self.at += 1
        parts = [WordPart("", quoted=True)]
        while (character := self.peek()) != '"':
            if not character:
                raise UnsupportedSyntax("a quotation mark is not closed")
            if run := _DOUBLE_QUOTED_RUN.match(self.text, self.at, self.end):
                parts.append(WordPart(run[0], quoted=True))
                self.at = run.end()
            elif character == "\\":
                parts.append(self._read_quoted_escape())
            else:
                parts.append(self.read_expansion(quoted=True))
        self.at += 1
        return parts

    def _read_quoted_escape(self) -> WordPart:
        escaped = self.peek(1)
        if not escaped:
            raise UnsupportedSyntax("a quotation mark is not closed")
        self.at += 2
        if escaped in "$`\n":
            self.compound = True
        if escaped == "\n":
            return WordPart("", quoted=True)
        return WordPart(escaped if escaped in '"\\$`' else "\\" + escaped, quoted=True)

    def read_here_text(self, start: int, end: int) -> None:
        """The expansions in the body of a here-document whose delimiter is not quoted."""
        outer_at, outer_end = self.at, self.end
        self.at, self.end = start, end
        while self.at < self.end:
            if run := _HERE_RUN.match(self.text, self.at, self.end):
                self.at = run.end()
            elif self.peek() == "\\":
                if self.peek(1) in ("", "\n"):
                    raise UnsupportedSyntax("a here-document has a backslash at the end of a line")
                self.at += 2
            else:
                begin = self.at
                if not self.read_expansion(quoted=True).literal:
                    self.here_expansions.append((begin, self.at))
        self.at, self.end = outer_at, outer_end

    def read_expansion(self, *, quoted: bool) -> WordPart:
        """Read from a `$` or a backquote on; a `$` that means nothing is a literal one."""
        start = self.at
        if self.text[start] == "`":
            self._read_backquotes(quoted=quoted)
            return self._note_expansion(start, quoted=quoted)
        following, variable = self.peek(1), ""
        if following == "(":
            self._read_parentheses()
        elif following == "{":
            variable = self._read_parameter(quoted=quoted)
        elif name := _NAME.match(self.text, start + 1, self.end):
            variable = name[0]
            self.at = name.end()
        elif following and following in _SPECIAL_PARAMETERS:
            self.at += 2
        elif following == "'" and not quoted:
            return self._read_ansi_quotes()
        else:
            return self._read_literal_dollar(following, quoted=quoted)
        return self._note_expansion(start, variable, quoted=quoted)

    def _note_expansion(self, start: int, variable: str = "", *, quoted: bool) -> WordPart:
        self.compound = True
        self.expansions.append((start, self.at))
        if len(self.expansions) > MAX_EXPANSIONS:
            raise UnsupportedSyntax(f"it has more than {MAX_EXPANSIONS} expansions")
        known = variable if variable in self.assigned_here else ""
        return WordPart(self.text[start : self.at], known, quoted, literal=False)

    def _read_literal_dollar(self, following: str, *, quoted: bool) -> WordPart:
        joined = following == "\\" and self.peek(2) in ("", "\n")
        if following in tuple("[`") or joined or (following == '"' and not quoted):
            raise UnsupportedSyntax(f"it has '${following}' outside single quotes")
        self.compound = True
        self.at += 1
        return WordPart("$", quoted=quoted)

    def _read_backquotes(self, *, quoted: bool) -> None:
        close = self.text.find("`", self.at + 1, self.end)
        if close < 0:
            raise UnsupportedSyntax("a backquote is not closed")
        inside = self.text[self.at + 1 : close]
        if "\\" in inside or (quoted and '"' in inside):
            raise UnsupportedSyntax("it has quoting inside backquotes")
        outer, self.end = self.end, close
        self.at += 1
        self.read_substituted("")
        self.at, self.end = close + 1, outer

    def _read_parentheses(self) -> None:
        if self.peek(2) == "(":
            self._read_arithmetic()
            return
        self.at += 2
        self.read_substituted(")")
        self.at += 1

    def _read_process_substitution(self) -> WordPart:
        start = self.at
        self.at += 2
        self.read_substituted(")")
        self.at += 1
        if self.peek() and self.peek() not in _WORD_END:
            raise UnsupportedSyntax("it has a process substitution inside a word")
        return self._note_expansion(start, quoted=False)

    def _read_arithmetic(self) -> None:
        start = self.at
        self.at += 3
        opened = 0
        while opened or not self.text.startswith("))", self.at, self.end):
            character = self.peek()
            if run := _ARITHMETIC_RUN.match(self.text, self.at, self.end):
                self.at = run.end()
            elif name := _NAME.match(self.text, self.at, self.end):
                self.variables.evaluated.add(name[0])
                self.at = name.end()
            elif character == "$":
                self._read_arithmetic_variable()
            elif character == "(" or (character == ")" and opened):
                opened += 1 if character == "(" else -1
                self.at += 1
            else:
                raise UnsupportedSyntax("it has arithmetic that is not plain")
        self.at += 2
        if self.at - start > MAX_ARITHMETIC:
            raise UnsupportedSyntax(f"it has arithmetic of more than {MAX_ARITHMETIC} characters")

    def _read_arithmetic_variable(self) -> None:
        start = self.at
        following = self.peek(1)
        if name := _NAME.match(self.text, start + 1, self.end):
            self.at = name.end()
        elif following == "{" and (name := _NAME.match(self.text, start + 2, self.end)):
            if not self.text.startswith("}", name.end(), self.end):
                raise UnsupportedSyntax("it has arithmetic that is not plain")
            self.at = name.end() + 1
        elif following in ("#", "?", "$"):
            self.at += 2
        else:
            raise UnsupportedSyntax("it has arithmetic that is not plain")
        self.expansions.append((start, self.at))
        if name:
            self.variables.evaluated.add(name[0])

    def _read_parameter(self, *, quoted: bool) -> str:
        """Read `${…}`; the name if it is the plain value of a variable."""
        start = self.at
        if status := _PIPE_STATUS.match(self.text, start + 2, self.end):
            self.at = status.end()
            return ""
        parameter = _PARAMETER.match(self.text, start + 2, self.end)
        if parameter is None:
            raise UnsupportedSyntax("it has an expansion that is not a common one")
        self.at = parameter.end()
        length_of, name = parameter.groups()
        if self.peek() == "}":
            self.at += 1
            return "" if length_of else name
        if slice_of := _SLICE.match(self.text, self.at, self.end):
            self.at = slice_of.end() + 1
            return ""
        operator = _PARAMETER_OPERATOR.match(self.text, self.at, self.end)
        if operator is None or length_of:
            raise UnsupportedSyntax("it has an expansion that is not a common one")
        self.at = operator.end()
        if operator[0].endswith("="):
            self.variables.assign(name, AssignedValue())
        self._read_parameter_argument(quoted=quoted)
        return ""

    def _read_parameter_argument(self, *, quoted: bool) -> None:
        self.descend()
        while (character := self.peek()) != "}":
            if run := _ARGUMENT_RUN.match(self.text, self.at, self.end):
                self.at = run.end()
            elif character == "\\" and self.peek(1) in ("/", "."):
                self.at += 2
            elif character == '"' and not quoted:
                self._read_double_quotes()
            elif character == "$" and (self.peek(1) in ("(", "{") or self.peek(1).isidentifier()):
                self.read_expansion(quoted=quoted)
            else:
                raise UnsupportedSyntax("it has an expansion with an unusual argument")
        self.at += 1
        self.depth -= 1

    def _read_ansi_quotes(self) -> WordPart:
        start, value = self.at, list[str]()
        self.at += 2
        while (character := self.peek()) != "'":
            if not character:
                raise UnsupportedSyntax("a quotation mark is not closed")
            if character == "\\":
                decoded = _ANSI_ESCAPES.get(self.peek(1))
                if decoded is None:
                    raise UnsupportedSyntax(f"it has {self.text[self.at : self.at + 2]!r} in $'…'")
                value.append(decoded)
                self.at += 2
            else:
                value.append(character)
                self.at += 1
        self.at += 1
        self.compound = True
        self.expansions.append((start, self.at))
        return WordPart("".join(value), quoted=True)


def _unquoted(parts: list[WordPart]) -> str:
    return "".join(part.text for part in parts if part.literal and not part.quoted)
