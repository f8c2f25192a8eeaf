"""What the types of settings cannot say: addresses, headers, names, commands, and what must agree.

`InvalidSetting` names the key and says what it must be. A key for a provider never stands in the file, only
the name of the variable that holds it; a value that looks like a key is refused unquoted. All of it
is pure and linear in the value.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from recollect.settings.setting_definitions import (
    SETTINGS_SECTIONS,
    CustomModel,
    HookCommand,
    Settings,
)

MIN_TOKENS = (
    1_000  # tokens that a compaction leaves room for; `recollect compact` has the same limit
)


class InvalidSetting(Exception):
    def __init__(self, key: str, why: str) -> None:
        super().__init__(why)
        self.key, self.why = key, why


def refuse_unknown(value: dict[str, Any]) -> None:
    _refuse_strangers(value, Settings, "")
    for name, section in SETTINGS_SECTIONS.items():
        if isinstance(table := value.get(name), dict):
            _refuse_strangers(table, section, f"{name}.")
    models, hooks = value.get("models"), value.get("hooks")
    for name, table in models.items() if isinstance(models, dict) else ():
        if isinstance(table, dict):
            _refuse_strangers(table, CustomModel, f"models.{name}.")
    for table in hooks if isinstance(hooks, list) else ():
        if isinstance(table, dict):
            _refuse_strangers(table, HookCommand, "hooks.")


def _refuse_strangers(table: dict[str, Any], section: type[msgspec.Struct], before: str) -> None:
    known = section.__struct_fields__
    for key in table:
        if key not in known:
            import difflib

            near = difflib.get_close_matches(key[:40], known, 1, 0.5)
            hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(known)}"
            raise InvalidSetting(key, f"`{printable(before + key)}` is no setting ({hint})")


def check_settings(settings: Settings) -> None:
    if settings.transport.proxy:
        _check_url("transport.proxy", settings.transport.proxy, _PROXY_SCHEMES)
    _check_headers("transport.headers", settings.transport.headers)
    for name, model in settings.models.items():
        _check_model(name, model)
    _check_agent(settings)
    for hook in settings.hooks:
        _check_hook(hook)


def _check_model(name: str, model: CustomModel) -> None:
    _check_url(f"models.{name}.url", model.url, ("http", "https"))
    _check_headers(f"models.{name}.headers", model.headers)
    if model.key and not re.fullmatch(_VARIABLE, model.key):
        # the value is not repeated: it may be the key itself
        raise InvalidSetting(
            "key",
            f"`models.{printable(name)}.key` must be the name of an environment variable, such as "
            "MY_SERVER_KEY; a key itself does not belong in this file",
        )


def _check_agent(settings: Settings) -> None:
    for name in settings.agent.memory_files:
        # it is looked for in many folders, the home directory among them
        if name in (".", "..") or not name.isprintable() or re.search(r"[/\\:]", name):
            raise InvalidSetting(
                "memory_files",
                f"`agent.memory_files` takes names of files without folders, not {printable(name)!r}",
            )
    if "\x00" in settings.agent.editor:
        raise InvalidSetting("editor", "`agent.editor` must be the path of a file")
    context, routing = settings.context, settings.routing
    for name in ("threshold", "target"):
        if 0 < getattr(context, name) < MIN_TOKENS:
            raise InvalidSetting(
                name, f"`context.{name}` must be 0 or at least {MIN_TOKENS:,} tokens"
            )
    if context.threshold and context.target > context.threshold:
        raise InvalidSetting("target", "`context.target` must not be above `context.threshold`")
    if routing.classifier and len(routing.choices) < 2:
        raise InvalidSetting(
            "classifier", "`routing.classifier` needs two `routing.choices` to choose from"
        )


def _check_hook(hook: HookCommand) -> None:
    try:
        words = hook.words
    except ValueError:
        raise InvalidSetting("command", "`hooks.command` has a quote that is not closed") from None
    if not words or not words[0] or "\x00" in hook.command:
        raise InvalidSetting("command", "`hooks.command` must name a program")


# Keys have small letters or dashes, or are long runs of letters and digits; variables are neither.
_VARIABLE = r"(?=[^0-9]*[0-9]?[^0-9]*[0-9]?[^0-9]*[0-9]?[^0-9]*\Z)[A-Z_][A-Z0-9_]{0,63}"
_PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")
_HEADER_NAME = r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}"
_HEADER_VALUE = r"[\t -~]{0,8000}"


def _check_url(key: str, url: str, schemes: tuple[str, ...]) -> None:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        fine = parts.scheme in schemes and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fine = False
    if not fine or not url.isprintable() or " " in url:
        raise InvalidSetting(
            key.rsplit(".", 1)[-1],
            f"`{printable(key)}` must be an address that begins with "
            f"{' or '.join(scheme + '://' for scheme in schemes)} and names a host",
        )


def _check_headers(key: str, headers: dict[str, str]) -> None:
    for name, value in headers.items():
        if not re.fullmatch(_HEADER_NAME, name) or not re.fullmatch(_HEADER_VALUE, value):
            raise InvalidSetting(name, f"`{printable(key)}` has a header that HTTP cannot carry")


def printable(text: str) -> str:
    """A name from the file for a message: one short line."""
    return "".join(c if c.isprintable() else "?" for c in text[:80])
