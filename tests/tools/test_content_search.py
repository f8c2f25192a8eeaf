"""Lines are found, with and without ripgrep alike, and no expression or file takes for ever."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from pathlib import Path

import pytest
import regex
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.entries import Text, json_text
from recollect.toolkinds import classify_tool
from recollect.tools import content_search
from recollect.tools.builtin import search_file_content
from recollect.tools.content_search import (
    MAX_LINE,
    MAX_MATCHES,
    MAX_PER_FILE,
    PIECE_CHARACTERS,
    SearchDeadline,
    find_matches,
    find_ripgrep,
)
from recollect.tools.safe_open import MAX_BYTES
from recollect.tools.tool import ToolContext, ToolOutput


@pytest.fixture(params=["ours", "ripgrep"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same tests on a machine without ripgrep, and on one with it."""
    if request.param == "ours":
        monkeypatch.setenv("PATH", "/nowhere")
    elif shutil.which("rg") is None:
        pytest.skip("ripgrep is not installed")
    return str(request.param)


def search(root: Path, pattern: str, **more: object) -> ToolOutput:
    arguments = json_text({"pattern": pattern, **more})
    return asyncio.run(search_file_content(arguments, ToolContext((root,))))


def said(output: ToolOutput) -> str:
    (block,) = output.content
    assert isinstance(block, Text)
    return block.text


def make(root: Path, path: str, content: str | bytes) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    (root / path).write_bytes(data)


def test_lines_are_found_with_their_files_and_numbers(either: str, tmp_path: Path) -> None:
    make(tmp_path, "b.py", "x = 1\nfind me\nfind me too\n")
    make(tmp_path, "a/c.py", "nothing\n\nfind me\r\n")
    make(tmp_path, "other.txt", "FIND\n")
    assert said(search(tmp_path, "find (me)+")).splitlines() == [
        "3 matches in 2 files for find (me)+ in .:",
        f"{tmp_path}/a/c.py",
        "3→find me",
        f"{tmp_path}/b.py",
        "2→find me",
        "3→find me too",
    ]
    assert "other.txt" in said(search(tmp_path, "find", ignore_case=True))


def test_a_search_can_be_narrowed(either: str, tmp_path: Path) -> None:
    for path in ("a.py", "sub/b.py", "sub/c.ts", "sub/deep/d.py"):
        make(tmp_path, path, "here\n")
    assert said(search(tmp_path, "here", include="*.py")).startswith("3 matches in 3 files")
    assert said(search(tmp_path, "here", include="sub/*.py")).startswith("1 match in 1 file")
    assert said(search(tmp_path, "here", path="sub")).startswith("3 matches in 3 files")
    assert said(search(tmp_path, "here", path="sub/c.ts")).startswith("1 match in 1 file")
    assert said(search(tmp_path, "here", include="*.go")) == "No match for here in .."


def test_ignored_and_binary_files_are_not_searched(either: str, tmp_path: Path) -> None:
    make(tmp_path, ".gitignore", "build/\n*.log\n")
    make(tmp_path, "sub/.gitignore", "own.txt\n")
    for path in ("build/x", "a.log", "sub/own.txt", ".git/config"):
        make(tmp_path, path, "needle\n")
    make(tmp_path, "binary", b"needle\0\n")
    make(tmp_path, ".hidden", "needle\n")
    (tmp_path / "link").symlink_to(".hidden")
    os.mkfifo(tmp_path / "pipe")
    lines = said(search(tmp_path, "needle")).splitlines()
    assert lines[1:] == [
        f"{tmp_path}/.hidden",
        "1→needle",
        "[left out: 3 that git ignores (respect_git_ignore=false shows them)]",
    ]


