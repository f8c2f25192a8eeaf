"""API keys: where they come from, and how they stay out of everything that is shown.

A key comes from the environment, else from the user's keyring, if there is one. An `ApiKey` prints
as `[key]` and gives its secret only through `reveal`. `redact` takes keys out of any text, also
parts of them (`secret_echoes`), and keys that nobody knows by the words before them. It is linear.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import NoReturn

from recollect.errors import ModelError
from recollect.models.secret_echoes import mask_echoes
from recollect.redaction import redact as redact_credentials

KEYRING_SERVICE = "recollect"  # in the keyring
MASK = "[key]"
_MIN_SECRET = 6  # anything shorter occurs in ordinary words
_HEADER_SAFE = re.compile(r"[!-~]+")
_VALUE = r"(?!\[key\]|(?:bearer|basic)\b)[^\s\"',;&}\]]{6,4096}"
_PATTERNS = (
    # a token has a digit, unlike the words "Bearer authentication"
    re.compile(rf"(?i)(\bbearer[ \t]{{1,4}})(?=[^\s\"']{{0,200}}[0-9]){_VALUE}"),
    re.compile(
        r"(?i)(\b(?:authorization|(?:x-)?(?:goog-)?api[-_]?key|access[-_]token)"
        r"[\"']{0,2}[ \t]{0,4}[:=][ \t]{0,4}[\"']{0,2}(?:(?:bearer|basic)[ \t]{1,4})?)" + _VALUE
    ),
    re.compile(r"(?i)([?&;](?:key|token)=)(?!\[key\])[^&\s\"'<>;]{1,4096}"),
)


class ApiKey:
    """A secret that does not print itself; `variable` is where it came from."""

    __slots__ = ("_secret", "variable")

    def __init__(self, secret: str, variable: str = "") -> None:
        self._secret, self.variable = secret, variable

    def reveal(self) -> str:
        """The secret, for a header and for nothing else."""
        return self._secret

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ApiKey):
            return NotImplemented
        return (self._secret, self.variable) == (other._secret, other.variable)

    def __hash__(self) -> int:
        return hash((self._secret, self.variable))

    def __repr__(self) -> str:
        return MASK

    def __format__(self, form: str) -> str:
        return format(MASK, form)

    def __reduce__(self) -> NoReturn:
        raise TypeError("an API key cannot be copied or pickled")


def _from_keyring(variable: str) -> str | None:
    try:
        keyring, errors = import_module("keyring"), import_module("keyring.errors")
    except ImportError:
        return None
    try:
        found = keyring.get_password(KEYRING_SERVICE, variable)
    except errors.KeyringError:  # locked, or none on this machine
        return None
    return found if isinstance(found, str) else None


def find_api_key(
    variables: Sequence[str],
    environment: Mapping[str, str] = os.environ,
    keyring: Callable[[str], str | None] = _from_keyring,
) -> ApiKey | None:
    """The key from the first of these environment variables that is set, else from the keyring."""
    for look in (environment.get, keyring):
        for variable in variables:
            if secret := (look(variable) or "").strip():
                if _HEADER_SAFE.fullmatch(secret):
                    return ApiKey(secret, variable)
                why = f"the API key in {variable} has characters that no key has; set it again"
                raise ModelError(why)
    return None


def redact(text: str, keys: Iterable[ApiKey | None] = ()) -> str:
    """The text with `[key]` in place of every key and every part of one."""
    found = {key.reveal() for key in keys if key is not None}
    # the longest first: one may begin with another
    secrets = sorted((s for s in found if len(s) >= _MIN_SECRET), key=len, reverse=True)
    for secret in secrets:
        text = text.replace(secret, MASK)
    for pattern in _PATTERNS:
        text = pattern.sub(rf"\1{MASK}", text)
    # before parts are masked: what tells a credential (`SECRET_KEY=`) may look like a part
    text = redact_credentials(text)
    for secret in secrets:
        text = mask_echoes(text, secret, MASK)
    return text


def redact_error(error: ModelError, keys: Sequence[ApiKey | None]) -> ModelError:
    """Mask the keys in an error's message and attributes; the same error."""
    error.args = tuple(redact(a, keys) if isinstance(a, str) else a for a in error.args)
    for name, value in vars(error).items():
        if isinstance(value, str):
            vars(error)[name] = redact(value, keys)
    return error
