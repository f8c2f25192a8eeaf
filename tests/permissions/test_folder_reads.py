"""What a line reads without naming it: it asks if a secret lies there, and runs if none does."""

from __future__ import annotations

import time

import pytest

from recollect.permissions.command_judge import CommandVerdict, judge_line
from recollect.permissions.command_rules import CommandRules, PermissionMode, parse_rules
from recollect.permissions.find_expression import may_find
from recollect.permissions.folder_contents import FindSecrets, FolderSecrets, SecretFile
from tests.permissions.workspaces import no_secrets, secrets_at

FREE = CommandRules(mode="free")
WITH_ENV = secrets_at(".env", "deploy/id_rsa")


def judged(
    text: str, find_secrets: FindSecrets, given: CommandRules = FREE, directory: str = ""
) -> CommandVerdict:
    return judge_line(
        text, given, root="/w", sandboxed=True, find_secrets=find_secrets, directory=directory
    )


def decision(text: str, find_secrets: FindSecrets, given: CommandRules = FREE) -> str:
    return judged(text, find_secrets, given).decision


@pytest.mark.parametrize(
    "text",
    [
        "grep -r . .",
        "rg --hidden KEY",
        "find . -type f -exec cat {} +",
        "ls -A | xargs cat",
        "cat $(ls -A)",
        'for f in $(ls -A); do cat "$f"; done',
        "tar c . | cat",
        "git ls-files -o | xargs cat",
        "cat deploy/*",
    ],
)
def test_a_folder_is_read_without_a_question_only_if_no_secret_lies_in_it(text: str) -> None:
    assert decision(text, no_secrets) == "allow"
    assert decision(text, WITH_ENV) == "ask"
    generous = parse_rules(allow=("grep *", "rg *", "find *", "ls *", "xargs *", "cat *", "tar *"))
    modes: tuple[PermissionMode, ...] = ("ask", "edit", "free", "plan")
    for mode in modes:
        given = parse_rules(allow=("cat *", "ls *", "grep *"), mode=mode)
        assert decision(text, WITH_ENV, given) != "allow", mode
    assert decision(text, WITH_ENV, generous) == "ask"


def test_the_reason_names_the_secret_and_what_to_do() -> None:
    verdict = judged("grep -rn KEY", WITH_ENV)
    assert verdict.reason == "'.env' lies in the folder it reads; name other folders or exclude it"
    assert judged("grep -rn KEY deploy", WITH_ENV).reason.startswith("'deploy/id_rsa' lies")


def test_the_whole_line_as_a_rule_and_mode_unrestricted_allow_it() -> None:
    text = "grep -rn KEY ."
    assert judged(text, WITH_ENV).suggested_rules == (text,)
    assert decision(text, WITH_ENV, parse_rules(allow=(text,))) == "allow"
    assert decision(text, WITH_ENV, CommandRules(mode="unrestricted")) == "allow"


def test_what_cannot_be_looked_through_asks_unless_no_secret_could_be_meant() -> None:
    def too_much(_folder: str) -> FolderSecrets:
        return FolderSecrets(complete=False)

    assert decision("grep -rn KEY .", too_much) == "ask"
    assert "name a smaller folder" in judged("grep -rn KEY .", too_much).reason
    assert decision("grep -rn KEY --include='*.py' .", too_much) == "allow"
    assert judge_line("grep -r x .", FREE, sandboxed=True).decision == "ask"  # nobody looks


def test_nobody_looks_into_folders_for_a_line_that_reads_none() -> None:
    looked: list[str] = []

    def note(folder: str) -> FolderSecrets:
        looked.append(folder)
        return FolderSecrets()

    for text in ("ls -la", "git status", "npm test", "cat README.md", "find . | wc -l", "rm x"):
        assert decision(text, note) == "allow"
    assert looked == []
    decision("grep -rn x src; grep -rn y src", note)
    assert looked == ["src"]


def test_the_time_to_look_does_not_count_as_time_to_judge() -> None:
    def slow(_folder: str) -> FolderSecrets:
        until = time.thread_time() + 0.1
        while time.thread_time() < until:
            pass
        return FolderSecrets()

    assert decision("grep -rn x .", slow) == "allow"


def test_git_prints_what_it_has() -> None:
    for text in ("git ls-files | xargs cat", "git grep KEY"):
        assert decision(text, secrets_at(".env", tracked=False)) == "allow"
        assert decision(text, secrets_at(".env", tracked=True)) == "ask"
        assert decision(f"git add -A; {text}", secrets_at(".env", tracked=False)) == "ask"


def test_an_ignore_file_can_show_a_hidden_secret_to_searches() -> None:
    shown = FolderSecrets((SecretFile(".env", shown=True),))
    assert decision("rg KEY", secrets_at(".env")) == "allow"
    assert decision("rg KEY", lambda _: shown) == "ask"
    assert decision("echo '!.*' > .ignore; rg KEY", secrets_at(".env")) == "ask"


def test_a_line_in_another_folder_reads_that_folder() -> None:
    assert decision("cd src && grep -rn KEY .", WITH_ENV) == "allow"
    assert decision("cd deploy && grep -rn KEY .", WITH_ENV) == "ask"
    for text in ("(cd src); grep -rn KEY .", "cd src; grep -rn KEY .", "cd src && grep -rn KEY .."):
        assert decision(text, WITH_ENV) == "ask", text


def test_the_directory_of_a_call_is_judged_as_a_move_to_it() -> None:
    assert judged("ls", no_secrets, directory="src").decision == "allow"
    assert judged("git status", no_secrets, directory="vendor/x").decision == "ask"
    assert judged("cat credentials", no_secrets, directory=".aws").decision == "ask"
    assert judged("touch x", no_secrets, directory="../other").decision == "ask"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ls | xargs sort", "ask"),
        ("git ls-files | xargs sed -i s/a/b/", "ask"),
        ("ls | xargs sort --", "allow"),
        ("rg -l x src | xargs sed -i s/a/b/", "allow"),
        ("find . -name '*.txt' | xargs sort", "allow"),
    ],
)
def test_a_file_named_like_an_option_is_kept_from_becoming_one(text: str, expected: str) -> None:
    assert decision(text, lambda _: FolderSecrets(has_option_names=True)) == expected
    assert decision(text, no_secrets) == "allow"


@pytest.mark.parametrize(
    ("expression", "path", "found"),
    [
        ("-name *.py", "a.py", True),
        ("-name *.py", ".env", False),
        ("! -name .env*", ".env.local", False),
        ("-not -name *.md", ".env", True),
        ("-name *.md -o -name *.py", ".env", False),
        ("-name *.md -o -print", ".env", True),
        ("( -name x -o -true ) -print", ".env", True),
        ("-path ./a -prune -o -name *.ts -print", ".env", False),
        ("-maxdepth 1 -type f", "a/.env", False),
        ("-type d", ".env", False),
        ("-size +1k -name .e*", ".env", True),
        ("-name [.]env", ".env", True),
        ("! ! -name .env", ".env", True),
        ("-name x -exec cat {} ; -o -exec cat {} +", ".env", True),
        ("", ".env", True),
    ],
)
def test_find_finds_what_its_expression_may_be_true_for(
    expression: str, path: str, found: bool
) -> None:
    assert may_find(tuple(expression.split()), ".", path) is found
