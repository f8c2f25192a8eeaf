"""The tokens of this machine's servers, in two files of the data directory, mode 0600.

`server-token` is the user's own: made once, printed once, read by `recollect connect` on the same
machine. `server-tokens.json` has the named ones, by their hashes. A server reads that file again
when it changes, so a removed token is refused from the next request on.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

import msgspec

from recollect.errors import AlreadyExists, BadInput, BadSettings, NotFound
from recollect.server.access import (
    AccessToken,
    AccessTokens,
    Identity,
    Right,
    hash_token,
    new_token,
)
from recollect.settings import data_directory
from recollect.workspace.safe_files import ReadRefused, read_inside, replace_file

_log = logging.getLogger("recollect.server")
OWN_TOKEN, NAMED_TOKENS = "server-token", "server-tokens.json"
MAX_FILE = 1_000_000  # bytes
MIN_TOKEN = 32  # characters of a token that the user chose
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_OWN_IDENTITY = Identity("", "admin", all_sessions=True)


class OwnToken(msgspec.Struct, frozen=True):
    """The user's own token, and whether it was made just now."""

    token: str
    file: Path | None  # none: it was set for this run
    is_new: bool = False


class ServerTokens(AccessTokens):
    """The user's own token and the named ones, as they are in the file at this moment."""

    def __init__(self, own: str, home: Path | None = None) -> None:
        self._own = AccessToken(_OWN_IDENTITY, hash_token(own))
        self._file = data_directory(home) / NAMED_TOKENS
        self._seen: object = None
        self._reload()

    def identify(self, token: str) -> Identity | None:
        self._reload()
        return super().identify(token)

    def admits(self, who: Identity) -> bool:
        self._reload()
        return super().admits(who)

    def _reload(self) -> None:
        try:
            found = self._file.stat()
            seen: object = (found.st_mtime_ns, found.st_ino, found.st_size)
        except OSError:
            seen = "missing"
        if seen == self._seen:
            return
        try:
            named = _load(self._file)
        except BadSettings as error:
            if self._seen is None:  # the server has not started yet
                raise
            _log.error("no named token is known: %s", error)
            named = ()
        super().__init__((self._own, *named))
        self._seen = seen


def own_token(home: Path | None = None) -> OwnToken:
    """The user's own token; the first time, a new one."""
    file = data_directory(home) / OWN_TOKEN
    if (token := read_own_token(home)) is not None:
        return OwnToken(token, file)
    token = new_token()
    replace_file(file, f"{token}\n".encode(), mode=0o600)
    return OwnToken(token, file, is_new=True)


def read_own_token(home: Path | None = None) -> str | None:
    """The user's own token, if a server has made one."""
    file = data_directory(home) / OWN_TOKEN
    if not os.path.lexists(file):
        return None
    return check_token(_read(file).decode("utf-8", "replace").strip(), str(file))


def check_token(token: str, where: str) -> str:
    """A token that a user set: long enough to be one."""
    if len(token) < MIN_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        why = f"a token has at least {MIN_TOKEN} printable ASCII characters and no blanks"
        raise BadInput(f"the token in {where} cannot be used: {why}; remove it to get a new one")
    return token


def named_tokens(home: Path | None = None) -> tuple[AccessToken, ...]:
    return _load(data_directory(home) / NAMED_TOKENS)


def add_token(
    name: str, right: Right, *, all_sessions: bool = False, home: Path | None = None
) -> str:
    """A new token under this name; only its hash is stored."""
    if not _NAME.fullmatch(name):
        allowed = "letters, digits and . _ @ -, at most 64 of them"
        raise BadInput(f"{name!r} cannot be a token's name; it has {allowed}")
    known = named_tokens(home)
    if any(each.identity.name == name for each in known):
        raise AlreadyExists(
            "a token", name, f"Choose another name, or `recollect token remove {name}` first"
        )
    token = new_token()
    added = AccessToken(Identity(name, right, all_sessions), hash_token(token))
    _store((*known, added), home)
    return token


def remove_token(name: str, home: Path | None = None) -> None:
    """Refuse this token from now on; its sessions stay."""
    known = named_tokens(home)
    kept = tuple(each for each in known if each.identity.name != name)
    if len(kept) == len(known):
        raise NotFound(f"no token {name!r}; `recollect token list` lists them")
    _store(kept, home)


def _store(tokens: tuple[AccessToken, ...], home: Path | None) -> None:
    data = msgspec.json.format(msgspec.json.encode(tokens), indent=2) + b"\n"
    replace_file(data_directory(home) / NAMED_TOKENS, data, mode=0o600)


def _load(file: Path) -> tuple[AccessToken, ...]:
    if not os.path.lexists(file):
        return ()
    try:
        return msgspec.json.decode(_read(file), type=tuple[AccessToken, ...])
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BadSettings(str(file), f"it is damaged ({str(error)[:200]})") from None


def _read(file: Path) -> bytes:
    found = read_inside(file, (file.parent,), MAX_FILE)
    if isinstance(found, ReadRefused):
        raise BadSettings(str(file), found.why)
    if found.writable_by_others:
        raise BadSettings(str(file), "other users can write to it")
    return found.data
