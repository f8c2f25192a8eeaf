"""The entries of a session's log: facts (what happened) and edits (how to show the facts).

An `Entry` is an envelope — id, parent, time — around one `Body`. Bodies and parts are frozen
values without identity. `encode` and `decode` are exact inverses, also for text that UTF-8 cannot
encode (lone surrogates) and for fields, parts and kinds that a newer version wrote: unknown data is
kept in `extra` or `Unknown` and written back where it was.

Times are whole milliseconds since 1970 in UTC. Ids are 32 hexadecimal digits. The docstrings of the
classes are part of the published schema.
"""

# Without `from __future__ import annotations`: msgspec evaluates annotations on import, and would
# have to compile them one by one if they were strings.

import json
from contextlib import suppress
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from recollect.errors import BadInput, BadRole
from recollect.unknown_fields import FieldLifter, compact_json, lower, may_have_unknown

SCHEMA_VERSION = 1
HANDLE_LENGTH = 8  # digits
Role: TypeAlias = Literal["user", "model", "system"]
Context: TypeAlias = Literal["", "initial", "memory", "aside"]
CompactionStatus: TypeAlias = Literal[
    "COMPRESSED",
    "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT",
    "COMPRESSION_FAILED_TOKEN_COUNT_ERROR",
    "COMPRESSION_FAILED_EMPTY_SUMMARY",
    "NOOP",
]
CompactionTrigger: TypeAlias = Literal["manual", "auto", "overflow", "import"]


class _Record(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    kw_only=True,
    gc=False,  # values hold no cycles; untracked they load a third faster
):
    # a JSON object, as immutable text: unknown fields, and what an importer keeps of a record
    extra: str = msgspec.field(default="", name="$extra")


class Text(_Record, frozen=True, tag_field="type", tag="text"):
    """A text in a message."""

    text: str


class Thought(_Record, frozen=True, tag_field="type", tag="thought"):
    """What a model thought before it replied."""

    text: str
    subject: str = ""
    time: int | None = None
    signature: str = ""  # opaque; sent back only to the provider that made it


class ToolCall(_Record, frozen=True, tag_field="type", tag="call"):
    """A call of a tool that the model wrote."""

    id: str
    name: str
    arguments: str  # the JSON text as received, even when it is malformed
    signature: str = ""


class InlineData(_Record, frozen=True, tag_field="type", tag="data"):
    """An image or another file, with its bytes."""

    mime: str
    data: bytes


class FileRef(_Record, frozen=True, tag_field="type", tag="file"):
    """A file that the provider fetches from an address."""

    mime: str
    uri: str


class Unknown(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="$unknown"):
    """A part of a type this version does not know: the whole JSON object, as text."""

    data: str


Content: TypeAlias = Text | InlineData | FileRef | Unknown


class ToolResult(_Record, frozen=True, tag_field="type", tag="result"):
    """The answer to a tool call: texts, images or files."""

    call_id: str
    name: str
    content: tuple[Content, ...] = ()
    is_error: bool = False
    status: str = ""
    duration: float | None = None  # seconds
    time: int | None = None


Part: TypeAlias = Text | Thought | ToolCall | ToolResult | InlineData | FileRef | Unknown


class Usage(_Record, frozen=True):
    """Tokens, as the provider counted them."""

    input: int = 0
    output: int = 0
    cached: int | None = None  # of the input, read from the provider's cache; None: not reported
    written: int = 0  # of the input, written to it
    thoughts: int = 0
    tool: int = 0
    total: int = 0


class Message(_Record, frozen=True, tag_field="kind", tag="message"):
    """One message of a session: who said it, and its parts."""

    role: Role
    parts: tuple[Part, ...] = ()
    context: Context = ""  # set when the program added the message, not the user or the model
    model: str = ""
    finish: str = ""  # stop, length, calls, safety, interrupted, error … ; empty when unknown
    usage: Usage | None = None


class Note(_Record, frozen=True, tag_field="kind", tag="note"):
    """For people; never sent to a model."""

    text: str
    level: Literal["info", "warning", "error"] = "info"


class Request(_Record, frozen=True, tag_field="kind", tag="request"):
    """What was sent to a model, by reference: enough to show it again, exactly, for ever."""

    head: str | None
    as_of: int
    model: str = ""
    settings: str | None = None  # the earlier request whose `setup` is this one's too
    tokens: int = 0  # of the messages and the tools' declarations
    tools: tuple[str, ...] = ()  # names of those that were declared
    text_tools: bool = False  # they were described in text, not declared
    generation: str = ""  # how the reply was to be written, as JSON; empty: not recorded
    setup: str = ""  # the format, the model's profile and the tools' declarations, as JSON
    digest: str = ""  # the first 32 digits of the body's SHA-256


class Source(_Record, frozen=True, tag_field="kind", tag="source"):
    """A foreign file, or the new part of one, that entries were made from: kept byte for byte."""

    format: str
    name: str
    size: int
    offset: int = 0  # of these bytes in the file
    blobs: tuple[str, ...] = ()


class Elided(_Record, frozen=True):
    """What is left out of a message. `blocks` goes further into a result, when it is the one part
    named; `head` and `tail` are characters of each text that stay on both sides of the
    placeholder. A placeholder that says which entries show the same is true while they do; from
    then on `fallback` is shown."""

    entry: str
    placeholder: str  # shown instead; nothing at all if empty
    shown_by: tuple[str, ...] = ()  # entries that the placeholder names
    fallback: str = ""  # the placeholder once one of these is left out, wholly or in part
    parts: tuple[int, ...] = ()  # positions; empty means every part
    blocks: tuple[int, ...] = ()  # positions in the result's content; empty means all
    head: int = 0
    tail: int = 0
    tokens: int = 0  # how many this saves


