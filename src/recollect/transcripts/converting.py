"""The session that a foreign file tells, whatever program wrote it.

Needs no store: whoever only wants to look at a file loads no more than this.
"""

from __future__ import annotations

from typing import assert_never

import msgspec

from recollect.transcripts import claude, gemini, history_server
from recollect.transcripts.foreign import Foreign
from recollect.transcripts.patches import Json
from recollect.transcripts.reading import PROBLEMS_TOLD, Parsed, Problem, parse


def read_foreign(data: bytes, name: str) -> Foreign:
    """The session that a file tells, or `CannotImport`."""
    parsed = parse(data, name)
    foreign = _converted(parsed)
    problems = parsed.problems + foreign.problems
    if len(problems) > 2 * PROBLEMS_TOLD:
        more = Problem(0, f"{len(problems) - PROBLEMS_TOLD:,} more problems")
        problems = (*problems[:PROBLEMS_TOLD], more)
    return msgspec.structs.replace(foreign, problems=problems)


def _converted(parsed: Parsed) -> Foreign:
    first = parsed.records[0][1]
    match parsed.format:
        case "history-server":
            return history_server.read(_object(parsed))
        case "gemini":
            whole = isinstance(first.get("messages"), list)
            return gemini.read(first) if whole else gemini.read_lines(parsed.records)
        case "claude-code":
            return claude.read(parsed.records)
        case _:
            assert_never(parsed.format)


def _object(parsed: Parsed) -> Json:
    return next(value for _, value in parsed.records if isinstance(value.get("messages"), list))
