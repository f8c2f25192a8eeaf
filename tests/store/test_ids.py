from __future__ import annotations

import time
import uuid
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from recollect.store.ids import derived_id, new_id


def test_new_ids_are_version_7_in_order_and_never_the_same() -> None:
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
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
        noise = {text[16:] for ids in pool.map(_ids, range(2)) for text in ids}
    assert len(noise | {text[16:] for text in _ids(0)}) == 300


def _ids(_: int) -> list[str]:
    time.sleep(0.2)  # so that each process gets one
    return [new_id() for _ in range(100)]


def test_derived_ids_depend_on_their_source_alone() -> None:
    assert derived_id("gemini", "s", "m1") == derived_id("gemini", "s", "m1")
    assert derived_id("gemini", "s", "m1") != derived_id("gemini", "sm1")
    assert derived_id("a", "b") != derived_id("a\x00b") != derived_id("a1:b")
    value = uuid.UUID(derived_id("lone \ud800 surrogate"))
    assert (value.version, value.variant) == (8, uuid.RFC_4122)
