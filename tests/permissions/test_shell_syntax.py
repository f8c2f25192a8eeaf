"""What is understood beyond plain words, and what is refused."""

from __future__ import annotations

import time

import pytest

from recollect.errors import BadInput
from recollect.permissions.command_judge import judge_line
from recollect.permissions.command_parser import (
    MAX_CHARACTERS,
    ParsedLine,
    Redirection,
    SubCommand,
    parse_line,
)
from recollect.permissions.command_rules import parse_rules


def understand(text: str) -> ParsedLine:
    line = parse_line(text)
    assert not line.problem, f"{text!r}: {line.problem}"
    return line


def words(text: str) -> list[str]:
    return [" ".join(command.words) for command in understand(text).commands]


def only(text: str) -> SubCommand:
    (command,) = understand(text).commands
    return command


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        ("for f in a.py b.py; do rm $f; done", ["rm a.py", "rm b.py"]),
        ("while read -r x; do echo; done < a", ["read -r x", "echo"]),
        ("until ls; do pwd; done", ["ls", "pwd"]),
        ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
        ("case x in a|b) c;; *) d;; esac", ["c", "d"]),
        ("[[ -f a && b == c ]] || ls", ["ls"]),
        ("[ -f a ] && ls", ["[ -f a ]", "ls"]),
        ("(cd x; { pwd; }) & ! ls", ["cd x", "pwd", "ls"]),
        ("ls # rm x\npwd \\\n  -P", ["ls", "pwd -P"]),
        ("x=$(date `id`) y=1", ["date `id`", "id"]),
        ('echo "$(a "$(b)")" ${x:-$(c)} <(d)', ['echo $(a "$(b)") ${x:-$(c)} <(d)']),
        ("time make", ["time make"]),
        ("cat - <<A <<'B'\n$(ls)\nA\n$(rm)\nB", ["cat -", "ls"]),
        ("export A=b && ls", ["export A=b", "ls"]),
    ],
)
def test_every_command_of_a_line_is_listed(text: str, listed: list[str]) -> None:
    assert words(text)[: len(listed)] == listed
    assert understand(text).compound


def test_commands_inside_expansions_are_commands_of_the_line() -> None:
    text = 'echo "$(a "$(b)")" ${x:-$(c)} <(d) `e` "$(cat <<E\n$(f)\nE\n)"'
    assert {one.words[0] for one in understand(text).commands} == {"echo", "cat", *"abcdef"}


@pytest.mark.parametrize(
    ("word", "value"),
    [("a\\ b", "a b"), ("\\$x", "$x"), ("$'a\\n\\''", "a\n'"), ('"a\\$b"', "a$b"), ('"a$"', "a$")],
)
def test_escapes_are_taken_off(word: str, value: str) -> None:
    assert only(f"ls {word}").words == ("ls", value)


@pytest.mark.parametrize(
    ("word", "splits"),
    [
        *(("$x", True), ('"$x"', False), ("$(a)", True), ('"$(a)"', False), ('"$@"', True)),
        *(("*.py", True), ("{a,b}", True), ("~/x", False), ("$((1+1))", True), ('a"$x"', False)),
    ],
)
def test_a_word_that_the_shell_decides_is_uncertain(word: str, splits: bool) -> None:
    command = understand(f"ls -l {word}").commands[0]
    assert command.uncertain == {2}
    assert command.splitting == ({2} if splits else set())
    assert command.words[2] == word.replace('"', "")


def test_a_variable_with_literal_values_is_replaced_by_them() -> None:
    assert words('x=a; ls $x "$x/b"') == ["ls a a/b"]
    assert words("for x in a b; do for y in c d; do ls $x$y; done; done") == [
        *("ls ac", "ls ad", "ls bc", "ls bd")
    ]
    assert understand("x=a; ls > $x").redirections == (Redirection(">", "a"),)
    assert words("for x in src/*.py; do ls $x; done") == ["ls src/*.py"]


@pytest.mark.parametrize(
    "before",
    [
        *("true || x=a", "x=a &", "x=a |", "(x=a);", "x='a b';", "x=a; read x;", "x=a; x=$(b);"),
        *("x=a; unset x;", "x=a; printf -v x b;", "x=;", "x=a; : ${x:=b};", "x=a b;", "x='*';"),
    ],
)
def test_a_variable_that_may_have_another_value_stays_uncertain(before: str) -> None:
    before = before if before.endswith((";", "&", "|")) else before + ";"
    last = next(one for one in understand(f"{before} ls $x").commands if one.words[0] == "ls")
    assert last.words == ("ls", "$x")
    assert last.uncertain == {1}


