"""`recollect -p` with a model that edits files: how they are stored survives, lazy edits fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recollect.codecs.gemini import GeminiWire
from recollect.entries import Message, Part, Text, ToolCall
from recollect.store.contract import SessionInfo
from recollect.store.sqlite import SqliteStore
from recollect.testing import call
from tests.cli.model_server import ENV, outputs, path, reply, server
from tests.cli.runner import Cli
from tests.models.server import HELLO, http

EDIT = '[permissions]\nmode = "edit"\nallow = ["ls"]\n'


def run(cli: Cli, *calls: ToolCall) -> list[str]:
    """Let a model make these calls in mode `edit`; what it was told."""
    with server(cli, reply(*calls), http(HELLO), more=EDIT, window=100_000) as on:
        cli.ok("-p", "Do it.", env=ENV)
        return outputs(on)


def change(file_path: str, old: str, new: str, id_: str = "c1") -> ToolCall:
    return call("replace", id=id_, file_path=file_path, old_string=old, new_string=new)


def test_a_crlf_file_stays_one(cli: Cli) -> None:
    file = cli.project / "a.txt"
    file.write_bytes(b"a\r\nb\r\nc")
    (told,) = run(cli, change("a.txt", "b", "b1\nb2"))
    assert told.startswith("Replaced once")
    assert file.read_bytes() == b"a\r\nb1\r\nb2\r\nc"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig", "cp1252"])
def test_an_encoding_stays_and_a_rewind_brings_every_byte_back(cli: Cli, encoding: str) -> None:
    before, after = (
        "größe = 1\r\nend\r\n".encode(encoding),
        "größe = 2\r\nü\r\nend\r\n".encode(encoding),
    )
    file = cli.project / "a.txt"
    file.write_bytes(before)
    run(cli, change("a.txt", "größe = 1", "größe = 2\nü"))
    assert file.read_bytes() == after

    async def only(store: SqliteStore) -> SessionInfo:
        (session,) = await store.sessions()
        return session

    cli.ok("rewind", cli.write(only).id, path(cli)[0].id, "--files")
    assert file.read_bytes() == before


def test_writing_a_whole_file_keeps_its_encoding_and_breaks(cli: Cli) -> None:
    file = cli.project / "a.ini"
    file.write_bytes("[a]\r\nk=1\r\n".encode("utf-16"))
    (told,) = run(cli, call("write_file", id="c1", file_path="a.ini", content="[a]\nk=2\n"))
    assert "UTF-16" in told
    assert file.read_bytes() == "[a]\r\nk=2\r\n".encode("utf-16")


def test_a_placeholder_of_laziness_reaches_no_file(cli: Cli) -> None:
    file = cli.project / "a.ts"
    file.write_text("class A {\n  one() {}\n  two() {}\n}\n")
    lazy = "class A {\n  zero() {}\n  // rest of methods ...\n}\n"
    told = run(
        cli,
        call("write_file", id="c1", file_path="a.ts", content=lazy),
        change("a.ts", "  one() {}\n", "  one() {}\n  (rest of code unchanged)\n", "c2"),
        call("write_file", id="c3", file_path="new.ts", content=lazy),
    )
    assert (
        "Error: line 3 of content stands for text that was left out: // rest of methods" in told[0]
    )
    assert "or change only some lines of it with replace" in told[0]
    assert "line 2 of new_string" in told[1]
    assert "with replace" not in told[1]
    assert "it may stand where old_string has it already" in told[1]
    assert told[2].startswith("Error: line 3")
    assert file.read_text() == "class A {\n  one() {}\n  two() {}\n}\n"
    assert not (cli.project / "new.ts").exists()


def test_a_placeholder_that_is_data_is_written(cli: Cli) -> None:
    prompt = 'PROMPT = """\nMark what you leave out:\n// ... existing code ...\n"""\n'
    template = "export const p = `\n// ... existing code ...\n`;\n"
    told = run(
        cli,
        call("write_file", id="c1", file_path="a.py", content=prompt),
        call("write_file", id="c2", file_path="a.ts", content=template),
        call("write_file", id="c3", file_path="b.ts", content=f"{template}// rest unchanged\n"),
        call("write_file", id="c4", file_path="b.py", content="# Previous test...\n"),
    )
    assert (cli.project / "a.py").read_text() == prompt
    assert (cli.project / "a.ts").read_text() == template
    assert "line 4 of content" in told[2]
    assert "inside a string of several lines" in told[2]
    assert (cli.project / "b.py").exists()


