"""`recollect -p`: what its options allow, deny and add, and what a refusal prints."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from recollect.cli.group import recollect
from recollect.entries import Text
from recollect.testing import call
from tests.cli.model_server import ENV, messages, outputs, readable, reply, server, texts
from tests.cli.refused_calls import refusals, runs
from tests.cli.runner import Cli
from tests.models.server import HELLO, http

WRITE = reply(call("write_file", id="w", file_path="new.txt", content="hello"))
LINE = "echo plum > made/out.txt"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def stored(cli: Cli) -> object:
    return cli.ok("sessions", "--json").json


# --- the mode and the rules --------------------------------------------------------------------


def test_the_mode_of_one_run_lets_it_edit_and_is_not_remembered(cli: Cli) -> None:
    with server(cli, WRITE, http(HELLO)):
        cli.ok("-p", "Write it.", "--mode", "edit", env=ENV)
        assert (cli.project / "new.txt").read_text() == "hello"
    (cli.project / "new.txt").unlink()
    with server(cli, WRITE, http(HELLO)):
        cli.ok("-c", "-p", "Again.", env=ENV)
    assert not (cli.project / "new.txt").exists()


@pytest.mark.parametrize(
    "line", [("--mode", "edit", "write it down"), ("write it down", "--mode", "edit")]
)
def test_the_options_work_without_p_too(cli: Cli, line: tuple[str, ...]) -> None:
    with server(cli, WRITE, http(HELLO)):
        cli.ok(*line, env=ENV)
    assert (cli.project / "new.txt").read_text() == "hello"


def test_a_mode_that_the_user_types_counts_over_a_stricter_one_of_the_project(cli: Cli) -> None:
    settings = cli.project / ".recollect" / "settings.toml"
    settings.parent.mkdir()
    settings.write_text('[permissions]\nmode = "plan"\ndeny = ["seq *"]\n')
    settings.chmod(0o600)
    cli.ok("trust", "--yes")
    asked = reply(
        call("write_file", id="w", file_path="new.txt", content="hello"),
        call("run_shell_command", id="s", command="seq 3"),
    )
    with server(cli, asked, http(HELLO)):
        done = cli.ok("-p", "Do it.", "--mode", "edit", "--allow", "seq *", env=ENV)
    assert (cli.project / "new.txt").exists()
    assert refusals(done) == ["not allowed: seq 3 · the rule 'seq *' denies it"]


def test_a_stricter_mode_than_that_of_the_settings_counts(cli: Cli) -> None:
    with server(cli, WRITE, http(HELLO), more='[permissions]\nmode = "edit"\n'):
        done = cli.ok("-p", "Write it.", "--mode", "plan", env=ENV)
    assert not (cli.project / "new.txt").exists()
    assert "--mode edit" in refusals(done)[0]


def test_rules_of_one_run_add_to_those_of_the_settings(cli: Cli) -> None:
    asked = ("seq 1 3", "echo hi", "basename /a/b", "dirname /a/b")
    rules = '[permissions]\nallow = ["echo *", "dirname *"]\n'
    options = ("--allow", "seq *", "--allow", "basename /a/b", "--deny", "dirname *")
    with server(cli, runs(*asked), http(HELLO), more=rules) as on:
        cli.ok("-p", "Run them.", *options, env=ENV)
    assert ["not allowed" in each for each in outputs(on)] == [False, False, False, True]
    assert "the rule 'dirname *' denies it" in outputs(on)[3]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--allow", "a && b *"), "the rule 'a && b *' has more than plain words"),
        (("--deny", "echo $x"), "the rule 'echo $x' has more than plain words"),
        (("--add-dir", "nowhere"), "there is no folder 'nowhere'; name a folder that exists"),
        (("--attach", "nothing.txt"), "cannot attach nothing.txt: there is no such file"),
    ],
)
def test_a_wrong_value_is_one_sentence_and_nothing_is_sent_or_stored(
    cli: Cli, options: tuple[str, ...], sentence: str
) -> None:
    with server(cli, http(HELLO)) as on:
        failed = cli("-p", "Hi.", *options, env=ENV)
        document = cli("-p", "Hi.", *options, "--output-format", "json", env=ENV)
    assert (failed.code, failed.out, on.asked) == (42, "", [])
    assert sentence in failed.err
    assert (document.code, document.json["is_error"]) == (42, True)
    assert sentence in document.json["result"]
    assert stored(cli) == []
    readable(failed)


def test_an_unknown_mode_is_wrong_usage(cli: Cli) -> None:
    wrong = cli("-p", "Hi.", "--mode", "yolo")
    assert wrong.code == 2
    assert "'plan', 'ask', 'edit', 'free'" in wrong.err


# --- instructions, folders, files --------------------------------------------------------------


def test_system_instructions_are_those_of_a_new_session(cli: Cli) -> None:
    with server(cli, http(HELLO)) as on:
        cli.ok("-p", "Hi.", "--system", "You are a parrot.", env=ENV)
        cli.ok("-c", "-p", "And?", env=ENV)
    assert [messages(on, at)[0]["content"] for at in (0, 1)] == ["You are a parrot."] * 2
    assert "You are recollect" not in json.dumps(messages(on))


@pytest.mark.parametrize(
    "line", [("-c", "-p", "Hi."), ("-r", "last", "-p", "Hi."), ("ask", "Hi.", "-c")]
)
def test_a_session_that_goes_on_keeps_its_instructions(cli: Cli, line: tuple[str, ...]) -> None:
    failed = cli(*line, "--system", "You are a parrot.")
    assert (failed.code, failed.out) == (2, "")
    assert "--system is for a new session" in failed.err


def test_an_added_directory_can_be_read_and_its_files_changed(cli: Cli, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").write_text("plum\n")
    asked = reply(
        call("read_file", id="r", absolute_path=str(other / "a.txt")),
        call("write_file", id="w", file_path=str(other / "b.txt"), content="pear"),
    )
    with server(cli, asked, http(HELLO), asked, http(HELLO)) as on:
        cli.ok("-p", "Look.", "--mode", "edit", env=ENV)
        assert "plum" not in outputs(on)[0]
        assert not (other / "b.txt").exists()
        cli.ok("-p", "Look.", "--mode", "edit", "--add-dir", "../other", env=ENV)
    assert "plum" in outputs(on)[0]
    assert (other / "b.txt").read_text() == "pear"
    assert str(other) in json.dumps(messages(on, 2))


@pytest.mark.parametrize("door", [("-p", "What is this?"), ("ask", "What is this?")])
def test_attached_files_are_sent_whole_wherever_they_are(
    cli: Cli, tmp_path: Path, door: tuple[str, str]
) -> None:
    (tmp_path / "log.txt").write_text("".join(f"line {n}\n" for n in range(2_500)))
    (tmp_path / "dot.png").write_bytes(PNG)
    (cli.project / "link.txt").symlink_to(tmp_path / "log.txt")
    files = ("--attach", "link.txt", "--attach", str(tmp_path / "dot.png"))
    with server(cli, http(HELLO)) as on:
        settings = cli.home / "settings.toml"
        settings.write_text(settings.read_text().replace("window = 9000", "window = 90000"))
        cli.ok(*door, *files, env=ENV)
    (said,) = [each["content"] for each in messages(on) if "What is this?" in str(each["content"])]
    assert "2500→line 2499" in json.dumps(said, ensure_ascii=False)
    assert [part["type"] for part in said].count("image_url") == 1
    assert texts(on)[-1] == str(said)


@pytest.mark.parametrize("door", [("-p", "Hi."), ("ask", "Hi.")])
def test_a_file_that_cannot_be_attached_is_one_sentence(cli: Cli, door: tuple[str, str]) -> None:
    folder = cli.project
    (folder / "sub").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "data.bin").write_bytes(b"\0\1\2")
    (folder / "long.txt").write_text("x" * 400_001)
    with (folder / "huge.txt").open("wb") as file:
        file.truncate(20_000_001)
    sentences = {
        "none.txt": "there is no such file; check the path",
        "sub": "it is a folder; attach its files one by one",
        "data.bin": "it is binary (3 bytes); send a text, an image, a PDF, a sound or a video made",
        "long.txt": "400,000 of all attached texts are sent; send a part of it",
        "huge.txt": "it has 20,000,001 bytes, the limit is 20,000,000; send a part of it",
        "pipe": "it is not a regular file; send a file with its content",
        "x" * 300: "file name too long; check its path and permissions",
    }
    with server(cli, http(HELLO)) as on:
        for name, why in sentences.items():
            failed = cli(*door, "--attach", name, env=ENV)
            assert failed.code == (42 if door[0] == "-p" else 1)
            assert f"recollect: cannot attach {name[:100]}" in failed.err
            assert why in failed.err
            readable(failed)
    assert on.asked == []
    assert stored(cli) == []


def test_ask_continues_the_most_recent_session(cli: Cli) -> None:
    with server(cli, http(HELLO)) as on:
        cli.ok("ask", "One?", env=ENV)
        cli.ok("ask", "-c", "Two?", env=ENV)
    assert [text for text in texts(on) if text in ("One?", "hello", "Two?")] == [
        "One?",
        "hello",
        "Two?",
    ]
    (session,) = cli.ok("sessions", "--json").json
    assert session["title"] == "One?"


def test_options_for_both_may_stand_before_ask(cli: Cli) -> None:
    (cli.project / "a.txt").write_text("plum\n")
    with server(cli, http(HELLO)) as on:
        line = ("--attach", "a.txt", "--system", "You are a parrot.", "ask", "What is in it?")
        cli.ok(*line, env=ENV)
    assert messages(on)[0]["content"] == "You are a parrot."
    assert "1→plum" in json.dumps(messages(on)[-1], ensure_ascii=False)


def test_an_answer_without_refusals_ends_without_such_a_line(cli: Cli) -> None:
    with server(cli, reply(call("list_directory", id="a")), reply(Text(text="Two files."))):
        assert refusals(cli.ok("-p", "Look.", env=ENV)) == []


def test_every_option_of_the_agent_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
    section = page.split("\n## The agent\n")[1].split("\n## ")[0]
    options = {flag for param in recollect.params for flag in param.opts}
    long = {"--prompt", "--model", "--continue", "--resume"}  # named by their short forms
    general = {"--store", "--help", "-h", "--version", "-V"}
    for option in options - long - general:
        assert re.search(rf"`(recollect )?{option}\b", section), option
