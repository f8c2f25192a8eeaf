"""A model behind HTTP: one question, asked as often as it takes, streamed as it is answered.

Guarantees: what is not a reply becomes one `ModelError` with one sentence and no key in it, also
none in what caused it. An attempt that may be repeated is, with a `Retrying` before it; once the
retries are used up the error is raised, with what had arrived (`partial_of`). Closing the iterator
or cancelling the task closes the connection at once. No question outlives the total timeout.
An endpoint that refuses tools is asked again with the tools described in text, from then on.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import msgspec

from recollect.codecs.encoder import EncodedRequest, Encoder
from recollect.codecs.fixes import Fix
from recollect.codecs.provider_errors import bad_reply_from
from recollect.codecs.sse import MAX_EVENT
from recollect.codecs.wire_protocol import Delta, RequestOptions, Wire
from recollect.entries import Message, Text, Thought, ToolCall
from recollect.errors import BadReply, ModelError, ProviderBusy, ProviderFailed, Unreachable
from recollect.models.api_keys import ApiKey, redact_error
from recollect.models.connecting import HttpFailed
from recollect.models.exchanging import Answer, Client
from recollect.models.http_errors import MAX_ERROR_BODY, classify_response
from recollect.models.http_request import (
    Address,
    RequestBody,
    broken,
    build_headers,
    build_url,
    display_host,
    find_passwords,
    find_secrets,
    header_map,
    open_client,
    out_of_time,
    proxies_of,
)
from recollect.models.model_protocol import ModelEvent, RequestMessages, Retrying, attach_partial
from recollect.models.resolve import ResolvedModel, build_wire, fill_options
from recollect.models.retry import FailedAttempt, refuses_tools, retry_delay
from recollect.settings import TransportSettings

if TYPE_CHECKING:
    import stamina

# Where a server is that this process runs: address and key, asked for before each attempt.
LocateServer: TypeAlias = Callable[[], Awaitable[tuple[str, str]]]
_T = TypeVar("_T")
_TOOLS_IN_TEXT = (
    "the endpoint takes no tools for this model: they are described in text from now on"
)
_EMPTY = "an empty reply: no text, no call, and no reason for its end"


class _Pauses:
    """Waits between attempts. How long is decided before, because it is told before; stamina, which
    waits, is loaded when something has failed."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._attempts: AsyncIterator[stamina.Attempt] | None = None
        self._attempt: stamina.Attempt | None = None

    async def wait(self, seconds: float, because: ModelError) -> None:
        self._seconds = seconds
        if self._attempts is None or self._attempt is None:
            self._attempts = _attempts(lambda _: self._seconds)
            self._attempt = await anext(self._attempts)
        with self._attempt:
            raise because
        self._attempt = await anext(self._attempts)


def _attempts(wait: Callable[[Exception], float]) -> AsyncIterator[stamina.Attempt]:
    import stamina

    # attempts are counted by us, because being asked anew without tools is none of them
    return aiter(stamina.retry_context(on=wait, attempts=None, timeout=None))


