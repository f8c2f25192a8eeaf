"""The values of our own face: queries, bodies and replies, as the OpenAPI description has them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from recollect.compaction.proposal import CompactionReport
from recollect.store.contract import SessionInfo
from recollect.view.omissions import Omission

EntryDocument = Annotated[
    dict[str, Any], Meta(extra_json_schema={"$ref": "#/components/schemas/Entry"})
]
MessageDocument = Annotated[
    dict[str, Any], Meta(extra_json_schema={"$ref": "#/components/schemas/Message"})
]
MAX_NUMBER = 2**53 - 1  # what every reader of JSON can hold exactly
Milliseconds = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]  # since 1970
# from 0 at the first entry; negative: from the end
Position = Annotated[int, Meta(ge=-MAX_NUMBER, le=MAX_NUMBER)]
PageSize = Annotated[int, Meta(ge=1, le=500)]
EntryName = Annotated[str, Meta(min_length=1, max_length=64)]
TitleText = Annotated[str, Meta(max_length=1_000)]


class _Input(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A misspelled name is an error, not a default."""


class _Output(msgspec.Struct, frozen=True, kw_only=True):
    pass


# --- sessions ------------------------------------------------------------------------------------


class SessionListQuery(_Input, frozen=True):
    limit: PageSize = 50
    cursor: str = ""  # `next` of the page before
    trashed: bool = False


class SessionPage(_Output, frozen=True):
    """Sessions, most recently used first."""

    sessions: tuple[SessionInfo, ...]
    next: str | None = None  # the cursor of the next page


class SessionCreation(_Input, frozen=True):
    title: TitleText = ""


class SessionChange(_Input, frozen=True):
    title: TitleText


class ForkPlace(_Input, frozen=True):
    at: EntryName | None = None  # by default the head
    title: TitleText = ""


class RewindTarget(_Input, frozen=True):
    to: EntryName | None  # the entry to go on after; null: the start
    files: bool = False  # also restore the files that tools have changed since
    preview: bool = False  # say what would become of the files, and change nothing
    beside: bool = False  # with `files`: write the old content of conflicting files next to them


class FileConflict(_Output, frozen=True):
    """A file that is left alone."""

    path: str
    why: str
    beside: str | None = None  # the file that its old content was written to


class RestoredFiles(_Output, frozen=True):
    """What became of files, or would. Paths are relative to the server's folder."""

    restored: tuple[str, ...]
    removed: tuple[str, ...]  # created by the session
    brought_back: tuple[str, ...]  # removed by the session
    unchanged: tuple[str, ...]
    conflicts: tuple[FileConflict, ...]


class RewoundSession(SessionInfo, frozen=True, kw_only=True):
    """The session after a rewind."""

    back: str | None  # rewinding to this entry undoes it; null: the start
    preview: bool
    files: RestoredFiles | None  # null: nobody asked for them


# --- entries -------------------------------------------------------------------------------------


class EntryListQuery(_Input, frozen=True):
    start: Annotated[int, Meta(ge=-MAX_NUMBER, le=MAX_NUMBER)] = (
        0  # position, from 0 at the first entry; negative: from the end
    )
    limit: PageSize = 50
    kind: str = ""
    role: Literal["", "user", "model", "system"] = ""
    at: str = ""  # as of this entry instead of the head


class PlacedEntry(_Output, frozen=True):
    position: int
    entry: EntryDocument


class EntryPage(_Output, frozen=True):
    session: str
    head: str | None
    entries: tuple[PlacedEntry, ...]
    next: int | None = None  # the position to go on at


class EntryDetail(_Output, frozen=True):
    """An entry with the other half of its exchange: of a result its call, of a call its results."""

    entry: EntryDocument
    beside: tuple[EntryDocument, ...] = ()


class EntryStreamQuery(_Input, frozen=True):
    after: str = ""  # an entry, or `start`; by default only what is new. `Last-Event-ID` goes first


# --- what a model sees ---------------------------------------------------------------------------


class ViewQuery(_Input, frozen=True):
    at: str = ""
    model: str = ""  # count for this model instead of the next one


class ViewEntry(_Output, frozen=True):
    entry: str
    time: int
    place: str
    role: str
    tokens: int
    pinned: bool
    rules: tuple[str, ...]  # by which parts of it are left out
    message: MessageDocument


