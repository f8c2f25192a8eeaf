from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import BadInput
from recollect.permissions.command_judge import CommandVerdict, judge_line
from recollect.permissions.command_rules import (
    CommandRule,
    CommandRules,
    PermissionMode,
    parse_rule,
    parse_rules,
    tighten,
)
from tests.permissions.workspaces import no_secrets

ORDER = ("allow", "ask", "deny")


def judged(text: str, given_rules: CommandRules, *, interactive: bool = True) -> CommandVerdict:
    """As with a sandbox in force."""
    return judge_line(
        text, given_rules, interactive=interactive, sandboxed=True, find_secrets=no_secrets
    )


def decided(
    text: str, mode: PermissionMode = "ask", root: str = "", **given: tuple[str, ...]
) -> str:
    return judge_line(
        text, parse_rules(mode=mode, **given), root=root, sandboxed=True, find_secrets=no_secrets
    ).decision


def test_deny_comes_before_ask_and_ask_before_allow() -> None:
    assert decided("ls -l", deny=("ls *",), ask=("ls *",), allow=("ls *",)) == "deny"
    assert decided("ls -l", ask=("ls *",), allow=("ls *",)) == "ask"
    assert decided("ls -l", allow=("ls *",)) == "allow"


def test_the_mode_decides_what_no_rule_names() -> None:
    modes: tuple[PermissionMode, ...] = ("plan", "ask", "edit", "free")
    assert [decided("ls", mode) for mode in modes] == ["deny", "ask", "ask", "allow"]
    assert [decided("ls ${!x}", mode) for mode in modes] == ["ask"] * 4
    assert decided("sudo ls", "free") == "ask"
    assert decided("sudo ls", "unrestricted") == "allow"
    assert decided("sudo ls", "unrestricted", deny=("sudo *",)) == "deny"


def test_a_rule_is_words_and_never_a_prefix() -> None:
    assert decided("git status", allow=("git status",)) == "allow"
    assert decided("git status -s", allow=("git status",)) == "ask"
    assert decided("git statusx", allow=("git status *",)) == "ask"
    assert decided("gitx status", allow=("git *",)) == "ask"
    assert decided("./ls", allow=("ls *",)) == "ask"
    assert decided("git", allow=("git status *",)) == "ask"


def test_every_sub_command_needs_its_rule() -> None:
    assert decided("ls | wc -l", allow=("ls *",)) == "ask"
    assert decided("ls | wc -l", allow=("ls *", "wc *")) == "allow"
    assert decided("ls && rm x", allow=("ls *",), deny=("rm *",)) == "deny"


def test_a_denied_command_is_denied_wherever_it_hides() -> None:
    for text in (
        "/bin/rm x",
        "'rm' x",
        "ls $(rm x)",
        "if true; then rm x; fi",
        "ls & rm x",
        "rm $x",
    ):
        assert decided(text, deny=("rm *",)) == "deny", text


def test_where_nobody_can_be_asked_ask_means_no() -> None:
    given_rules = parse_rules(allow=("ls *",))
    assert judged("ls", given_rules, interactive=False).decision == "allow"
    verdict = judged("make", given_rules, interactive=False)
    assert verdict.decision == "deny"
    assert "nobody can be asked" in verdict.reason


def test_suggested_rules_have_the_exact_words_and_then_allow() -> None:
    verdict = judged("make 'a b' | head -3", parse_rules(allow=("head *",)))
    assert verdict.suggested_rules == ("make 'a b'",)
    assert (
        judged(
            "make 'a b' | head -3", parse_rules(allow=("head *", *verdict.suggested_rules))
        ).decision
        == "allow"
    )
    assert decided("make 'a b' c", allow=verdict.suggested_rules) == "ask"


@pytest.mark.parametrize(
    "text",
    [
        "python -c 1",
        "sudo ls",
        "find . -delete",
        "ls > x",
        "touch .bashrc",
        "ls ${!x}",
        "for f in a b; do sudo rm $f; done",
        "python - <<'EOF'\nprint(1)\nEOF",
        "echo 'a b' | sh",
    ],
)
def test_the_exact_line_is_suggested_where_no_other_rule_helps(text: str) -> None:
    (rule,) = judged(text, parse_rules()).suggested_rules
    assert decided(text, allow=(rule,)) == "allow"
    assert decided(text + " x", allow=(rule,)) == "ask"
    assert (
        decided(
            text,
            allow=(rule,),
            deny=("rm *", "ls *", "python *", "find *", "touch *", "sh *", "echo *"),
        )
        == "deny"
    )


def test_an_exact_line_is_allowed_without_a_sandbox_and_nothing_else_is() -> None:
    for rules in (
        parse_rules(allow=("make *",)),
        parse_rules(mode="free"),
        parse_rules(mode="edit"),
    ):
        verdict = judge_line("make", rules, sandboxed=False)
        assert verdict.decision == "ask"
        assert "no sandbox" in verdict.reason
        assert verdict.suggested_rules == ("make",)
    assert judge_line("make", parse_rules(allow=("make",))).decision == "allow"
    assert judge_line("make | tail", parse_rules(allow=("make | tail",))).decision == "allow"
    assert judge_line("make | tail", parse_rules(allow=("make", "tail"))).decision == "ask"
    assert judge_line("make", parse_rules(mode="unrestricted")).decision == "allow"


