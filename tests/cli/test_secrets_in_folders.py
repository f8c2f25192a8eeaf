"""`recollect -p` in mode `free`: no command and no tool sends the secrets of a workspace."""

from __future__ import annotations

import pytest

import recollect
from recollect.testing import call
from tests.cli.model_server import ENV, outputs, reply, server
from tests.cli.runner import Cli, surroundings
from tests.execution.workbench import isolation_of
from tests.models.server import HELLO, http

SECRET = "canary-51c7"
LINES = (
    "grep -rn . .",
    "ls -A | xargs cat",
    'for f in $(ls -A); do cat "$f"; done',
    "find . -type f -exec cat {} +",
)


def runs(*commands: str, directory: str = "") -> bytes:
    where = {"directory": directory} if directory else {}
    asked = (call("run_shell_command", id=each, command=each, **where) for each in commands)
    return reply(*asked)


@pytest.fixture(autouse=True)
def sandbox() -> None:
    isolation_of("bubblewrap")  # skips where it is missing


def test_nothing_of_a_secret_in_the_project_reaches_the_provider(cli: Cli) -> None:
    (cli.project / ".env").write_text(f"KEY={SECRET}\n")
    (cli.project / "notes.txt").write_text("a plum\n")
    with server(cli, runs(*LINES, "grep -rn plum notes.txt"), http(HELLO)) as on:
        done = cli.ok("-p", "Look.", "--mode", "free", env=ENV)
    assert ["not allowed" in each for each in outputs(on)] == [True, True, True, True, False]
    assert "'.env' lies in the folder it reads" in outputs(on)[0]
    assert SECRET not in str(on.asked)
    assert SECRET not in done.out + done.err


def test_the_same_commands_run_where_no_secret_lies(cli: Cli) -> None:
    (cli.project / "notes.txt").write_text("a plum\n")
    with server(cli, runs(*LINES), http(HELLO)) as on:
        cli.ok("-p", "Look.", "--mode", "free", env=ENV)
    assert all("a plum" in each for each in outputs(on)), outputs(on)


def test_the_directory_that_a_call_names_is_the_one_that_is_looked_through(cli: Cli) -> None:
    (cli.project / ".env").write_text(f"KEY={SECRET}\n")
    for name in ("src", ".aws"):
        (cli.project / name).mkdir()
        (cli.project / name / "notes").write_text(f"a plum {SECRET if name == '.aws' else ''}\n")
    with server(
        cli,
        runs("grep -rn . .", directory="src"),
        runs("cat notes", directory=".aws"),
        runs("git status", directory="src"),
        http(HELLO),
    ) as on:
        cli.ok("-p", "Look.", "--mode", "free", env=ENV)
    assert "a plum" in outputs(on)[0]
    assert ["not allowed" in each for each in outputs(on)] == [False, True, True]
    assert SECRET not in str(on.asked)


# --- what nobody can see in a line -------------------------------------------------------------

CODE = "python3 -c 'print(open(chr(46)+\"env\").read())'"
DOORS = reply(
    call("run_shell_command", id="a", command=CODE),
    call("read_file", id="b", absolute_path=".env"),
    call("read_file", id="c", absolute_path=["notes.txt", ".env"]),
    call("search_file_content", id="d", pattern="KEY"),
    call("replace", id="e", file_path=".env", old_string="KEY", new_string="X"),
)


def plant(cli: Cli) -> None:
    (cli.project / ".env").write_text(f"KEY={SECRET}\n")
    (cli.project / "notes.txt").write_text("a plum\n")


def test_code_that_computes_a_name_and_tools_that_read_get_no_secret(cli: Cli) -> None:
    plant(cli)
    with server(cli, DOORS, http(HELLO)) as on:
        done = cli.ok("-p", "Look.", "--mode", "free", env=ENV)
    assert SECRET not in str(on.asked)
    assert SECRET not in done.out + done.err
    code, read, batch, search, edit = outputs(on)
    assert "PermissionError" in code
    assert "hidden from this command: .env" in code
    assert "recollect config --add permissions.show_secrets" in code
    assert "is a secret of the workspace: nobody can be asked here" in read
    assert "--show-secret" in read
    assert "is a secret of the workspace" in batch
    assert "left out, as secrets of the workspace" in search
    assert "is a secret of the workspace" in edit


def test_what_the_user_shows_reaches_commands_and_tools(cli: Cli) -> None:
    plant(cli)
    shown = '[permissions]\nshow_secrets = [".env"]\n'
    with server(cli, DOORS, http(HELLO), more=shown) as on:
        cli.ok("-p", "Look.", "--mode", "free", env=ENV)
    assert [SECRET in each for each in outputs(on)] == [True] * 5, outputs(on)
    plant(cli)
    with server(cli, DOORS, http(HELLO)) as on:
        cli.ok("-p", "Look.", "--mode", "free", "--show-secret", ".env", env=ENV)
    assert [SECRET in each for each in outputs(on)] == [True] * 5, outputs(on)


