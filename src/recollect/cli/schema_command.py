"""`recollect schema`: the JSON Schema of an entry."""

from __future__ import annotations

from recollect.cli.console import print_json
from recollect.cli.options import command
from recollect.schema import json_schema


@command(("recollect schema > entry.schema.json", "to validate entries or generate code"))
def schema() -> None:
    """Print the JSON Schema of an entry."""
    print_json(json_schema())
