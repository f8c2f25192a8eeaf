"""Every default in one place, where data lives, and the person's own settings.

`load` reads `settings.toml` in the home directory; a file that is not there means the defaults.
Reading is strict: an unknown key is refused with the nearest known one, a wrong value with what it
must be, and the line is named where it can be found. A key for a provider never stands in the file,
only the name of the variable that holds it; a value that looks like a key is refused unquoted.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from recollect.errors import BadSettings

FILE = "settings.toml"
MAX_FILE = 1_000_000  # bytes
Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=86_400)]
Tokens: TypeAlias = Annotated[int, Meta(ge=1, le=100_000_000)]
Dollars: TypeAlias = Annotated[float, Meta(ge=0, le=1_000_000)]


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars for a million tokens."""

    input: Dollars
    output: Dollars
    cached: Dollars | None = None


class Wishes(_Section, frozen=True):
    """How models shall write, `[generation]`; what is not set is left to the provider."""

    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    max_output: Tokens | None = None
    stop: Annotated[tuple[str, ...], Meta(max_length=16)] = ()
    seed: int | None = None
    effort: Literal["", "none", "low", "medium", "high"] = ""


class Transport(_Section, frozen=True):
    """How models are reached."""

    connect_timeout: Seconds = 10.0
    read_timeout: Seconds = 300.0  # of silence; a model may think for minutes before it speaks
    total_timeout: Seconds = 1_800.0  # one question with all its retries
    retries: Annotated[int, Meta(ge=0, le=20)] = 3
    longest_wait: Seconds = 60.0  # between two attempts, whatever the provider asks for
    proxy: str = ""
    headers: dict[str, str] = {}


class OwnModel(_Section, frozen=True):
    """A model of one's own, `[models.NAME]`. What is not set is taken from what is known of it."""

    url: str
    wire: Literal["openai", "anthropic", "gemini"] = "openai"
    model: str = ""  # its name on the wire; NAME when empty
    key: str = ""  # the variable that holds the key
    window: Tokens | None = None
    output: Tokens | None = None
    tools: Literal["native", "text"] | None = None
    thinks: Literal["", "field", "text"] | None = None
    think_switch: (
        Literal["", "enable_thinking", "reasoning_effort", "no_think_tag", "slash_no_think"] | None
    ) = None
    reasoning: str | None = None
    system_role: Literal["system", "developer"] | None = None
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    media: tuple[str, ...] | None = None
    price: Price | None = None
    headers: dict[str, str] = {}


class Permissions(_Section, frozen=True):
    """What the agent may do without asking; a rule is a line of words, `docs/permissions.md`."""

    mode: Literal["plan", "ask", "edit", "free"] = "ask"
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    network: bool = False  # whether commands in the sandbox have the network


class Settings(_Section, frozen=True):
    model: str = ""  # the first endpoint with a key, else the embedded model
    language: Literal["en", "zh"] = "en"
    permissions: Permissions = Permissions()
    generation: Wishes = Wishes()
    transport: Transport = Transport()
    models: dict[str, OwnModel] = {}


def home() -> Path:
    """The directory of all data: RECOLLECT_HOME, or the platform's place for user data."""
    given = os.environ.get("RECOLLECT_HOME")
    if given:
        return Path(given).expanduser()
    from platformdirs import user_data_path

    return user_data_path("recollect", appauthor=False)


def store_path() -> Path:
    return home() / "recollect.db"