class HttpModel:
    """Asks one chosen model; one connection pool, for one event loop."""

    def __init__(
        self,
        chosen: ResolvedModel,
        transport: TransportSettings = TransportSettings(),  # noqa: B008 - a frozen value
        *,
        locate: LocateServer | None = None,
    ) -> None:
        self.chosen, self.transport = chosen, transport
        self.text_tools = chosen.profile.tools == "text"
        self._locate = locate
        self._located: ApiKey | None = None
        self._client: Client | None = None
        self._encoder: Encoder | None = None
        self._sent: EncodedRequest | None = None
        self._secrets = set(find_secrets(chosen.endpoint, transport))

    def __repr__(self) -> str:
        return f"HttpModel({self.name!r} at {display_host(self.chosen.endpoint.url)})"

    @property
    def name(self) -> str:
        return self.chosen.name

    async def __aenter__(self) -> HttpModel:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def stream(
        self, messages: RequestMessages, prompt: RequestOptions
    ) -> AsyncGenerator[ModelEvent, None]:
        deadline = asyncio.get_running_loop().time() + self.transport.total_timeout
        asked, spent, partial = 0, 0, Message(role="model")
        pauses = _Pauses()
        while True:
            attempt = _Attempt(self, deadline)
            async with aclosing(attempt.events(messages, prompt)) as events:
                async for event in events:
                    yield event
            if attempt.failed is None:
                return
            asked, partial = asked + 1, attempt.arrived() or partial
            error, again, wanted = attempt.failed
            if not attempt.text_tools and prompt.tools and _is_about_tools(error):
                self.text_tools, seconds, reason = True, 0.0, _TOOLS_IN_TEXT
            else:
                spent += 1
                longest = self.transport.longest_wait
                seconds = retry_delay(spent, wanted, longest, random.random())
                left = deadline - asyncio.get_running_loop().time()
                if not again or spent > self.transport.retries or seconds >= left:
                    raise _final(error, asked, partial)
                reason = _reason(error)
            yield Retrying(reason, seconds, asked, attempt.shown)
            await pauses.wait(seconds, error)

    def wire(self, prompt: RequestOptions) -> Wire:
        return build_wire(
            self.chosen,
            prompt.tools,
            text_tools=self.text_tools,
            thinking_off=prompt.generation.effort == "none",
        )

    def prompt(self, prompt: RequestOptions) -> RequestOptions:
        """As this model is asked."""
        return msgspec.structs.replace(fill_options(self.chosen, prompt), stream=True)

    def encoded(
        self, wire: Wire, messages: RequestMessages, prompt: RequestOptions
    ) -> EncodedRequest:
        """What was written for the last request is not written again if it is still the same."""
        if self._encoder is None or self._encoder.wire != wire:
            self._encoder = Encoder(wire)
        self._sent = self._encoder.encode(messages, prompt)
        return self._sent

    @property
    def fixes(self) -> tuple[Fix, ...]:
        """What of the last request was not sent as it was said."""
        return self._sent.fixes if self._sent is not None else ()

    async def address(self) -> Address:
        url, key = self.chosen.endpoint.url, self.chosen.key
        if self._locate is not None:
            url, secret = await self._locate()
            key = self._located
            if key is None or key.reveal() != secret:
                key = self._located = ApiKey(secret)
        if key is not None:
            self._secrets.add(key)
        return Address(url, key)

    @property
    def is_located(self) -> bool:
        """Whether its server is asked for before each attempt."""
        return self._locate is not None

    @property
    def secrets(self) -> tuple[ApiKey, ...]:
        return tuple(self._secrets)

    def client(self) -> Client:
        if self._client is None:
            self._client = open_client(self.transport)
            for proxy in proxies_of(self.transport).values():
                self._secrets.update(find_passwords(proxy))
        return self._client