def test_values_are_bounded() -> None:
    values = " ".join(f"a{number}" for number in range(100))
    assert only(f"for x in {values}; do ls $x; done").words == ("ls", "$x")


def test_assignments_and_texts_are_given_as_data() -> None:
    line = understand("A=1 B=$(c) ls <<E\nhello $x\nE\nd='e f'; bash <<< 'rm x'")
    assert line.commands[0] == SubCommand(
        ("ls",), assignments=(("A", "1"), ("B", "$(c)")), stdin_text="hello $x\n"
    )
    assert line.assignments == (("d", "e f"),)
    assert line.here_texts == ("hello $x\n", "rm x\n")
    assert line.commands[-1].stdin_text == "rm x\n"
    assert {"1", "e f", "rm x"} <= set(line.other_words)


def test_a_command_in_a_loop_reads_the_text_of_the_loop() -> None:
    line = understand("while read x; do bash; done <<E\nrm x\nE")
    assert [one.stdin_text for one in line.commands] == ["rm x\n", "rm x\n"]


def test_a_command_behind_a_pipe_is_marked() -> None:
    line = understand("a | b | while c; do d; done; e")
    assert [one.words[0] for one in line.commands if one.piped] == ["b", "c", "d"]


def test_a_target_that_the_shell_decides_is_uncertain() -> None:
    for target in ("$x", '"$x/a"', "~/a", "a*", "$(b)"):
        (redirection,) = understand(f"ls > {target}").redirections
        assert redirection.uncertain


def test_a_program_in_the_home_folder_may_be_named() -> None:
    assert only("~/.local/bin/uv run").uncertain == {0}
    assert only('"$HOME/bin/uv" run').words == ("$HOME/bin/uv", "run")
    assert parse_line('"$x/bin/uv" run').problem


@pytest.mark.parametrize(
    "text",
    [
        *("f() { ls; }; f", "function f { ls; }", "coproc ls", "select x in a; do ls; done"),
        *("alias ls=rm", "hash -p /bin/rm ls", "enable -f x y", "shopt -s extglob", "set -o posix"),
        *("$x a", "$(x) a", "{a,b}", "a=(b c)", "a[0]=b", "a[$(b)]=c", "echo ${a[$(b)]}"),
        *("echo ${x@P}", "echo ${!x}", "echo $[1]", 'echo $"a"', "((x))", "echo $((a[0]))"),
        *("x=$(b); echo $((x))", "read x; echo $((x))", "echo $((x))", "echo $((`b`))"),
        *("x='a[$(b)]'; [[ $x -eq 1 ]]", "[[ x -eq 1 ]]", "[[ -v a[0] ]]", "echo ${x:y}"),
        *("test -v 'a[$(b)]'", "[ -v 'a[$(b)]' ]", "[ -v $x ]", "test -- -a -v 'P[$(b)]'"),
        *("read 'a[$(b)]'", "printf -v 'a[`b`]' c", "unset 'a[$(b)]'", "declare 'a[$(b)]=c'"),
        *("PATH=.", "IFS=x", "for PATH in a; do ls; done", ": ${LD_PRELOAD:=a}", "HOME=.; ls"),
        *("BASH_ENV=a", "LC_ALL=zh_CN.GBK", "PATH=. :", "PS4=a", "IFS=a ls", "export LC_ALL=x é"),
        *("cat <<E\na", "cat <<E\na\\\nE\nE", "cat <<E", "cat <<$x\na\n$x", "cat 3<<E\nE"),
        *("echo $(cat <<E\nE\nls)", "echo $(cat <<E; ls\nE\n)", "ls $(cat <<E)\nE"),
        *("a &\\\n& b", "echo $\\\n(b)", "ls a\\\nb", "ls 12>a", "ls {x}>a", "ls a<(b)", "a >(b)c"),
        *(
            "if a; then b",
            "for x in a; do b",
            "case a in b) c",
            "( a",
            "{ a; ",
            "a )",
            "[[ a",
            "fi",
        ),
        *("time $x a", "time alias a=b", "time set -o posix", "time if a", "time -p", "time time"),
        *("! ! a", "time", "time x=1 a", "a ;; b", "a; ; b", ";", "a &; b", "# only a comment"),
    ],
)
def test_what_shells_could_read_otherwise_is_not_understood(text: str) -> None:
    assert parse_line(text).problem


