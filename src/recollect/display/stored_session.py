"""The session that a run is stored in, and the command that continues it."""

from __future__ import annotations

from shlex import quote

from recollect.store.contract import Store
from recollect.store.store_address import StoreAddress, hide_password


class StoredSession:
    """Nothing until the run has a session; then that one, or the fork that the run goes on in."""

    def __init__(self, command: str, file: StoreAddress | None, *, persists: bool) -> None:
        self.id = ""
        self._short = ""
        self._command, self._file, self._persists = command, file, persists

    async def follow(self, session: str, store: Store) -> None:
        if session != self.id:
            self.id = self._short = session  # which works too, if nobody waits for the short one
            self._short = (await store.short_session_ids([session]))[session]

    def resume_hint(self) -> str:
        """The command that continues it; empty if nothing is stored."""
        command = self.resume_command()
        return f"`{command}` continues" if command else ""

    def resume_command(self) -> str:
        if not self.id or not self._persists:
            return ""
        store = f" --store {quote(hide_password(self._file))}" if self._file is not None else ""
        return self._command.format(self._short + store)