def test_a_path_copied_with_its_sign_is_the_path(cli: Cli) -> None:
    (cli.project / "components").mkdir()
    (cli.project / "@types").mkdir()
    run(
        cli,
        call("write_file", id="c1", file_path="@components/new.ts", content="x\n"),
        call("write_file", id="c2", file_path="@types/new.d.ts", content="y\n"),
    )
    assert (cli.project / "components/new.ts").read_text() == "x\n"
    assert (cli.project / "@types/new.d.ts").read_text() == "y\n"
    assert not (cli.project / "@components").exists()


def test_a_command_runs_in_the_folder_without_the_sign(cli: Cli) -> None:
    (cli.project / "src").mkdir()
    (cli.project / "src/here.txt").touch()
    (told,) = run(cli, call("run_shell_command", id="c1", command="ls", directory="@src"))
    assert "here.txt" in told


def test_the_sign_leads_to_no_protected_file(cli: Cli) -> None:
    (told,) = run(
        cli, call("write_file", id="c1", file_path="@.recollect/settings.toml", content="x\n")
    )
    assert told.startswith("Error: ")
    assert not (cli.project / ".recollect").exists()


def test_an_edit_says_what_it_ignored_or_where_the_text_nearly_is(cli: Cli) -> None:
    file = cli.project / "a.py"
    file.write_text("def f():\n    if a:\n        b()\n")
    told = run(
        cli,
        change("a.py", "if a:\n    b()\n", "if a:\n    c()\n"),
        change("a.py", "    if b:\n        c()\n", "    pass\n", "c2"),
    )
    assert "Replaced once" in told[0]
    assert "ignoring the indentation" in told[0]
    assert file.read_text() == "def f():\n    if a:\n        c()\n"
    assert "The nearest passage is:\n1→def f():\n2→    if a:\n3→        c()" in told[1]


def gemini_reply(*parts: Part) -> bytes:
    made = Message(role="model", parts=parts, finish="stop")
    return http(b"".join(GeminiWire.encode_stream(made)))


@pytest.mark.parametrize("model", ["gemini-2.5-pro", "gemini-3-pro-preview"])
def test_a_model_that_hears_is_sent_the_sound_it_reads(cli: Cli, model: str) -> None:
    sound = b"RIFF\x24\0\0\0WAVEfmt " + bytes(30)
    (cli.project / "a.wav").write_bytes(sound)
    asked = gemini_reply(call("read_file", id="c1", absolute_path="a.wav"))
    done = gemini_reply(Text(text="I heard it."))
    with server(cli, asked, done) as on:
        (cli.home / "settings.toml").write_text(
            f'model = "mine"\n[models.mine]\nmodel = "{model}"\nwire = "gemini"\n'
            f'url = "{on.url}"\nkey = "MY_KEY"\nwindow = 100_000\n'
        )
        cli.ok("-p", "What is to be heard?", env=ENV)
    parts = json.loads(on.asked[-1].body)["contents"][-1]["parts"]
    assert "sent after the results" in parts[0]["functionResponse"]["response"]["output"][0:99]
    assert parts[1]["inlineData"]["mimeType"] == "audio/wav"
    assert len(parts) == 2


def test_a_model_that_does_not_hear_is_told_what_the_file_is(cli: Cli, tmp_path: Path) -> None:
    (cli.project / "a.wav").write_bytes(b"RIFF\x24\0\0\0WAVEfmt " + bytes(30))
    (told,) = run(cli, call("read_file", id="c1", absolute_path="a.wav"))
    assert "audio/wav" in told
    assert "46 bytes" in told
