"""Random entries for property tests: every kind, every part, with text as hostile as it gets."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from recollect.entries import (
    Body,
    Compaction,
    Elide,
    Elided,
    FileRef,
    InlineData,
    Message,
    Note,
    Pin,
    Request,
    Restore,
    SettingsEdit,
    Source,
    Text,
    Thought,
    Title,
    ToolCall,
    ToolResult,
    Usage,
    json_text,
)

# every code point, lone surrogates among them
text = st.text(st.characters(exclude_categories=()), max_size=40)
ids = st.text("0123456789abcdef", min_size=32, max_size=32)
numbers = st.integers(-(2**53), 2**53)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
KNOWN = {"kind", "type", "$extra", "$unknown"} | {
    name
    for cls in (Message, Note, Text, Thought, ToolCall, ToolResult, InlineData, FileRef, Usage)
    for name in cls.__struct_encode_fields__
}
extra = st.just("") | st.dictionaries(
    text.filter(lambda key: key not in KNOWN), json_values, min_size=1, max_size=3
).map(json_text)

plain_content = st.one_of(
    st.builds(Text, text=text, extra=extra),
    st.builds(InlineData, mime=text, data=st.binary(max_size=30), extra=extra),
    st.builds(FileRef, mime=text, uri=text, extra=extra),
)
parts = st.one_of(
    plain_content,
    st.builds(Thought, text=text, subject=text, time=st.none() | numbers, signature=text),
    st.builds(ToolCall, id=text, name=text, arguments=text, signature=text, extra=extra),
    st.builds(
        ToolResult,
        call_id=text,
        name=text,
        content=st.lists(plain_content, max_size=3).map(tuple),
        is_error=st.booleans(),
        status=text,
        duration=st.none() | st.floats(0, 1e6),
        time=st.none() | numbers,
        extra=extra,
    ),
)
messages = st.builds(
    Message,
    role=st.sampled_from(["user", "model", "system"]),
    parts=st.lists(parts, max_size=4).map(tuple),
    model=text,
    finish=text,
    usage=st.none()
    | st.builds(Usage, input=numbers, output=numbers, cached=st.none() | numbers, extra=extra),
    extra=extra,
)
bodies: st.SearchStrategy[Body] = st.one_of(
    messages,
    st.builds(Note, text=text, level=st.sampled_from(["info", "warning", "error"]), extra=extra),
    st.builds(Title, title=text),
    st.builds(Request, head=st.none() | ids, as_of=numbers, model=text, tokens=numbers),
    st.builds(Source, format=text, name=text, size=numbers, blobs=st.lists(ids).map(tuple)),
    st.builds(Pin, entries=st.lists(ids, max_size=3).map(tuple), first=st.booleans()),
    st.builds(Restore, entries=st.lists(ids, max_size=3).map(tuple)),
    st.builds(SettingsEdit, values=json_values.map(json_text)),
    st.builds(
        Elide,
        rule=text,
        items=st.lists(st.builds(Elided, entry=ids, placeholder=text), max_size=2).map(tuple),
    ),
    st.builds(
        Compaction,
        status=st.sampled_from(["COMPRESSED", "NOOP"]),
        snapshot=text,
        first_kept=st.none() | ids,
    ),
)
