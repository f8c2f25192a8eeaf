"""Files that a prompt mentions or that are attached: media are sent, and refusals name a remedy."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from recollect.testing import call
from tests.cli.model_server import ENV, messages, outputs, readable, reply, server, texts
from tests.cli.runner import Cli
from tests.models.server import HELLO, http

NOISE = bytes((i * 7919 + 13) % 255 + 1 for i in range(5_000))
WAV = b"RIFF\x88\0\0\0WAVEfmt " + bytes(128)
MP4 = b"\0\0\0\x18ftypisom" + bytes(132)
TAKES_SOUND = 'media = ["image/", "audio/"]\n'
WINDOW = 100_000
DOORS = [("-p",), ("ask",)]


@pytest.fixture
def project(cli: Cli) -> Path:
    for name, data in {"rand.bin": NOISE, "a.wav": WAV, "a.mp4": MP4}.items():
        (cli.project / name).write_bytes(data)
    return cli.project


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "line", [("See @a.wav and @a.mp4",), ("See.", "--attach", "a.wav", "--attach", "a.mp4")]
)
def test_sound_is_sent_to_a_model_that_takes_it_and_named_to_others(
    cli: Cli, project: Path, door: tuple[str], line: tuple[str, ...]
) -> None:
    with server(cli, http(HELLO), more=TAKES_SOUND, window=WINDOW) as on:
        readable(done := cli.ok(*door, *line, env=ENV))
    assert "left out" not in done.err
    (said,) = [each["content"] for each in messages(on) if "See" in str(each["content"])]
    (sound,) = [part["input_audio"]["data"] for part in said if part["type"] == "input_audio"]
    assert base64.b64decode(sound) == WAV
    assert "[video/mp4, 144 bytes: this model takes no video]" in str(said)
    with server(cli, http(HELLO), window=WINDOW) as on:
        cli.ok(*door, *line, env=ENV)
    assert "[audio/wav, 144 bytes: this model takes no sound]" in "".join(texts(on))


@pytest.mark.parametrize("door", DOORS)
def test_binary_files_are_never_sent_as_text(cli: Cli, project: Path, door: tuple[str]) -> None:
    why = "it is binary (5,000 bytes)"
    remedy = "send a text, an image, a PDF, a sound or a video made from it"
    with server(cli, http(HELLO), window=WINDOW) as on:
        done = cli.ok(*door, "See @rand.bin", env=ENV)
        assert f"warning: @rand.bin was left out: {why}; {remedy}" in done.err
        assert f"@rand.bin: {why}" in "".join(texts(on))
        assert "�" not in "".join(texts(on))
        failed = cli(*door, "See.", "--attach", "rand.bin", env=ENV)
    assert f"recollect: cannot attach rand.bin: {why}; {remedy}" in failed.err
    assert failed.code != 0
    assert len(on.asked) == 1


@pytest.mark.parametrize(
    "prompt",
    [
        "Look at @t.txt, then go on.",
        "Look at @t.txt. Then go on.",
        "Look at @t.txt; is it right?",
        "Look at @t.txt! It matters.",
        "What is in @t.txt? Tell me.",
        "Look at @t.txt(the first part).",
        "Use @t.txt) for it.",
        "Look at @t.txt[0] for it.",
        "Use @t.txt] for it.",
        "Look at @t.txt{a: b}.",
        "Use @t.txt} for it.",
        "Show me @t.txt.",
        "Show me @t.txt...",
        "FAIL @t.txt:42:1 and @t.txt:50",
        "Voir @t.txt\u202f; et @./t.txt\u00a0!",
        "See @a\\ name.txt, it has a blank.",
        'See @"a name.txt" too.',
        "See @a\u202fname.txt too.",
        "See @app/[id]/(x)/page.tsx now.",
        "See @version.1.2.d.ts now.",
        "See @odd$name&with#signs.txt now.",
    ],
)
def test_a_mention_ends_where_the_path_does(cli: Cli, project: Path, prompt: str) -> None:
    for name in (
        "t.txt",
        "a name.txt",
        "a\u202fname.txt",
        "app/[id]/(x)/page.tsx",
        "version.1.2.d.ts",
        "odd$name&with#signs.txt",
    ):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("plum\n")
    with server(cli, http(HELLO), window=WINDOW) as on:
        done = cli.ok("-p", prompt, env=ENV)
    assert "left out" not in done.err
    assert "1→plum" in "".join(texts(on))


@pytest.mark.parametrize(
    "prompt", ["a lone @", "mail me\\@plum.org", "\\@t.txt", "ask @UnknownAgent", "`@t.txt`"]
)
def test_a_sign_that_names_no_file_is_a_sign(cli: Cli, project: Path, prompt: str) -> None:
    (project / "t.txt").write_text("plum\n")
    with server(cli, http(HELLO), window=WINDOW) as on:
        done = cli.ok("-p", f"{prompt} please", env=ENV)
    assert "left out" not in done.err
    assert "1→plum" not in "".join(texts(on))
    assert f"{prompt} please" in "".join(texts(on))


@pytest.mark.parametrize("door", DOORS)
def test_mentions_that_fail_are_told_to_the_user_with_remedies_that_work(
    cli: Cli, project: Path, tmp_path: Path, door: tuple[str]
) -> None:
    (project / "build").mkdir()
    (project / "build" / "c.txt").write_text("plum\n")
    (project / ".gitignore").write_text("build/\n")
    (tmp_path / "secret.txt").write_text("pear\n")
    (project / "link").symlink_to(tmp_path / "secret.txt")
    with (project / "big.log").open("wb") as file:
        file.truncate(37_000_000)
    prompt = "See @build @nothere.txt @/etc/passwd @link @big.log, says @someone"
    missing = "there is no such file; check the path, or put it in backticks if no file is meant"
    outside = "it is outside the folders that may be read; --attach sends it"
    expected = {
        "build": "it is ignored by .gitignore; attach its files one by one with --attach",
        "nothere.txt": missing,
        "/etc/passwd": outside,
        "link": outside,
        "big.log": "it has 37,000,000 bytes, the limit is 20,000,000; send a part of it",
    }
    with server(cli, http(HELLO), window=WINDOW) as on:
        done = cli.ok(*door, prompt, env=ENV)
        readable(done)
        told = [line for line in done.err.splitlines() if "was left out" in line]
        assert told == [
            f"recollect: warning: @{name} was left out: {why}" for name, why in expected.items()
        ]
        assert "someone" not in done.err
        cli.ok(*door, "See.", "--attach", "build/c.txt", "--attach", "link", env=ENV)
    assert "1→plum" in "".join(texts(on))
    assert "1→pear" in "".join(texts(on))


def test_patterns_with_a_sign_in_front_and_mixed_line_ends_through_the_agent(
    cli: Cli, project: Path
) -> None:
    (project / "components").mkdir()
    (project / "components" / "a.ts").write_bytes(b"a\nb\r\nc\r\nd\r\n")
    with (project / "big.log").open("wb") as file:
        file.truncate(20_000_001)
    pattern = "@components/*.ts"
    calls = reply(
        call("glob", id="a", pattern=pattern),
        call("search_file_content", id="b", pattern="c", include=pattern),
        call("read_file", id="c", absolute_path="components/a.ts"),
        call("search_file_content", id="d", pattern="x", include="*.log"),
    )
    with server(cli, calls, http(HELLO), window=WINDOW) as on:
        cli.ok("-p", "Look.", env=ENV)
    globbed, searched, read, large = outputs(on)
    assert f"{project}/components/a.ts" in globbed
    assert "3→c" in searched
    assert "all lines 4 (lines end with CRLF and LF, mixed)" in read
    assert "big.log; search it with a command such as grep -n" in large
