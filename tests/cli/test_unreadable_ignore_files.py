"""Ignore files beyond their limits, through the door: what they may hide is not sent."""

from __future__ import annotations

import os

import pytest

from recollect.testing import call
from tests.cli.model_server import ENV, outputs, reply, server, texts
from tests.cli.runner import Cli
from tests.models.server import HELLO, http

WINDOW = 100_000  # room for all tools
SECRET = "the-password"
MANY = "".join(f"name_{number}\n" for number in range(20_001))
LARGE = "#" * 1_000_000 + "\n"
AGENT_FILES = (".geminiignore", ".recollectignore")


def look(cli: Cli) -> tuple[list[str], str, str]:
    """Results of tools, all that is sent, and what the user is told."""
    (cli.project / "late.sec").write_text(f"{SECRET}\n")
    calls = reply(
        call("read_file", id="a", absolute_path="late.sec"),
        call("list_directory", id="b"),
        call("search_file_content", id="c", pattern="pass"),
        call("write_file", id="d", file_path="late.sec", content="x"),
    )
    with server(cli, calls, http(HELLO), window=WINDOW) as on:
        done = cli.ok("-p", "Look at @late.sec", "--mode", "edit", env=ENV)
    return outputs(on), "\n".join(texts(on)), done.err


@pytest.mark.parametrize("name", AGENT_FILES)
def test_a_rule_at_the_end_of_a_long_file_hides(cli: Cli, name: str) -> None:
    rules = "".join(f"name_{number}\n" for number in range(19_999))
    (cli.project / name).write_text(f"{rules}late.sec\n")
    results, sent, told = look(cli)
    assert f"late.sec is hidden by {name};" in results[0]
    assert SECRET not in sent + "".join(results)
    assert f"@late.sec was left out: it is hidden by {name}" in told
    assert "hidden from the agent" not in told


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (f"{MANY}late.sec\n".encode(), "has more than 20,000 rules"),
        (f"{LARGE}late.sec\n".encode(), "has 1,000,010 bytes, more than the limit of 1,000,000"),
        (b"caf\xe9.txt\n", "is not UTF-8 text (line 1)"),
        ("late.sec\n".encode("utf-16"), "is not UTF-8 text (line 1)"),
        (b"x" * 4_097, "has a pattern of more than 4,096 characters (line 1)"),
    ],
    ids=["rules", "bytes", "latin-1", "utf-16", "pattern"],
)
@pytest.mark.parametrize("name", AGENT_FILES)
def test_everything_is_hidden_if_the_users_word_is_not_understood(
    cli: Cli, name: str, content: bytes, why: str
) -> None:
    (cli.project / name).write_bytes(content)
    results, sent, told = look(cli)
    assert f"late.sec is hidden because {name} {why};" in results[0]
    assert f"hidden because {name} {why}" in results[1]
    assert "is hidden because" in results[3]
    assert SECRET not in sent + "".join(results)
    assert f"@late.sec was left out: it is hidden because {name} {why}" in told
    said = f"{name} {why}; until that is repaired, everything in its folder is hidden"
    assert told.count(said) == 1
    assert said in cli.ok("memory", "list").err


def test_a_file_that_re_includes_cannot_undo_one_that_is_not_understood(cli: Cli) -> None:
    (cli.project / ".geminiignore").write_text(MANY)
    (cli.project / ".recollectignore").write_text("!late.sec\n")
    assert "is hidden because .geminiignore has more" in look(cli)[0][0]


def test_only_the_folder_of_the_file_is_hidden(cli: Cli) -> None:
    (cli.project / "sub" / "deep").mkdir(parents=True)
    (cli.project / "sub" / "deep" / "a.txt").write_text(SECRET)
    (cli.project / "sub" / ".geminiignore").write_text(MANY)
    calls = reply(
        call("read_file", id="a", absolute_path="sub/deep/a.txt"),
        call("read_file", id="b", absolute_path="late.sec"),
    )
    (cli.project / "late.sec").write_text("public")
    with server(cli, calls, http(HELLO), window=WINDOW) as on:
        cli.ok("-p", "Look.", env=ENV)
    assert "is hidden because sub/.geminiignore has more than 20,000 rules" in outputs(on)[0]
    assert "public" in outputs(on)[1]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_may_not_be_read_hides_everything(cli: Cli) -> None:
    (cli.project / ".geminiignore").touch(mode=0)
    assert "because .geminiignore cannot be read: permission denied" in look(cli)[0][0]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_that_is_not_followed_hides_everything(cli: Cli, there: bool) -> None:
    elsewhere = cli.project.parent / "elsewhere"
    if there:
        elsewhere.write_text("late.sec\n")
    (cli.project / ".geminiignore").symlink_to(elsewhere)
    assert "late.sec is hidden because .geminiignore " in look(cli)[0][0]


def test_a_folder_of_that_name_is_no_ignore_file(cli: Cli) -> None:
    (cli.project / ".geminiignore").mkdir()
    assert SECRET in look(cli)[0][0]


@pytest.mark.parametrize("text", [f"early.sec\n{MANY}late.sec\n", f"early.sec\n{LARGE}late.sec\n"])
def test_of_gits_file_counts_what_could_be_read_and_the_user_is_told(cli: Cli, text: str) -> None:
    (cli.project / ".gitignore").write_text(text)
    (cli.project / "early.sec").write_text(SECRET)
    results, _, told = look(cli)
    assert "late.sec" in results[1]
    assert "early.sec" not in results[1]
    assert told.count("; the rest of it is not used") == 1
    assert told.count(".gitignore has") == 1