class Elide(_Record, frozen=True, tag_field="kind", tag="elide"):
    """The edit that leaves parts of messages out of the view, by a rule or on request."""

    rule: str
    items: tuple[Elided, ...]
    reason: str = ""  # why at this request


class Pin(_Record, frozen=True, tag_field="kind", tag="pin"):
    """These messages stay word for word; with `first` they are also shown before all others, in
    this order, though they were appended later. The newest such pin comes first."""

    entries: tuple[str, ...]
    first: bool = False


class Restore(_Record, frozen=True, tag_field="kind", tag="restore"):
    """Undoes an elide, a pin or a compaction; of a message, all that was left out of it."""

    entries: tuple[str, ...]


class Compaction(_Record, frozen=True, tag_field="kind", tag="compaction"):
    """The edit that shows a snapshot instead of older messages, if its status is `COMPRESSED`."""

    status: CompactionStatus
    snapshot: str = ""
    first_kept: str | None = None  # None: everything before this entry is replaced
    # of the entries before that: initial context, pinned messages, then the pins that hold them
    kept: tuple[str, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0
    trigger: CompactionTrigger = "manual"
    reason: str = ""


class Title(_Record, frozen=True, tag_field="kind", tag="title"):
    """A new title of the session."""

    title: str


class SettingsEdit(_Record, frozen=True, tag_field="kind", tag="settings"):
    values: str  # a JSON object as text: the settings in force from here on


class UnknownBody(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag="$unknown"):
    """A kind this version does not know: the whole JSON object, as text."""

    data: str


_Fact: TypeAlias = Message | Note | Request | Source
_Edit: TypeAlias = Elide | Pin | Restore | Compaction | Title | SettingsEdit
Body: TypeAlias = _Fact | _Edit | UnknownBody


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One immutable record in a session's log."""

    id: str
    parent: str | None
    time: int
    body: Body


_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Body] = msgspec.json.Decoder(Body)
_ROLES, _PARTS, _BODIES = get_args(Role), get_args(Part), get_args(Body)
_fields = FieldLifter(
    {str(t.__struct_config__.tag): t for t in _BODIES},
    {str(t.__struct_config__.tag): t for t in _PARTS},
)


def handle_of(entry: str) -> str:
    """A short name of an entry for models and users: the last digits of its id, which differ
    within a session. Whatever takes an entry takes its handle."""
    return entry[-HANDLE_LENGTH:]


def encode(body: Body) -> bytes:
    """A body as JSON in UTF-8; lone surrogates become bytes that `decode` restores exactly."""
    return _encode(body)[0]


def _encode(body: Body) -> tuple[bytes, bytes, Body]:
    """A body as JSON; and which JSON `decode` has to restore to which body, so that it restores
    this one: that without `extra`, where this only follows it, or just the same."""
    known, bare = b"", body
    try:
        if isinstance(body, UnknownBody) or not body.extra:
            data = known = _encoder.encode(body)
        else:
            bare = msgspec.structs.replace(body, extra="")
            known = _encoder.encode(bare)
            data = _fields.add_extra(type(body), known, body.extra)
    except UnicodeEncodeError:
        data = b""
    if not data or may_have_unknown(data):
        data = _dump(lower(msgspec.to_builtins(body)))
        return data, data, body
    return data, known, bare


def decode(data: bytes) -> Body:
    try:
        return _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeError):  # unknown fields and kinds, or lone surrogates
        with suppress(msgspec.MsgspecError, UnicodeError):
            known, extra = _fields.split_extra(data)
            return msgspec.structs.replace(_decoder.decode(known), extra=extra)
        value = _load(data)
        if not isinstance(value, dict):
            raise BadInput("an entry's body must be a JSON object") from None
        return msgspec.convert(_fields.lift(value), Body)  # type: ignore[no-any-return]


def check(body: object, position: int = 0) -> bytes:
    """The JSON of a body from a caller, or a `BadInput` that says what is wrong with it."""
    if not isinstance(body, _BODIES):
        raise BadInput(f"item {position} is a {type(body).__name__}, not an entry's body")
    if isinstance(body, Message):
        if body.role not in _ROLES:
            raise BadRole(body.role, position)
        for part in body.parts:
            if not isinstance(part, _PARTS):
                raise BadInput(f"item {position} has a {type(part).__name__} among its parts")
    try:
        data, known, bare = _encode(body)
        same = decode(known) == bare
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"item {position} cannot be stored: {error}") from error
    if not same:
        raise BadInput(
            f"item {position} would be read back differently: use tuples, finite numbers, and "
            "compact JSON (`json_text`) without our own field names for extra and unknown data"
        )
    return data


def entry_to_json(entry: Entry) -> dict[str, Any]:
    """An entry as plain JSON values, with the schema version, for export and display."""
    return {
        "v": SCHEMA_VERSION,
        "id": entry.id,
        "parent": entry.parent,
        "time": entry.time,
        "body": _load(encode(entry.body)),
    }


def entry_from_json(value: dict[str, Any]) -> Entry:
    try:
        body = decode(_dump(value["body"]))
        entry = Entry(value["id"], value["parent"], value["time"], body)
        return msgspec.convert(msgspec.structs.asdict(entry), Entry)
    except (KeyError, TypeError, msgspec.MsgspecError) as error:
        raise BadInput(f"not an entry: {error}") from error


def json_text(value: object) -> str:
    """Compact JSON, the form of `extra`, `arguments` and unknown objects."""
    return compact_json(value)


def _dump(value: object) -> bytes:
    return json_text(value).encode("utf-8", "surrogatepass")


def _load(data: bytes) -> Any:
    return json.loads(data.decode("utf-8", "surrogatepass"))
