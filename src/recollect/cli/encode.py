"""`recollect encode`: the request that would be sent for a session, byte for byte.

stdout carries the body and nothing else; what was repaired or left out is told on stderr. Nothing
is asked and nothing is written.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import click

from recollect.cli.options import examples, store_option

if TYPE_CHECKING:
    from recollect.cli.context_report import ContextReport
    from recollect.codecs.encoder import EncodedRequest
    from recollect.codecs.wire_protocol import Declaration, RequestOptions
    from recollect.models.resolve import ResolvedModel
    from recollect.store.sqlite import SqliteStore

WireName: TypeAlias = Literal["gemini", "openai", "anthropic"]
MAX_TOOLS_FILE = 5_000_000  # bytes


@click.command(
    epilog=examples(
        ("recollect encode 019a8b1c --to gemini", "what Gemini would be sent now"),
        ("recollect encode 019a8b1c --to openai --text-tools", "with the tools as text"),
        ("recollect encode 019a8b1c --to anthropic --at 019a8b1c77f0 | jq .", "as it was then"),
        ("recollect encode 019a8b1c --to openai --tools tools.json --trace", "what was repaired"),
    )
)
@click.argument("prefix", metavar="ID")
@click.option(
    "--to",
    type=click.Choice(["gemini", "openai", "anthropic"]),
    required=True,
    help="The wire format.",
)
@click.option("--text-tools", is_flag=True, help="Calls, results and tools as plain text.")
@click.option("--model", "named", metavar="NAME", help="The model to ask; thoughts of it go along.")
@click.option("--at", metavar="ENTRY", help="As it was at this entry: a request or a message.")
@click.option(
    "--tools",
    "declared",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Tools to declare: a JSON list in the form of any of the three providers.",
)
@click.option("--no-stream", is_flag=True, help="Ask for a reply in one piece.")
@click.option("--trace", is_flag=True, help="Tell each thing that is not sent as it was said.")
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
    """Print the exact request that would be sent for a session."""
    from recollect.cli.context_report import load_report
    from recollect.cli.store_access import use_store
    from recollect.codecs.encoder import encode as encoded
    from recollect.codecs.wire_protocol import RequestOptions
    from recollect.models.resolve import build_wire, fill_options

    async def work(store: SqliteStore) -> ContextReport:
        return await load_report(store, await store.session(prefix), at, named)

    tools = _read_tools(declared) if declared is not None else ()
    sight = use_store(file, work)
    chosen = _resolve_model(named or sight.model, to, named=named is not None)
    prompt = fill_options(chosen, RequestOptions(model="", tools=tools, stream=not no_stream))
    thinking_off = prompt.generation.effort == "none"
    wire = build_wire(chosen, tools, text_tools=text_tools, thinking_off=thinking_off)
    made = encoded(wire, sight.view, prompt)
    sys.stdout.flush()
    for chunk in made.chunks:
        sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()
    _report_fixes(made, prompt, trace=trace)


def _resolve_model(model: str, to: WireName, *, named: bool) -> ResolvedModel:
    """The model, as it is asked in this format. One that is not, and that nobody named, gives way
    to the format's usual one."""
    from recollect.errors import UnknownModel
    from recollect.models.resolve import ResolvedModel, look_up_model
    from recollect.profiles import find_endpoint, find_profile
    from recollect.settings import load_settings

    settings, usual = load_settings(), find_endpoint(to)
    assert usual is not None
    try:
        chosen = look_up_model(model, settings) if model else None
    except UnknownModel:
        chosen = None
    if chosen is not None and chosen.endpoint.wire == to:
        return chosen
    if not named:
        return look_up_model(usual.default, settings)
    return ResolvedModel(
        name=model,
        wire_name=model,
        profile=find_profile(model),
        endpoint=usual,
        generation=settings.generation,
    )


def _read_tools(file: Path) -> tuple[Declaration, ...]:
    from recollect.codecs.tool_declarations import read_tools
    from recollect.errors import BadInput

    if file.stat().st_size > MAX_TOOLS_FILE:
        raise BadInput(f"{file} has more than {MAX_TOOLS_FILE:,} bytes; these are no tools")
    return read_tools(file.read_bytes())


def _report_fixes(made: EncodedRequest, prompt: RequestOptions, *, trace: bool) -> None:
    from recollect.cli.console import print_note
    from recollect.cli.display_text import format_size

    fixes = made.fixes
    asked = f"{format_size(made.size)} for {prompt.model}"
    if not fixes:
        print_note(f"{asked}; everything is sent as it was said")
        return
    kinds = sorted({fix.kind for fix in fixes})
    told = ", ".join(f"{sum(f.kind == kind for f in fixes)} {kind}" for kind in kinds)
    print_note(
        f"{asked}; not sent as it was said: {told}" + ("" if trace else " (--trace tells each)")
    )
    for fix in fixes if trace else ():
        print_note(f"  {fix.kind:<11}  {fix.text}")