class _Attempt:
    """One request and its answer. What goes wrong ends the events and is in `failure_line`.

    It is a value and not an exception, so that no error has another as its context, whose frames
    hold the key.
    """

    def __init__(self, model: HttpModel, deadline: float) -> None:
        self.failed: FailedAttempt | None = None
        self.shown = False
        self.text_tools = model.text_tools  # another question may find out meanwhile
        self._model, self._deadline = model, deadline
        self._read: Callable[[], Message] | None = None  # what has arrived
        self._url = ""

    def arrived(self) -> Message | None:
        message = self._read() if self._read is not None else None
        if message is None or not message.parts:
            return None
        return msgspec.structs.replace(message, model=self._model.name)

    async def events(
        self, messages: RequestMessages, prompt: RequestOptions
    ) -> AsyncGenerator[ModelEvent, None]:
        model = self._model
        try:
            prompt = model.prompt(prompt)
            wire = model.wire(prompt)
            answer = await self._ask(wire, messages, prompt)
            try:
                async with aclosing(self._answer(answer, wire)) as events:
                    async for event in events:
                        self.shown = self.shown or isinstance(event, Delta)
                        yield event
            finally:
                answer.close()
        except TimeoutError:
            self._fail(FailedAttempt(out_of_time(self._url, model.transport), again=False))
        except HttpFailed as error:
            failed = broken(error, self._url, model.transport)
            # a server of this process that is ending takes a last knock and then no connection;
            # where it is now is asked before the next attempt
            self._fail(failed._replace(again=failed.again or model.is_located))
        except ModelError as error:
            self._fail(FailedAttempt(error, again=isinstance(error, ProviderBusy)))

    async def _ask(self, wire: Wire, messages: RequestMessages, prompt: RequestOptions) -> Answer:
        model, endpoint = self._model, self._model.chosen.endpoint
        base, key = await model.address()
        self._url = build_url(endpoint, base, prompt.model)
        body = RequestBody(model.encoded(wire, messages, prompt))
        headers = tuple(build_headers(endpoint, key, model.transport).items())
        client = model.client()
        return await self._soon(client.post(self._url, headers, body, body.size))

    async def _answer(self, answer: Answer, wire: Wire) -> AsyncGenerator[ModelEvent, None]:
        headers = header_map(answer.headers)
        if not 200 <= answer.status < 300:
            body = await self._body(answer, MAX_ERROR_BODY)
            variable = self._model.chosen.variable
            now = time.time()
            self._fail(classify_response(answer.status, headers, body, variable=variable, now=now))
            return
        kind = headers.get("content-type", "").lower()
        if "html" in kind:
            raise bad_reply_from(await self._body(answer, 2_000))
        events = self._whole if "application/json" in kind else self._streamed
        async with aclosing(events(answer, wire)) as pieces:
            async for event in pieces:
                yield event

    async def _streamed(self, answer: Answer, wire: Wire) -> AsyncGenerator[ModelEvent, None]:
        decoder = wire.stream_decoder()
        self._read = decoder.message
        async with aclosing(answer.pieces()) as pieces:
            while (piece := await self._soon(anext(pieces, None))) is not None:
                for delta in decoder.feed(piece):
                    yield delta
        try:
            rest = decoder.close()
        except BadReply as error:  # it ended in the middle of something
            self._fail(FailedAttempt(error, again=True))
            return
        for delta in rest:
            yield delta
        message = decoder.message()
        why = _unfinished(message, display_host(self._url))
        if why is not None:
            self._fail(FailedAttempt(why, again=True))
        else:
            yield msgspec.structs.replace(message, model=self._model.name)

    async def _whole(self, answer: Answer, wire: Wire) -> AsyncGenerator[ModelEvent, None]:
        """From a server that does not stream, though it was asked to."""
        body = await self._body(answer, MAX_EVENT)
        message = wire.decode_reply(body)
        self._read = lambda: message
        for part in message.parts:
            if isinstance(part, Text | Thought):
                yield Delta("text" if isinstance(part, Text) else "thought", part.text)
            elif isinstance(part, ToolCall):
                yield Delta("call", part.arguments, part.name)
        yield msgspec.structs.replace(message, model=self._model.name)

    async def _body(self, answer: Answer, limit: int) -> bytes:
        found = bytearray()
        async with aclosing(answer.pieces()) as pieces:
            while len(found) < limit:
                piece = await self._soon(anext(pieces, None))
                if piece is None:
                    break
                found += piece
        return bytes(found[:limit])

    async def _soon(self, waiting: Awaitable[_T]) -> _T:
        """Never across a `yield`: the time is over for us, not for whoever reads our events."""
        async with asyncio.timeout_at(self._deadline):
            return await waiting

    def _fail(self, failed: FailedAttempt) -> None:
        error = redact_error(failed.error, self._model.secrets)
        error.__cause__ = error.__context__ = error.__traceback__ = None
        self.failed = failed._replace(error=error)


def _unfinished(message: Message, host: str) -> ModelError | None:
    """Why a stream that ended in good order is no reply nevertheless."""
    if message.finish:
        return None
    if not any(not isinstance(part, Thought) for part in message.parts):
        return BadReply(_EMPTY)
    for part in message.parts:
        if isinstance(part, ToolCall):
            try:
                msgspec.json.decode(part.arguments)
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                return Unreachable(host, "the reply ended in the middle of a call")
    return None


def _is_about_tools(error: ModelError) -> bool:
    return isinstance(error, ProviderFailed) and refuses_tools(error.said, error.status)


def _reason(error: ModelError) -> str:
    if isinstance(error, ProviderFailed):
        return f"{error.said} ({error.status})" if error.status else error.said
    return str(getattr(error, "why", "") or getattr(error, "what", "") or error)


def _final(error: ModelError, asked: int, partial: Message) -> ModelError:
    if isinstance(error, ProviderBusy):
        error = ProviderBusy(error.said, error.status, asked)
    attach_partial(error, partial)
    return error