def test_nesting_is_limited() -> None:
    for begin, end in (("$(a ", ")"), ("( ", ")"), ("{ ", "; }"), ("if a; then ", "; fi")):
        assert not parse_line("echo " * (begin[0] == "$") + begin * 5 + "b" + end * 5).problem
        assert parse_line("echo " * (begin[0] == "$") + begin * 30 + "b" + end * 30).problem


def test_a_denied_command_is_seen_in_a_line_that_is_not_understood() -> None:
    rules = parse_rules(deny=("rm *",), mode="free")
    for text in ('f() { rm x; }; "f', 'echo "${!x} $(rm x)"', "a=(b); 'rm' x", "x[0]=1 r\\m x"):
        assert judge_line(text, rules).decision == "deny", text
    for text in ('echo "; rm x" ${!y}', "a=(b); echo 'x; rm y'"):
        assert judge_line(text, rules).decision == "ask", text


@pytest.mark.parametrize("rule", ["ls $(x)", "ls `x`", "ls <(x)", "ls ~", "ls a\\ b", "ls {a,b}"])
def test_a_rule_with_more_than_plain_words_only_allows_the_whole_line(rule: str) -> None:
    assert parse_rules(allow=(rule,)).allow[0].line == rule
    with pytest.raises(BadInput, match="rule"):
        parse_rules(deny=(rule,))


UNITS = (
    *("$(", "(", "a`", "<<a ", "'", '"', "{", "[[", "if ", "a|", "a;", "$((", "a=(", "case a in "),
    *("\\", "a>b ", "é", "[]]", "((((", "{a,", "${x:-", '"$(', "<(", "<<<", "x=1 ", "$x", "[ a ] "),
    *("a <<E\nE\n", "(a)", "`a` ", "a$((1)) ", "'a'\"b\"", "\\\n ", "#a\n", "[a]", "2>&1 ", "! "),
)
FRAMES = (
    *(("", ""), ("a ", ""), ('a "', '"'), ("a <<E\n", "\nE"), ("[ ", " ]"), ("a $((", "))")),
    *(
        ("for x in ", "; do a; done"),
        ("a $(b ", ")"),
        ("a ${x:-", "}"),
        ("case x in a) a ", "; esac"),
    ),
)


def _cost(text: str) -> float:
    """CPU seconds, the least of two: what other processes do is not counted."""
    costs = []
    for _ in range(2):
        start = time.thread_time()
        parse_line(text)
        costs.append(time.thread_time() - start)
    return min(costs)


def _grown(frames: tuple[tuple[str, str], ...]) -> list[tuple[str, float, float]]:
    """What costs more by the character if it is eight times as long."""
    plain = _cost("ls " + "word " * 1_000)
    grown = []
    for unit in UNITS:
        for head, tail in frames:
            body = unit * MAX_CHARACTERS
            large = _cost(head + body[: MAX_CHARACTERS - len(head + tail)] + tail)
            if large < 2 * plain:  # no matter how it came to be
                continue
            small = _cost(head + body[: MAX_CHARACTERS // 8 - len(head + tail)] + tail)
            if large > 8 * 4 * small:
                grown.append((head + unit + tail, small, large))
    return grown


def test_the_cost_of_a_character_does_not_grow_with_the_length() -> None:
    assert _grown(FRAMES[:4]) == []


@pytest.mark.long
def test_the_cost_of_a_character_grows_nowhere() -> None:
    assert _grown(FRAMES) == []


@pytest.mark.parametrize("start", ["", "\t"])
def test_a_line_that_bash_takes_for_the_end_of_a_here_document_asks(start: str) -> None:
    # bash runs what follows the E: within a substitution it looks for its bracket there
    text = f'echo "$(cat <<-"E"\n{start}E; rm $(x)\nE\n)"'
    assert parse_line(text).problem == "a line of a here-document begins like its end"
    understand("git commit -m \"$(cat <<'EOF'\nUse (x)\nEOF\n)\"")
