"""An unfinished reply survives its writer; the draft of a running writer is not touched."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

from recollect.entries import Entry, Message
from recollect.store.sqlite import SqliteStore
from tests.reliability.children import (
    Child,
    assert_contiguous,
    assert_goes_on,
    in_store,
    new_session,
    text_of,
)

STALLED = 31.0  # seconds: longer than any time without a sign of life that a store may assume


def path_of(path: Path, session: str) -> tuple[Entry, ...]:
    async def read(store: SqliteStore) -> tuple[Entry, ...]:
        return await store.path(session)

    return in_store(path, read)


def stream_trials(path: Path, trials: int) -> None:
    session = new_session(path)
    for _ in range(trials):
        child = Child("stream", path, session, "0.03")
        child.wait_for("draft", random.randint(1, 12))
        time.sleep(random.uniform(0, 0.03))
        last = [fact for fact in child.kill() if fact["what"] == "draft"][-1]
        entries = path_of(path, session)
        assert_contiguous(entries)
        reply = entries[-1]
        assert (reply.id, reply.parent) == (last["id"], last["parent"])
        assert isinstance(reply.body, Message)
        assert reply.body.finish == "interrupted"
        # drafts come every 0.03 s: what was acknowledged is more than all but the last second
        assert text_of(reply).startswith(last["text"])
        assert path_of(path, session) == entries  # opening again changes nothing
    assert_goes_on(path, session)


def test_a_reply_cut_by_a_kill_is_saved_as_far_as_it_was_received(tmp_path: Path) -> None:
    stream_trials(tmp_path / "s.db", 4)


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("part", range(4))
def test_two_hundred_replies_cut_by_a_kill(tmp_path: Path, part: int) -> None:
    stream_trials(tmp_path / "s.db", 50)


def finish_while_others_open(path: Path, *, stopped_for: float = 0.0) -> None:
    session = new_session(path)
    writer = Child("draft_and_wait", path, session)
    draft = writer.wait_for("draft")["id"]
    if stopped_for:
        writer.signal(signal.SIGSTOP)
        time.sleep(stopped_for)
    assert path_of(path, session) == ()  # others open, and leave the draft alone
    if stopped_for:
        writer.signal(signal.SIGCONT)
    writer.tell("go on")
    writer.finish()
    (reply,) = path_of(path, session)
    assert (reply.id, text_of(reply)) == (draft, "so far, so good")


def test_a_running_writers_draft_is_not_touched(tmp_path: Path) -> None:
    finish_while_others_open(tmp_path / "s.db")


@pytest.mark.long
def test_a_writer_that_stalls_for_half_a_minute_still_owns_its_draft(tmp_path: Path) -> None:
    finish_while_others_open(tmp_path / "s.db", stopped_for=STALLED)


def test_the_draft_of_a_zombie_process_is_recovered(tmp_path: Path) -> None:
    """A killed process stays in the process table until its parent asks about it."""
    path = tmp_path / "s.db"
    session = new_session(path)
    writer = Child("stream", path, session, "0.03")
    draft = writer.wait_for("draft", 2)
    writer.signal(signal.SIGKILL)
    stat = Path(f"/proc/{writer.process.pid}/stat")
    deadline = time.monotonic() + 60
    while " Z " not in stat.read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    entries = path_of(path, session)
    writer.kill()
    assert entries[-1].id == draft["id"]


def test_a_cut_reply_becomes_a_branch_if_the_session_has_moved_on(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    session = new_session(path)
    writer = Child("stream", path, session, "0.03")
    draft = writer.wait_for("draft", 2)
    from recollect.testing import user

    async def go_on(store: SqliteStore) -> str:
        (entry,) = await store.append(session, [user("never mind")], parent=draft["parent"])
        return entry.id

    gone_on = in_store(path, go_on)
    writer.kill()
    assert path_of(path, session)[-1].id == gone_on

    async def tree(store: SqliteStore) -> dict[str, str | None]:
        return {entry.id: entry.parent for entry in await store.tree(session)}

    found = in_store(path, tree)
    assert found[draft["id"]] == draft["parent"] == found[gone_on]


def test_a_draft_is_recovered_when_its_process_number_is_used_again(
    tmp_path: Path,
) -> None:
    """In a container an agent often has the same process number after every restart."""
    path = tmp_path / "s.db"
    session = new_session(path)
    inside = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    first = Child("stream", path, session, "0.03", before=inside)
    try:
        draft = first.wait_for("draft", 2)
    except AssertionError:
        pytest.skip(f"no process namespaces here: {first.errors[:80]}")
    first.kill()
    second = Child("serve", path, session, before=inside)  # has the number of the first
    told = second.wait_for("ready")["warnings"]
    second.finish()
    assert draft["id"] in "".join(told)
