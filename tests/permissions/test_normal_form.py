"""What a command means, without what stands in front of it."""

from __future__ import annotations

import pytest

from recollect.permissions.command_judge import judge_line
from recollect.permissions.command_parser import parse_line
from recollect.permissions.command_rules import CommandRules, parse_rules
from recollect.permissions.normal_form import normalize_line
from tests.permissions.workspaces import no_secrets


def meaning(text: str, root: str = "") -> str:
    return str(normalize_line(parse_line(text), root))


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("timeout -s KILL 60 pytest -q", "pytest -q"),
        ("nice -n 5 nohup time stdbuf -o0 make", "make"),
        ("env -i -u X CI=1 NODE_ENV=test npm test", "npm test"),
        ("uv run --frozen pytest -q", "pytest -q"),
        ("uv run tool.py x", "python tool.py x"),
        ("uv -q run -m pytest -x", "pytest -x"),
        ("npx --yes tsc --noEmit", "tsc --noEmit"),
        ("npm exec -- tsc", "tsc"),
        ("pnpm exec vitest", "vitest"),
        ("poetry run mypy src", "mypy src"),
        ("bundle exec rspec", "rspec"),
        ("python3.11 -m pytest -q", "pytest -q"),
        ("/usr/bin/git --no-pager -P -C . log -3", "git log -3"),
        ("git -C /w status", "git status"),
        ("npm --silent -w app i", "npm install"),
        ("cargo t", "cargo test"),
        ("bash -euo pipefail -c 'make && git push'", "make; git push"),
        ("sh -c 'bash -c \"ls x\"'", "ls x"),
        ("bash <<'EOF'\nls x\nEOF", "ls x"),
        ("eval 'ls x'", "ls x"),
        ("ls | xargs -n 1 wc -l", "ls; wc -l ./$@"),
        ("[ -f x ]", "test -f x"),
        ("git-push origin", "git push origin"),
    ],
)
def test_what_only_stands_in_front_is_taken_off(text: str, normal: str) -> None:
    assert meaning(text, root="/w") == normal


@pytest.mark.parametrize(
    "text",
    [
        "git --no-pager push", "git -P push --force", "git -C . push", "git -c a=b push",
        "timeout 9 git push", "env A=1 git push", "command git push", "exec git push",
        "bash -lc 'git push'", "sh <<< 'git push'", "eval 'git push'", "uv run git push",
        "npx git push", "/usr/bin/git push", "g\\it push", "xargs git push", "(git push)",
        "for c in push; do git $c; done", "find . -exec git push ';'", "mywrap git push",
        "echo $(git push)", "trap 'git push' EXIT", "git-push", "git send-pack x main",
    ],
)  # fmt: skip
def test_a_deny_rule_is_not_walked_around(text: str) -> None:
    given = parse_rules(deny=("git push *",), allow=("git *", "echo *"), mode="free")
    assert judge_line(text, given, sandboxed=True, find_secrets=no_secrets).decision == "deny"


@pytest.mark.parametrize(
    "text",
    ["git push -f", "git push origin --force", "git push -qf", "rm -fr x", "rm x -r --force"],
)
def test_a_deny_rule_matches_its_options_in_any_order_and_spelling(text: str) -> None:
    given = parse_rules(deny=("git push --force *", "rm -rf *"), mode="free")
    assert judge_line(text, given, sandboxed=True, find_secrets=no_secrets).decision == "deny"


@pytest.mark.parametrize("text", ["git $(echo push)", "echo push | xargs git", "git $x origin"])
def test_what_the_shell_decides_is_asked_where_it_could_be_denied(text: str) -> None:
    given = parse_rules(deny=("git push *",), allow=("git *", "echo *"), mode="free")
    assert judge_line(text, given, sandboxed=True, find_secrets=no_secrets).decision == "ask"


def test_code_with_the_words_of_a_deny_rule_is_asked() -> None:
    text = "python -c 'import os; os.system(\"git push\")'"
    assert (
        judge_line(text, parse_rules(mode="free"), sandboxed=True, find_secrets=no_secrets).decision
        == "allow"
    )
    given = parse_rules(mode="free", deny=("git push *",))
    assert judge_line(text, given, sandboxed=True, find_secrets=no_secrets).decision == "ask"


@pytest.mark.parametrize(
    "text",
    ["PATH=. ls", "LD_PRELOAD=x ls", "GIT_PAGER=x git log", "env PATH=. ls", "export PATH=.",
     "PYTHONSTARTUP=x python a.py", "LC_ALL=zh_CN.GBK bash x.sh", "read PATH", "printf -v PATH x",
     "PYTHONPATH=../x python a.py", "PYTHONPATH=a:/x python a.py", "CARGO_TARGET_DIR=.. cargo b",
     f"PYTHONPATH={'a' * 60}% ls"],
)  # fmt: skip
def test_a_variable_that_decides_what_runs_is_never_harmless(text: str) -> None:
    assert (
        judge_line(
            text, CommandRules(mode="free"), sandboxed=True, find_secrets=no_secrets
        ).decision
        == "ask"
    )


def test_a_rule_for_a_wrapper_allows_nothing_but_one_for_a_runner_does() -> None:
    given = parse_rules(allow=("timeout *", "env *", "xargs *", "bash *", "uv run *"))
    for text in ("timeout 5 touch x", "env touch x", "ls | xargs touch", "bash -c 'touch x'"):
        assert judge_line(text, given, sandboxed=True, find_secrets=no_secrets).decision == "ask", (
            text
        )
    assert (
        judge_line(
            "uv run alembic upgrade head", given, sandboxed=True, find_secrets=no_secrets
        ).decision
        == "allow"
    )
    assert (
        judge_line("uv run python -c 1", given, sandboxed=True, find_secrets=no_secrets).decision
        == "ask"
    )


def test_who_is_asked_sees_what_the_line_means() -> None:
    verdict = judge_line(
        "timeout 60 git -P push", parse_rules(), sandboxed=True, find_secrets=no_secrets
    )
    assert (verdict.decision, verdict.normal_form) == ("ask", "git push")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("python -c 'import os; print(1)'", "python -c 'import os; print(1)'"),
        ("env echo 'a b' $x \"$y z\" *.py", "echo 'a b' $x \"$y z\" *.py"),
        ("nice git -P log --format='%h; %s'", "git log '--format=%h; %s'"),
    ],
)
def test_what_a_line_means_keeps_its_quotes(line: str, shown: str) -> None:
    verdict = judge_line(line, parse_rules(), sandboxed=True, find_secrets=no_secrets)
    assert verdict.normal_form == shown
