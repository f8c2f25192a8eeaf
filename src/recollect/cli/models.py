"""`recollect models`: which models are known, which of them can be asked now, which is the default.

No key is ever shown, only whether there is one and in which variable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from recollect.cli.options import examples, json_option

if TYPE_CHECKING:
    from recollect.models.resolve import ResolvedModel
    from recollect.settings import Settings


@click.command(
    epilog=examples(
        ("recollect models", "what is known, and which keys are there"),
        ("recollect models ollama/qwen3:8b", "one model, also one that is not in the list"),
        ("recollect models --json", "for programs"),
    )
)
@click.argument("name", metavar="[NAME]", required=False)
@json_option
def models(*, name: str | None, as_json: bool) -> None:
    """List the models that are known, or tell what is known of one.

    Any OpenAI-compatible server is added in the settings in five lines; docs/settings.md shows how.
    """
    from recollect.cli.console import print_json, print_lines
    from recollect.models.resolve import default_model_name, known_models, look_up_model
    from recollect.settings import load_settings

    settings = load_settings()
    default = look_up_model(default_model_name(settings), settings)
    found = [look_up_model(name, settings)] if name else list(known_models(settings))
    if as_json:
        documents = [_model_document(chosen, default) for chosen in found]
        print_json(documents[0] if name else documents)
    elif name:
        print_lines(_model_lines(found[0], default))
    else:
        print_lines(_table_lines(found, default, settings))


def _table_lines(
    found: list[ResolvedModel], default: ResolvedModel, settings: Settings
) -> list[str]:
    from recollect.cli.console import make_styler, terminal_width
    from recollect.cli.display_text import GAP, align_table, one_line
    from recollect.settings import SETTINGS_FILE, data_directory

    rows = [["", "MODEL", "FORMAT", "WINDOW", "TOOLS", "THINKS", "$ IN", "$ OUT", "KEY"]]
    for chosen in found:
        profile, price = chosen.profile, chosen.profile.price
        rows.append(
            [
                "*" if chosen.name == default.name else "",
                one_line(chosen.name),
                chosen.endpoint.wire,
                f"{profile.window:,}",
                profile.tools,
                _thinking_label(chosen),
                f"{price.input:g}" if price else "",
                f"{price.output:g}" if price else "",
                one_line(_key_label(chosen)),
            ]
        )
    paint = make_styler()
    head, *body = align_table(rows, width=terminal_width(), stretch=8, numbers=(3, 6, 7))
    lines = [paint.dim(GAP.join(head).rstrip())]
    for chosen, row in zip(found, body, strict=True):
        line = GAP.join(row).rstrip()
        lines.append(line if _is_ready(chosen) else paint.dim(line))
    by = " (by the settings)" if settings.model else ""
    return [
        *lines,
        "",
        f"* is asked when none is named: {one_line(default.name)}{by}",
        "Prices are in US dollars for a million tokens, where they are public.",
        "ENDPOINT/MODEL asks any model of an endpoint, such as ollama/qwen3:8b.",
        f"Settings: {data_directory() / SETTINGS_FILE}",
    ]


def _model_lines(chosen: ResolvedModel, default: ResolvedModel) -> list[str]:
    from recollect.cli.display_text import one_line

    document = _model_document(chosen, default)
    width = max(map(len, document))
    return [f"{key:<{width}}  {one_line(_format_value(value))}" for key, value in document.items()]


def _format_value(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_format_value(item)}" for key, item in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "-"
    return (
        f"{value:,}" if isinstance(value, int) else str(value if value not in (None, "") else "-")
    )


def _model_document(chosen: ResolvedModel, default: ResolvedModel) -> dict[str, object]:
    import msgspec

    profile, endpoint = chosen.profile, chosen.endpoint
    wishes = msgspec.to_builtins(chosen.generation)
    return {
        "name": chosen.name,
        "asked_as": chosen.wire_name,
        "endpoint": endpoint.name,
        "format": endpoint.wire,
        "url": endpoint.url or "started on this machine when it is asked",
        "window": profile.window,
        "output": profile.output,
        "tools": profile.tools,
        "thinks": _thinking_label(chosen),
        "media": list(profile.media),
        "price": None if profile.price is None else msgspec.to_builtins(profile.price),
        "generation": {key: value for key, value in wishes.items() if value not in (None, "", [])},
        "key": _key_label(chosen),
        "ready": _is_ready(chosen),
        "default": chosen.name == default.name,
    }


def _thinking_label(chosen: ResolvedModel) -> str:
    return {"": "no", "field": "yes", "text": "in text"}[chosen.profile.thinks]


def _is_ready(chosen: ResolvedModel) -> bool:
    return not chosen.endpoint.keys or chosen.key is not None


def _key_label(chosen: ResolvedModel) -> str:
    if not chosen.endpoint.keys:
        return "none wanted"
    if chosen.key is not None:
        return f"in {chosen.variable}"
    return f"not there: set {' or '.join(chosen.endpoint.keys)}"
