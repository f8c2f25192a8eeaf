"""Random command lines, made of the pieces that readers of shell syntax get wrong.

A third are sentences of a grammar, a third are such sentences with a few characters changed, and a
third are pieces in any order. Every word that could become a command's name is one of `NAMES`.
"""

from __future__ import annotations

from random import Random

NAMES = ("a", "b", "no", "x.py", "p", "q")
_WORDS = (
    *NAMES,
    *(
        "-l",
        "--x=1",
        "'a b'",
        '"a b"',
        "''",
        "a'b'\"c\"",
        "\\a",
        "a\\ b",
        "\\'",
        '"\\""',
        "#",
        "a#b",
    ),
    *("'#'", "$x", '"$x"', "${x}", '"${y:-a}"', "${x%.py}", "$y", "$(p a)", '"$(q "b")"', "`p`"),
    *('"`q a`"', "$((1+2))", "$((i))", "~", "~/b", "a~b", "x=~", "{a,b}", "{1..3}", "{}", "a{b}"),
    *(
        "$'a\\nb'",
        "$'\\''",
        '"$"',
        "a$",
        "$",
        '"a\\$b"',
        '"a\\`b"',
        "'$x'",
        "*",
        "?",
        "[",
        "]",
        "[a]",
    ),
    *("!", "=", "a=b", "é", "'中'", "1", "2", "{", "}", "$#", "$?", '"$@"', "${#x}", "${x:-$(p)}"),
    *(
        "in",
        "do",
        "done",
        "then",
        "fi",
        "esac",
        "if",
        "for",
        "case",
        "time",
        "<(p)",
        "-",
        "--",
        "\\;",
    ),
    *('"a\nb"', "'a\nb'", "\\\\", "\\$x", '"\\\\"', "$x$y", "a$x", '"$x"b', "${x/a/b}", "${x:0:1}"),
    *('"${x:-$(p a)}"', "${y:=b}", "$(p # )\n)", "$(q 'a)' \"b)\")", "$(case a in a) p;; esac)"),
    *("`p 'a b'`", "$(<out)", "$(p;q)", "$( (p) )", "$({ q; })", "$(! p)", "$(p&)", "$(x=a p $x)"),
    *('"$(p "$(q "a b")")"', "$(for x in a; do p $x; done)", "${x:+$y}", "\\*", "a\tb", "$(p\nq)"),
)
_SEPARATORS = ("; ", " && ", " || ", " | ", "\n", " & ", ";", "&&", "|", "\n\n", " ;\n", " # a\n")
_NOISE = (
    *"\"'\\$`(){}[]<>|&;#!~=*? \n\tab1-",
    *(
        "$(",
        "))",
        "<<",
        "<<E\n",
        "\nE\n",
        "\\\n",
        "\\\n ",
        "${",
        "$'",
        '$"',
        "&&",
        "||",
        ";;",
        "<(",
        "2>",
        ">&",
    ),
    *(
        " do ",
        " done",
        "; fi",
        "if ",
        "for x in ",
        "case a in ",
        " esac",
        "x=",
        "[[ ",
        " ]]",
        "E",
        "$((",
        "!",
    ),
)
_ASSIGNMENTS = (
    "x=a",
    "x='a b'",
    "y=$(p)",
    'x="$y"',
    "i=1",
    "i=$((i+1))",
    "x=",
    "y=*",
    "x=~/a",
    "x+=b",
)


class LineMaker:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.bodies: list[str] = []  # of here-documents whose line is not over

    def make_line(self) -> str:
        kind = self.random.randrange(3)
        if kind == 2:
            pieces = self.random.choices(
                (*_WORDS, *_NOISE, *_SEPARATORS), k=self.random.randint(1, 12)
            )
            return (
                self.random.choice(NAMES)
                + self._pick(("", " "))
                + self._pick(("", " ")).join(pieces)
            )
        line = self._list(3)
        if self.bodies:
            line = self._end_line(line)
        return "i=1; " * ("$((i" in line) + (self._spoil(line) if kind == 1 else line)

    def _pick(self, among: tuple[str, ...]) -> str:
        return self.random.choice(among)

    def _spoil(self, line: str) -> str:
        for _ in range(self.random.randint(1, 3)):
            at = self.random.randrange(len(line) + 1)
            cut = self.random.choice((0, 0, 1, 2))
            line = line[:at] + self._pick((*_NOISE, "")) + line[at + cut :]
        return line

    def _end_line(self, line: str) -> str:
        bodies, self.bodies = self.bodies, []
        return line + "\n" + "".join(bodies)

    def _list(self, depth: int) -> str:
        line = self._command(depth)
        for _ in range(self.random.randrange(3)):
            separator = self._pick(_SEPARATORS)
            if separator.endswith("\n") and self.bodies:
                line, separator = self._end_line(line), ""
            line += separator + self._command(depth)
        return line

    def _body(self, depth: int) -> str:
        """A list that ends with a separator."""
        line = self._list(depth)
        return (
            self._end_line(line) if self.bodies else line + self._pick((";", "\n", " ; ", " # b\n"))
        )

    def _command(self, depth: int) -> str:
        if depth == 0 or self.random.random() < 0.55:
            return self._simple(depth)
        body = self._body(depth - 1)
        shapes = {
            "for": f"for x in {self._words(3)}; do {body} done",
            "if": f"if {self._body(0)} then {body} else {self._body(0)} fi",
            "while": f"while {self._simple(0)}; do {body} break; done",
            "until": f"until no; do {body} break; done",
            "case": f"case {self._word()} in a|b*) {body}\n;; *) {self._body(0)}\n;; esac",
            "group": f"{{ {body} }}",
            "shell": f"({body})",
            "not": f"! {self._simple(0)}",
            "test": f"[[ {self._word()} == {self._word()} ]] && {self._simple(0)}",
            "inner": f'p "$({body})" $({self._body(0)})',
        }
        self.bodies = []  # a here-document that a shape left open makes the line one not understood
        return shapes[self._pick((*shapes, "inner", "inner"))] + self._pick(
            ("", "", " > out", " 2>&1", " < /dev/null")
        )

    def _simple(self, depth: int) -> str:
        kind = self.random.randrange(10)
        if kind == 0:
            return self._pick(_ASSIGNMENTS)
        line = self._pick(NAMES) + " " + self._words(4)
        if kind == 1:
            return self._pick(_ASSIGNMENTS) + " " + line
        if kind == 2:
            return line + self._pick(
                (" > out", ">out", " 2>/dev/null", ' >> "$x"', " >&2", " &> out", " <<< a")
            )
        if kind == 3 and depth:
            return line + self._here_document()
        if kind == 4:
            return line + " \\\n " + self._word()
        return line

    def _here_document(self) -> str:
        operator, quote = self._pick(("<<", "<<-")), self._pick(("", "'", '"', "\\"))
        lines = self.random.choices(
            ("a $x\n", "$(p b)\n", "`q`\n", "\tE \n", "'\"\n", "\\$(a)\n", "b\n"), k=2
        )
        self.bodies.append("".join(lines) + self._pick(("E\n", "E\n", "E\n", "\tE\n")))
        return f" {operator}{quote}E{quote if quote != chr(92) else ''}"

    def _words(self, most: int) -> str:
        return " ".join(self._word() for _ in range(self.random.randint(0, most)))

    def _word(self) -> str:
        return self._pick(_WORDS) + (self._pick(_WORDS) if self.random.random() < 0.15 else "")
