"""`recollect schema`: the JSON Schema of an entry."""

from __future__ import annotations

import click

from recollect.cli.options import examples


@click.command(
    epilog=examples(("recollect schema > entry.schema.json", "to check entries or generate code"))
)
def schema() -> None:
    """Print the JSON Schema of an entry."""
    from recollect.cli.console import print_json
    from recollect.schema import json_schema

    print_json(json_schema())
