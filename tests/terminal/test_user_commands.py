from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import RecollectError
from recollect.terminal.user_command_table import command_rows
from recollect.testing import says
from recollect.workspace.trusted_folders import TRUST_FILE
from recollect.workspace.user_commands import (
    MAX_COMMANDS,
    UserCommand,
    expand_command,
    read_user_commands,
)
from tests.cli.provider import provider
from tests.cli.runner import Cli
from tests.terminal.running_session import RunningSession, play

SECOND = '[models.second]\nurl = "{}"\nkey = "MY_KEY"\nwindow = 30000\n'


def command(text: str) -> UserCommand:
    return UserCommand("c", text, "c.md", "yours")


def write(above: Path, name: str, text: str | bytes) -> Path:
    file = above / "commands" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


@pytest.mark.parametrize(
    ("text", "arguments", "prompt"),
    [
        ("Review $ARGUMENTS.", "a.py b.py", "Review a.py b.py."),
        ("Compare $1 with $2", "'my file' b", "Compare my file with b"),
        ("Explain {{args}}", "it", "Explain it"),
        ("$1 and $3", "a", "a and"),
        ("Review", "a.py", "Review\n\na.py"),
        ("Review", "", "Review"),
        ("$ARGUMENTS", "costs $1 {{args}}", "costs $1 {{args}}"),
        ("$1", "it's", "it's"),
        ("$10 and $ARGUMENTSX", "a", "$10 and $ARGUMENTSX\n\na"),
    ],
)
def test_arguments_come_to_their_places_or_to_the_end(
    text: str, arguments: str, prompt: str
) -> None:
    assert expand_command(command(text), arguments) == prompt


@given(st.text(), st.text())
def test_nothing_of_the_arguments_is_expanded_again(text: str, arguments: str) -> None:
    assert arguments in expand_command(command(f"{text} {{{{args}}}} ."), arguments)


def test_files_in_folders_have_names_with_colons_and_front_matter(tmp_path: Path) -> None:
    front = (
        "---\ndescription: Look at it\nargument-hint: FILE\nmodel: gpt-5\nallowed-tools: x\n---\n"
    )
    write(tmp_path, "Review.md", front + "Review $1")
    write(tmp_path, "git/commit.md", "# Commit what is staged\n\n!`git diff`\n")
    write(tmp_path, "git/notes.txt", "no command")
    found = read_user_commands(tmp_path)
    review, commit = found.commands
    assert (review.name, review.text, review.model) == ("review", "Review $1", "gpt-5")
    assert (review.description, review.argument_hint) == ("Look at it", "FILE")
    assert review.notes == ("`allowed-tools` has no effect",)
    assert (commit.name, commit.description) == ("git:commit", "Commit what is staged")
    assert "not run" in commit.notes[0]
    assert [row.name for row in command_rows(found)] == ["review", "git:commit"]


def test_hostile_files_are_named_and_left_out(tmp_path: Path) -> None:
    write(tmp_path, "good.md", "Good.")
    write(tmp_path, "bytes.md", b"\xff\xfe\x00")
    write(tmp_path, "escape.md", "a \x1b[31m b")
    write(tmp_path, "hidden.md", "a \u202e b")
    write(tmp_path, "empty.md", "---\nmodel: x\n---\n")
    write(tmp_path, "two words.md", "x")
    huge = write(tmp_path, "huge.md", "")
    os.truncate(huge, 1_000_000_000)
    (tmp_path / "secret").write_text("secret")
    outside = tmp_path.parent / "outside.md"
    outside.write_text("secret")
    folder = tmp_path / "commands"
    (folder / "out.md").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe.md")
    found = read_user_commands(tmp_path)
    assert [one.name for one in found.commands] == ["good"]
    told = "\n".join(found.problems)
    for name in ("bytes", "escape", "hidden", "empty", "two words", "huge", "out", "pipe"):
        assert f"{name}.md: " in told, name
    assert "secret" not in told


def test_there_are_bounds(tmp_path: Path) -> None:
    for number in range(MAX_COMMANDS + 5):
        write(tmp_path, f"c{number:04}.md", "x")
    found = read_user_commands(tmp_path)
    assert len(found.commands) == MAX_COMMANDS
    assert f"only the first {MAX_COMMANDS}" in found.problems[0]


def test_built_in_names_win_then_the_users_and_a_clash_is_told(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    write(home, "help.md", "x")
    write(home, "review.md", "mine")
    write(project, "review.md", "theirs")
    write(project, "plan.md", "---\nmodel: evil\n---\nPlan.")
    found = read_user_commands(home, project, ("help",))
    assert {one.name: (one.origin, one.model) for one in found.commands} == {
        "review": ("yours", ""),
        "plan": ("project", ""),
    }
    assert "has no effect" in found.commands[1].notes[0]
    assert len(found.problems) == 2


def test_a_command_is_sent_as_the_users_prompt_with_its_files_and_model(cli: Cli) -> None:
    (cli.project / "a.py").write_text("a = 1\n")
    write(cli.home, "review.md", "---\nmodel: second\n---\nReview @$1 strictly.")

    async def work(session: RunningSession) -> None:
        assert "/review" in await session.type("/help")
        assert "answered by second" in await session.type("/help review")
        await session.type("/review a.py")
        await session.settle()
        await session.say("Thanks.")
        with pytest.raises(RecollectError, match="did you mean /review"):
            await session.type("/reveiw a.py")

    with provider(cli, "openai", ["one", "two"]) as server:
        with (cli.home / "settings.toml").open("a") as settings:
            settings.write(
                f'[models.second]\nurl = "{server.url}"\nkey = "MY_KEY"\nwindow = 30000\n'
            )
        play(cli, work)
        first, then = server.requests
        assert b"Review @a.py strictly." in first.body
        assert b"a = 1" in first.body
        assert (first.json["model"], then.json["model"]) == ("second", "mine")


def test_a_projects_commands_count_only_where_its_memory_is_trusted(cli: Cli) -> None:
    write(cli.project / ".recollect", "deploy.md", "Deploy with {{args}}.")

    async def work(session: RunningSession) -> None:
        with pytest.raises(RecollectError, match="no command /deploy"):
            await session.type("/deploy now")
        assert "Deploy with {{args}}." in await session.type("/trust")
        await session.type("/trust memory")
        await session.type("/deploy care")
        await session.settle()

    with provider(cli, "openai", [says("done")]) as server:
        play(cli, work)
        assert b"Deploy with care." in server.requests[0].body
    assert (cli.home / TRUST_FILE).exists()
