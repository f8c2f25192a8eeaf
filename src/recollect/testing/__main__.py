"""`python -m recollect.testing`: a faulty provider for clients in any language."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import click

from recollect.profiles import WireName
from recollect.testing.fault import FORMATS
from recollect.testing.fault_catalogue import FAULT_GROUPS, FAULTS
from recollect.testing.provider_server import ProviderServer

_EPILOG = """\b
Example:
  python -m recollect.testing openai --fault cut-arguments --port 8080
  curl -d '{"model":"m","messages":[]}' http://127.0.0.1:8080/chat/completions
"""


@click.command(epilog=_EPILOG)
@click.argument("format_", metavar="FORMAT", type=click.Choice(FORMATS), required=False)
@click.option("--fault", metavar="NAME", default="none", help="What goes wrong. Default: nothing.")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="Default: any free port.")
@click.option("--validate", is_flag=True, help="Refuse requests that break the format's rules.")
@click.option("--strict-roles", is_flag=True, help="Refuse roles that do not alternate.")
@click.option("--list", "list_", is_flag=True, help="List the faults, those of FORMAT if given.")
def main(
    format_: WireName | None,
    fault: str,
    port: int,
    validate: bool,  # noqa: FBT001 - click passes flags by name
    strict_roles: bool,  # noqa: FBT001
    list_: bool,  # noqa: FBT001
) -> None:
    """Serve one fault, on this machine only, until you press Ctrl-C.

    FORMAT is gemini, openai or anthropic.
    """
    if list_:
        click.echo("\n".join(_list_faults(format_)))
        return
    if format_ is None:
        raise click.UsageError(f"name a format: {', '.join(FORMATS)}; or use --list")
    if fault not in FAULTS or format_ not in FAULTS[fault].formats:
        raise click.UsageError(f"no fault {fault!r} of {format_}; --list names all of them")
    line = FAULTS[fault]
    try:
        server = ProviderServer(
            format_, [line], repeat=True, port=port, validate=validate, strict_roles=strict_roles
        )
    except OSError as error:
        raise click.ClickException(f"cannot listen on port {port}: {error.strerror}") from None
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with server:
        click.echo(f"{server.url} plays {format_}: {line.description} (Ctrl-C ends it)")
        stopped.wait()


def _list_faults(format_: WireName | None) -> Iterator[str]:
    """The names, what a careful client makes of them, and what they do."""
    for title, group in FAULT_GROUPS.items():
        shown = [fault for fault in group if format_ in (None, *fault.formats)]
        if not shown:
            continue
        yield f"{title}:"
        for fault in shown:
            only = "" if len(fault.formats) == len(FORMATS) else f" ({', '.join(fault.formats)})"
            yield f"  {fault.name:22} {fault.expected:12} {fault.description}{only}"


if __name__ == "__main__":
    main(prog_name="python -m recollect.testing")
