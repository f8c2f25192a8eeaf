"""Every setting as a row for people and programs, and nothing in it that is a secret.

Values are what JSON has. Of headers only the names are shown; passwords in addresses, and whatever
looks like a key or a token anywhere else, are shown as `…`. Pure, and linear in the values.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from recollect.settings.setting_definitions import SETTINGS_SECTIONS, Settings

HIDDEN = "…"


class ListedSetting(NamedTuple):
    key: str
    value: Any  # as JSON has it, secrets hidden


def list_settings(settings: Settings) -> tuple[ListedSetting, ...]:
    """All settings; of models of one's own only what was set, hooks as one row."""
    values = msgspec.to_builtins(settings)
    rows = [
        (name, values[name])
        for name in values
        if name not in (*SETTINGS_SECTIONS, "models", "hooks")
    ]
    for section in SETTINGS_SECTIONS:
        rows += [(f"{section}.{name}", value) for name, value in values[section].items()]
    for name, model in settings.models.items():
        given = values["models"][name]
        rows += [
            (f"models.{name}.{field.name}", given[field.name])
            for field in msgspec.structs.fields(model)
            if getattr(model, field.name) != field.default and given[field.name] != {}
        ]
    rows += [] if settings.models else [("models", {})]
    rows.append(("hooks", values["hooks"]))
    return tuple(ListedSetting(key, _harmless(key, value)) for key, value in rows)


_CREDENTIALS = re.compile(r"(?<=://)[^/?#]*@")
_NAMED = re.compile(
    r"(?i)((?:api[-_]?key|authorization|bearer|passw(?:or)?d|secret|token)\b[\"']?[ \t:=]{1,4}"
    r"(?:(?:bearer|basic)[ \t]{1,4})?)[^\s\"']{4,}"
    r"|([?&;](?:key|sig|signature)=)[^&\s\"'#]+"
)
_LOOKS = re.compile(
    r"(?<![A-Za-z0-9_-])(?:(?:sk|pk|rk)[-_]|gsk_|gh[oprsu]_|github_pat_|glpat-|hf_|xai-|xox[a-z]-"
    r"|AIza|AKIA|eyJ)[A-Za-z0-9_.=-]{8,}"
    # long runs of letters and digits together: no word, no path, no name of a model
    r"|(?<![A-Za-z0-9_+/=-])(?=[A-Za-z_+=-]{0,40}[0-9])(?=[0-9_+=-]{0,40}[A-Za-z])[A-Za-z0-9_+=]{32,}"
)


def _harmless(key: str, value: Any) -> Any:
    if key.endswith(".headers") and isinstance(value, dict):
        return dict.fromkeys(value, HIDDEN)
    if isinstance(value, str):
        return _hidden(value)
    if isinstance(value, list | tuple):
        return [_harmless(key, item) for item in value]
    if isinstance(value, dict):
        return {_hidden(name): _harmless("", item) for name, item in value.items()}
    return value


def _hidden(text: str) -> str:
    text = _CREDENTIALS.sub(f"{HIDDEN}@", text)
    text = _NAMED.sub(lambda found: (found[1] or found[2]) + HIDDEN, text)
    return _LOOKS.sub(HIDDEN, text)