def test_no_rule_is_suggested_against_a_rule_that_asks() -> None:
    assert judged("ls", parse_rules(ask=("ls *",))).suggested_rules == ()


def test_a_rule_for_an_unknown_program_must_itself_name_what_may_carry_a_command() -> None:
    assert decided("mytool run x", allow=("mytool *",)) == "ask"
    assert decided("mytool run x", allow=("mytool run *",)) == "allow"
    assert decided("mytool --exec x", allow=("mytool *",)) == "ask"
    assert decided("mytool --exec x", allow=("mytool --exec x",)) == "allow"
    assert decided("mytool -v x", allow=("mytool *",)) == "allow"


def test_files_are_written_by_redirection_only_where_editing_is_allowed() -> None:
    assert decided("ls > out.txt", allow=("ls *",)) == "ask"
    assert decided("ls > out.txt", "edit", allow=("ls *",)) == "allow"
    assert decided("ls > /dev/null 2>&1", allow=("ls *",)) == "allow"
    for target in (
        "../x",
        "/etc/x",
        ".git/config",
        ".bashrc",
        "AGENTS.md",
        ".GIT/config",
        "a/.git/hooks/x",
    ):
        assert decided(f"ls > {target}", "edit", allow=("ls *",)) == "ask", target
        assert decided(f"ls >> '{target}'", "free") == "ask", target


def test_secrets_are_not_read_by_rule() -> None:
    for path in ("/root/.ssh/id_rsa", ".env", "/proc/self/environ", "x/.aws/credentials"):
        assert decided(f"cat {path}", allow=("cat *",)) == "ask", path
        assert decided(f"cat < {path}", allow=("cat *",)) == "ask", path


def test_git_is_not_run_in_another_folder() -> None:
    allow = ("cd *", "git *", "ls *")
    assert decided("cd src && ls", allow=allow) == "allow"
    assert decided("cd src && git status", allow=allow) == "ask"
    assert decided("cd /w && git status", allow=allow, root="/w") == "allow"
    assert decided("cd /w && git status", allow=allow) == "ask"
    assert decided("git -C src status", allow=allow) == "ask"


def test_absolute_paths_into_the_working_folder_count_as_inside() -> None:
    allow = ("cp *",)
    assert decided("cp a /w/b", allow=allow) == "ask"
    assert decided("cp a /w/b", allow=allow, root="/w") == "allow"
    assert decided("cp a /w/../b", allow=allow, root="/w") == "ask"
    assert decided("cp a /wx/b", allow=allow, root="/w") == "ask"


@pytest.mark.parametrize(
    "text", ["", "*", "git * status", "ls *.py", "ls | wc *", "for f in a; do ls *", "'ls"]
)
def test_a_rule_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="rule"):
        parse_rule(text)


def test_a_quoted_star_is_a_word() -> None:
    assert parse_rule("ls '*'") == CommandRule(("ls", "*"))
    assert parse_rule("ls *") == CommandRule(("ls",), is_prefix=True)


WORD = st.text("ab*'\" $\\-=é~#!", max_size=5)
RULE = st.builds(CommandRule, st.lists(WORD, min_size=1, max_size=3).map(tuple), st.booleans())
NAME = st.sampled_from(["ls", "git", "make", "rm"])
SIMPLE = st.builds(lambda name, further: CommandRule((name,), further), NAME, st.booleans())
SOME = st.lists(SIMPLE, max_size=3).map(tuple)
MODE: st.SearchStrategy[PermissionMode] = st.sampled_from(["plan", "ask", "edit", "free"])
RULES = st.builds(CommandRules, deny=SOME, ask=SOME, allow=SOME, mode=MODE)


@given(RULE)
def test_a_rule_is_parsed_as_it_was_written(one: CommandRule) -> None:
    assert parse_rule(str(one)) == one


@given(RULES, RULES, NAME, NAME)
def test_a_project_can_only_tighten(
    own: CommandRules, project: CommandRules, first: str, second: str
) -> None:
    text = f"{first} && {second} status"
    alone = judged(text, own).decision
    together = judged(text, tighten(own, project)).decision
    assert ORDER.index(together) >= ORDER.index(alone)
    assert tighten(own, project).allow == own.allow
    assert tighten(own, CommandRules(mode=own.mode)) == own


def test_a_projects_rule_asks_where_the_user_allowed() -> None:
    own, project = (
        parse_rules(allow=("ls *",)),
        parse_rules(ask=("ls -R *",), allow=("rm *",), mode="free"),
    )
    both = tighten(own, project)
    assert [judged(text, both).decision for text in ("ls", "ls -R x", "rm x")] == [
        "allow",
        "ask",
        "ask",
    ]
