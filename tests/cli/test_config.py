"""What `recollect config` says of a folder, and never says of anyone's keys."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recollect.execution.sandbox import find_isolation
from recollect.settings import Settings
from recollect.settings.settings_listing import list_settings
from tests.cli.runner import Cli


def own(cli: Cli, text: str) -> Path:
    cli.home.mkdir(exist_ok=True)
    path = cli.home / "settings.toml"
    path.write_text(text, encoding="utf-8")
    return path


def of_project(cli: Cli, text: str) -> Path:
    path = cli.project / ".recollect" / "settings.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return path


def test_every_setting_is_shown_with_its_value_and_its_origin(cli: Cli) -> None:
    path = own(cli, "language = 'zh'\n\n[agent]\nmax_turns = 7\n")
    out = cli.ok("config").out
    table, _, files = out.rpartition("\n\n")
    shown = {line.split()[0]: line for line in table.splitlines()[1:] if line}
    assert set(shown) == set(list_settings(Settings()))
    assert shown["language"].split() == ["language", '"zh"', "yours,", "line", "1"]
    assert shown["agent.max_turns"].split() == ["agent.max_turns", "7", "yours,", "line", "4"]
    assert shown["context.keep_reads"].split() == ["context.keep_reads", "5", "default"]
    assert shown["generation.seed"].split() == ["generation.seed", "not", "set", "default"]
    starts = {line.index("default") for line in shown.values() if line.endswith("  default")}
    assert len(starts) == 1
    assert files.splitlines()[:2] == [
        f"yours    {path}",
        f"project  {cli.project}/.recollect/settings.toml (not there)",
    ]
    assert files.splitlines()[2] == f"sandbox  {find_isolation().description}"


def test_changed_shows_only_settings_of_a_file(cli: Cli) -> None:
    assert cli.ok("config", "--changed").out.startswith(f"yours    {cli.home}/settings.toml (not")
    own(cli, "model = 'gpt-5'\n[context]\nkeep_reads = 5")
    table = cli.ok("config", "--changed").out.rpartition("\n\n")[0]
    lines = [line.split() for line in table.splitlines()[1:] if line]
    assert [line[0] for line in lines] == ["model", "context.keep_reads"]


@pytest.mark.parametrize(
    ("key", "printed"),
    [
        ("model", "gpt-5\n"),
        ("context.keep_reads", "5\n"),
        ("agent.detect_loops", "true\n"),
        ("generation.seed", "\n"),
        ("agent.memory_files", '["AGENTS.md", "GEMINI.md", "CLAUDE.md"]\n'),
        ("models.a.window", "5\n"),
        ("hooks", "[]\n"),
    ],
)
def test_one_setting_is_its_bare_value(cli: Cli, key: str, printed: str) -> None:
    own(cli, "model = 'gpt-5'\n[models.a]\nurl = 'http://a'\nwindow = 5")
    assert cli.ok("config", key).out == printed


def test_one_section_can_be_shown(cli: Cli) -> None:
    for key in ("permissions", "[permissions]"):
        table = cli.ok("config", key).out.rpartition("\n\n")[0]
        assert [line.split()[0] for line in table.splitlines()[1:]] == [
            f"permissions.{name}"
            for name in ("mode", "allow", "ask", "deny", "network", "sandbox", "show_secrets")
        ]


def test_an_unknown_setting_is_a_usage_error_with_the_nearest(cli: Cli) -> None:
    result = cli("config", "agent.max_turn")
    assert (result.code, result.out) == (2, "")
    assert "Did you mean 'agent.max_turns'?" in result.err


def test_programs_get_files_and_lines(cli: Cli) -> None:
    path = own(cli, "model = 'gpt-5'")
    project = of_project(cli, "\n[agent]\nmax_turns = 7\n[permissions]\nallow = ['ls *']")
    cli.ok("trust", "--yes")
    document = cli.ok("config", "--json").json
    by_key = {row["key"]: row for row in document["settings"]}
    assert by_key["model"]["origins"] == [{"file": str(path), "line": 1}]
    assert by_key["agent.max_turns"] == {
        "key": "agent.max_turns",
        "value": 7,
        "origins": [{"file": str(project), "line": 3}],
    }
    assert by_key["language"] == {"key": "language", "value": "en", "origins": []}
    assert (document["file"], document["project_file"]) == (str(path), str(project))
    assert document["trusted"] is True
    [ignored] = document["ignored"]
    assert "a project cannot allow anything" in ignored
    assert cli.ok("config", "agent.max_turns", "--json").json["value"] == 7


def test_the_path_is_printed_even_if_the_file_is_invalid(cli: Cli) -> None:
    path = own(cli, "modle = 1")
    assert cli.ok("config", "--path").out == f"{path}\n"
    assert cli.ok("config", "--path", "--json").json == {"path": str(path)}


def test_a_file_that_cannot_be_used_is_exit_code_52_and_one_sentence(cli: Cli) -> None:
    own(cli, "modle = 1")
    result = cli("config")
    assert (result.code, result.out) == (52, "")
    assert "line 1, `modle` is not a setting (did you mean `model`?)" in result.err
    assert "Traceback" not in result.err


def test_a_pipe_in_place_of_the_file_does_not_block(cli: Cli) -> None:
    cli.home.mkdir()
    os.mkfifo(cli.home / "settings.toml")
    result = cli("config")
    assert result.code == 52
    assert "not a regular file" in result.err


def test_no_secret_is_shown_in_any_form(cli: Cli) -> None:
    own(
        cli,
        "[transport]\nproxy = 'http://me:hunter-2@a:8080'\n"
        "[transport.headers]\nx-team = 'hunter-2'\n"
        "[models.a]\nurl = 'http://a?key=hunter-2'\n[models.a.headers]\nx = 'hunter-2'\n"
        "[[hooks]]\nevent = 'AfterTool'\ncommand = 'tell --token hunter-2'\n",
    )
    for more in ((), ("--json",), ("transport.headers",), ("hooks", "--json"), ("--changed",)):
        result = cli.ok("config", *more)
        assert "hunter-2" not in result.out + result.err
    assert cli.ok("config", "transport.headers").out == '{"x-team": "…"}\n'


def test_text_in_a_settings_file_cannot_command_the_terminal(cli: Cli) -> None:
    own(cli, 'model = "a\\u001b[31mb\\u202e"\n[models."x\\ny"]\nurl = "http://a"')
    for more in ((), ("model",)):
        out = cli.ok("config", *more).out
        assert "\x1b" not in out
        assert "\u202e" not in out


def test_a_terminal_shows_it_in_its_width(cli: Cli) -> None:
    own(cli, "[permissions]\nallow = [" + "'git diff *', " * 30 + "]")
    shown = cli.screen("config", "--changed", columns=70, env={"NO_COLOR": "1"})
    table = shown.out.replace("\r", "").rpartition("\n\n")[0]
    assert "permissions.allow" in table
    assert max(map(len, table.splitlines())) <= 70


def test_a_setting_is_set_and_unset_and_the_rest_of_the_file_stays(cli: Cli) -> None:
    cli.home.mkdir(exist_ok=True)
    file = cli.home / "settings.toml"
    file.write_text("# mine\n[agent] # how\n# few\nmax_turns = 20 # really\n")
    assert cli.ok("config", "agent.max_turns", "60").out == "60\n"
    assert file.read_text() == "# mine\n[agent] # how\n# few\nmax_turns = 60 # really\n"
    cli.ok("config", "model", "gpt-5")
    cli.ok("config", "permissions.deny", '["shell(rm *)"]')
    cli.ok("config", "models.my.server.url", "http://127.0.0.1:1/v1")
    assert cli.ok("config", "permissions.deny").out == '["shell(rm *)"]\n'
    assert cli.ok("config", "model").out == "gpt-5\n"
    assert cli.ok("config", "--unset", "model").out == "\n"
    text = file.read_text()
    assert text.startswith("# mine\n")
    assert "# few\nmax_turns = 60 # really\n" in text
    assert "was not set there" in cli.ok("config", "--unset", "model").err


def test_a_wrong_setting_or_value_is_refused_and_nothing_is_written(cli: Cli) -> None:
    wrong = cli("config", "agent.max_turn", "5")
    assert (wrong.code, wrong.out) == (2, "")
    assert "Did you mean 'agent.max_turns'?" in wrong.err
    value = cli("config", "agent.max_turns", "many")
    assert value.code == 1
    assert value.err == (
        "recollect: `agent.max_turns`: expected `int`, got `str`; nothing was written\n"
    )
    assert cli("config", "agent", "5").code == 2
    assert cli("config", "--unset").code == 2
    assert not (cli.home / "settings.toml").exists()


def test_a_projects_setting_is_set_only_in_a_trusted_folder(cli: Cli) -> None:
    refused = cli("config", "--project", "agent.max_turns", "20")
    assert refused.code == 1
    assert "the folder is not trusted" in refused.err
    cli.ok("trust", "--yes")
    assert cli.ok("config", "--project", "agent.max_turns", "20").out == "20\n"
    assert "max_turns = 20" in (cli.project / ".recollect" / "settings.toml").read_text()
    forbidden = cli("config", "--project", "model", "gpt-5")
    assert forbidden.code == 1
    assert "a project may not set `model`" in forbidden.err


def test_an_item_is_added_to_a_list_and_the_rest_of_the_list_stays(cli: Cli) -> None:
    path = own(cli, "[permissions]\nallow = [\n  'ls *', # harmless\n]\nmode = 'edit'\n")
    done = cli.ok("config", "--add", "permissions.allow", "git diff *")
    assert (done.out, done.err) == ('["ls *", "git diff *"]\n', f"added in {path}\n")
    assert "# harmless\n" in path.read_text()
    again = cli.ok("config", "--add", "permissions.allow", "ls *")
    assert again.err == "'ls *' is in the list already\n"
    assert again.out == '["ls *", "git diff *"]\n'
    assert cli.ok("config", "permissions.mode").out == "edit\n"
    # a list that the file does not set begins with its default
    assert cli.ok("config", "--add", "permissions.deny", "rm *").out == '["rm *"]\n'
    names = '["AGENTS.md", "GEMINI.md", "CLAUDE.md", "NOTES.md"]\n'
    assert cli.ok("config", "--add", "agent.memory_files", "NOTES.md").out == names
    assert cli.ok("config", "agent.memory_files").out == names


def test_only_a_list_can_be_added_to(cli: Cli) -> None:
    path = own(cli, "model = 'gpt-5'\n")
    for key in ("model", "agent.max_turns", "hooks"):
        refused = cli("config", "--add", key, "x")
        assert (refused.code, refused.out) == (1, "")
        assert refused.err.startswith("recollect: ")
    assert (
        "`model` is not a list; `recollect config model VALUE` sets it"
        in cli("config", "--add", "model", "x").err
    )
    assert cli("config", "--add", "permissions.allow").code == 2
    assert cli("config", "--add", "--unset", "permissions.allow").code == 2
    assert cli("config", "--add", "permissions.nothing", "x").code == 2
    assert path.read_text() == "model = 'gpt-5'\n"