def test_an_agent_does_not_search_its_own_log(
    either: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_HOME", str(tmp_path / "data"))
    make(tmp_path, "data/mirror.json", "needle\n")
    assert said(search(tmp_path, "needle")).startswith("No match")


def test_expressions_that_ripgrep_rejects_still_work(either: str, tmp_path: Path) -> None:
    make(tmp_path, "a", "foobar\nfoobaz\n")
    assert said(search(tmp_path, "foo(?=baz)")).endswith("2→foobaz")


def test_links_lead_nowhere(either: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    make(tmp_path, "outside/secret", "needle\n")
    root.mkdir()
    (root / "file").symlink_to("../outside/secret")
    (root / "folder").symlink_to("../outside")
    assert said(search(root, "needle")).startswith("No match")
    for path in ("file", "folder", "..", str(tmp_path / "outside")):
        assert search(root, "needle", path=path).is_error


def test_many_matches_are_cut_and_the_answer_says_so(either: str, tmp_path: Path) -> None:
    for number in range(9):
        make(tmp_path, f"f{number}", "hit\n" * 60)
    text = said(search(tmp_path, "hit"))
    assert text.startswith(f"{MAX_MATCHES} matches in 4 files")
    assert f"[at most {MAX_PER_FILE} matches of a file are shown]" in text
    assert text.endswith(f"[only {MAX_MATCHES} matches are shown; narrow the search]")


def test_a_long_line_is_shown_around_the_match(tmp_path: Path) -> None:
    make(tmp_path, "a", "x" * 200_000 + "needle" + "y" * 200_000)
    line = said(search(tmp_path, "needle")).splitlines()[2]
    assert "needle" in line
    assert len(line) <= MAX_LINE + 4


@pytest.mark.parametrize("pattern", ["", "(", "a{2,1}", "[", "*", "x" * 2_000, "(" * 900])
def test_an_invalid_expression_is_an_error_for_the_model(pattern: str, tmp_path: Path) -> None:
    assert search(tmp_path, pattern).is_error


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(?:a?){60}a{60}$"])
def test_an_expression_that_never_ends_is_stopped(pattern: str) -> None:
    text = "a" * 5_000 + "c"
    with pytest.raises(content_search.SearchTimeout):
        list(find_matches(text, regex.compile(pattern), SearchDeadline(0.1)))


def test_a_search_does_not_block_the_event_loop_and_can_be_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    for number in range(500):
        make(tmp_path, f"f{number}", "a" * 5_000 + "c\n")

    async def story() -> None:
        call = search_file_content('{"pattern":"(a|aa)+$"}', ToolContext((tmp_path,)))
        running = asyncio.ensure_future(call)
        for _ in range(5):  # would take until the expression's end if it held up the loop
            await asyncio.sleep(0.02)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    began = time.monotonic()
    asyncio.run(story())
    assert time.monotonic() - began < 60  # `run` waits for the thread: it has ended, too


def test_a_program_in_the_roots_is_not_taken_for_ripgrep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, "bin/rg", "#!/bin/sh\ntouch ../fired\n")
    (tmp_path / "bin" / "rg").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_ripgrep((tmp_path,)) is None
    assert find_ripgrep((tmp_path / "elsewhere",)) is not None  # it would have been taken otherwise
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "bin")
    assert find_ripgrep((tmp_path / "elsewhere",)) is None


FOLDERS = ["", "sub/", "sub/deep/", "build/"]
IGNORED = st.lists(
    st.sampled_from(["*.log", "build/", "!a.log", "a.py", "sub/", "!sub/", "/a.py", "deep"]),
    max_size=3,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(git=IGNORED, agent=IGNORED, nested=IGNORED, respect=st.booleans())
@pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")
def test_ripgrep_and_our_own_search_find_the_same(
    tmp_path: Path,
    git: list[str],
    agent: list[str],
    nested: list[str],
    respect: bool,
) -> None:
    root = tmp_path / "root"
    shutil.rmtree(root, ignore_errors=True)
    for folder in FOLDERS:
        for name in ("a.py", "a.log", "-e", "b c.txt"):
            make(root, folder + name, "needle\n" if name != "b c.txt" else "Needle in hay\n")
    make(root, ".gitignore", "\n".join(git))
    make(root, ".geminiignore", "\n".join(agent))
    make(root, "sub/.gitignore", "\n".join(nested))
    for path in (".", "sub"):
        found = []
        for search_path in (os.environ["PATH"], "/nowhere"):
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("PATH", search_path)
                more = {"path": path, "respect_git_ignore": respect, "ignore_case": True}
                found.append(search(root, "need(le|y)", **more))
        assert found[0] == found[1]


def test_the_call_is_recognized_by_its_name() -> None:
    assert classify_tool(search_file_content.name) == "search"


@given(
    text=st.text("ab\n", max_size=80), pattern=st.sampled_from(["a", "ab*", "^b", "b$", "^", "a|"])
)
def test_matching_lines_are_those_that_match_alone(text: str, pattern: str) -> None:
    wanted = regex.compile(pattern, regex.MULTILINE)
    lines = text.removesuffix("\n").split("\n") if text else []
    expected = [(n, line) for n, line in enumerate(lines, 1) if wanted.search(line)]
    assert [
        tuple(match) for match in find_matches(text, wanted, SearchDeadline(), 1_000)
    ] == expected


def test_pieces_do_not_change_what_is_found() -> None:
    text = "".join(f"line {n}\n" for n in range(PIECE_CHARACTERS // 4))
    found = list(find_matches(text, regex.compile(r"7$", regex.MULTILINE), SearchDeadline(), 10**6))
    assert [line for line, _ in found] == [
        n + 1 for n in range(PIECE_CHARACTERS // 4) if str(n).endswith("7")
    ]


def test_files_that_are_too_large_are_named_with_what_can_be_done(
    either: str, tmp_path: Path
) -> None:
    for number in range(5):
        with (tmp_path / f"{number}.log").open("wb") as file:
            file.write(b"find me\n")
            file.truncate(MAX_BYTES + 1)
    make(tmp_path, "a.txt", "find me\n")
    remedy = "with a command such as grep -n, or read parts of"
    one = f"[1 file over 20,000,000 bytes left out: {tmp_path}/3.log; search it {remedy} it with"
    for output in (search(tmp_path, "find", path="3.log"), search(tmp_path, "f", include="3*")):
        assert one in said(output)
    for pattern in ("find", "f(?=ind)"):  # ripgrep does not know the second
        many = said(search(tmp_path, pattern))
        names = ", ".join(f"{tmp_path}/{number}.log" for number in range(3))
        assert f"[5 files over 20,000,000 bytes left out: {names}, …; search them" in many
        assert "1 match in 1 file" in many
