"""`recollect -p`: what a refusal prints, and that it works as printed."""

from __future__ import annotations

import json
import shlex

import pytest

from recollect.testing import call
from tests.cli.model_server import ENV, outputs, reply, server
from tests.cli.refused_calls import refusals, runs
from tests.cli.runner import Cli
from tests.models.server import HELLO, http, refused

LINE = "echo plum > made/out.txt"


def test_a_refused_command_names_the_options_and_the_command_that_allow_it(cli: Cli) -> None:
    rules = '[permissions]\nallow = [\n  "echo *", # harmless\n]\n'
    asked = runs("seq 1 3", "seq 1 3", "basename '/a b'")
    with server(cli, asked, http(HELLO), more=rules):
        done = cli.ok("-p", "Run it.", env=ENV)
    quoted = """'basename '"'"'/a b'"'"''"""
    add = "recollect config --add permissions.allow"
    assert refusals(done) == [
        f"not allowed: {line} · allow it with --allow {rule}, or for good: {add} {rule}"
        for line, rule in (("seq 1 3", "'seq 1 3'"), ("basename '/a b'", quoted))
    ]
    assert done.out == "hello\n"


def test_what_a_refusal_prints_works_as_printed(cli: Cli) -> None:
    asked = runs("seq 1 3 | wc -l", "basename '/a b'")
    rules = '[permissions]\nallow = [\n  "echo *", # harmless\n]\n'
    with server(cli, asked, http(HELLO), more=rules):
        lines = refusals(cli.ok("-p", "Run it.", env=ENV))
    options = [
        word
        for line in lines
        for word in shlex.split(line.split("allow it with ")[1].split(", or for good")[0])
    ]
    with server(cli, asked, http(HELLO), more=rules) as on:
        assert refusals(cli.ok("-p", "Run it.", *options, env=ENV)) == []
        assert outputs(on)[0].startswith("3\n[exit code 0")
    with server(cli, asked, http(HELLO), more=rules) as on:
        for line in lines:
            for command in line.split("for good: ")[1].split(" && "):
                program, *arguments = shlex.split(command)
                assert program == "recollect"
                cli.ok(*arguments)
        allowed = cli.ok("config", "permissions.allow", "--json").json["value"]
        assert allowed == ["echo *", "seq 1 3", "wc -l", "basename '/a b'"]
        assert "# harmless" in (cli.home / "settings.toml").read_text()
        assert refusals(cli.ok("-p", "Run it.", env=ENV)) == []


@pytest.mark.parametrize("mode", ["plan", "ask"])
def test_a_refusal_names_the_mode_where_a_file_would_be_written(cli: Cli, mode: str) -> None:
    # with Landlock nothing new can be made in the top folder
    (cli.project / "made").mkdir()
    asked = reply(
        call("write_file", id="w", file_path="new.txt", content="hello"),
        call("run_shell_command", id="s", command=LINE),
    )
    with server(cli, asked, http(HELLO)):
        done = cli.ok("-p", "Write it.", "--mode", mode, env=ENV)
    assert refusals(done) == [
        "not allowed: write_file new.txt · allow it with --mode edit",
        (
            f"not allowed: {LINE} · allow it with --allow '{LINE}',"
            f" or for good: recollect config --add permissions.allow '{LINE}'"
        ),
    ]
    with server(cli, asked, http(HELLO)):
        cli.ok("-p", "Write it.", "--mode", mode, "--allow", LINE, env=ENV)
    assert (cli.project / "made/out.txt").read_text() == "plum\n"
    with server(cli, asked, http(HELLO)):
        cli.ok("-p", "Write it.", "--mode", "edit", "--allow", "echo plum", env=ENV)
    assert (cli.project / "new.txt").exists()
    assert (cli.project / "made/out.txt").read_text() == "plum\n"


def test_a_refusal_that_nothing_lifts_says_why(cli: Cli) -> None:
    with server(cli, runs("python3 -c 'print(1)'"), http(HELLO)):
        (line,) = refusals(cli.ok("-p", "Do it.", "--deny", "python3 *", env=ENV))
    assert line.startswith("not allowed: python3 -c 'print(1)' · ")
    assert "--allow" not in line


def test_what_a_refusal_names_allows_the_very_line(cli: Cli) -> None:
    line = 'for word in plum pear; do echo "a $word"; done | sort'
    with server(cli, runs(line), http(HELLO)) as on:
        cli.ok("-p", "Do it.", "--allow", line, env=ENV)
    assert "a pear\na plum" in outputs(on)[0]


