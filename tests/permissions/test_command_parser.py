from __future__ import annotations

import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.permissions.command_judge import judge_line
from recollect.permissions.command_parser import MAX_CHARACTERS, Redirection, parse_line
from recollect.permissions.command_rules import CommandRule, CommandRules

BENIGN = st.sampled_from(
    [
        "a",
        "-l",
        "--x=1",
        "'$(x) `y` ~'",
        '"a b"',
        "''",
        "a'b'\"c\"",
        "HEAD~1",
        "x.py",
        "|",
        "&&",
        ";",
        "ls",
    ]
)
EXPANDS = st.sampled_from(
    [
        "$x",
        "${x}",
        "$(x)",
        "`x`",
        '"$x"',
        '"a `x` b"',
        "$((1))",
        "$'a'",
        '$"a"',
        "<(x)",
        ">(x)",
        "{a,b}",
        "{1..3}",
        "~",
        "~/x",
        "a=~",
        "\\x",
        "\\\n",
        '"\\$x"',
        "'a'$x",
        "x$",
        '"$"',
        "$",
        "(x)",
        "a`b`",
    ]
)
ANYTHING = CommandRules(
    allow=tuple(CommandRule((name,), is_prefix=True) for name in ("ls", "a", "x", "echo")),
    mode="free",
)


def words(text: str) -> list[tuple[str, ...]]:
    reading = parse_line(text)
    assert not reading.problem, reading.problem
    return [command.words for command in reading.commands]


def test_words_are_split_as_bash_splits_them() -> None:
    assert words("git log -5 | head && echo 'a b' \"c d\"e; pwd") == [
        ("git", "log", "-5"),
        ("head",),
        ("echo", "a b", "c de"),
        ("pwd",),
    ]
    assert words('grep "a\\.b \\"c\\" \\\\" x') == [("grep", 'a\\.b "c" \\', "x")]
    assert words("echo '' a''b") == [("echo", "", "ab")]


def test_redirections_are_parsed_with_their_targets() -> None:
    reading = parse_line("make 2>&1 >> log.txt")
    assert reading.redirections == (Redirection(">>", "log.txt"),)
    assert parse_line("ls < a 2>/dev/null").redirections[0] == Redirection("<", "a")
    assert parse_line("make &> 'a b'").redirections == (Redirection("&>", "a b"),)


def test_the_source_is_exactly_the_bytes_that_were_read() -> None:
    for text in ("ls  -l 'é'\n", "ls $(x)", "echo \u202e", ""):
        assert parse_line(text).source == text.encode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\n",
        "ls &&",
        "| ls",
        "ls | | x",
        "ls ;; x",
        "&& ls",
        "ls >",
        "ls > a b",
        "'ls",
        '"ls',
        "#x",
        "'a=b' x",
        "if x",
        "l*",
        "-x",
        "echo \x7f",
        "echo \x85",
        "éa x",
        "ls \u2003x",
        "echo аb",
        "ls ｘ",
        "ls -é",
    ],
)
def test_a_line_that_is_not_plain_has_a_problem(text: str) -> None:
    assert parse_line(text).problem


@pytest.mark.parametrize(
    "text",
    [
        "> x",
        "ls 3> x",
        "ls <&2",
        "ls > *",
        "ls\nls",
        "ls # x",
        "ls &",
        "a=1",
        "a=1 ls",
        "a+=1",
        "! ls",
        "time ls",
        "[ -f x ]",
        "#x\nls",
    ],
)
def test_a_line_with_more_than_plain_words_is_compound(text: str) -> None:
    reading = parse_line(text)
    assert (reading.problem, reading.compound) == ("", True)
    assert judge_line(text, ANYTHING).decision != "allow"


def test_length_is_limited() -> None:
    assert not parse_line("ls " + "a" * (MAX_CHARACTERS - 3)).problem
    assert parse_line("ls " + "a" * (MAX_CHARACTERS - 2)).problem


def test_characters_that_no_process_accepts_are_denied() -> None:
    for text in ("ls \0", "ls \ud800"):
        assert judge_line(text, ANYTHING).decision == "deny"


@given(
    st.lists(BENIGN, max_size=6), EXPANDS, st.lists(BENIGN, max_size=6), st.sampled_from(["", " "])
)
def test_nothing_is_allowed_that_has_an_expansion_outside_single_quotes(
    before: list[str], expands: str, after: list[str], gap: str
) -> None:
    text = " ".join([*before, gap + expands, *after])
    assert judge_line(text, ANYTHING).decision != "allow"
    assert judge_line("ls " + text, ANYTHING, interactive=False).decision == "deny"


def expands_outside_single_quotes(text: str) -> bool:
    quote = ""
    for character in text:
        if quote == "'":
            quote = "" if character == "'" else quote
        elif character in "$`":
            return True
        elif character == '"':
            quote = "" if quote else '"'
        elif character == "'" and not quote:
            quote = "'"
        elif character == "\\":
            return False  # what follows depends on it; another property has that
    return False


@given(st.text("ab $`'\"();|&<>{}~*-", max_size=24))
def test_no_mixture_of_quotes_hides_an_expansion(text: str) -> None:
    if expands_outside_single_quotes(text):
        assert judge_line("echo " + text, ANYTHING).decision != "allow"


@given(st.text("ab1 '\"\\~#=!^%@:,./é中", max_size=20))
def test_bash_sees_the_words_that_were_read(text: str) -> None:
    line = "printf '%s\\0' x " + text
    reading = parse_line(line)
    if reading.problem:
        return
    (command,) = reading.commands
    done = subprocess.run(["bash", "-c", reading.source], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == list(command.words[2:])


@given(
    st.text(st.characters(), max_size=60)
    | st.binary(max_size=60).map(lambda b: b.decode("latin-1"))
)
def test_nothing_raises(text: str) -> None:
    assert judge_line(text, ANYTHING).decision in ("allow", "ask", "deny")


@pytest.mark.parametrize(
    "unit",
    [
        "$(",
        "(",
        "a`",
        "<<a ",
        "'",
        '"',
        "{",
        "[[",
        "if ",
        "a|",
        "a;",
        "$((",
        "a=(",
        "case a in ",
        "\\",
        "a>b ",
        "é",
    ],
)
def test_nesting_and_repetition_take_little_time(unit: str) -> None:
    start = time.process_time()
    verdict = judge_line((unit * MAX_CHARACTERS)[:MAX_CHARACTERS], ANYTHING)
    assert time.process_time() - start < 5
    assert verdict.decision in ("allow", "ask")
