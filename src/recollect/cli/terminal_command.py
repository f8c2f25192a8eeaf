"""`recollect` without a command, on a terminal: opens the terminal program."""

from __future__ import annotations

import os
from pathlib import Path

import click

from recollect.cli.console import print_note
from recollect.cli.options import PICK
from recollect.display.display_text import pluralize
from recollect.runtime.prompt_run import RunOptions
from recollect.runtime.runtime import Overrides
from recollect.store.ids import LAST
from recollect.store.store_address import StoreAddress, parse_address
from recollect.terminal.chat_screen import SHOW_RECORDING
from recollect.terminal.first_paint import FIRST_FRAME
from recollect.terminal.plain_program import run_plain
from recollect.terminal.start_options import StartOptions
from recollect.terminal.terminal_app import TerminalApp


def run_terminal(
    file: StoreAddress | None,
    *,
    session: str | None,
    latest: bool,
    fork: bool,
    model: str,
    max_turns: int | None,
    system: str,
    attachments: tuple[Path, ...],
    mode: str | None,
    plain: bool,
    **overridden: tuple[str, ...],
) -> int:
    """The exit code."""
    picks = session == PICK
    options = StartOptions(
        store=None if file is None else parse_address(file),
        session=LAST if latest else None if picks else session,
        initial_screen="resume" if picks else "",
        fork=fork,
        overrides=Overrides(mode or "", **overridden),
        run=RunOptions(model, max_turns=max_turns, system=system, attachments=attachments),
    )
    if plain:
        return run_plain(options)
    if os.environ.get("TERM") == "dumb":
        print_note(
            "this terminal shows lines alone (TERM=dumb), so the program runs as with --plain"
        )
        return run_plain(options)
    return open_program(options)


def open_program(options: StartOptions) -> int:
    """The exit code."""
    app = TerminalApp(options)
    FIRST_FRAME.hand_over()
    code = app.run() or app.return_code or 0
    if code == SHOW_RECORDING:
        # late: the demo opens the program by this module
        from recollect.cli.demo import show_demo

        return show_demo()
    if unsent := app.unsent:
        print_note(f"not sent:\n{unsent}")
    if waiting := app.runner.waiting:
        texts = "\n".join(prompt.typed for prompt in waiting)
        count = pluralize(len(waiting), "prompt")
        print_note(f"{count} not sent yet, kept with the session:\n{texts}")
    if command := app.stored.resume_command():
        click.echo(command)
    return code