def test_everything_ordinary_runs_in_mode_free_and_a_disguise_does_not(cli: Cli) -> None:
    asked = (
        "timeout 60 env CI=1 python3 -c 'print(6 * 7)'",
        'for word in plum; do echo "$word in $HOME" > made.txt; done; cat made.txt',
        "python3 - <<'EOF'\nprint('heard')\nEOF",
        "sed -n -- '1e touch fired' made.txt -e p",
        "git --no-pager push",
    )
    with server(cli, runs(*asked), http(HELLO)) as on:
        cli.ok("-p", "Run them.", "--mode", "free", env=ENV)
    refused = ["not allowed" in each for each in outputs(on)]
    assert refused == [False, False, False, True, True], outputs(on)
    assert not (cli.project / "fired").exists()


def test_without_a_sandbox_only_the_exact_line_runs(cli: Cli) -> None:
    off = '[permissions]\nsandbox = "none"\nallow = ["seq *", "echo plum"]\n'
    with server(cli, runs("seq 1 3", "echo plum"), http(HELLO), more=off) as on:
        done = cli.ok("-p", "Run them.", "--mode", "free", env=ENV)
    assert ["not allowed" in each for each in outputs(on)] == [True, False]
    assert "there is no sandbox here" in outputs(on)[0]
    assert refusals(done) == [
        (
            "not allowed: seq 1 3 · allow it with --allow 'seq 1 3',"
            " or for good: recollect config --add permissions.allow 'seq 1 3'"
        )
    ]


def test_mode_unrestricted_says_so_on_every_run_and_obeys_deny_rules(cli: Cli) -> None:
    options = ("--mode", "unrestricted", "--deny", "dirname *", "--output-format", "json")
    with server(
        cli, runs("test -e /proc/1/root/proc && echo open", "dirname /a"), http(HELLO)
    ) as on:
        done = cli.ok("-p", "Run them.", *options, env=ENV)
    assert ["not allowed" in each for each in outputs(on)] == [False, True]
    assert done.json["permission_mode"] == "unrestricted"
    assert "warning: mode unrestricted" in done.err


def test_a_project_cannot_make_a_run_unrestricted(cli: Cli) -> None:
    folder = cli.project / ".recollect"
    folder.mkdir()
    (folder / "settings.toml").write_text('[permissions]\nmode = "unrestricted"\n')
    cli.ok("trust", "--yes")
    with server(cli, runs("dirname /a"), http(HELLO)) as on:
        done = cli.ok("-p", "Run it.", env=ENV)
    assert "not allowed" in outputs(on)[0]
    assert "mode unrestricted" not in done.err


def test_many_refusals_are_counted(cli: Cli) -> None:
    with server(cli, runs(*(f"seq {n}" for n in range(8))), http(HELLO)):
        lines = refusals(cli.ok("-p", "Run them.", env=ENV))
    assert len(lines) == 6
    assert lines[-1] == "not allowed: 3 more; --output-format json lists them"


@pytest.mark.parametrize("form", ["json", "stream-json"])
def test_programs_get_every_refusal_with_its_rules(cli: Cli, form: str) -> None:
    asked = reply(
        call("run_shell_command", id="s", command="seq 3"),
        call("write_file", id="w", file_path="new.txt", content="hello"),
    )
    with server(cli, asked, http(HELLO)):
        done = cli.ok("-p", "Do it.", "--output-format", form, env=ENV)
    denials = json.loads(done.out.splitlines()[-1])["permission_denials"]
    assert [each["tool_use_id"] for each in denials] == ["s", "w"]
    assert denials[0]["tool_name"] == "run_shell_command"
    assert denials[0]["tool_input"] == {"command": "seq 3"}
    assert (denials[0]["rules"], denials[0]["mode"]) == (["seq 3"], None)
    assert (denials[1]["rules"], denials[1]["mode"]) == ([], "edit")
    assert refusals(done) == []


def test_a_refusal_is_reported_though_another_model_took_over(cli: Cli) -> None:
    with server(cli, http(HELLO)) as spare:
        more = (
            f'[models.spare]\nurl = "{spare.url}"\nkey = "MY_KEY"\nwindow = 9000\n'
            '[routing]\nfallback = ["spare"]\n'
        )
        busy = refused("503 Service Unavailable", "overloaded")
        with server(cli, runs("seq 3"), busy, more=more):
            done = cli.ok("-p", "Run it.", env=ENV)
    assert done.out == "hello\n"
    assert [line.split(" · ")[0] for line in refusals(done)] == ["not allowed: seq 3"]