def load(path: Path | None = None) -> Settings:
    """The person's settings; `BadSettings` says what is wrong with them."""
    path = home() / FILE if path is None else path
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE + 1)
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise BadSettings(str(path), error.strerror or type(error).__name__) from error
    if len(data) > MAX_FILE:
        raise BadSettings(str(path), f"it has more than {MAX_FILE:,} bytes")
    try:
        return parse(data.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise BadSettings(str(path), f"it is not UTF-8 at byte {error.start:,}") from None


def parse(text: str, path: str = FILE) -> Settings:
    import tomllib

    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadSettings(path, f"it is not TOML: {error}") from None
    except RecursionError:
        raise BadSettings(path, "it is nested too deeply") from None
    try:
        _refuse_unknown(value)
        settings = msgspec.convert(value, Settings)
        _check(settings)
    except _Wrong as wrong:
        raise BadSettings(path, _at_line(text, wrong.key) + wrong.why) from None
    except msgspec.ValidationError as error:
        key, why = _in_words(str(error))
        raise BadSettings(path, _at_line(text, key) + why) from None
    return settings


class _Wrong(Exception):
    def __init__(self, key: str, why: str) -> None:
        super().__init__(why)
        self.key, self.why = key, why


_SECTIONS: dict[str, type[msgspec.Struct]] = {
    "generation": Wishes,
    "permissions": Permissions,
    "transport": Transport,
}


def _refuse_unknown(value: dict[str, Any]) -> None:
    _refuse_strangers(value, Settings, "")
    for name, section in _SECTIONS.items():
        if isinstance(table := value.get(name), dict):
            _refuse_strangers(table, section, f"{name}.")
    models = value.get("models")
    for name, table in models.items() if isinstance(models, dict) else ():
        if isinstance(table, dict):
            _refuse_strangers(table, OwnModel, f"models.{name}.")


def _refuse_strangers(table: dict[str, Any], section: type[msgspec.Struct], before: str) -> None:
    known = section.__struct_fields__
    for key in table:
        if key not in known:
            import difflib

            near = difflib.get_close_matches(key[:40], known, 1, 0.5)
            hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(known)}"
            raise _Wrong(key, f"`{_shown(before + key)}` is no setting ({hint})")


def _check(settings: Settings) -> None:
    if settings.transport.proxy:
        _check_url("transport.proxy", settings.transport.proxy, ("http", "https"))
    _check_headers("transport.headers", settings.transport.headers)
    for name, model in settings.models.items():
        _check_url(f"models.{name}.url", model.url, ("http", "https"))
        _check_headers(f"models.{name}.headers", model.headers)
        if model.key and not _VARIABLE.fullmatch(model.key):
            # the value is not repeated: it may be the key itself
            raise _Wrong(
                "key",
                f"`models.{_shown(name)}.key` must be the name of an environment variable, such as "
                "MY_SERVER_KEY; a key itself does not belong in this file",
            )


# Keys have small letters or dashes, or are long runs of letters and digits; variables are neither.
_VARIABLE = re.compile(r"(?=[^0-9]*[0-9]?[^0-9]*[0-9]?[^0-9]*[0-9]?[^0-9]*\Z)[A-Z_][A-Z0-9_]{0,63}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_VALUE = re.compile(r"[\t -~]{0,8000}")


def _check_url(key: str, url: str, schemes: tuple[str, ...]) -> None:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        fine = parts.scheme in schemes and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fine = False
    if not fine or not url.isprintable() or " " in url:
        raise _Wrong(
            key.rsplit(".", 1)[-1],
            f"`{_shown(key)}` must be an address that begins with "
            f"{' or '.join(scheme + '://' for scheme in schemes)} and names a host",
        )


def _check_headers(key: str, headers: dict[str, str]) -> None:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise _Wrong(name, f"`{_shown(key)}` has a header that HTTP cannot carry")


def _in_words(error: str) -> tuple[str, str]:
    """msgspec's sentence, with the setting in front."""
    said, _, place = error.partition(" - at `$.")
    key = place.rstrip("`").replace("[...]", "") or "the file"
    missing = re.search(r"missing required field `(\w+)`", said)
    if missing:
        return key.rsplit(".", 1)[-1], f"`{_shown(key)}` lacks `{missing[1]}`"
    return key.rsplit(".", 1)[-1], f"`{_shown(key)}`: {said[:1].lower()}{said[1:300]}"


def _at_line(text: str, key: str) -> str:
    """Which line sets the key, when only one does."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        start = line.strip().removeprefix("[").split("=", 1)[0].split("]", 1)[0]
        if start.strip().rsplit(".", 1)[-1].strip("\"' ") == key:
            found.append(number)
    return f"line {found[0]}, " if len(found) == 1 else ""


def _shown(text: str) -> str:
    """A name from the file for a message: one short line."""
    return "".join(c if c.isprintable() else "?" for c in text[:80])
