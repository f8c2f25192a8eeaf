"""`recollect rewind --files`: files follow the session back and forth; the user's changes stay."""

from __future__ import annotations

import os
import random
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from recollect.entries import Note, json_text
from recollect.store.contract import SessionInfo
from recollect.store.sqlite import SqliteStore
from recollect.testing import model, user
from recollect.tools.builtin import write_file
from recollect.tools.file_backups import FileBackups
from recollect.tools.tool import ToolContext
from recollect.workspace.project_identity import identify_project
from tests.cli.runner import Cli

OLD = {"edited": b"old\n", "binary": bytes(range(256)), "empty": b"", "deep/er/file": b"old too"}
NEW = dict.fromkeys([*OLD, "made", "new/folder/made"], "by a tool")
RESTORED, REMOVED = set(OLD), {"made", "new/folder/made"}


class World(NamedTuple):
    """A project whose files tools have changed: where the session began, and where it ended."""

    cli: Cli
    session: str
    begin: str
    end: str

    def rewind(self, to: str, *options: str) -> dict[str, set[str]]:
        """The files by what happened to them."""
        result = self.cli("rewind", self.session, to, *options, "--json")
        told = result.json["files"]
        assert result.code == int(bool(told["conflicts"]) and "--preview" not in options), result
        told["conflicts"] = [one["path"] for one in told["conflicts"]]
        del told["asked"]
        prefix = f"{self.cli.project}/"
        return {k: {path.removeprefix(prefix) for path in paths} for k, paths in told.items()}

    def files(self) -> dict[str, bytes]:
        return contents(self.cli.project)

    def head(self) -> str | None:
        async def work(store: SqliteStore) -> SessionInfo:
            return await store.session(self.session)

        return self.cli.write(work).head


