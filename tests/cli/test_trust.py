"""`recollect trust` shows memory, settings and hooks, asks for each, and records what was shown."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from recollect.execution.sandbox import SandboxChoice, find_isolation
from recollect.testing import call
from tests.cli.model_server import ENV, outputs, reply, script, server
from tests.cli.runner import Cli
from tests.cli.test_config import of_project
from tests.models.server import HELLO, http

HOOK = '[[hooks]]\nevent = "BeforeTool"\ncommand = "./check --all"\n'


def whole_project(cli: Cli) -> Path:
    """A project with everything that can be trusted; the file that its hook creates."""
    (cli.project / "AGENTS.md").write_text("We use tabs.\n")
    (cli.project / "hooks").mkdir()
    ran = cli.project.parent / "ran"
    script(cli.project / "hooks", "start.sh", f"touch {ran}\n")
    start = '[[hooks]]\nevent = "SessionStart"\ncommand = "sh hooks/start.sh"\n'
    of_project(cli, f"[agent]\nmax_turns = 7\n\n{start}")
    return ran


def used(cli: Cli, ran: Path) -> tuple[bool, bool, bool]:
    """Whether a run uses the project's memory, settings and hooks."""
    ran.unlink(missing_ok=True)
    turns = cli.ok("config", "agent.max_turns").out
    with server(cli, http(HELLO)) as on:
        cli.ok("-p", "Hi.", env=ENV)
        memory = b"We use tabs." in on.asked[0].body
    return memory, turns == "7\n", ran.exists()


@pytest.mark.parametrize(
    "answers",
    [
        (True, True, True),
        (True, False, False),
        (False, True, False),
        (False, False, True),
        (False, False, False),
    ],
)
def test_memory_settings_and_hooks_are_asked_for_apart(
    cli: Cli, answers: tuple[bool, bool, bool]
) -> None:
    ran = whole_project(cli)
    assert used(cli, ran) == (False, False, False)
    done = cli.ok("trust", "--json", stdin="".join("y\n" if yes else "n\n" for yes in answers))
    memory, settings, hooks = answers
    folder = str(cli.project)
    assert done.json == {"folder": folder, "memory": memory, "settings": settings, "hooks": hooks}
    assert used(cli, ran) == answers


def test_each_step_shows_exactly_what_would_be_trusted(cli: Cli) -> None:
    whole_project(cli)
    said = cli.ok("trust", stdin="y\nn\ny\n")
    lines = said.err.splitlines()
    size = (cli.project / "hooks" / "start.sh").stat().st_size
    for line in (
        "  AGENTS.md  13 bytes",
        "  agent.max_turns = 7  (yours: 100)",
        "  SessionStart: sh hooks/start.sh",
        f"    runs hooks/start.sh  {size} bytes: read it first",
    ):
        assert line in lines
    assert said.out.splitlines() == [
        f"trusted: {cli.project} (memory, hooks)",
        f"not trusted: {cli.project} (settings)",
    ]


def test_one_part_can_be_chosen_and_taken_back(cli: Cli) -> None:
    ran = whole_project(cli)
    for flag, expected in (("--memory", (True, False, False)), ("--hooks", (True, False, True))):
        assert cli.ok("trust", flag, "--yes").out.endswith(f"({flag[2:]})\n")
        assert used(cli, ran) == expected
    cli.ok("trust", "--settings", stdin="y\n")
    assert used(cli, ran) == (True, True, True)
    cli.ok("trust", "--revoke", "--hooks")
    assert used(cli, ran) == (True, True, False)
    cli.ok("trust", "--remove")
    assert used(cli, ran) == (False, False, False)


def test_a_no_takes_back_an_earlier_yes(cli: Cli) -> None:
    ran = whole_project(cli)
    cli.ok("trust", "--yes", str(cli.project.parent))
    cli.ok("trust", "--yes")
    said = cli.ok("trust", stdin="n\ny\nn\n")
    assert "Trust its memory? (until now: yes)" in said.err
    assert "Let these hooks run? (until now: yes)" in said.err
    assert used(cli, ran) == (False, True, False)


@pytest.mark.parametrize("given", ["", "y\n", "what?\n"])
def test_without_an_answer_nothing_more_is_trusted(cli: Cli, given: str) -> None:
    ran = whole_project(cli)
    done = cli("trust", stdin=given)
    assert done.code != 0
    assert "has no answer, so nothing more is trusted" in done.err
    assert done.out.startswith("trusted: ") == (given == "y\n")
    assert "--yes" in done.err
    assert used(cli, ran) == (given == "y\n", False, False)


