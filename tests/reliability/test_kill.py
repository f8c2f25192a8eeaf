"""kill -9 at any moment: nothing acknowledged is lost or half written, and writing continues."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest

from recollect.entries import Entry, Message
from recollect.store.sqlite import SqliteStore
from tests.reliability.children import (
    Child,
    Fact,
    acknowledged,
    assert_contiguous,
    assert_goes_on,
    in_store,
    new_session,
    note_figures,
    text_of,
)
from tests.reliability.worker import text_for

KILLS_PER_STORE = 5


def killed(mode: str, path: Path, *arguments: str, acks: int) -> list[Fact]:
    """What a worker had said when it was killed, soon after its `acks`-th acknowledgement."""
    child = Child(mode, path, *arguments)
    if acks == 0:  # while Python starts, the store opens or the first write is under way
        time.sleep(random.uniform(0.1, 0.4))
    else:
        child.wait_for("ok", acks)
        time.sleep(random.uniform(0, 0.004))
    return child.kill()


def read_all(path: Path, session: str) -> tuple[tuple[Entry, ...], tuple[Entry, ...], list[str]]:
    async def read(
        store: SqliteStore,
    ) -> tuple[tuple[Entry, ...], tuple[Entry, ...], list[str]]:
        return await store.path(session), await store.tree(session), store.warnings

    return in_store(path, read)


def some_acks(most: int) -> int:
    """How many acknowledgements to let happen; sometimes the kill comes while all begins."""
    return 0 if random.random() < 0.1 else random.randint(1, most)


def append_trials(path: Path, mode: str, trials: int, most: int) -> int:
    session, known = new_session(path), set[str]()
    for _ in range(trials):
        facts = killed(mode, path, session, acks=some_acks(most))
        known.update(acknowledged(facts))
        entries, _, warnings = read_all(path, session)
        assert_contiguous(entries)
        assert known <= {entry.id for entry in entries}
        # numbers without a gap: an append that was under way is there wholly or not at all
        assert [text_of(e) for e in entries] == [text_for(n) for n in range(len(entries))]
        tried = [fact for fact in facts if fact["what"] == "try"]
        extra = len({entry.id for entry in entries} - known)
        assert extra in (0, tried[-1]["count"] if tried else 0)
        known = {entry.id for entry in entries}
        assert not any("journal" in warning for warning in warnings), warnings
    assert_goes_on(path, session)
    return len(known)


def possible_heads(said: list[Fact], entries: tuple[Entry, ...]) -> list[str | None]:
    """The head of the last acknowledgement, or the one that the write under way would make."""
    heads = [fact["head"] for fact in said if fact["what"] == "ok"][-1:]
    doing = said[-1] if said[-1]["what"] == "try" else {"op": None}
    if doing["op"] == "rewind":
        heads.append(doing["to"])
    if doing["op"] == "append" and len(entries) > 1 and entries[-2].parent == doing["parent"]:
        heads.append(entries[-1].id)
    if not any(fact["what"] == "ok" for fact in said):
        heads.append(said[0]["parent"] if said[0]["op"] == "append" else entries[-1].id)
    return heads


def rewind_trials(path: Path, trials: int, most: int) -> int:
    session, known = new_session(path), set[str]()
    for _ in range(trials):
        facts = killed("rewind", path, session, acks=some_acks(most))
        known.update(acknowledged(facts))
        entries, tree, _ = read_all(path, session)
        assert_contiguous(entries)
        assert known <= {entry.id for entry in tree}
        said = [fact for fact in facts if fact["what"] in ("ok", "try")]
        if said:
            assert (entries[-1].id if entries else None) in possible_heads(said, entries)
    assert_goes_on(path, session)
    return len(known)


def reply_trials(path: Path, trials: int, most: int) -> int:
    session, known = new_session(path), set[str]()
    for _ in range(trials):
        facts = killed("replies", path, session, acks=some_acks(most))
        known.update(acknowledged(facts))
        entries, tree, _ = read_all(path, session)
        assert_contiguous(entries)
        by_id = {entry.id: entry for entry in tree}
        assert known <= by_id.keys()
        for fact in facts:
            if fact["what"] == "draft":
                assert text_of(by_id[fact["id"]]).startswith(fact["text"])
    assert_goes_on(path, session)
    return len(known)


def together_trials(path: Path, trials: int, most: int) -> int:
    sessions = [new_session(path) for _ in range(5)]
    known = {session: set[str]() for session in sessions}
    for _ in range(trials):
        for fact in killed("together", path, *sessions, acks=some_acks(most)):
            if fact["what"] == "ok":
                known[fact["session"]].update(fact["ids"])
        for session in sessions:
            entries, _, _ = read_all(path, session)
            assert_contiguous(entries)
            assert known[session] <= {entry.id for entry in entries}
            assert [text_of(e) for e in entries] == [text_for(n) for n in range(len(entries))]
    assert_goes_on(path, sessions[0])
    return sum(map(len, known.values()))


def create_trials(directory: Path, trials: int) -> int:
    directory.mkdir(exist_ok=True)
    known = 0
    for _ in range(trials):
        facts = killed("create", directory, acks=random.choice([0, 0, 1, 2, 3]))
        for fact in facts:
            if fact["what"] == "ok":
                entries, _, _ = read_all(directory / fact["store"], fact["session"])
                assert [entry.id for entry in entries] == fact["ids"]
                known += 1
        for path in directory.glob("*.db"):  # also those that were being made
            assert_goes_on(path, new_session(path))
            path.unlink()
    return known


def transcript(path: Path, messages: int) -> Path:
    """A history-server file, one of the seeds' two formats."""
    path.write_text(
        json.dumps(
            {
                "session_id": "a session from elsewhere",
                "created_at": "2026-01-01T00:00:00",
                "updated_at": "2026-01-01T01:00:00",
                "messages": [
                    {
                        "role": "assistant" if n % 2 else "user",
                        "content": text_for(n),
                        "timestamp": "2026-01-01T00:00:00",
                    }
                    for n in range(messages)
                ],
            }
        )
    )
    return path


