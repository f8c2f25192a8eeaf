"""A streamed reply of the OpenAI chat format, decoded while it arrives.

Any chunking of the bytes gives the same message and the same deltas. An error in the stream is
raised after the deltas before it were returned: by the next `feed`, or by `close`.
"""

from __future__ import annotations

from collections.abc import Sequence

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
        return self._read_events(events) if events else NO_DELTAS

    def close(self) -> Sequence[Delta]:
        deltas = self._read_events(self._events.close())
        stray = self._events.stray
        if not stray or self._done or self._reader.assembly.finish:
            return deltas
        if self._reader.is_untouched:
            return self._read_stray(stray)
        self._raise_error_in(stray)
        return deltas

    def message(self) -> Message:
        return self._reader.message()

    def _read_events(self, events: Sequence[bytes]) -> Sequence[Delta]:
        if self._failure is not None:
            raise self._failure
        deltas: list[Delta] = []
        try:
            for data in events:
                self._read_event(data, deltas)
        except ModelError as error:
            if not deltas:
                raise
            self._failure = error
        return deltas

    def _read_event(self, data: bytes, deltas: list[Delta]) -> None:
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
        self._reader.read(chunk, deltas)

    def _read_stray(self, stray: bytes) -> Sequence[Delta]:
        """No event came: a whole reply from a server that does not stream, or something else."""
        deltas: list[Delta] = []
        chunk = decode_whole(stray)
        if not chunk.choices:
            raise bad_reply_from(stray)
        self._reader.read(chunk, deltas)
        return deltas

    def _raise_error_in(self, stray: bytes) -> None:
        """Some servers send an error without the word `data` in front."""
        try:
            decode_chunk(stray)
        except UnreadableJson:
            return
