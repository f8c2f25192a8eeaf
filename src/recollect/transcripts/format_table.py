"""The session that a foreign file tells, whatever program wrote it.

Needs no store: whoever only wants to look at a file loads no more than this.
"""

from __future__ import annotations

from typing import assert_never

import msgspec

from recollect.transcripts import history_server
from recollect.transcripts.claude_code import session_reader
from recollect.transcripts.gemini_cli import session_file
from recollect.transcripts.json_patch import Json
from recollect.transcripts.tolerant_json import PROBLEM_LIMIT, ImportProblem, ParsedFile, parse
from recollect.transcripts.transcript import Transcript


def read_transcript(data: bytes, name: str) -> Transcript:
    """The session that a file tells, or `CannotImport`."""
    parsed = parse(data, name)
    foreign = _converted(parsed)
    problems = parsed.problems + foreign.problems
    if len(problems) > 2 * PROBLEM_LIMIT:
        more = ImportProblem(0, f"{len(problems) - PROBLEM_LIMIT:,} more problems")
        problems = (*problems[:PROBLEM_LIMIT], more)
    return msgspec.structs.replace(foreign, problems=problems)


def _converted(parsed: ParsedFile) -> Transcript:
    first = parsed.records[0][1]
    match parsed.format:
        case "history-server":
            return history_server.read(_object(parsed))
        case "gemini":
            whole = isinstance(first.get("messages"), list)
            return session_file.read(first) if whole else session_file.read_lines(parsed.records)
        case "claude-code":
            return session_reader.read(parsed.records)
        case _:
            assert_never(parsed.format)


def _object(parsed: ParsedFile) -> Json:
    return next(value for _, value in parsed.records if isinstance(value.get("messages"), list))
