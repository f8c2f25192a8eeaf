"""Lists every setting with its value, without secrets.

Values are JSON types. Of headers only the names are shown; passwords in URLs, and anything that
looks like a key or a token, are replaced by `…`. Pure, and linear in the values.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from recollect.settings.setting_definitions import SETTINGS_SECTIONS, Settings

HIDDEN = "…"


def list_settings(settings: Settings) -> dict[str, Any]:
    """All settings by key; of custom models only what is set; hooks as one row."""
    values = msgspec.to_builtins(settings)
    models, hooks = values.pop("models"), values.pop("hooks")
    sections = {section: values.pop(section) for section in SETTINGS_SECTIONS}
    for name, model in settings.models.items():
        sections[f"models.{name}"] = {
            field.name: models[name][field.name]
            for field in msgspec.structs.fields(model)
            if getattr(model, field.name) != field.default and models[name][field.name] != {}
        }
    for section, table in sections.items():
        values |= {f"{section}.{name}": value for name, value in table.items()}
    values |= {"hooks": hooks} if models else {"models": {}, "hooks": hooks}
    return {key: _redact(key, value) for key, value in values.items()}


_CREDENTIALS = re.compile(r"(?<=://)[^/?#]*@")
_NAMED_SECRET = re.compile(
    r"(?i)((?:api[-_]?key|authorization|bearer|passw(?:or)?d|secret|token)\b[\"']?[ \t:=]{1,4}"
    r"(?:(?:bearer|basic)[ \t]{1,4})?)[^\s\"']{4,}"
    r"|([?&;](?:key|sig|signature)=)[^&\s\"'#]+"
)
_KEY_LIKE = re.compile(
    r"(?<![A-Za-z0-9_-])(?:(?:sk|pk|rk)[-_]|gsk_|gh[oprsu]_|github_pat_|glpat-|hf_|xai-|xox[a-z]-"
    r"|AIza|AKIA|eyJ)[A-Za-z0-9_.=-]{8,}"
    # long runs of letters and digits: not a word, a path or the name of a model
    r"|(?<![A-Za-z0-9_+/=-])(?=[A-Za-z_+=-]{0,40}[0-9])(?=[0-9_+=-]{0,40}[A-Za-z])[A-Za-z0-9_+=]{32,}"
)


def _redact(key: str, value: Any) -> Any:
    if key.endswith(".headers") and isinstance(value, dict):
        return dict.fromkeys(value, HIDDEN)
    if isinstance(value, str):
        return _redact_text(value)
    if isinstance(value, list | tuple):
        return [_redact(key, item) for item in value]
    if isinstance(value, dict):
        return {_redact_text(name): _redact("", item) for name, item in value.items()}
    return value


def _redact_text(text: str) -> str:
    text = _CREDENTIALS.sub(f"{HIDDEN}@", text)
    text = _NAMED_SECRET.sub(lambda match: (match[1] or match[2]) + HIDDEN, text)
    return _KEY_LIKE.sub(HIDDEN, text)