def import_trials(directory: Path, trials: int) -> int:
    """An import that was cut by a kill is completed by the next one, and nothing is there twice."""
    file = transcript(directory / "session_20260101_x.json", 2_500)  # several batches
    whole = imported_texts(directory / "whole.db", file)
    known = 0
    for trial in range(trials):
        path = directory / f"{trial}.db"
        child = Child("import_one", path, str(file))
        child.wait_for("ready")
        time.sleep(random.uniform(0, 0.5))
        facts = child.kill()
        assert imported_texts(path, file) == whole
        assert imported_texts(path, file) == whole
        known += len([fact for fact in facts if fact["what"] == "ok"])
    return known


def imported_texts(path: Path, file: Path) -> list[str]:
    importing = pytest.importorskip("recollect.transcripts.session_import")

    async def work(store: SqliteStore) -> list[str]:
        done = await importing.import_file(store, file)
        entries = await store.path(done.session)
        assert_contiguous(entries)
        assert len(await store.tree(done.session)) == len(entries)
        return [text_of(e) for e in entries if isinstance(e.body, Message)]

    return in_store(path, work)


@pytest.mark.parametrize("mode", ["append", "batch"])
def test_an_acknowledged_append_survives_a_kill(tmp_path: Path, mode: str) -> None:
    append_trials(tmp_path / "s.db", mode, KILLS_PER_STORE, most=60 if mode == "append" else 20)


def test_a_kill_while_rewinding_leaves_the_head_before_or_after(tmp_path: Path) -> None:
    rewind_trials(tmp_path / "s.db", KILLS_PER_STORE, most=60)


def test_a_kill_between_drafts_and_replies_loses_neither(tmp_path: Path) -> None:
    reply_trials(tmp_path / "s.db", KILLS_PER_STORE, most=40)


def test_appends_that_share_a_commit_survive_a_kill(tmp_path: Path) -> None:
    together_trials(tmp_path / "s.db", KILLS_PER_STORE, most=100)


def test_a_kill_while_a_store_is_made_leaves_a_store_that_opens(tmp_path: Path) -> None:
    create_trials(tmp_path, 5)


def test_an_import_cut_by_a_kill_is_completed_by_the_next(tmp_path: Path) -> None:
    import_trials(tmp_path, 3)


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("part", range(10))
def test_a_thousand_kills_and_a_hundred_thousand_acknowledgements(
    tmp_path: Path, part: int
) -> None:
    known = create_trials(tmp_path / "new", 10)
    for store in range(3):
        known += append_trials(tmp_path / f"a{store}.db", "append", 10, most=600)
        known += append_trials(tmp_path / f"b{store}.db", "batch", 10, most=40)
        known += rewind_trials(tmp_path / f"r{store}.db", 4, most=200)
    known += reply_trials(tmp_path / "d.db", 4, most=200)
    known += together_trials(tmp_path / "t.db", 4, most=2_000)
    (tmp_path / "imports").mkdir()
    import_trials(tmp_path / "imports", 10)
    note_figures("acknowledgements", known)
    assert known > 10_000
