"""The log of a server: one line for each event, plain or as JSON, without credentials."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

from recollect.redaction import redact
from recollect.text import one_line

MAX_LINE = 4_000  # characters


class LogLines(logging.Formatter):
    """Formats records for people, or for programs; what looks like a credential is replaced."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        text, level = redact(one_line(record.getMessage(), MAX_LINE)), record.levelname.lower()
        trace = redact(self.formatException(record.exc_info)) if record.exc_info else ""
        if not self._as_json:
            return f"{when} {level:<7} {text}" + (f"\n{trace}" if trace else "")
        fields = {"time": when, "level": level, "logger": record.name, "message": text}
        return json.dumps(fields | ({"trace": trace} if trace else {}), ensure_ascii=False)


def start_logging(*, as_json: bool, verbose: bool = False, stream: TextIO | None = None) -> None:
    """Log what the servers and what is below them say to stderr."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(LogLines(as_json=as_json))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    # what it warns of is the fault of a client, or a package that is not wanted here
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    logging.getLogger("recollect").setLevel(logging.DEBUG if verbose else logging.INFO)
