"""Connections to providers that wait for the next request."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # it loads httpx2
    from recollect.models.transport import ProviderConnection

_MAX_SHARED = 64  # to one server, where many sessions share them


class IdleConnections:
    """Connections that wait for the next request, by server; several clients of one event loop may
    share them, so that a session's next prompt needs no new handshake."""

    def __init__(self, most: int = _MAX_SHARED) -> None:
        self._most = most
        self._by_server: dict[str, list[ProviderConnection]] = {}

    async def take(self, server: str) -> ProviderConnection | None:
        waiting = self._by_server.get(server, [])
        while waiting:
            connection = waiting.pop()
            if not connection.backend.is_stale:
                return connection
            await connection.aclose()
        return None

    def keep(self, connection: ProviderConnection) -> bool:
        """Whether there is room for it."""
        waiting = self._by_server.setdefault(connection.server, [])
        if len(waiting) >= self._most:
            return False
        waiting.append(connection)
        return True

    async def aclose(self) -> None:
        for waiting in self._by_server.values():
            while waiting:
                await waiting.pop().aclose()
