"""`recollect serve`: the sessions of this machine for other programs, over NPLT and HTTP.

Says where it listens and with which token it is reached, and logs to stderr from then on. SIGTERM
and Ctrl-C stop it in order: what has come of answers in progress is stored first.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from recollect import __version__
from recollect.cli.console import print_lines
from recollect.cli.options import command, deny_option, show_secret_option, store_option
from recollect.cli.store_access import use_runtime
from recollect.display.home_paths import abbreviate_home
from recollect.errors import BadInput, MissingExtra, ModelError, UnknownModel
from recollect.runtime.garbage_collection import collect_less_often
from recollect.runtime.prompt_run import RunOptions
from recollect.runtime.runtime import Door, Overrides, Runtime
from recollect.server.listen_address import ListenAddress, parse_address, refuse_clear_text
from recollect.server.log_lines import start_logging
from recollect.server.session_hub import HubLimits
from recollect.server.token_files import OwnToken, ServerTokens, check_token, own_token
from recollect.settings import data_directory
from recollect.store.store_address import StoreAddress

_log = logging.getLogger("recollect.server")
OFF = "off"
TOKEN_VARIABLE = "RECOLLECT_TOKEN"  # noqa: S105 - the name of a variable


@command(
    ("recollect serve", "NPLT on port 9999 and HTTP on port 8080 of this machine"),
    ("recollect serve --http :8080 --nplt off -m gpt-5", "only HTTP, with this model"),
    ("recollect serve --store postgresql://db/recollect", "sessions that several servers share"),
    ("recollect serve --http 0.0.0.0:443 --tls-cert c.pem --tls-key k.pem", "for other machines"),
    ("recollect token add alice", "a client with sessions of its own"),
)
@click.option("--nplt", default="127.0.0.1:9999", show_default=True, metavar="HOST:PORT|off")
@click.option("--http", default="127.0.0.1:8080", show_default=True, metavar="HOST:PORT|off")
@click.option("-m", "--model", default="", metavar="NAME", help="For prompts that name none.")
@click.option(
    "--mode",
    type=click.Choice(["plan", "ask", "edit", "free", "unrestricted"]),
    help="What the agent may do in this folder.  [default: permissions.mode, ask]",
)
@click.option("--allow", metavar="RULE", multiple=True, help='Such as "git diff *".')
@deny_option
@show_secret_option
@click.option(
    "--token",
    metavar="TOKEN",
    help=f"Instead of the stored one; {TOKEN_VARIABLE} keeps it out of the list of processes.",
)
@click.option("--nplt-token", is_flag=True, help="NPLT clients on this machine need a token too.")
@click.option("--tls-cert", type=click.Path(path_type=Path), metavar="FILE", help="In PEM.")
@click.option("--tls-key", type=click.Path(path_type=Path), metavar="FILE", help="In PEM.")
@click.option("--tls-in-front", is_flag=True, help="A proxy in front of this server has TLS.")
@click.option(
    "--allow-host",
    "hosts",
    metavar="NAME[:PORT]",
    multiple=True,
    help="A name under which other machines reach the HTTP server.",
)
@click.option(
    "--on-disconnect",
    type=click.Choice(["finish", "cancel"]),
    default="finish",
    show_default=True,
    help="What becomes of an answer whose client has gone.",
)
@click.option(
    "--approval-seconds",
    type=click.IntRange(1, 86_400),
    default=300,
    show_default=True,
    help="How long an approval is waited for; then the answer is no.",
)
@click.option("--log-json", is_flag=True, help="One JSON object for each line of the log.")
@click.option("-v", "--verbose", is_flag=True, help="Log more.")
@store_option
def serve(*, file: StoreAddress | None, log_json: bool, verbose: bool, **given: Any) -> None:
    """Serve this machine's sessions to other programs.

    NPLT clients, `recollect connect`, every OpenAI client (base URL http://HOST:PORT/v1) and
    recollect's own HTTP interface see the same sessions as the command line. The agent works in
    the current folder. Without TLS only programs on this machine can connect.
    """
    start_logging(as_json=log_json, verbose=verbose)
    addresses = _addresses(given)
    own = _own_token(given["token"])

    async def work(runtime: Runtime) -> None:
        await _serve(runtime, own, addresses, given)

    overrides = Overrides(
        mode=given["mode"] or "",
        allow=given["allow"],
        deny=given["deny"],
        show_secrets=given["show_secrets"],
    )
    use_runtime(file, work, make=True, door=Door(warn=_log.warning), overrides=overrides)


def _addresses(given: dict[str, Any]) -> dict[str, ListenAddress | None]:
    if (given["tls_cert"] is None) != (given["tls_key"] is None):
        raise click.UsageError("--tls-cert and --tls-key belong together.")
    found: dict[str, ListenAddress | None] = {}
    for name in ("nplt", "http"):
        found[name] = None if given[name] == OFF else parse_address(given[name])
        if (address := found[name]) is not None:
            in_front, has_tls = given["tls_in_front"], given["tls_cert"] is not None
            refuse_clear_text(address, has_tls=has_tls, tls_in_front=in_front)
    if not any(found.values()):
        raise click.UsageError("--nplt off and --http off leave nothing to serve.")
    return found


def _own_token(given: str | None) -> OwnToken:
    """The token that was set, or the stored one."""
    for token, where in ((given, "--token"), (os.environ.get(TOKEN_VARIABLE), TOKEN_VARIABLE)):
        if token:
            return OwnToken(check_token(token, where), None)
    return own_token()


async def _serve(
    runtime: Runtime,
    own: OwnToken,
    addresses: dict[str, ListenAddress | None],
    given: dict[str, Any],
) -> None:
    try:
        # late: Starlette and uvicorn are an extra
        from recollect.server.running_servers import ServeOptions, TlsFiles, run_servers
    except ModuleNotFoundError as error:
        raise MissingExtra("`recollect serve`", str(error.name), "server") from None
    tls = TlsFiles(given["tls_cert"], given["tls_key"]) if given["tls_cert"] else None
    options = ServeOptions(
        **addresses,
        model=given["model"],
        nplt_token=given["nplt_token"],
        hosts=given["hosts"],
        tls=tls,
        on_disconnect=given["on_disconnect"],
        limits=HubLimits(approval_seconds=given["approval_seconds"]),
    )
    stop = _stop_on_signals()
    await _check_beginning(runtime, given["model"])
    async with run_servers(runtime, ServerTokens(own.token), options) as running:
        scheme = "https" if tls else "http"
        lines = _greeting(runtime, own, running.nplt, running.http, scheme)
        print_lines(lines)
        collect_less_often()
        sys.stdout.flush()  # into a pipe, too: a supervisor or a script reads it
        await stop.wait()
    _log.info("stopped")


async def _check_beginning(runtime: Runtime, model: str) -> None:
    """Say before the first client comes what would fail then."""
    if runtime.folders.cwd.is_relative_to(data_directory().resolve()):
        raise BadInput(
            f"{runtime.folders.cwd} has recollect's own data, which clients must not read; start "
            "the server in the folder of a project"
        )
    try:
        await runtime.check_model(RunOptions(model=model))
    except UnknownModel:
        raise
    except ModelError as error:  # another client may name a model that can be called
        _log.warning("prompts that name no model fail: %s", error)


def _greeting(
    runtime: Runtime,
    own: OwnToken,
    nplt: ListenAddress | None,
    http: ListenAddress | None,
    scheme: str,
) -> Iterator[str]:
    where = abbreviate_home(runtime.store.address)
    yield f"recollect {__version__} serves {where}"
    if nplt is not None:
        yield f"  NPLT   {nplt}   (recollect connect {nplt})"
    if http is not None:
        yield f"  HTTP   {scheme}://{http}   (OpenAI clients: {scheme}://{http}/v1)"
    if own.is_new:
        yield f"  token  {own.token}   (printed once; it is kept in {own.file})"
    else:
        yield f"  token  {'as it was set' if own.file is None else f'in {own.file}'}"


def _stop_on_signals() -> asyncio.Event:
    """Set by the first SIGTERM or Ctrl-C, or when the terminal is closed; the second ends the
    program at once."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def handle(number: int) -> None:
        loop.remove_signal_handler(number)
        _log.info("got %s", signal.Signals(number).name)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
            continue  # nohup: it goes on without its terminal
        loop.add_signal_handler(number, handle, number)
    return stop
