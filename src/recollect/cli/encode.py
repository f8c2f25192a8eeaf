"""`recollect encode`: the request a provider would be sent for a session, byte for byte.

stdout carries the body and nothing else; repairs and omissions are reported on stderr. No model is
called and nothing is written.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import click

from recollect.cli.console import print_note
from recollect.cli.context_report import load_report
from recollect.cli.options import command, session_argument, store_option
from recollect.cli.store_access import use_store
from recollect.codecs.encoder import EncodedRequest
from recollect.codecs.encoder import encode as encode_view
from recollect.codecs.tool_declarations import read_tools
from recollect.codecs.wire_protocol import Declaration, RequestOptions
from recollect.codecs.wires import WIRES
from recollect.errors import BadInput, UnknownModel
from recollect.models.resolve import ResolvedModel, build_wire, fill_options, look_up_model
from recollect.profiles import WireName, find_endpoint, find_profile
from recollect.settings import load_settings
from recollect.text import format_size

MAX_TOOLS_FILE = 5_000_000  # bytes


@command(
    ("recollect encode 5f3a9c21 --to gemini", "what Gemini would be sent now"),
    ("recollect encode 5f3a9c21 --to openai --text-tools", "with tools as text"),
    ("recollect encode 5f3a9c21 --to anthropic --at 77f0b1de | jq .", "an earlier request"),
    ("recollect encode 5f3a9c21 --to openai --tools tools.json --trace", "what was repaired"),
)
@session_argument("prefix")
@click.option("--to", type=click.Choice(list(WIRES)), required=True, help="The wire format.")
@click.option("--text-tools", is_flag=True, help="Send calls, results and tools as plain text.")
@click.option("--model", "named", metavar="NAME", help="The model; its own thoughts are included.")
@click.option("--at", metavar="ENTRY", help="As of this entry: a request or a message.")
@click.option(
    "--tools",
    "declared",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Tools to declare: a JSON list in the format of any of the three providers.",
)
@click.option("--no-stream", is_flag=True, help="Request the reply in one piece.")
@click.option("--trace", is_flag=True, help="List everything that is not sent as stored.")
@store_option
def encode(
    *,
    prefix: str,
    to: WireName,
    text_tools: bool,
    named: str | None,
    at: str | None,
    declared: Path | None,
    no_stream: bool,
    trace: bool,
    file: Path | None,
) -> None:
    """Print the exact request a provider would be sent."""
    tools = _read_tools(declared) if declared is not None else ()
    report = use_store(file, lambda store: load_report(store, prefix, at, named))
    model = _resolve_model(named or report.model, to, named=named is not None)
    options = fill_options(model, RequestOptions(model="", tools=tools, stream=not no_stream))
    thinking_off = options.generation.effort == "none"
    wire = build_wire(model, tools, text_tools=text_tools, thinking_off=thinking_off)
    request = encode_view(wire, report.view, options)
    sys.stdout.flush()
    for chunk in request.chunks:
        sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()
    _report_fixes(request, options, trace=trace)


def _resolve_model(name: str, to: WireName, *, named: bool) -> ResolvedModel:
    """The model for this format. If it uses another format, the format's default model takes its
    place, unless the user named it."""
    settings, usual = load_settings(), find_endpoint(to)
    assert usual is not None
    try:
        model = look_up_model(name, settings) if name else None
    except UnknownModel:
        model = None
    if model is not None and model.endpoint.wire == to:
        return model
    if not named:
        return look_up_model(usual.default, settings)
    return ResolvedModel(
        name=name,
        wire_name=name,
        profile=find_profile(name),
        endpoint=usual,
        generation=settings.generation,
    )


def _read_tools(file: Path) -> tuple[Declaration, ...]:
    if file.stat().st_size > MAX_TOOLS_FILE:
        raise BadInput(
            f"{file} has more than {MAX_TOOLS_FILE:,} bytes; give a smaller file of tools"
        )
    return read_tools(file.read_bytes())


def _report_fixes(request: EncodedRequest, options: RequestOptions, *, trace: bool) -> None:
    fixes = request.fixes
    summary = f"{format_size(request.size)} for {options.model}"
    if not fixes:
        print_note(f"{summary}; everything is sent as stored")
        return
    kinds = sorted(Counter(fix.kind for fix in fixes).items())
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds)
    hint = "" if trace else " (--trace lists them)"
    print_note(f"{summary}; not sent as stored: {counts}{hint}")
    for fix in fixes if trace else ():
        print_note(f"  {fix.kind:<11}  {fix.text}")
