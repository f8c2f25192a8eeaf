"""Real shells run no command that the parser does not list, and write no file that it does not."""

from __future__ import annotations

import shutil

import pytest

from recollect.permissions.command_parser import ParsedLine, SubCommand, parse_line
from tests.permissions.probe_shell import Shell, ShellRun, find_shells, run_lines
from tests.permissions.random_lines import NAMES, LineMaker

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="needs bubblewrap")

PROBES = (*NAMES, "time", "ab", "abc", "1", "2", "3", "E")
# dash reads these otherwise, or not at all; lines run in it only where bash is missing
BASH_ONLY = ("[[", "<(", ">(", "<<<", "&>", "|&", "$'", "+=", ";&", "${x/", "${x:0", "time", "==")


def explains(command: SubCommand, words: list[str]) -> bool:
    """Whether the command can have run with these words."""
    reachable = {0}
    for position, word in enumerate(command.words):
        if position not in command.uncertain:
            reachable = {at + 1 for at in reachable if words[at : at + 1] == [word]}
        elif position not in command.splitting:
            reachable = {at + 1 for at in reachable if at < len(words)}
        else:
            reachable = set(range(min(reachable, default=len(words) + 1), len(words) + 1))
    return len(words) in reachable


def is_listed(line: ParsedLine, words: list[str]) -> bool:
    timed = (["time", *words], ["time", "-p", *words])  # `time` is a word of bash's grammar
    return any(
        explains(command, words)
        or (command.words[0] == "time" and any(explains(command, one) for one in timed))
        for command in line.commands
    )


def deviation(text: str, run: ShellRun) -> str:
    line = parse_line(text)
    strange = [words for words in run["programs"] if not is_listed(line, words)]
    written = {target.target for target in line.redirections if target.operator != "<"}
    uncertain = any(target.uncertain for target in line.redirections)
    files = [name for name in run["files"] if name not in written and not uncertain]
    if not strange and not files:
        return ""
    return f"{text!r}: ran {strange}, wrote {files}; listed {[one.words for one in line.commands]}"


def understood_lines(count: int, seed: int, shell: Shell) -> list[str]:
    maker, found = LineMaker(seed), list[str]()
    while len(found) < count:
        line = maker.make_line()
        bash_only = shell.name != "bash" and any(syntax in line for syntax in BASH_ONLY)
        if not bash_only and not parse_line(line).problem:
            found.append(line)
    return found


def check_lines(count: int, seed: int, shell: Shell) -> None:
    lines = understood_lines(count, seed, shell)
    runs = run_lines(lines, shell, PROBES)
    assert [found for pair in zip(lines, runs, strict=True) if (found := deviation(*pair))] == []
    assert sum(len(run["programs"]) for run in runs) > count / 2  # the lines do something


@pytest.mark.parametrize("shell", find_shells(), ids=lambda shell: shell.name)
def test_a_shell_runs_no_command_that_is_not_listed(shell: Shell) -> None:
    check_lines(150, 1, shell)


@pytest.mark.parametrize("shell", find_shells(), ids=lambda shell: shell.name)
def test_a_shell_in_a_utf8_locale_reads_the_words_that_were_read(shell: Shell) -> None:
    """In GBK, Big5 and SJIS the last byte of such a letter takes the next character with it."""
    letters = ("é", "中", "文", "ソ", "表", "許", "ß", "€")
    forms = (
        "p X\\ b",
        'p "X\\"" b',
        "p X|q",
        "p 'X\\' b",
        "p X`q`",
        "p {X} b",
        'p "X`q`" b',
        "p X~ b",
    )
    lines = [form.replace("X", letter) for form in forms for letter in letters]
    for text, run in zip(lines, run_lines(lines, shell, PROBES), strict=True):
        line = parse_line(text)
        assert not line.problem
        assert deviation(text, run) == ""
        assert len(run["programs"]) == len(line.commands)


# A command in them that runs is not one that they list: each made a difference once.
DECEPTIONS = (
    'p "$(b <<-\\E\na\nE\na & until no; do a b;\nx=c q d; break; done\n)"',
    "i=1; read i <<< 'a[$(p)]'; q $((i))",
    "x='a[$(p)]'; [[ $x -eq 1 ]]",
    "q ${x:-'a}'} `p`",
    "q <<E\na\\\nE\np\nE",
    "q $\\\n(p)",
    "q a &\\\n& p",
)


@pytest.mark.parametrize("text", DECEPTIONS)
def test_what_shells_read_otherwise_is_not_understood(text: str) -> None:
    assert parse_line(text).problem


@pytest.mark.long
@pytest.mark.parametrize("shell", find_shells(), ids=lambda shell: shell.name)
@pytest.mark.parametrize("seed", range(100, 200))
def test_shells_run_no_command_that_is_not_listed_in_a_long_run(seed: int, shell: Shell) -> None:
    check_lines(1_000, seed, shell)
