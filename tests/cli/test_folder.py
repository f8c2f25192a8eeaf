"""The folder the user stands in: what the model is told, where tools work, memory that changed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from recollect.testing import call
from recollect.workspace.trusted_folders import trust_folder
from tests.cli.model_server import ENV, hook, outputs, reply, script, server, texts
from tests.cli.runner import Cli
from tests.models.server import HELLO, http


@pytest.fixture
def sub(cli: Cli) -> Path:
    """A folder inside the project, which is a git repository with a commit."""
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    (cli.project / "sub").mkdir()
    (cli.project / "sub" / "inner.py").write_text("inside = 1\n")
    (cli.project / "outer.py").write_text("outside = 1\n")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        subprocess.run([*git, *words], cwd=cli.project, check=True)
    return cli.project / "sub"


def test_an_agent_in_a_subfolder_works_there_and_reads_the_whole_project(
    cli: Cli, sub: Path
) -> None:
    calls = reply(
        call("list_directory", id="a"),
        call("read_file", id="b", absolute_path="inner.py"),
        call("read_file", id="c", absolute_path="../outer.py"),
        call("run_shell_command", id="d", command="pwd"),
        call("write_file", id="e", file_path="new.py", content="x\n"),
        call("write_file", id="f", file_path="../AGENTS.md", content="x\n"),
    )
    more = '[permissions]\nmode = "edit"\nallow = ["pwd"]\n'
    with server(cli, calls, http(HELLO), more=more) as on:
        cli.ok("-p", "Look.", env=ENV, cwd=sub)
    told = next(text for text in texts(on, 0) if "currently working" in text)
    assert f"I'm currently working in the directory: {sub}\n" in told
    assert f"The project's root is: {cli.project}\n" in told
    listed, inner, outer, here, _, memory = outputs(on)
    assert "inner.py" in listed
    assert "outer.py" not in listed
    assert "inside = 1" in inner
    assert "outside = 1" in outer
    assert here.startswith(str(sub))
    assert (sub / "new.py").exists()
    assert "only" in memory
    assert not (cli.project / "AGENTS.md").exists()


def test_a_moved_project_is_named_once_and_old_paths_lead_to_the_new_place(
    cli: Cli, sub: Path, tmp_path: Path
) -> None:
    with server(cli, http(HELLO)):
        cli.ok("-p", "Hi.", env=ENV)
    moved = cli.project.rename(tmp_path / "renamed")
    old = reply(call("read_file", id="a", absolute_path=f"{cli.project}/outer.py"))
    with server(cli, old, http(HELLO), http(HELLO)) as on:
        cli.ok("-c", "-p", "Go on.", env=ENV, cwd=moved)
        assert f"use {moved}/outer.py" in outputs(on)[0]
        cli.ok("-c", "-p", "And?", env=ENV, cwd=moved)
    line = f"The working directory is now {moved}; this session began in {cli.project}."
    assert sum(line in text for text in texts(on)) == 1
    assert sub.name == "sub"


def test_memory_that_changed_is_given_again_and_nothing_otherwise(cli: Cli) -> None:
    trust_folder(cli.project, cli.home)
    memory = cli.project / "AGENTS.md"
    memory.write_text("Use tabs.")
    with server(cli, http(HELLO)) as on:
        cli.ok("-p", "Hi.", env=ENV)
        cli.ok("-c", "-p", "Same.", env=ENV)
        assert sum("<memory_file" in text for text in texts(on)) == 1
        memory.write_text("Use spaces.")
        cli.ok("-c", "-p", "Changed.", env=ENV)
        (changed,) = [text for text in texts(on) if "have changed" in text]
        assert "Use spaces." in changed
        memory.unlink()
        cli.ok("-c", "-p", "Gone.", env=ENV)
        cli.ok("-c", "-p", "Still gone.", env=ENV)
    assert sum("no longer in force" in text for text in texts(on)) == 1


def test_an_added_directory_is_named_when_it_comes_and_may_be_used(
    cli: Cli, tmp_path: Path
) -> None:
    more = tmp_path / "library"
    more.mkdir()
    (more / "lib.py").write_text("shared = 1\n")
    with server(cli, http(HELLO)):
        cli.ok("-p", "Hi.", env=ENV)
    read = reply(call("read_file", id="a", absolute_path=str(more / "lib.py")))
    with server(cli, read, http(HELLO), more=f'[agent]\ndirectories = ["{more}"]\n') as on:
        cli.ok("-c", "-p", "Read it.", env=ENV)
    assert sum(f"  - {more}\n" in text for text in texts(on)) == 1
    assert "shared = 1" in outputs(on)[0]


def test_a_hook_finds_the_session_in_its_transcript(cli: Cli, tmp_path: Path) -> None:
    copy = tmp_path / "copy.json"
    take = "import json,shutil,sys; shutil.copy(json.load(sys.stdin)['transcript_path'], "
    keep = script(tmp_path, "keep.sh", f"python3 -c \"{take}'{copy}')\"\n")
    with server(cli, http(HELLO), more=hook("AfterAgent", keep)):
        cli.ok("-p", "A question.", env=ENV)
    assert "A question." in json.dumps(json.loads(copy.read_text())["messages"])


@pytest.mark.parametrize("policy", ["keep_user", "drop_pair"])
def test_curation_decides_whether_the_prompt_of_an_invalid_reply_is_sent(
    cli: Cli, policy: str
) -> None:
    with server(cli, reply(), http(HELLO), more=f'[context]\ncuration = "{policy}"\n') as on:
        cli("-p", "First.", env=ENV)
        cli.ok("-c", "-p", "Second.", env=ENV)
    assert ("First." in texts(on)) == (policy == "keep_user")
