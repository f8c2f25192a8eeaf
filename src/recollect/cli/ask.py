"""`recollect ask`: one question to a model, the answer as it comes, and what it cost.

stdout carries the answer and nothing else. Question and answer are kept as a session, what came of
a broken answer too; a failure is one sentence and exit code 1.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import click

from recollect.cli.options import examples, json_option, read_prompt, store_option


@click.command(
    epilog=examples(
        ('recollect ask "What is a WAL?"', "the default model; with no key the embedded one"),
        ('recollect ask "And a checkpoint?" --session 019a8b1c', "goes on in a session"),
        ("git diff | recollect ask 'Review this.' --model gpt-5", "with what is piped in"),
        ('recollect ask "hi" --model ollama/qwen3:8b --json', "for programs"),
    )
)
@click.argument("words", metavar="QUESTION", nargs=-1)
@click.option("--model", "named", metavar="NAME", default="", help="Which model to ask.")
@click.option(
    "--stream/--no-stream",
    default=None,
    help="Show the answer while it comes, or when it is there.  [default: while it comes on a "
    "terminal]",
)
@click.option("--system", metavar="TEXT", default="", help="Instructions to the model.")
@click.option("--temperature", type=click.FloatRange(0, 2), metavar="T")
@click.option("--max-output", type=click.IntRange(min=1), metavar="N", help="Tokens at most.")
@click.option(
    "--effort",
    type=click.Choice(["none", "low", "medium", "high"]),
    default=None,
    help="How long to think.",
)
@click.option("--session", "prefix", metavar="ID", help="Go on in this session.")
@click.option("--no-session", is_flag=True, help="Keep nothing.")
@json_option
@store_option
def ask(
    *,
    words: tuple[str, ...],
    named: str,
    stream: bool | None,
    system: str,
    temperature: float | None,
    max_output: int | None,
    effort: Literal["none", "low", "medium", "high"] | None,
    prefix: str | None,
    no_session: bool,
    as_json: bool,
    file: Path | None,
) -> None:
    """Ask a model one question."""
    if prefix is not None and no_session:
        raise click.UsageError("--session and --no-session do not go together.")
    asked = read_prompt(words)
    from recollect.cli.ask_runner import AskOptions, run_ask
    from recollect.codecs.wire_protocol import Generation

    shown = sys.stdout.isatty() if stream is None else stream
    generation = Generation(
        temperature=temperature,
        max_output=max_output,
        effort=effort or "",
    )
    run_ask(
        AskOptions(
            question=asked,
            model=named,
            system=system,
            generation=generation,
            session=prefix,
            keep=not no_session,
            stream=shown and not as_json,
            as_json=as_json,
        ),
        file,
    )