def test_a_process_without_a_terminal_trusts_nothing(cli: Cli) -> None:
    whole_project(cli)
    done = cli.process("trust")
    assert (done.code != 0, done.out) == (True, "")
    assert not (cli.home / "trusted_folders.json").exists()


def test_a_hook_or_its_script_that_changed_asks_again(cli: Cli) -> None:
    ran = whole_project(cli)
    cli.ok("trust", "--yes")
    assert used(cli, ran)[2]
    file = cli.project / "hooks" / "start.sh"
    before = file.read_text()
    file.write_text(f"{before}\ntrue\n")
    assert not used(cli, ran)[2]
    assert "new or have changed: 1; `recollect trust --hooks` shows them" in cli.ok("config").err
    file.write_text(before)
    assert used(cli, ran)[2]  # it is again what was approved
    settings = cli.project / ".recollect" / "settings.toml"
    settings.write_text(settings.read_text() + 'env = ["MY_KEY"]\n')
    assert not used(cli, ran)[2]
    said = cli.ok("trust", "--hooks", stdin="y\n").err
    assert "gets these variables of yours: MY_KEY" in said
    assert used(cli, ran)[2]


@pytest.mark.parametrize("how", ["a word of sh -c", "a link", "a new file"])
def test_whatever_way_a_hook_names_a_script_its_content_counts(cli: Cli, how: str) -> None:
    ran = cli.project.parent / "ran"
    (cli.project / "one.sh").write_text("true\n")
    (cli.project / "two.sh").write_text("true\n")
    (cli.project / "link.sh").symlink_to("one.sh")
    command = {
        "a word of sh -c": "sh -c 'exec sh ./one.sh;true'",
        "a link": "sh link.sh",
        "a new file": "sh new.sh",
    }[how]
    of_project(cli, f'[[hooks]]\nevent = "SessionStart"\ncommand = "{command}"\n')
    cli.ok("trust", "--yes")
    assert "have changed" not in cli.ok("config").err
    if how == "a link":
        (cli.project / "link.sh").unlink()
        (cli.project / "link.sh").symlink_to("two.sh")
    else:
        name = "new.sh" if how == "a new file" else "one.sh"
        (cli.project / name).write_text(f"touch {ran}\n")
    with server(cli, http(HELLO)):
        cli.ok("-p", "Hi.", env=ENV)
    assert "have changed: 1" in cli.ok("config").err
    assert not ran.exists()


def test_a_script_that_a_command_changes_while_the_agent_works_is_not_run(cli: Cli) -> None:
    ran = cli.project.parent / "ran"
    (cli.project / "check.sh").write_text("true\n")
    of_project(cli, '[[hooks]]\nevent = "BeforeTool"\ncommand = "sh check.sh"\n')
    cli.ok("trust", "--yes")
    copy = script(cli.project, "evil.sh", f"touch {ran}\n")
    own = f'[[hooks]]\nevent = "AfterTool"\ncommand = "cp {copy} {cli.project}/check.sh"\n'
    calls = [call("list_directory", id=name, path=".") for name in ("a", "b")]
    with server(cli, *(reply(each) for each in calls), http(HELLO), more=own) as on:
        cli.ok("-p", "Look twice.", env=ENV)
        first, second = outputs(on)
    assert "check.sh" in first
    assert "changed after the user approved it" in second
    assert not ran.exists()


def test_tools_do_not_write_the_script_of_an_approved_hook(cli: Cli) -> None:
    (cli.project / "check.sh").write_text("true\n")
    of_project(cli, '[[hooks]]\nevent = "BeforeTool"\ncommand = "sh ./check.sh"\n')
    cli.ok("trust", "--yes")
    write = call("write_file", id="w", file_path="check.sh", content="evil")
    with server(cli, reply(write), http(HELLO), more='[permissions]\nmode = "free"\n') as on:
        cli.ok("-p", "Write it.", env=ENV)
        assert "only the user changes it" in outputs(on)[0]
    assert (cli.project / "check.sh").read_text() == "true\n"


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
def test_commands_do_not_change_the_script_of_an_approved_hook(
    cli: Cli, kind: SandboxChoice
) -> None:
    if (found := find_isolation(kind)).kind != kind:
        pytest.skip(found.refusal)
    (cli.project / "hooks").mkdir()
    (cli.project / "hooks" / "check.sh").write_text("true\n")
    of_project(cli, '[[hooks]]\nevent = "BeforeTool"\ncommand = "sh hooks/check.sh"\n')
    cli.ok("trust", "--yes")
    write = call("run_shell_command", id="w", command="echo evil > hooks/check.sh; echo done")
    more = f'[permissions]\nmode = "free"\nsandbox = "{kind}"\n'
    with server(cli, reply(write), http(HELLO), more=more) as on:
        cli.ok("-p", "Write it.", env=ENV)
        assert "done" in outputs(on)[0]
    assert (cli.project / "hooks" / "check.sh").read_text() == "true\n"


