"""Who a client is, and what it may do: a token has a name and a right, and owns its sessions.

Tokens are 256 random bits. They are compared by their SHA-256 in constant time, every known one at
each check. A session belongs to the name of the token that made it; a token sees no other
sessions unless it may see all. A session id is not a permission. What the agent may do is decided
by the server's mode and rules; only `admin` may say yes to more.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

import msgspec

from recollect.errors import AccessDenied
from recollect.store.contract import SessionInfo

Right: TypeAlias = Literal["read", "chat", "admin"]  # each includes those before it
RIGHTS: tuple[Right, ...] = get_args(Right)
# a yes runs commands and changes files as the user of the server: the user's word, not a guest's
APPROVAL_RIGHT: Right = "admin"
TOKEN_BYTES = 32
LOST_ACCESS = "the token was removed or changed"
CHECK_SECONDS = 1.0  # between two looks at a token that is in use


class Identity(msgspec.Struct, frozen=True):
    """A client that was let in."""

    name: str  # of its token; empty: the user who started the server
    right: Right
    all_sessions: bool = False

    @property
    def owner(self) -> str | None:
        """Whose sessions it sees; None: everybody's."""
        return None if self.all_sessions else self.name

    def sees(self, session: SessionInfo) -> bool:
        return self.all_sessions or session.owner == self.name

    def may(self, right: Right) -> bool:
        return RIGHTS.index(self.right) >= RIGHTS.index(right)

    def require(self, right: Right) -> None:
        if not self.may(right):
            raise AccessDenied(f"this needs the right `{right}`", f"this token has `{self.right}`")


LOCAL_USER = Identity("", "chat")  # a client on this machine that cannot say a token


class AccessToken(msgspec.Struct, frozen=True):
    """A token as it is stored: what it opens, and its hash."""

    identity: Identity
    sha256: str


class AccessTokens:
    """The tokens that a server knows."""

    def __init__(self, tokens: Iterable[AccessToken]) -> None:
        self._tokens = tuple((token.sha256.encode(), token.identity) for token in tokens)

    def identify(self, token: str) -> Identity | None:
        """Who has this token. Takes as long for a wrong one as for a right one."""
        given, found = hash_token(token).encode(), None
        for known, identity in self._tokens:
            if hmac.compare_digest(given, known):
                found = identity
        return found

    def admits(self, who: Identity) -> bool:
        """Whether a client that was let in would be let in now: as the user of this machine, who
        needs no token, or by a token that still means the same."""
        return who == LOCAL_USER or any(who == identity for _, identity in self._tokens)


class AccessCheck:
    """Whether a client that was let in still may be there: a stream outlives the request that began
    it, and its token can be removed meanwhile."""

    def __init__(self, tokens: AccessTokens, token: str, identity: Identity) -> None:
        self._tokens, self._token, self._identity = tokens, token, identity

    async def until_lost(self) -> None:
        """Return when the token is not known any more, or means something else."""
        while self._tokens.identify(self._token) == self._identity:
            await asyncio.sleep(CHECK_SECONDS)


def hash_token(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def new_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)
