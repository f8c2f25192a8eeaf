"""Rules that the types of settings cannot express: URLs, headers, names, commands, combinations.

`InvalidSetting` names the key and says what it must be. An API key is never in the file, only the
name of the variable that has it; a value that looks like a key is refused without repeating it. All
checks are pure and linear in the value.
"""

from __future__ import annotations

import difflib
import re
from typing import Any
from urllib.parse import urlsplit

import msgspec
import msgspec.inspect

from recollect.hook_events import EVENT_NAMES
from recollect.settings.setting_definitions import (
    SETTINGS_SECTIONS,
    CustomModel,
    HookCommand,
    Settings,
)

MIN_TOKENS = 1_000  # for a compaction; `recollect compact` has the same limit
RENAMED_KEYS = {  # old names, still accepted with a hint
    "agent.watch_loops": "agent.detect_loops",
    "agent.judge_after": "agent.loop_check_after",
    "context.summarise": "context.summarize_tools",
}

# API keys have lower-case letters, dashes or many digits; names of variables have none of these.
_VARIABLE = re.compile(r"(?=[^0-9]*[0-9]?[^0-9]*[0-9]?[^0-9]*[0-9]?[^0-9]*\Z)[A-Z_][A-Z0-9_]{0,63}")
_PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_VALUE = re.compile(r"[\t -~]{0,8000}")


class InvalidSetting(Exception):
    """`why` continues the name of the setting; `key` is looked for in the file."""

    def __init__(self, setting: str, why: str, key: str = "") -> None:
        self.key, self.why = key or last_name(setting), f"`{printable(setting)}` {why}"
        super().__init__(self.why)


def rename_old_keys(value: dict[str, Any]) -> tuple[str, ...]:
    """Replace old names of settings in place; returns a hint for each."""
    hints = []
    for old, new in RENAMED_KEYS.items():
        old_name, new_name = last_name(old), last_name(new)
        table = value.get(old.partition(".")[0])
        if not isinstance(table, dict) or old_name not in table:
            continue
        if new_name in table:
            raise InvalidSetting(old, f"is the old name of `{new}`; remove one of them")
        table[new_name] = table.pop(old_name)
        hints.append(f"rename `{old}` to `{new}`; the old name still works")
    return tuple(hints)


def refuse_unknown(value: dict[str, Any]) -> None:
    _refuse_unknown_keys(value, Settings, "")
    for name, section in SETTINGS_SECTIONS.items():
        _refuse_unknown_keys(value.get(name), section, f"{name}.")
    models, hooks = value.get("models"), value.get("hooks")
    for name, table in models.items() if isinstance(models, dict) else ():
        _refuse_unknown_keys(table, CustomModel, f"models.{name}.")
    for table in hooks if isinstance(hooks, list) else ():
        _refuse_unknown_keys(table, HookCommand, "hooks.")


def _refuse_unknown_keys(table: object, section: type[msgspec.Struct], prefix: str) -> None:
    known = section.__struct_fields__
    for key in table if isinstance(table, dict) else ():
        if key not in known:
            raise InvalidSetting(prefix + key, f"is not a setting ({_nearest(key, known)})", key)


def choices_of(setting: str) -> tuple[str, ...]:
    """The values of a setting such as `permissions.mode`; none if they are not a list of words."""
    section, _, name = setting.partition(".")
    others: dict[str, type[msgspec.Struct]] = {"models": CustomModel, "hooks": HookCommand}
    table = (SETTINGS_SECTIONS | others).get(section, Settings) if name else Settings
    for field in msgspec.inspect.type_info(table).fields:  # type: ignore[attr-defined]
        if field.name == last_name(setting):
            kinds = getattr(field.type, "types", (field.type,))  # of a union
            return tuple(value for kind in kinds for value in getattr(kind, "values", ()))
    return ()


def _nearest(name: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name[:40], known, 1, 0.5)
    return f"did you mean `{near[0]}`?" if near else f"known: {', '.join(known)}"


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
    if model.key and not _VARIABLE.fullmatch(model.key):
        # the value is not repeated: it may be the key itself
        raise InvalidSetting(
            f"models.{name}.key",
            "must be the name of an environment variable, such as MY_SERVER_KEY; "
            "the key itself does not belong in this file",
        )


def _check_agent(settings: Settings) -> None:
    for name in settings.agent.memory_files:
        # a name is looked for in many folders, including the home directory
        own = name.startswith(("/", "~/")) and name.rsplit("/", 1)[-1] not in ("", ".", "..")
        plain = name not in (".", "..") and not re.search(r"[/\\:]", name)
        if not name.isprintable() or not (own or plain):
            why = "takes file names without folders, and absolute paths or paths from `~/`"
            raise InvalidSetting("agent.memory_files", f"{why}, not {printable(name)!r}")
    for name in settings.agent.directories:
        if not name.startswith(("/", "~")) or "\x00" in name:
            why = f"takes absolute paths, or paths from `~`, not {printable(name)!r}"
            raise InvalidSetting("agent.directories", why)
    if "\x00" in settings.agent.editor:
        raise InvalidSetting("agent.editor", "must be the path of a file")
    context, routing = settings.context, settings.routing
    for name in ("threshold", "target"):
        if 0 < getattr(context, name) < MIN_TOKENS:
            raise InvalidSetting(f"context.{name}", f"must be 0 or at least {MIN_TOKENS:,} tokens")
    if context.threshold and context.target > context.threshold:
        raise InvalidSetting("context.target", "must not be above `context.threshold`")
    if routing.classifier and len(routing.choices) < 2:
        raise InvalidSetting("routing.classifier", "needs at least two `routing.choices`")


def _check_hook(hook: HookCommand) -> None:
    if hook.event not in EVENT_NAMES:
        given, hint = printable(hook.event), _nearest(hook.event, EVENT_NAMES)
        raise InvalidSetting("hooks.event", f"does not know '{given}' ({hint})")
    try:
        words = hook.words
    except ValueError:
        raise InvalidSetting("hooks.command", "has an unclosed quote") from None
    if not words or not words[0] or "\x00" in hook.command:
        raise InvalidSetting("hooks.command", "must name a program")
    if any(not _VARIABLE.fullmatch(name) for name in hook.env):
        # the value is not repeated: it may be a secret
        why = "takes names of environment variables, such as GITHUB_TOKEN, and not their values"
        raise InvalidSetting("hooks.env", why)


def _check_url(key: str, url: str, schemes: tuple[str, ...]) -> None:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in schemes and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        valid = False
    if not valid or not url.isprintable() or " " in url:
        starts = " or ".join(scheme + "://" for scheme in schemes)
        raise InvalidSetting(key, f"must be a URL that starts with {starts} and has a host")


def _check_headers(key: str, headers: dict[str, str]) -> None:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise InvalidSetting(key, "has a header that HTTP does not allow", name)


def last_name(key: str) -> str:
    return key.rpartition(".")[2]


def printable(text: str) -> str:
    """A name from the file, for a message: one short line."""
    return "".join(c if c.isprintable() else "?" for c in text[:80])
