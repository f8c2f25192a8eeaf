"""Claude Code's session files: JSON lines, read only.

A record names its parent, and the chain, not the line, is the order. One reply is several records
that share `message.id`; it becomes one model message, its usage counted once. The results of its
calls are attached to different records of the reply, so the reply and its results form one *turn*,
and a record that continues any of them continues the turn. A `compact_boundary` and the summary
after it become one compaction, a `microcompact_boundary` an elision. Turns that the last leaf does
not descend from are branches of the tree. Subagents in the file become sessions of their own.
Progress, system notices and attachments are no turns: only the source keeps them.

The entries of a large file are not in memory: `SessionEntries` makes them when they are needed.
"""

from __future__ import annotations

import msgspec

from recollect.entries import json_text
from recollect.transcripts.claude_code.record_index import RecordIndex, index_records
from recollect.transcripts.claude_code.record_tree import RecordTree
from recollect.transcripts.claude_code.sidechains import Sidechain, extract_sidechains
from recollect.transcripts.claude_code.turn_counts import count_entries
from recollect.transcripts.claude_code.turn_entries import TurnEntries
from recollect.transcripts.json_values import Json, object_or_empty
from recollect.transcripts.record_source import RecordSource
from recollect.transcripts.session_entries import SessionEntries
from recollect.transcripts.subagent_links import NAME
from recollect.transcripts.transcript import (
    SubagentInfo,
    Transcript,
    derive_session_id,
    is_folder_path,
)


def detect(record: Json) -> bool:
    return (
        isinstance(record.get("uuid"), str)
        and "parentUuid" in record
        and "content" in object_or_empty(record.get("message"))
    )


def read(records: RecordSource) -> Transcript:
    """A file's own session, with the sessions of the subagents in the same file."""
    index = index_records(records)
    chains = extract_sidechains(records, index)
    subagents = tuple(_read(one.records, index_records(one.records), one) for one in chains)
    return msgspec.structs.replace(_read(records, index, None), subagents=subagents)


def _read(records: RecordSource, index: RecordIndex, sidechain: Sidechain | None) -> Transcript:
    tree, facts = RecordTree(index, records), index.facts
    number = tree.first_record()
    number = 0 if number is None and len(records) else number
    first = {} if number is None else records.load(number)
    session, subagent = _identify(index, first, sidechain)
    fields = ("sessionId", "agentId", "cwd", "version", "gitBranch")
    entries = SessionEntries(
        tree,
        facts.start,
        lambda: TurnEntries(records, tree, session, facts.start),
        lambda: count_entries(tree, facts.start),
    )
    transcript = Transcript(
        format=NAME,
        session=session,
        created=facts.start,
        entries=(),
        leaf=None,
        folder=facts.folder if facts.folder and is_folder_path(facts.folder) else "",
        heading=facts.title,
        header=json_text({NAME: {key: first[key] for key in fields if key in first}}),
        problems=tuple(tree.problems),
        subagent=subagent,
        stream=entries,
    )
    can_stream = records.is_streamed and entries.has_leaf()
    return transcript if can_stream else transcript.with_entries()


def _identify(
    index: RecordIndex, first: Json, sidechain: Sidechain | None
) -> tuple[str, SubagentInfo | None]:
    given = index.facts.session
    own = derive_session_id(NAME, given, first)
    if not index.is_sidechain:
        return own, None
    # a subagent's records carry the id of the session that called it
    name, call = (sidechain.name, sidechain.call) if sidechain else (index.facts.agent, "")
    return derive_session_id(NAME, f"{given}/{name}", first), SubagentInfo(parent=own, call=call)
