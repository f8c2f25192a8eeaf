"""`recollect models`: the known models, which of them have an API key, and which is the default.

Keys are never shown, only whether there is one and in which variable.
"""

from __future__ import annotations

import click
import msgspec

from recollect.cli.console import paint, print_json, print_lines, terminal_width
from recollect.cli.display_text import GAP, align_table, format_value, one_line
from recollect.cli.options import command, json_option
from recollect.models.resolve import ResolvedModel, default_model_name, known_models, look_up_model
from recollect.settings import SETTINGS_FILE, Settings, data_directory, load_settings


@command(
    ("recollect models", "all known models, and which keys are set"),
    ("recollect models ollama/qwen3:8b", "one model, listed or not"),
    ("recollect models --json", "for programs"),
)
@click.argument("name", metavar="[NAME]", required=False)
@json_option
def models(*, name: str | None, as_json: bool) -> None:
    """List the known models, or describe one.

    Five lines in the settings add any OpenAI-compatible server; docs/settings.md shows how.
    """
    settings = load_settings()
    default = look_up_model(default_model_name(settings), settings)
    found = [look_up_model(name, settings)] if name else list(known_models(settings))
    if as_json:
        documents = [_model_document(model, default) for model in found]
        print_json(documents[0] if name else documents)
    elif name:
        print_lines(_model_lines(found[0], default))
    else:
        print_lines(_table_lines(found, default, settings))


def _table_lines(
    found: list[ResolvedModel], default: ResolvedModel, settings: Settings
) -> list[str]:
    rows = [["", "MODEL", "FORMAT", "WINDOW", "TOOLS", "THINKS", "$ IN", "$ OUT", "KEY"]]
    for model in found:
        profile, price = model.profile, model.profile.price
        rows.append(
            [
                "*" if model.name == default.name else "",
                one_line(model.name),
                model.endpoint.wire,
                f"{profile.window:,}",
                profile.tools,
                _thinking_label(model),
                f"{price.input:g}" if price else "",
                f"{price.output:g}" if price else "",
                one_line(_key_label(model)),
            ]
        )
    head, *body = align_table(rows, width=terminal_width(), stretch=8, numbers=(3, 6, 7))
    lines = [paint.dim(GAP.join(head).rstrip())]
    for model, row in zip(found, body, strict=True):
        line = GAP.join(row).rstrip()
        lines.append(line if _is_ready(model) else paint.dim(line))
    source = " (from the settings)" if settings.model else ""
    return [
        *lines,
        "",
        f"* the default model: {one_line(default.name)}{source}",
        "Prices are in US dollars per million tokens, where they are public.",
        "ENDPOINT/MODEL names any model of an endpoint, such as ollama/qwen3:8b.",
        f"Settings: {data_directory() / SETTINGS_FILE}",
    ]


def _model_lines(model: ResolvedModel, default: ResolvedModel) -> list[str]:
    document = _model_document(model, default)
    width = max(map(len, document))
    return [f"{key:<{width}}  {format_value(value)}" for key, value in document.items()]


def _model_document(model: ResolvedModel, default: ResolvedModel) -> dict[str, object]:
    profile, endpoint = model.profile, model.endpoint
    generation = msgspec.to_builtins(model.generation)
    return {
        "name": model.name,
        "asked_as": model.wire_name,
        "endpoint": endpoint.name,
        "format": endpoint.wire,
        "url": endpoint.url or "started on this machine on first use",
        "window": profile.window,
        "output": profile.output,
        "tools": profile.tools,
        "thinks": _thinking_label(model),
        "media": list(profile.media),
        "price": None if profile.price is None else msgspec.to_builtins(profile.price),
        "generation": {k: v for k, v in generation.items() if v not in (None, "", [])},
        "key": _key_label(model),
        "ready": _is_ready(model),
        "default": model.name == default.name,
    }


def _thinking_label(model: ResolvedModel) -> str:
    return {"": "no", "field": "yes", "text": "in text"}[model.profile.thinks]


def _is_ready(model: ResolvedModel) -> bool:
    return not model.endpoint.keys or model.key is not None


def _key_label(model: ResolvedModel) -> str:
    if not model.endpoint.keys:
        return "none needed"
    if model.key is not None:
        return f"in {model.variable}"
    return f"not set: {' or '.join(model.endpoint.keys)}"
