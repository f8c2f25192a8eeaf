"""`recollect token`: names the clients of this machine's servers, and what each may do."""

from __future__ import annotations

import click

from recollect.cli.console import print_json, print_lines, print_note
from recollect.cli.options import examples, json_option
from recollect.server.access import RIGHTS, Right
from recollect.server.token_files import add_token, named_tokens, remove_token


@click.group(
    "token",
    epilog=examples(
        ("recollect token add alice", "a client that chats in sessions of its own"),
        ("recollect token add dashboard --right read --all", "one that reads every session"),
        ("recollect token list", "the names, and what each may do"),
        ("recollect token remove alice", "refused from the next request on"),
    ),
)
def token() -> None:
    """Name the clients of `recollect serve`, and what each may do.

    A token sees only the sessions that it made, unless it may see all. The rights are `read`,
    `chat` (prompts and edits as well) and `admin` (answers approvals, too: a yes runs a command as
    you). Only hashes are stored.
    """


@token.command("add")
@click.argument("name")
@click.option(
    "--right", type=click.Choice(RIGHTS), default="chat", show_default=True, help="What it may do."
)
@click.option("--all", "all_sessions", is_flag=True, help="It sees every session.")
@json_option
def add(*, name: str, right: Right, all_sessions: bool, as_json: bool) -> None:
    """Make a token and print it; it is not shown again."""
    made = add_token(name, right, all_sessions=all_sessions)
    if as_json:
        print_json({"name": name, "right": right, "all": all_sessions, "token": made})
        return
    print_lines([made])
    print_note(f"This is the token of {name}; it is not shown again. Running servers know it.")


@token.command("list")
@json_option
def list_tokens(*, as_json: bool) -> None:
    """List the named tokens and what each may do."""
    known = [each.identity for each in named_tokens()]
    if as_json:
        rows = [{"name": i.name, "right": i.right, "all": i.all_sessions} for i in known]
        print_json(rows)
        return
    if not known:
        print_note("No token has a name yet; `recollect token add NAME` makes one.")
    print_lines(
        f"{i.name:<24}  {i.right:<5}  {'every session' if i.all_sessions else 'its own sessions'}"
        for i in known
    )


@token.command("remove")
@click.argument("name")
def remove(*, name: str) -> None:
    """Refuse a token from now on; its sessions stay."""
    remove_token(name)
    print_note(f"{name} is refused from now on; its sessions stay.")
