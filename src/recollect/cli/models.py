"""`recollect models`: the known models, which of them can be called, and which is the default.

It looks for model servers on this machine and lists their models too. `models get` downloads the
weights of an embedded model. Keys are never shown, only whether there is one and in which variable.
"""

from __future__ import annotations

import asyncio
import importlib.util

import click

from recollect.cli.console import (
    download_progress,
    paint,
    print_json,
    print_lines,
    print_note,
    print_warning,
    terminal_width,
)
from recollect.cli.options import command, json_option
from recollect.display.display_text import GAP, align_table, format_value, one_line
from recollect.display.model_report import key_label, listed_models, model_document, thinking_label
from recollect.errors import NotFound
from recollect.models.embedded_model import ENGINE, EngineMissing
from recollect.models.embedded_weights import (
    EMBEDDED_MODELS,
    EmbeddedModel,
    find_embedded_model,
    has_weights,
)
from recollect.models.readiness import is_ready
from recollect.models.resolve import ResolvedModel, default_model_name, look_up_model
from recollect.models.weights_download import ensure_weights, remove_weights
from recollect.settings import SETTINGS_FILE, Settings, data_directory, load_settings


@command(
    ("recollect models", "all known models, and which can be called"),
    ("recollect models --local", "the models of servers that run on this machine"),
    ("recollect models ollama/qwen3:8b", "one model, listed or not"),
    ("recollect models get", "the models that recollect can run itself"),
    ("recollect models get coder", "download one; again continues a download"),
    ("recollect models remove coder", "delete what was downloaded"),
    ("recollect models --json", "for programs"),
)
@click.argument("words", metavar="[NAME | get [NAME] | remove NAME]", nargs=-1)
@click.option("--local", is_flag=True, help="Only the models of servers on this machine.")
@json_option
def models(*, words: tuple[str, ...], local: bool, as_json: bool) -> None:
    """List the known models, or describe one.

    `get` downloads an embedded model, `remove` deletes it.
    Five lines in the settings add any OpenAI-compatible server; docs/settings.md shows how.
    """
    match words:
        case ("get",):
            _list_embedded(as_json=as_json)
        case ("get", name):
            _get(_embedded(name))
        case ("remove", name):
            _remove(_embedded(name))
        case () | (_,):
            _show(words[0] if words else "", local=local, as_json=as_json)
        case _:
            raise click.UsageError(f"Got unexpected arguments ({' '.join(words[1:])}).")


def _show(name: str, *, local: bool, as_json: bool) -> None:
    settings = load_settings()
    default = look_up_model(default_model_name(settings), settings)
    found = [look_up_model(name, settings)] if name else listed_models(settings, local=local)
    if as_json:
        documents = [model_document(model, default) for model in found]
        print_json(documents[0] if name else documents)
    elif name:
        print_lines(_model_lines(found[0], default))
    elif local and not found:
        print_note("no model server answers on this machine; start Ollama, LM Studio or vLLM")
    else:
        print_lines(_table_lines(found, default, settings))


# --- the embedded models -------------------------------------------------------------------------


def _embedded(name: str) -> EmbeddedModel:
    found = find_embedded_model(name.removeprefix("embedded/"))
    if found is None:
        known = " or ".join(model.name for model in EMBEDDED_MODELS)
        raise NotFound(f"there are no weights for {one_line(name)[:60]!r}; get {known}")
    return found


def _list_embedded(*, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {
                    "name": model.name,
                    "model": f"embedded/{model.name}",
                    "bytes": model.weights.size,
                    "installed": has_weights(model.weights),
                    "about": model.about,
                }
                for model in EMBEDDED_MODELS
            ]
        )
        return
    rows = [["NAME", "SIZE", "", "ABOUT"]]
    for model in EMBEDDED_MODELS:
        here = "installed" if has_weights(model.weights) else "not here"
        rows.append([model.name, f"{model.weights.size / 1e6:,.0f} MB", here, model.about])
    head, *body = align_table(rows, width=terminal_width(), stretch=3, numbers=(1,))
    lines = [GAP.join(row).rstrip() for row in body]
    hint = "`recollect models get NAME` downloads one, `-m embedded/NAME` uses it."
    print_lines([paint.dim(GAP.join(head).rstrip()), *lines, "", hint])


def _get(model: EmbeddedModel) -> None:
    if importlib.util.find_spec(ENGINE) is None:
        print_warning(str(EngineMissing(model.model)))
    try:
        path = asyncio.run(ensure_weights(model.weights, download_progress()))
    except KeyboardInterrupt:
        print_note(f"stopped; `recollect models get {model.name}` continues with what is missing")
        raise
    print_lines([f"embedded/{model.name} is installed: {path}"])
    print_note(f'`recollect ask "…" --model embedded/{model.name}` uses it')


def _remove(model: EmbeddedModel) -> None:
    freed = remove_weights(model.weights)
    if not freed and has_weights(model.weights):
        package = model.weights.parts[0].package
        raise NotFound(f"the weights belong to the package {package}; `pip uninstall {package}`")
    if not freed:
        raise NotFound(f"{model.name} was not downloaded; `recollect models get` lists what is")
    print_lines([f"removed embedded/{model.name}: {freed / 1e6:,.0f} MB"])


# --- the list ------------------------------------------------------------------------------------


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
                thinking_label(model),
                f"{price.input:g}" if price else "",
                f"{price.output:g}" if price else "",
                one_line(key_label(model)),
            ]
        )
    head, *body = align_table(rows, width=terminal_width(), stretch=8, numbers=(3, 6, 7))
    lines = [paint.dim(GAP.join(head).rstrip())]
    for model, row in zip(found, body, strict=True):
        line = GAP.join(row).rstrip()
        lines.append(line if is_ready(model) else paint.dim(line))
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
    document = model_document(model, default)
    width = max(map(len, document))
    return [f"{key:<{width}}  {format_value(value)}" for key, value in document.items()]
