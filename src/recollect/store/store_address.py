"""Where a store is: the path of a SQLite file, or the URL of a database.

The user's own store is the one that `RECOLLECT_STORE` names, else the setting `store`, else a file
in the data directory. `hide_password` is how an address is shown; no other form of it is printed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TypeAlias
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from recollect.errors import CannotOpen
from recollect.settings import store_path

StoreAddress: TypeAlias = Path | str  # a text is the URL of a database
_HOST = re.compile(r"(\[[^\]@]*\]|[^:@\[\]]*)(:\d*)?")
DATABASES = ("postgresql", "postgres")
_SECRET_OPTIONS = frozenset(
    {"password", "sslpassword", "passfile", "sslkey", "oauth_client_secret"}
)


def parse_address(given: Path | str) -> StoreAddress:
    """The address that a user wrote: a path, or a URL of a kind that we know."""
    text = str(given)
    if isinstance(given, Path) or "://" not in text:
        return Path(given)
    scheme = text.partition("://")[0].lower()
    if scheme in DATABASES:
        return text
    if scheme == "sqlite":
        return _sqlite_path(text)
    why = "a store is the path of a SQLite file, sqlite:///PATH or postgresql://HOST/DATABASE"
    raise CannotOpen(hide_password(text), why)


def _sqlite_path(url: str) -> Path:
    """As others write it: three slashes and a relative path, four and an absolute one."""
    host, slash, path = url.partition("://")[2].partition("/")
    if host or not slash or not path or "?" in path:
        why = "write sqlite:///relative/path.db or sqlite:////absolute/path.db"
        raise CannotOpen(hide_password(url), why)
    return Path(unquote(path))


def default_address(setting: str = "") -> StoreAddress:
    """The user's own store; `setting` is what the user's settings say."""
    given = os.environ.get("RECOLLECT_STORE") or setting
    if not given:
        return store_path()
    address = parse_address(given)
    if isinstance(address, str):
        return address
    try:
        return address.expanduser()
    except RuntimeError:
        raise CannotOpen(
            given, "you have no home directory; set HOME or write a whole path"
        ) from None


def hide_password(address: Path | str) -> str:
    """The address for people: a path as it is, a URL without passwords."""
    text = str(address)
    if isinstance(address, Path) or "://" not in text:
        return text
    scheme, _, rest = text.partition("://")
    try:
        parts = urlsplit(text)
        options = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return f"{scheme}://…"
    user, at, host = parts.netloc.rpartition("@")
    # a password with a slash or the like in it: whatever follows may be a part of it
    if "@" in rest[len(parts.netloc) :] or not all(map(_HOST.fullmatch, host.split(","))):
        return f"{scheme}://…"
    shown = f"{scheme}://{user.partition(':')[0]}{at}{host}{parts.path}"
    kept = [(name, value) for name, value in options if name.lower() not in _SECRET_OPTIONS]
    return shown + (f"?{urlencode(kept, quote_via=quote, safe='/')}" if kept else "")
