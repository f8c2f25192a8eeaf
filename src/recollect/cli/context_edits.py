"""`--drop`, `--pin`, `--restore`: edits of what the model sees, checked before they are appended.

All edits of a command are appended together or not at all. An edit without effect is refused with
the reason. If another writer appends in between, the edits are checked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from recollect.cli.store_access import retry_on_head_moved
from recollect.entries import Body, Elide, Entry, Pin, Restore, entry_to_json
from recollect.runtime.model_choice import next_model
from recollect.runtime.runtime import Runtime
from recollect.session_edits import plan_edits
from recollect.store.contract import SessionInfo, Store
from recollect.tokens import counter_for
from recollect.view_loader import fold_stored


class RequestedEdits(NamedTuple):
    """Entries, as prefixes of their ids."""

    drop: tuple[str, ...]
    pin: tuple[str, ...]
    restore: tuple[str, ...]


class ContextEditResult(NamedTuple):
    session: SessionInfo
    session_id: str  # short
    edits: tuple[Entry, ...]
    before: int  # tokens
    after: int
    short: dict[str, str]


async def edit_context(
    runtime: Runtime, prefix: str, requested: RequestedEdits, named: str | None
) -> ContextEditResult:
    store = runtime.store

    async def attempt() -> ContextEditResult:
        session = await runtime.find_writable_session(prefix)
        path = await store.path(session.id) if session.head else ()
        model = next_model(runtime.settings, path, named or "")
        view = await fold_stored(store, path, counter_for(model.name), runtime.curation)
        drop, pin, restore = [await _find_entries(store, session, some) for some in requested]
        bodies, after = plan_edits(view, drop=drop, pin=pin, restore=restore)
        written = await store.append(session.id, bodies, parent=session.head)
        short = (await store.short_session_ids([session.id]))[session.id]
        ids = await store.short_entry_ids(e.id for e in (*drop, *pin, *restore, *written))
        return ContextEditResult(session, short, written, view.tokens, after.tokens, ids)

    return await retry_on_head_moved(attempt)


async def _find_entries(
    store: Store, session: SessionInfo, prefixes: Sequence[str]
) -> tuple[Entry, ...]:
    found = [(await store.entry(prefix, session=session.id))[1] for prefix in prefixes]
    return tuple({entry.id: entry for entry in found}.values())


def edit_lines(edited: ContextEditResult) -> Iterator[str]:
    short = edited.short
    for entry in edited.edits:
        yield f"{_describe_edit(entry.body, short)}, as {short[entry.id]}"
    now, before = edited.after, edited.before
    yield f"the model now sees {now:,} tokens in messages, previously {before:,}"
    undo = [e for e in edited.edits if not isinstance(e.body, Restore)]
    if undo:
        options = " ".join(f"--restore {short[entry.id]}" for entry in undo)
        yield f"`recollect context {edited.session_id} {options}` undoes it"


def _describe_edit(body: Body, short: dict[str, str]) -> str:
    if isinstance(body, Elide):
        return f"left out {', '.join(short[what.entry] for what in body.items)}"
    assert isinstance(body, Pin | Restore)
    verb = "pinned" if isinstance(body, Pin) else "restored"
    return f"{verb} {', '.join(short[name] for name in body.entries)}"


def edit_document(edited: ContextEditResult) -> dict[str, object]:
    return {
        "session": msgspec.to_builtins(edited.session),
        "edits": [entry_to_json(entry) for entry in edited.edits],
        "tokens_before": edited.before,
        "tokens_after": edited.after,
    }
