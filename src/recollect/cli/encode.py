"""`recollect encode`: the request a provider would be sent for a session, byte for byte.

stdout carries the body and nothing else; repairs and omissions are reported on stderr. No model is
called and nothing is written.
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from recollect.cli.console import print_note
from recollect.cli.options import command, store_option
from recollect.cli.session_arguments import session_argument
from recollect.cli.store_access import use_runtime
from recollect.codecs.encoder import EncodedRequest
from recollect.codecs.tool_declarations import read_tools
from recollect.codecs.wire_protocol import Declaration, RequestOptions
from recollect.codecs.wires import WIRES
from recollect.errors import BadInput
from recollect.profiles import WireName
from recollect.runtime.prompt_run import RunOptions
from recollect.runtime.request_replay import load_next, load_replay
from recollect.runtime.runtime import Runtime
from recollect.store.store_address import StoreAddress
from recollect.text import format_size

MAX_TOOLS_FILE = 5_000_000  # bytes


class EncodeOptions(NamedTuple):
    prefix: str
    to: WireName | None = None
    text_tools: bool = False
    named: str | None = None
    prompt: str = ""
    at: str | None = None
    declared: Path | None = None
    no_stream: bool = False


@command(
    ("recollect encode 5f3a9c21", "what the model would be sent now"),
    ("recollect encode 5f3a9c21 --to gemini --prompt 'go on'", "what Gemini would be sent"),
    ("recollect encode 5f3a9c21 --to openai --text-tools", "with tools as text"),
    ("recollect encode 5f3a9c21 --to anthropic --at 77f0b1de | jq .", "an earlier request"),
    ("recollect encode 5f3a9c21 --to openai --tools tools.json --trace", "what was repaired"),
)
@session_argument("prefix")
@click.option(
    "--to", type=click.Choice(list(WIRES)), help="The wire format.  [default: the model's own]"
)
@click.option("--text-tools", is_flag=True, help="Send calls, results and tools as plain text.")
@click.option(
    "-m", "--model", "named", metavar="NAME", help="The model; its own thoughts are included."
)
@click.option("--prompt", metavar="TEXT", default="", help="With this prompt at the end.")
@click.option("--at", metavar="ENTRY", help="As of this entry: a request or a message.")
@click.option(
    "--tools",
    "declared",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Declare these tools instead: a JSON list in the format of any of the three providers.",
)
@click.option("--no-stream", is_flag=True, help="Request the reply in one piece.")
@click.option("--trace", is_flag=True, help="List everything that is not sent as stored.")
@store_option
def encode(*, file: StoreAddress | None, trace: bool, **given: Any) -> None:
    """Print the exact request a provider would be sent.

    It is what `recollect -r ID -p TEXT` would send now: with instructions, environment and memory,
    and without what the rules leave out. Nothing is stored or sent.
    """
    options = EncodeOptions(**given)
    print_body(use_runtime(file, partial(encode_session, options)), trace=trace)


class EncodedSession(NamedTuple):
    request: EncodedRequest
    options: RequestOptions
    verdict: str = ""  # of an earlier request: whether these are the bytes that were sent


async def encode_session(options: EncodeOptions, runtime: Runtime) -> EncodedSession:
    """The next request of a session, or an earlier one again."""
    store = runtime.store
    info = await runtime.find_session(options.prefix)
    if options.at is None:
        run = RunOptions(model=options.named or "")
        replay = await load_next(runtime, info, options.prompt, options.to, run)
    else:
        _, at = await store.entry(options.at, session=info.id)
        replay = await load_replay(runtime, info, at, options.to, options.named)
    past = replay.past
    asked, text_tools = past.options, past.text_tools or options.text_tools
    if options.declared is not None:
        asked = msgspec.structs.replace(asked, tools=_read_tools(options.declared))
    if options.no_stream:
        asked = msgspec.structs.replace(asked, stream=False)
    encoded, sent = runtime.encode(past.view, past.model, asked, text_tools=text_tools)
    changed = (asked, text_tools) != (past.options, past.text_tools)
    return EncodedSession(encoded, sent, "" if changed else replay.judge(encoded))


def _read_tools(file: Path) -> tuple[Declaration, ...]:
    if file.stat().st_size > MAX_TOOLS_FILE:
        raise BadInput(
            f"{file} has more than {MAX_TOOLS_FILE:,} bytes; give a smaller file of tools"
        )
    return read_tools(file.read_bytes())


def print_body(encoded: EncodedSession, *, trace: bool = False) -> None:
    """The body on stdout, everything about it on stderr."""
    sys.stdout.flush()
    for chunk in encoded.request.chunks:
        sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()
    _report_fixes(encoded.request, encoded.options, trace=trace)
    if encoded.verdict:
        print_note(encoded.verdict)


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
