"""The store compared with plain lists and dictionaries, through crashes and reopenings."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from recollect.entries import Body, Entry, Title
from recollect.errors import AlreadyExists, HeadMoved, UnknownEntry
from recollect.store.contract import SearchQuery
from recollect.store.open_store import open_store
from recollect.testing import model, user
from tests.reliability.children import copy_store

T = TypeVar("T")
BIG = " ".join(f"filler{n}" for n in range(700))  # long enough to be stored by its content


class Log:
    """What the store should hold of one session."""

    def __init__(self, name: str, title: str, base: str | None = None) -> None:
        self.name, self.title = name, title
        self.head = self.base = base
        self.written: list[str] = []
        self.trashed = False


class LogMachine(RuleBasedStateMachine):
    sessions: Bundle[str] = Bundle("sessions")
    drafts: Bundle[tuple[str, str, str | None]] = Bundle("drafts")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.directory = tempfile.TemporaryDirectory(prefix="recollect-machine-")
        self.number = itertools.count()
        self.logs: dict[str, Log] = {}
        self.entries: dict[str, Entry] = {}
        self.words: dict[str, str] = {}  # entry id: the word that only it has
        self._open(Path(self.directory.name) / "first" / "s.db")

    def _open(self, path: Path) -> None:
        self.path = path
        self._opened = open_store(path)
        self.store = self.run(self._opened.__aenter__())
        assert self.store.warnings == []

    def _close(self) -> None:
        self.run(self._opened.__aexit__(None, None, None))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def teardown(self) -> None:
        self._close()
        self.runner.close()
        self.directory.cleanup()

    def _message(self, *, big: bool = False) -> tuple[str, Body]:
        word = f"unique{next(self.number)}q"
        text = f"{word} {BIG}" if big else f"{word} and more"
        return word, (model if len(word) % 2 else user)(text)

    def _wrote(self, log: Log, entries: tuple[Entry, ...], words: list[str]) -> None:
        for entry, word in zip(entries, words, strict=True):
            assert entry.parent == log.head
            self.entries[entry.id] = entry
            self.words[entry.id] = word
            log.written.append(entry.id)
            log.head = entry.id

    def _up_from(self, entry: str | None) -> list[str]:
        """The ids from the root to an entry."""
        path = []
        while entry is not None:
            path.append(entry)
            entry = self.entries[entry].parent
        return path[::-1]

    def _within(self, log: Log) -> list[str]:
        """Every entry the session may go to: its own, and those below the place it forked from."""
        return [*self._up_from(log.base), *log.written]

    @initialize(target=sessions)
    def first(self) -> str:
        return self._create("the first")

    @rule(target=sessions, title=st.sampled_from(["a title", "another"]))
    def create(self, title: str) -> str:
        return self._create(title)

    def _create(self, title: str) -> str:
        session = self.run(self.store.create(title=title))
        self.logs[session.id] = Log(session.id, title)
        return session.id

    @rule(name=sessions, count=st.sampled_from([1, 1, 2, 3, 5, 230]), big=st.booleans())
    def append(self, name: str, count: int, big: bool) -> None:
        log = self.logs[name]
        made = [self._message(big=big and n == 0) for n in range(count)]
        entries = self.run(self.store.append(name, [m for _, m in made], parent=log.head))
        self._wrote(log, entries, [word for word, _ in made])

    @rule(name=sessions, data=st.data(), long=st.booleans())
    def append_elsewhere(self, name: str, data: st.DataObject, long: bool) -> None:
        log = self.logs[name]
        wrong = data.draw(st.sampled_from([None, "f" * 32, *self.entries]))
        if wrong == log.head:
            return
        items = [self._message()[1] for _ in range(450 if long else 1)]
        with pytest.raises(HeadMoved) as raised:
            self.run(self.store.append(name, items, parent=wrong))
        assert (raised.value.expected, raised.value.actual) == (wrong, log.head)

    @rule(name=sessions, racers=st.integers(2, 5))
    def race(self, name: str, racers: int) -> None:
        log = self.logs[name]
        made = [self._message() for _ in range(racers)]

        async def run() -> list[tuple[Entry, ...] | BaseException]:
            tries = [self.store.append(name, [item], parent=log.head) for _, item in made]
            return list(await asyncio.gather(*tries, return_exceptions=True))

        outcomes = self.run(run())
        won = [(o, w) for o, (w, _) in zip(outcomes, made, strict=True) if isinstance(o, tuple)]
        assert len(won) == 1
        assert sum(isinstance(outcome, HeadMoved) for outcome in outcomes) == racers - 1
        self._wrote(log, won[0][0], [won[0][1]])

    @rule(name=sessions, data=st.data())
    def rewind(self, name: str, data: st.DataObject) -> None:
        log = self.logs[name]
        to = data.draw(st.sampled_from([None, *self._within(log)]))
        assert self.run(self.store.rewind(name, to)).head == to
        log.head = to

    @rule(name=sessions, data=st.data())
    def rewind_from_elsewhere(self, name: str, data: st.DataObject) -> None:
        log = self.logs[name]
        expected = data.draw(st.sampled_from([None, "f" * 32, *self._within(log)]))
        if expected != log.head:
            with pytest.raises(HeadMoved):
                self.run(self.store.rewind(name, None, head=expected))

    @rule(name=sessions, other=sessions)
    def rewind_to_a_strangers_entry(self, name: str, other: str) -> None:
        strange = set(self.logs[other].written) - set(self._within(self.logs[name]))
        for entry in sorted(strange)[:1]:
            with pytest.raises(UnknownEntry):
                self.run(self.store.rewind(name, entry))

    @rule(target=sessions, name=sessions, data=st.data())
    def fork(self, name: str, data: st.DataObject) -> str:
        log = self.logs[name]
        at = data.draw(st.sampled_from([None, *self._within(log)]))
        forked = self.run(self.store.fork(name, at=at))
        base = log.head if at is None else at
        assert (forked.head, forked.forked_from) == (base, base)
        self.logs[forked.id] = Log(forked.id, log.title, base)
        return forked.id

    @rule(name=sessions, title=st.sampled_from(["renamed", "once more", "第三"]))
    def rename(self, name: str, title: str) -> None:
        log = self.logs[name]
        assert self.run(self.store.rename(name, title)).title == title
        log.title = title
        (entry,) = self.run(self.store.path(name, last=1))
        assert entry.body == Title(title=title)
        self._wrote(log, (entry,), [""])

    @rule(name=sessions, trashed=st.booleans())
    def trash_or_restore(self, name: str, trashed: bool) -> None:
        self.run(self.store.trash(name) if trashed else self.store.restore(name))
        self.logs[name].trashed = trashed

    @rule(target=drafts, name=sessions)
    def begin_a_reply(self, name: str) -> tuple[str, str, str | None]:
        parent = self.logs[name].head
        draft = self.run(self.store.draft(name, model("so far"), parent=parent))
        self.run(self.store.draft(name, model("so far and on"), parent=parent, id=draft))
        return name, draft, parent

    @rule(draft=consumes(drafts))
    def end_a_reply(self, draft: tuple[str, str, str | None]) -> None:
        name, entry_id, parent = draft
        log = self.logs[name]
        word, body = self._message()
        item = Entry(entry_id, None, 1_000, body)
        if log.head != parent:
            with pytest.raises(HeadMoved):
                self.run(self.store.append(name, [item], parent=parent))
            return
        self._wrote(log, self.run(self.store.append(name, [item], parent=parent)), [word])
        with pytest.raises(AlreadyExists):
            self.run(self.store.append(name, [item], parent=log.head))

    @rule()
    def close_and_open(self) -> None:
        self._close()
        self._open(self.path)

    @rule()
    def crash_and_open(self) -> None:
        """The files as they are, copied while the store is open, are what a crash would leave."""
        image = Path(self.directory.name) / str(next(self.number)) / "s.db"
        copy_store(self.path, image)
        self._close()
        self._open(image)

    @rule(data=st.data())
    def search(self, data: st.DataObject) -> None:
        if not self.entries:
            return
        entry = data.draw(st.sampled_from(list(self.entries)))
        word = self.words[entry]
        if not word:
            return
        owner = next(log for log in self.logs.values() if entry in log.written)
        hits = self.run(self.store.search(SearchQuery(word)))
        expected = [] if owner.trashed else [(owner.name, self.entries[entry])]
        assert [(hit.session.id, hit.entry) for hit in hits] == expected

    @rule(name=sessions, data=st.data())
    def windows(self, name: str, data: st.DataObject) -> None:
        log = self.logs[name]
        path = [self.entries[entry] for entry in self._up_from(log.head)]
        last = data.draw(st.integers(0, len(path) + 2))
        newest = path[max(0, len(path) - last) :]
        assert self.run(self.store.path(name, last=last)) == tuple(newest)
        within = self._within(log)
        if within:
            at = data.draw(st.sampled_from(within))
            way = [self.entries[entry] for entry in self._up_from(at)]
            assert self.run(self.store.path(name, at=at)) == tuple(way)
            assert self.run(self.store.path(name, at=at, last=2)) == tuple(way[-2:])
        if path:
            since = data.draw(st.integers(0, len(path) - 1))
            found = self.run(self.store.path(name, since=path[since].id))
            assert found == tuple(path[since + 1 :])

    @rule(name=sessions)
    def whole(self, name: str) -> None:
        log = self.logs[name]
        path = tuple(self.entries[entry] for entry in self._up_from(log.head))
        assert self.run(self.store.path(name)) == path
        tree = self.run(self.store.tree(name))
        assert {entry.id: entry for entry in tree} == {e: self.entries[e] for e in log.written}
        assert len(tree) == len(log.written)

    @invariant()
    def sessions_are_as_they_were(self) -> None:
        for trashed in (False, True):
            found = {s.id: s for s in self.run(self.store.sessions(trashed=trashed))}
            expected = {n: log for n, log in self.logs.items() if log.trashed == trashed}
            assert found.keys() == expected.keys()
            for name, log in expected.items():
                session = found[name]
                assert (session.head, session.title) == (log.head, log.title)
                assert session.entries == len(self._up_from(log.head))
                assert session.forked_from == log.base


COMMON = settings(
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)


def test_the_store_agrees_with_a_list() -> None:
    run_state_machine_as_test(LogMachine, settings=settings(COMMON, stateful_step_count=30))


@pytest.mark.long
@pytest.mark.timeout(7_200)
def test_the_store_agrees_with_a_list_for_a_hundred_thousand_steps() -> None:
    run_state_machine_as_test(
        LogMachine, settings=settings(COMMON, max_examples=2_000, stateful_step_count=50)
    )
