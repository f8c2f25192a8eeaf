"""A streamed reply of the OpenAI chat format, decoded while it arrives.

Any chunking of the bytes gives the same message and the same deltas. An error in the stream is
raised after the deltas before it were returned: by the next `feed`, or by `close`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from recollect.codecs.foreign_json import UnreadableJson
from recollect.codecs.openai.chunks import decode_chunk
from recollect.codecs.openai.decode_reply import ChunkReader, decode_whole, explain_unreadable
from recollect.codecs.provider_errors import bad_reply_from
from recollect.codecs.sse import SseParser
from recollect.codecs.wire_protocol import NO_DELTAS, Delta
from recollect.entries import Message
from recollect.errors import ModelError


class OpenAIStreamDecoder:
    """Decodes one streamed reply."""

    __slots__ = ("_done", "_events", "_failure", "_feed", "_reader")

    def __init__(self) -> None:
        self._events = SseParser()
        self._feed = self._events.feed
        self._reader = ChunkReader()
        self._done = False  # the server has announced the end
        self._failure: ModelError | None = None  # raised by the next call

    def feed(self, data: bytes) -> Sequence[Delta]:
        events = self._feed(data)
        if not events:
            return NO_DELTAS
        self._read_events(events)
        return self._reader.assembly.take_deltas()

    def close(self) -> Sequence[Delta]:
        self._read_events(self._events.close())
        stray = self._events.stray
        if stray and not self._done and not self._reader.assembly.finish:
            self._read_stray(stray)
        return self._reader.assembly.take_deltas()

    def message(self) -> Message:
        return self._reader.message()

    def _read_events(self, events: Sequence[bytes]) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            for data in events:
                self._read_event(data)
        except ModelError as error:
            if not self._reader.assembly.deltas:
                raise
            self._failure = error

    def _read_event(self, data: bytes) -> None:
        if self._done:
            return
        try:
            chunk = decode_chunk(data)
        except UnreadableJson as error:
            word = data.strip()
            if word == b"[DONE]":
                self._done = True
            elif word:
                raise explain_unreadable(word, error) from None
            return
        self._reader.read(chunk)

    def _read_stray(self, stray: bytes) -> None:
        """A whole reply from a server that does not stream, or an error without `data` in front."""
        if not self._reader.is_untouched:
            with suppress(UnreadableJson):
                decode_chunk(stray)  # raises the error
            return
        chunk = decode_whole(stray)
        if not chunk.choices:
            raise bad_reply_from(stray)
        self._reader.read(chunk)
