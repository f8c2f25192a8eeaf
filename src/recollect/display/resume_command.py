"""The exact command that comes back to a session."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from recollect.store.contract import Store
from recollect.store.store_address import hide_password


async def resume_command(store: Store, session: str, file: Path | str | None) -> str:
    """As it is typed, with the store if that was named; passwords are hidden."""
    short = (await store.short_session_ids([session]))[session]
    named = f" --store {quote(hide_password(str(file)))}" if file is not None else ""
    return f"recollect --resume {short}{named}"