class ViewDocument(_Output, frozen=True):
    session: str
    head: str | None
    model: str
    exact: bool  # counted by the model's own tokenizer, not estimated
    tokens: int
    items: tuple[ViewEntry, ...]
    left_out: tuple[Omission, ...]
    problems: tuple[str, ...]


class ExplainQuery(_Input, frozen=True):
    model: str = ""


class RequestQuery(_Input, frozen=True):
    to: Literal["", "gemini", "openai", "anthropic"] = ""  # another format
    model: str = ""  # another model


class RequestPreview(_Input, frozen=True):
    prompt: str = ""  # the next message; empty: go on as the session is
    model: str = ""  # another model
    to: Literal["", "gemini", "openai", "anthropic"] = ""  # another format
    kind: Literal["agent", "ask"] = "agent"
    system: str = ""  # instructions instead of the usual ones


class RequestDocument(_Output, frozen=True):
    """A request as it is sent. Of one of the past, `verdict` says whether these are its bytes."""

    session: str
    entry: str | None  # null: the next one, which nobody has sent
    model: str
    format: str
    verdict: str
    sha256: str  # the first 32 digits
    body: msgspec.Raw


class EditRequest(_Input, frozen=True):
    pin: tuple[EntryName, ...] = ()
    drop: tuple[EntryName, ...] = ()
    restore: tuple[EntryName, ...] = ()


class EditResult(_Output, frozen=True):
    session: str
    head: str | None
    edits: tuple[EntryDocument, ...]
    tokens_before: int
    tokens_after: int


class CompactionRequest(_Input, frozen=True):
    preview: bool = False  # store nothing
    instructions: Annotated[str, Meta(max_length=10_000)] = ""  # what the snapshot must keep
    budget: Annotated[int, Meta(ge=500, le=10_000_000)] | None = None  # tokens afterwards
    model: str = ""
    use_model: bool = True  # false: code alone builds the snapshot


class CompactionDocument(_Output, frozen=True):
    session: str
    entry: str | None  # null: a preview
    status: str
    reason: str
    by_model: bool
    tokens_before: int
    tokens_after: int
    first_kept: str | None
    kept: tuple[str, ...]
    report: CompactionReport
    snapshot: str


# --- transcripts and search ----------------------------------------------------------------------


class SearchParameters(_Input, frozen=True):
    q: Annotated[str, Meta(min_length=1, max_length=1_000)]
    session: str = ""
    role: Literal["", "user", "model", "system"] = ""
    tool: str = ""
    after: Milliseconds | None = None
    before: Milliseconds | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 20


class FoundHit(_Output, frozen=True):
    session: SessionInfo
    entry: EntryDocument
    snippet: str
    marks: tuple[tuple[int, int], ...]
    missing: tuple[str, ...]
    beside: tuple[EntryDocument, ...]
    alike: tuple[str, ...]


class FoundPage(_Output, frozen=True):
    hits: tuple[FoundHit, ...]
    nowhere: tuple[str, ...]  # words that nothing has
    more: bool


class ImportQuery(_Input, frozen=True):
    name: Annotated[str, Meta(min_length=1, max_length=200)] = "upload.json"  # of the file


class ExportQuery(_Input, frozen=True):
    format: Literal["gemini", "history-server"]
    redact: bool = False


# --- prompts -------------------------------------------------------------------------------------


class PromptRequest(_Input, frozen=True):
    prompt: Annotated[str, Meta(min_length=1)]
    model: str = ""
    kind: Literal["agent", "ask"] = "agent"  # `ask`: no tools, one reply
    max_turns: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    system: str = ""  # instructions instead of the usual ones
    approve: bool = False  # the client answers approval requests
    stream: bool = False  # the reply is the stream of the run's events


class RunDocument(_Output, frozen=True):
    run: str
    session: str
    state: Literal["accepted", "running", "done"]
    created: int


class RunList(_Output, frozen=True):
    runs: tuple[RunDocument, ...]


class ApprovalDecision(_Input, frozen=True):
    allow: bool


class ModelDocument(_Output, frozen=True):
    name: str
    format: str
    window: int
    output: int
    tools: str
    media: tuple[str, ...]
    ready: bool  # it has a key, or needs none
    default: bool


class ModelList(_Output, frozen=True):
    models: tuple[ModelDocument, ...]