def test_nothing_of_a_command_is_hidden_from_the_user(cli: Cli) -> None:
    key = "sk-" + "a1B2c3D4" * 6
    long = "x" * 3_000
    of_project(
        cli, f"[[hooks]]\nevent = \"AfterTool\"\ncommand = '''sh -c 'a\n{key}' {long} end'''\n"
    )
    said = cli.ok("trust", "--yes").err
    assert f"AfterTool: sh -c 'a\\n{key}' {long} end" in said
    of_project(cli, '[[hooks]]\nevent = "AfterTool"\ncommand = "a \\u202Eb\\u001b[2K"\n')
    said = cli.ok("trust", "--yes").err
    assert "\u202e" not in said
    assert "\x1b" not in said


def test_a_project_whose_file_is_wrong_can_only_give_its_memory(cli: Cli) -> None:
    of_project(cli, 'model = "elsewhere"')
    done = cli.ok("trust", "--yes")
    assert "cannot be trusted: " in done.err
    assert "a project may not set `model`" in done.err
    assert done.out == f"trusted: {cli.project} (memory)\n"
    assert cli("trust", "--settings", "--yes").code != 0


@pytest.mark.parametrize("trusted", [True, False])
def test_a_file_of_before_means_what_it_meant_and_its_hooks_need_a_new_yes(
    cli: Cli, trusted: bool
) -> None:
    ran = whole_project(cli)
    cli.home.mkdir(exist_ok=True)
    file = cli.home / "trusted_folders.json"
    folder = str(cli.project)
    file.write_text(json.dumps({"folders": {folder: trusted}, "hooks": {folder: "0" * 64}}))
    file.chmod(0o600)
    assert used(cli, ran) == (trusted, trusted, False)
    cli.ok("trust", "--hooks", "--yes")
    assert used(cli, ran) == (trusted, trusted, True)


def test_the_hooks_of_a_folder_inside_a_project_are_the_projects(cli: Cli) -> None:
    (cli.project / ".git").mkdir()
    (cli.project / "sub").mkdir()
    of_project(cli, HOOK)
    refused = cli("trust", "--hooks", "--yes", "sub")
    assert refused.code != 0
    assert f"`recollect trust --hooks {cli.project}` shows them" in refused.err
    assert cli.ok("trust", "--yes", "sub").out == f"trusted: {cli.project}/sub (memory, settings)\n"


def test_a_named_folder_is_trusted_and_what_was_decided_is_listed(cli: Cli) -> None:
    (cli.project / "a" / "b").mkdir(parents=True)
    a = str(cli.project / "a")
    done = cli.ok("trust", "a", "--yes", "--json")
    assert done.json == {"folder": a, "memory": True, "settings": True}
    cli.ok("trust", "--remove", "a/b")
    of_project(cli, HOOK)
    cli.ok("trust", "--hooks", "--yes")
    assert cli.ok("trust", "--list").out.splitlines() == [
        f"trusted      {cli.project}  (hooks)",
        f"trusted      {a}  (memory, settings)",
        f"not trusted  {a}/b  (memory, settings)",
    ]
    assert cli.ok("trust", "--list", "--json").json == {
        a: {"memory": True, "settings": True},
        f"{a}/b": {"memory": False, "settings": False},
        str(cli.project): {"hooks": True},
    }
    mode = (cli.home / "trusted_folders.json").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600


@pytest.mark.parametrize(
    "arguments",
    [
        ("nowhere",),
        ("--list", "."),
        ("--list", "--remove"),
        ("--list", "--yes"),
        ("--list", "--hooks"),
    ],
)
def test_wrong_usage_decides_nothing(cli: Cli, arguments: tuple[str, ...]) -> None:
    result = cli("trust", *arguments)
    assert (result.code, result.out) == (2, "")
    assert not (cli.home / "trusted_folders.json").exists()
