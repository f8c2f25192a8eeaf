from __future__ import annotations

import time
import uuid
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue

from recollect.store.ids import derived_id, new_id


def test_new_ids_are_version_7_in_order_and_unique() -> None:
    before = time.time_ns() // 1_000_000
    ids = []
    for _ in range(1_000):
        ids.append(new_id())
        time.sleep(0.000_002)
    after = time.time_ns() // 1_000_000
    assert ids == sorted(ids)
    assert len(set(ids)) == 1_000
    for text in ids:
        value = uuid.UUID(text)
        assert (value.version, value.variant) == (7, uuid.RFC_4122)
        assert before <= int(text[:12], 16) <= after


def test_a_forked_process_makes_ids_of_its_own() -> None:
    new_id()
    fork = get_context("fork")
    queue: SimpleQueue[list[str]] = fork.SimpleQueue()
    children = [fork.Process(target=_put_ids, args=(queue,)) for _ in range(2)]
    for child in children:
        child.start()
    _put_ids(queue)
    random_parts = {text[16:] for _ in range(3) for text in queue.get()}
    for child in children:
        child.join()
    assert len(random_parts) == 300


def _put_ids(queue: SimpleQueue[list[str]]) -> None:
    queue.put([new_id() for _ in range(100)])


def test_derived_ids_depend_on_their_source_alone() -> None:
    assert derived_id("gemini", "s", "m1") == derived_id("gemini", "s", "m1")
    assert derived_id("gemini", "s", "m1") != derived_id("gemini", "sm1")
    assert derived_id("a", "b") != derived_id("a\x00b") != derived_id("a1:b")
    value = uuid.UUID(derived_id("lone \ud800 surrogate"))
    assert (value.version, value.variant) == (8, uuid.RFC_4122)
