"""Ignored files through the door: no tool and no mention shows what the user hides."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from recollect.testing import call
from tests.cli.model_server import ENV, outputs, readable, reply, server, texts
from tests.cli.runner import Cli
from tests.models.server import HELLO, http

WINDOW = 100_000  # room for all tools
SECRET = "the-password"


@pytest.fixture
def project(cli: Cli) -> Path:
    files = {
        ".git/config": f"[remote]\nurl = https://{SECRET}@x\n",
        ".git/info/exclude": "excluded.txt\n",
        ".gitignore": "*.log\n/build/\n",
        ".geminiignore": "/hidden/\n",
        ".recollectignore": "*.key\n",
        "sub/.gitignore": "mine.txt\n",
        "shown.txt": "a word\n",
    }
    secrets = ("a.key", "hidden/b.txt", "x.log", "build/c.txt", "excluded.txt", "sub/mine.txt")
    for name, text in (files | dict.fromkeys(secrets, f"{SECRET}\n")).items():
        (cli.project / name).parent.mkdir(parents=True, exist_ok=True)
        (cli.project / name).write_text(text)
    return cli.project


def test_links_to_ignored_files_are_as_hidden_as_the_files(cli: Cli, project: Path) -> None:
    (project / "links").mkdir()
    for name, target in {
        "to_key": "../a.key",
        "to_folder": "../hidden",
        "to_log": "../x.log",
        "to_shown": "../shown.txt",
        "broken": "../nothing",
    }.items():
        (project / "links" / name).symlink_to(target)
    calls = reply(
        call("list_directory", id="a", path="links"),
        call("list_directory", id="b", path="links", respect_git_ignore=False),
        *(call("read_file", id=name, absolute_path=f"links/{name}")
          for name in ("to_key", "to_folder/b.txt", "to_shown")),
    )  # fmt: skip
    with server(cli, calls, http(HELLO), window=WINDOW) as on:
        cli.ok("-p", "Look at @links", env=ENV)
    listed, with_git, key, folder, shown = outputs(on)
    _, broken, to_shown, left_out = listed.splitlines()
    assert (broken, to_shown) == ("broken -> ../nothing", "to_shown -> ../shown.txt")
    for words in ("1 hidden by .recollectignore", "1 hidden by .geminiignore", "1 that git"):
        assert words in left_out
    assert "to_log -> ../x.log" in with_git
    assert "to_key" not in with_git
    assert "hidden by .recollectignore" in key
    assert "hidden by .geminiignore" in folder
    assert "1→a word" in shown
    (tree,) = [text for text in texts(on) if "The folder @links" in text]
    assert "to_shown" in tree
    assert not any(name in tree for name in ("to_key", "to_log"))


def test_listings_and_searches_leave_ignored_files_out_and_say_how_many(
    cli: Cli, project: Path
) -> None:
    calls = reply(
        call("list_directory", id="a"),
        call("glob", id="b", pattern="**/*.{txt,log,key}"),
        call("search_file_content", id="c", pattern="a word|password"),
        call("list_directory", id="d", respect_git_ignore=False),
        call("glob", id="e", pattern="**/*", respect_git_ignore=False),
        call("search_file_content", id="f", pattern="password", respect_git_ignore=False),
    )
    with server(cli, calls, http(HELLO), window=WINDOW) as on:
        cli.ok("-p", "Look.", env=ENV)
    listed, globbed, searched, *with_git = outputs(on)
    for text in (listed, globbed, searched):
        assert "shown.txt" in text
        assert not any(name in text for name in ("x.log", "a.key", "excluded", "mine.txt", SECRET))
        assert "that git ignores (respect_git_ignore=false shows them)" in text
        assert "hidden by .recollectignore" in text
    for text in with_git:
        assert "x.log" in text
        assert "a.key" not in text
        assert "hidden/" not in text
        assert "that git ignores" not in text
    assert f"{project}/x.log\n1→{SECRET}" in with_git[2]


def test_a_file_that_the_user_hides_is_neither_read_nor_changed_under_any_name(
    cli: Cli, project: Path
) -> None:
    (project / "link").symlink_to("a.key")
    (project / "folder").symlink_to("hidden")
    hidden = ("a.key", str(project / "a.key"), "sub/../a.key", "link", "hidden/b.txt", "folder")
    reads = [call("read_file", id=f"r{n}", absolute_path=name) for n, name in enumerate(hidden)]
    more = (
        call("read_file", id="many", absolute_path=["shown.txt", "a.key"]),
        call("search_file_content", id="file", pattern="pass", path="a.key"),
        call("search_file_content", id="below", pattern="pass", path="hidden"),
        call("glob", id="glob", pattern="*", path="hidden"),
        call("list_directory", id="list", path="hidden", respect_git_ignore=False),
        call("replace", id="edit", file_path="a.key", old_string="the-pass", new_string="x"),
        call("write_file", id="write", file_path="hidden/new.txt", content="x"),
        call("write_file", id="own", file_path=".geminiignore", content=""),
    )
    with server(cli, reply(*reads, *more), http(HELLO), window=WINDOW) as on:
        cli.ok("-p", "Look.", "--mode", "edit", env=ENV)
    found = outputs(on)
    assert SECRET not in "".join(found)
    refused = [text for text in found if "is hidden by" in text]
    assert len(refused) == len(found) - 1
    assert "a.key is hidden by .recollectignore; go on without it" in found[0]
    many = found[len(hidden)]
    assert "a word" in many
    assert "a.key was not read" in many
    assert "only the user changes it" in found[-1]
    assert (project / ".geminiignore").read_text() == "/hidden/\n"
    assert not (project / "hidden" / "new.txt").exists()


def test_a_file_that_git_ignores_is_read_when_it_is_named(cli: Cli, project: Path) -> None:
    calls = reply(
        call("read_file", id="a", absolute_path="x.log"),
        call("list_directory", id="b", path="build"),
    )
    with server(cli, calls, http(HELLO), window=WINDOW) as on:
        cli.ok("-p", "Look.", env=ENV)
    assert SECRET in outputs(on)[0]
    assert "c.txt" in outputs(on)[1]


def test_mentions_of_ignored_files_read_nothing_and_the_user_is_told(
    cli: Cli, project: Path
) -> None:
    named = {
        "a.key": "it is hidden by .recollectignore",
        "hidden/b.txt": "it is hidden by .geminiignore",
        "hidden": "it is hidden by .geminiignore",
        "x.log": "it is ignored by .gitignore",
        "build/c.txt": "it is ignored by .gitignore",
        "excluded.txt": "it is ignored by .git/info/exclude",
        "sub/mine.txt": "it is ignored by sub/.gitignore",
        ".git/config": "it belongs to git itself",
        "./.git": "it belongs to git itself",
    }
    prompt = "Read " + " ".join(f"@{name}" for name in (*named, "shown.txt", "sub"))
    with server(cli, http(HELLO), window=WINDOW) as on:
        done = cli.ok("-p", prompt, env=ENV)
    readable(done)
    (sent,) = [text for text in texts(on) if "Read @" in text]
    assert "a word" in sent
    assert SECRET not in sent
    assert "mine.txt" not in sent.partition("The folder @sub:")[2].partition("Not read")[0]
    for name, why in named.items():
        assert f"@{name}: {why}" in sent
        remedy = "attach its files one by one with" if (project / name).is_dir() else "--attach"
        assert f"@{name} was left out: {why}; {remedy}" in done.err


def test_an_ignored_file_can_be_attached(cli: Cli, project: Path) -> None:
    with server(cli, http(HELLO), window=WINDOW) as on:
        cli.ok("-p", "Read it.", "--attach", str(project / "a.key"), env=ENV)
    assert any(SECRET in text for text in texts(on))


def test_a_change_of_an_ignore_file_counts_for_the_next_call(cli: Cli, project: Path) -> None:
    (project / "AGENTS.md").unlink(missing_ok=True)
    read = call("read_file", id="a", absolute_path="a.key")
    with server(cli, reply(read), http(HELLO), window=WINDOW) as on:
        cli.ok("-p", "Look.", env=ENV)
        assert SECRET not in outputs(on)[-1]
    (project / ".recollectignore").write_text("# none")
    with server(cli, reply(read), http(HELLO), window=WINDOW) as on:
        cli.ok("-p", "Look.", env=ENV)
        assert SECRET in outputs(on)[-1]


def test_a_folder_of_thirty_thousand_files_is_listed_in_order(cli: Cli) -> None:
    numbers = list(range(30_000))
    random.Random(7).shuffle(numbers)
    for number in numbers:
        os.close(os.open(cli.project / f"f{number:05}", os.O_CREAT))
    calls = reply(call("list_directory", id="a"))
    with server(cli, calls, http(HELLO), window=WINDOW) as on:
        cli.ok("-p", "Look.", env=ENV)
    (tree,) = [text for text in texts(on, 0) if "folder structure" in text]
    assert [f"f{number:05}" in tree for number in (0, 198, 199, 200)] == [True, True, True, False]
    lines = outputs(on)[0].splitlines()
    assert lines[0].endswith("0 folders and 30,000 files")
    assert lines[1:-1] == [f"f{number:05} (0 bytes)" for number in range(1_000)]
    assert lines[-1].startswith("[29,000 more are not shown")