def test_a_project_cannot_show_secrets(cli: Cli) -> None:
    plant(cli)
    (cli.project / ".recollect").mkdir()
    file = cli.project / ".recollect" / "settings.toml"
    file.write_text('[permissions]\nshow_secrets = ["."]\n')
    refused = cli("trust", "--settings", "--yes")
    assert "a project may not set `permissions.show_secrets`" in refused.err
    with server(cli, DOORS, http(HELLO)) as on:
        cli("-p", "Look.", "--mode", "free", env=ENV)
    assert SECRET not in str(on.asked)


def test_a_rule_that_gives_the_whole_line_shows_secrets_to_it(cli: Cli) -> None:
    plant(cli)
    with server(cli, runs(CODE, f"{CODE} && true"), http(HELLO)) as on:
        cli.ok("-p", "Look.", "--mode", "free", "--allow", CODE, env=ENV)
    assert [SECRET in each for each in outputs(on)] == [True, False]


def test_a_pattern_shows_no_secrets(cli: Cli) -> None:
    plant(cli)
    (cli.project / "look.py").write_text("print(open('.env').read())")
    with server(cli, runs("python3 look.py"), http(HELLO)) as on:
        cli.ok("-p", "Look.", "--allow", "python3 *", env=ENV)
    assert "PermissionError" in outputs(on)[0]
    with server(cli, runs("python3 look.py"), http(HELLO)) as on:
        cli.ok("-p", "Look.", "--allow", "python3 look.py", env=ENV)
    assert SECRET in outputs(on)[0]


def test_what_the_user_mentions_is_sent(cli: Cli) -> None:
    plant(cli)
    with server(cli, http(HELLO)) as on:
        cli.ok("-p", "Look at @.env please.", "--mode", "free", env=ENV)
    assert SECRET in str(on.asked)


def test_memory_files_of_a_project_import_no_secret(cli: Cli) -> None:
    plant(cli)
    (cli.project / "AGENTS.md").write_text("Be good. @.env\n")
    (cli.project / "CLAUDE.md").symlink_to(".env")
    cli.ok("trust", "--memory", "--yes")
    with server(cli, http(HELLO)) as on:
        cli.ok("-p", "Hello", env=ENV)
    assert "Be good." in str(on.asked)
    assert SECRET not in str(on.asked)


def test_an_approval_shows_secrets_to_that_call_alone(cli: Cli) -> None:
    plant(cli)
    asked: list[str] = []

    def approve(request: recollect.ApprovalRequest) -> bool:
        asked.append(request.reason)
        return True

    twice = reply(
        call("read_file", id="a", absolute_path=".env"),
        call("run_shell_command", id="b", command="cat .env"),
        call("run_shell_command", id="c", command=CODE),
    )
    with server(cli, twice, http(HELLO)) as on, surroundings(cli.env(ENV), cli.project):
        recollect.coding_agent(cli.project, approve=approve, mode="free").run_sync("Look.")
    assert [SECRET in each for each in outputs(on)] == [True, True, False]
    assert len(asked) == 2
    assert "is a secret of the workspace" in asked[0]


@pytest.mark.parametrize("secret", [True, False])
def test_where_nothing_can_hide_a_secret_mode_free_decides_like_edit(
    cli: Cli, secret: bool
) -> None:
    isolation_of("landlock")
    (cli.project / "notes.txt").write_text("a plum\n")
    if secret:
        plant(cli)
    lines = ("python3 -c 'print(6 * 7)'", "mkdir made", "echo $HOME", "cat notes.txt")
    settings = '[permissions]\nsandbox = "landlock"\n'
    with server(cli, runs(*lines), http(HELLO), more=settings) as on:
        cli.ok("-p", "Look.", "--mode", "free", "--allow", "cat *", "--allow", "echo *", env=ENV)
    refused = ["Landlock cannot hide .env from commands" in each for each in outputs(on)]
    assert refused == [secret, False, secret, False], outputs(on)
    if secret:
        assert "install bubblewrap" in outputs(on)[0]
        assert "show_secrets" in outputs(on)[0]
    with server(cli, runs(lines[0]), http(HELLO), more=settings) as on:
        cli.ok("-p", "Look.", "--mode", "free", "--show-secret", ".env", env=ENV)
    assert "42" in outputs(on)[0]


def test_what_the_model_wrote_can_be_read_and_changed_in_the_same_session(cli: Cli) -> None:
    plant(cli)
    calls = reply(
        call("write_file", id="a", file_path=".env.test", content="MODE=plum\n"),
        call(
            "run_shell_command", id="b", command='python3 -c \'print(open(".en"+"v.test").read())\''
        ),
        call("run_shell_command", id="c", command=CODE.replace("env", "env.test")),
        call("replace", id="d", file_path=".env.test", old_string="plum", new_string="pear"),
        call("run_shell_command", id="e", command=CODE.replace("env", "env.test") + "; true"),
    )
    with server(cli, calls, http(HELLO)) as on:
        cli.ok("-p", "Write.", "--mode", "free", env=ENV)
    wrote, named, read, edited, again = outputs(on)
    assert "Created" in wrote
    assert "not allowed" in named  # the line spells the name
    assert "MODE=plum" in read
    assert "MODE=pear" in again
    assert "Replaced once" in edited