def contents(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def put(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def as_bytes(files: Mapping[str, str]) -> dict[str, bytes]:
    return {name: text.encode() for name, text in files.items()}


async def work_on(store: SqliteStore, session: str, root: Path, files: Mapping[str, str]) -> None:
    """What an agent does when it writes files, with the notes it keeps."""

    async def append(note: Note) -> None:
        head = (await store.session(session)).head
        await store.append(session, [note], parent=head)

    backups = FileBackups(store, (root,), append)
    place = ToolContext((root,), before_change=backups.before_change)
    for name, text in files.items():
        said = json_text({"file_path": name, "content": text})
        assert not (await write_file(said, place)).is_error
        await backups.settle()


def played(
    cli: Cli,
    old: Mapping[str, bytes] = OLD,
    new: Mapping[str, str] = NEW,
    *,
    project: bool = True,
) -> World:
    put(cli.project, old)

    async def work(store: SqliteStore) -> World:
        owner = identify_project(cli.project) if project else None
        session = (await store.create(project=owner)).id
        (begin,) = await store.append(session, [user("go")], parent=None)
        await work_on(store, session, cli.project, new)
        head = (await store.session(session)).head
        (end,) = await store.append(session, [model("done")], parent=head)
        return World(cli, session, begin.id, end.id)

    return cli.write(work)


def test_files_go_back_with_the_session_and_forth_again_as_often_as_one_likes(cli: Cli) -> None:
    world = played(cli)
    for _ in range(2):
        told = world.rewind(world.begin, "--files")
        assert (told["restored"], told["removed"]) == (RESTORED, REMOVED)
        assert (world.files(), world.head()) == (OLD, world.begin)
        told = world.rewind(world.end, "--files")
        assert (told["restored"], told["brought_back"]) == (RESTORED, REMOVED)
        assert (world.files(), world.head()) == (as_bytes(NEW), world.end)


def test_a_preview_reports_the_same_and_changes_nothing(cli: Cli) -> None:
    world = played(cli)
    (cli.project / "edited").write_text("mine")
    (cli.project / "made").unlink()
    before = world.files()
    said = cli.ok("rewind", world.session, world.begin, "--preview").out
    assert "nothing was changed" in said
    assert "  removed       new/folder/made\n" in said
    assert "  unchanged     made\n" in said
    assert (
        "  conflict      edited: it was changed since the last tool wrote it; left as it is\n"
        in said
    )
    told = world.rewind(world.begin, "--files", "--preview")
    assert (world.files(), world.head()) == (before, world.end)
    assert len(cli.ok("show", world.session, "--tree", "--json").json["entries"]) == 14
    assert world.rewind(world.begin, "--files") == told


def test_without_the_flag_files_stay_and_a_line_names_it_and_it_works_later(cli: Cli) -> None:
    world = played(cli)
    said = cli.ok("rewind", world.session, world.begin).out
    assert "now has 1 entry, previously 14" in said
    assert "6 files that tools have changed since then stay as they are" in said
    assert world.files() == as_bytes(NEW)
    named = next(line for line in said.splitlines() if "--files` restores 6" in line)
    said = cli.ok(*named.split("`")[1].split()[1:]).out
    assert (world.files(), world.head()) == (OLD, world.begin)
    cli.ok(*said.split("`")[1].split()[1:])  # what it names goes back
    assert world.files() == as_bytes(NEW)
    assert "tools have changed" not in cli.ok("rewind", world.session, world.end).out


def test_the_users_changes_stay_and_the_old_content_can_be_written_beside_them(cli: Cli) -> None:
    world = played(cli)
    mine = {"edited": b"mine", "made": b"mine too", "empty.recollect-old": b"mine as well"}
    put(cli.project, mine | {"empty": b"now mine"})
    (cli.project / "binary").unlink()
    told = world.rewind(world.begin, "--files")
    conflicts = {"edited", "made", "empty", "binary"}
    assert told["conflicts"] == conflicts
    for _ in range(2):  # the second time finds what the first wrote
        result = cli("rewind", world.session, world.begin, "--files", "--beside")
        assert result.code == 1
        assert "its old content is in edited.recollect-old\n" in result.out
        beside = {"edited.recollect-old": OLD["edited"], "binary.recollect-old": OLD["binary"]}
        rest = {"empty": b"now mine", "empty.recollect-old-2": b"", "deep/er/file": b"old too"}
        assert world.files() == mine | beside | rest
    assert world.head() == world.begin


def test_changes_on_several_branches_are_undone_in_the_order_they_were_made(cli: Cli) -> None:
    world = played(cli, {"f": b"0"}, {"f": "1"})
    cli.ok("rewind", world.session, world.begin)  # the file stays at 1

    async def more(store: SqliteStore) -> None:
        await work_on(store, world.session, cli.project, {"f": "2", "g": "2"})

    cli.write(more)
    second = world.head()
    assert second is not None
    for to, files in (
        (world.end, {"f": b"1"}),
        (second, {"f": b"2", "g": b"2"}),
        ("start", {"f": b"0"}),
        (second, {"f": b"2", "g": b"2"}),
    ):
        world.rewind(to, "--files")
        assert world.files() == files


def test_a_fork_takes_back_what_was_done_before_it_forked(cli: Cli) -> None:
    world = played(cli)
    forked = cli.ok("fork", world.session, "--json").json["id"]
    fork = world._replace(session=forked)
    assert fork.rewind(world.begin, "--files")["removed"] == REMOVED
    assert fork.files() == OLD
    # the other session stands at its end and did not do this: it has nothing to take back
    assert not any(world.rewind(world.end, "--files").values())
    assert fork.files() == OLD
    assert fork.rewind(world.end, "--files")["brought_back"] == REMOVED


def test_modes_are_restored_unless_the_user_has_set_another(cli: Cli) -> None:
    put(cli.project, {"secret": b"s", "script": b"x"})
    (cli.project / "secret").chmod(0o600)
    world = played(cli, {}, {"secret": "t", "script": "y", "made": "z"})
    (cli.project / "made").chmod(0o640)
    (cli.project / "script").chmod(0o755)
    for to in (world.begin, world.end):
        world.rewind(to, "--files")
        wanted = {"secret": 0o600, "script": 0o755} | ({"made": 0o640} if to == world.end else {})
        found = {p.name: stat.S_IMODE(p.stat().st_mode) for p in cli.project.iterdir()}
        assert found == wanted


def test_odd_names_and_large_files_go_back_and_forth(cli: Cli) -> None:
    odd = ["two\nlines", "esc\x1b[31m", "你好 …", os.fsdecode(b"no utf-8 \xff"), "x" * 200]
    old = dict.fromkeys(odd, b"old")
    large = random.Random(4).randbytes(10_000_000)
    world = played(cli, old | {"large": large}, dict.fromkeys([*odd, "large"], "new"))
    assert "\x1b" not in cli.ok("rewind", world.session, world.begin, "--preview").out
    assert world.rewind(world.begin, "--files")["restored"] == {*odd, "large"}
    assert world.files() == old | {"large": large}
    world.rewind(world.end, "--files")
    assert world.files() == dict.fromkeys([*odd, "large"], b"new")


def test_links_folders_and_fifos_in_a_files_place_are_left_alone(cli: Cli) -> None:
    world = played(
        cli,
        dict.fromkeys(["link", "folder", "fifo", "a/b"], b"old"),
        dict.fromkeys(["link", "folder", "fifo", "a/b"], "new"),
    )
    outside = cli.project.parent / "outside"
    put(outside, {"b": b"new"})
    for name in ("link", "folder", "fifo", "a/b"):
        (cli.project / name).unlink()
    (cli.project / "a").rmdir()
    (cli.project / "a").symlink_to(outside)
    (cli.project / "link").symlink_to(outside / "b")
    (cli.project / "folder").mkdir()
    os.mkfifo(cli.project / "fifo")
    assert world.rewind(world.begin, "--files", "--beside")["conflicts"] == {
        "link",
        "folder",
        "fifo",
        "a/b",
    }
    assert contents(outside) == {"b": b"new"}
    assert world.files() == dict.fromkeys(
        ["link.recollect-old", "folder.recollect-old", "fifo.recollect-old"], b"old"
    ) | {"link": b"new"}


def test_a_folder_that_vanished_is_made_again(cli: Cli) -> None:
    world = played(cli, {}, {"folder/in/file": "made"})
    world.rewind(world.begin, "--files")
    (cli.project / "folder" / "in").rmdir()
    (cli.project / "folder").rmdir()
    world.rewind(world.end, "--files")
    assert world.files() == {"folder/in/file": b"made"}


def test_a_disk_that_takes_no_more_leaves_the_file_and_the_same_command_completes_it(
    cli: Cli,
) -> None:
    large = b"a" * 8_000_000  # small in the store, which compresses it
    world = played(cli, {"small": b"old", "large": large}, {"small": "new", "large": "new"})
    again = ["rewind", world.session, world.begin, "--files"]
    done = cli.process(*again, before=["sh", "-c", 'ulimit -f 8000; exec "$@"', "sh"])
    assert (done.code, done.err) == (1, "")
    assert "conflict      large: File too large" in done.out
    assert world.files() == {"small": b"old", "large": b"new"}
    cli.ok(*again)
    assert world.files() == {"small": b"old", "large": large}


@pytest.mark.skipif(not shutil.which("setpriv"), reason="root may write anywhere without it")
def test_a_read_only_folder_is_reported_and_the_same_command_completes_it(
    cli: Cli,
) -> None:
    world = played(cli, {"closed/f": b"old", "f": b"old"}, {"closed/f": "new", "f": "new"})
    (cli.project / "closed").chmod(0o555)
    again = ["rewind", world.session, world.begin, "--files"]
    weak = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"]
    done = cli.process(*again, before=weak)
    assert (done.code, done.err) == (1, "")
    assert "conflict      closed/f: Permission denied" in done.out
    assert world.files() == {"closed/f": b"new", "f": b"old"}
    (cli.project / "closed").chmod(0o755)
    cli.ok(*again)
    assert world.files() == {"closed/f": b"old", "f": b"old"}


def test_without_a_project_only_files_of_this_folder_are_touched(cli: Cli) -> None:
    world = played(cli, project=False)
    here = cli.project
    cli.project = here.parent / "elsewhere"
    cli.project.mkdir()
    result = cli("rewind", world.session, world.begin, "--files")
    assert result.code == 1
    assert result.out.count("it leads out of the folders that may be used") == len(NEW)
    assert contents(here) == as_bytes(NEW)
    cli.project = here
    cli.ok("rewind", world.session, world.begin, "--files")
    assert world.files() == OLD


def test_a_project_that_is_gone_is_named(cli: Cli) -> None:
    world = played(cli)
    cli.project.rename(cli.project.parent / "moved")
    cli.project = cli.project.parent / "moved"
    result = cli("rewind", world.session, world.begin, "--files")
    assert result.code == 1
    assert f"the folder {cli.project.parent / 'project'} is not there" in result.out
    assert world.files() == as_bytes(NEW)


def test_an_imported_session_changes_no_file(cli: Cli) -> None:
    world = played(cli)
    cli.ok("export", world.session, "--to", "history-server", "-o", "s.json")
    other = Cli.__new__(Cli)
    other.home, other.project = cli.home.parent / "other", cli.project
    other.store = other.home / "recollect.db"
    other.ok("import", "s.json")
    session = other.ok("sessions", "--all", "--json").json[0]
    before = world.files()
    result = other.ok("rewind", session["id"], "start", "--files")
    assert "tools have changed no file since then" in result.out
    assert world.files() == before


@pytest.mark.parametrize("arguments", [("--beside",), ("--beside", "--preview")])
def test_beside_needs_files(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert cli("rewind", "a", "b", *arguments).code == 2
