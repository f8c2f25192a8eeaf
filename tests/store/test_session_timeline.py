"""A session is read in pages, in the order written, with what it inherited as a fork first."""

from __future__ import annotations

import pytest

from recollect.entries import Entry
from recollect.store.contract import Store
from recollect.store.session_timeline import timeline_pages
from recollect.testing import user
from tests.both_stores import OpenStore, in_opened


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_every_branch_is_read_once_however_large_a_page_is(reopen: OpenStore, limit: int) -> None:
    async def read(store: Store, session: str) -> tuple[Entry, ...]:
        pages = [
            page async for page in timeline_pages(store, await store.session(session), limit=limit)
        ]
        assert all(0 < len(page) <= limit for page in pages)
        return tuple(entry for page in pages for entry in page)

    async def work(store: Store) -> None:
        session = (await store.create()).id
        assert await read(store, session) == ()
        path = await store.append(session, [user(str(n)) for n in range(4)], parent=None)
        await store.rewind(session, path[1].id)
        beside = await store.append(session, [user("a"), user("b")], parent=path[1].id)
        assert await read(store, session) == (*path, *beside)
        fork = (await store.fork(session, at=beside[0].id)).id
        inherited = (*path[:2], beside[0])
        assert await read(store, fork) == inherited
        own = await store.append(fork, [user("own")], parent=beside[0].id)
        assert await read(store, fork) == (*inherited, *own)

    in_opened(reopen, work)
