"""A model behind HTTP: one request, retried as often as it takes, streamed as it is answered.

Guarantees: whatever is not a reply becomes one `ModelError` with one sentence and no key in it, nor
in its causes. A retryable attempt is repeated, with a `Retrying` before it; once the retries are
used up the error is raised, with what had arrived (`partial_of`). Closing the iterator or
cancelling the task closes the connection at once. No request outlives the total timeout, retries
included. If an endpoint refuses tools, they are described in text from then on.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from recollect.codecs.automatic_calls import put_history, take_history
from recollect.codecs.encoder import EncodedRequest, Encoder
from recollect.codecs.endings import content_of, judge_reply
from recollect.codecs.fixes import Fix
from recollect.codecs.provider_errors import bad_reply_from
from recollect.codecs.reply_limits import MAX_EVENT, check_values, refuse
from recollect.codecs.wire_protocol import Decoder, Delta, RequestOptions, Wire
from recollect.entries import Message, Text, Thought, ToolCall
from recollect.errors import (
    BadReply,
    ModelError,
    ProviderBusy,
    ProviderFailed,
    QuotaExhausted,
    Unreachable,
)
from recollect.models.api_keys import ApiKey, redact, redact_error
from recollect.models.http_errors import MAX_ERROR_BODY, TransportFailed, response_error
from recollect.models.http_request import build_headers, build_url, display_host, find_secrets
from recollect.models.idle_connections import IdleConnections
from recollect.models.model_protocol import ModelEvent, RequestMessages, Retrying, attach_partial
from recollect.models.resolve import ResolvedModel, build_wire, fill_options
from recollect.models.retry import FailedAttempt, judge_error, refuses_tools, retry_delay
from recollect.models.role_order import CALLS_IN_TEXT, ROLES_ALTERNATE, is_about_role_order
from recollect.settings import TransportSettings

if TYPE_CHECKING:
    from recollect.models.transport import HttpClient, HttpResponse

# The address and key of a server that this process runs; called before each attempt.
LocateServer: TypeAlias = Callable[[], Awaitable[tuple[str, str]]]
_MAX_PAGE = 2_000  # bytes of a web page that are looked at
_EVENT_FIELDS = (b"data:", b"event:", b":")  # how a stream of events begins
_TOOLS_IN_TEXT = (
    "the endpoint takes no tools for this model: they are described in text from now on"
)
_EMPTY = "an empty reply: no text, no call, and no reason for its end"
_BROKEN_OFF = "the reply broke off before its end"


class HttpModel:
    """Calls one model; for one event loop."""

    def __init__(
        self,
        chosen: ResolvedModel,
        transport: TransportSettings = TransportSettings(),  # noqa: B008 - a frozen value
        *,
        locate: LocateServer | None = None,
        connections: IdleConnections | None = None,  # shared with other models
    ) -> None:
        self.resolved = self.chosen = chosen  # what is learned from refusals changes the second
        self.transport = transport
        self.text_tools = chosen.profile.tools == "text"
        self._connections = connections
        self._client: HttpClient | None = None  # since the first request
        self.is_local = locate is not None  # a server of this process, located for each attempt
        self._locate = locate
        self._local_key: ApiKey | None = None
        self._encoder: Encoder | None = None
        self._sent: EncodedRequest | None = None
        self._fixes: tuple[Fix, ...] = ()  # of the last request, once this is closed
        self._wire: tuple[tuple[object, ...], Wire] | None = None  # what it was built of, and it
        self._keys: set[ApiKey] = set()  # that were sent

    def __repr__(self) -> str:
        return f"HttpModel({self.name!r} at {display_host(self.chosen.endpoint.url)})"

    @property
    def name(self) -> str:
        return self.chosen.name

    @property
    def client(self) -> HttpClient:
        if self._client is None:
            # late: httpx2 loads longer than most commands run, and few of them send a request
            from recollect.models.transport import HttpClient

            self._client = HttpClient(self.transport, self._connections)
        return self._client

    @property
    def fixes(self) -> tuple[Fix, ...]:
        """How the last request differs from the messages it was made of."""
        return self._sent.fixes if self._sent is not None else self._fixes

    @property
    def secrets(self) -> tuple[ApiKey, ...]:
        return (*self._keys, *find_secrets(self.chosen.endpoint, self.transport))

    async def __aenter__(self) -> HttpModel:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        # a result that names this model may be kept, but not the last request with it
        self._fixes, self._encoder, self._sent = self.fixes, None, None
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def stream(
        self, messages: RequestMessages, options: RequestOptions
    ) -> AsyncGenerator[ModelEvent, None]:
        deadline = asyncio.get_running_loop().time() + self.transport.total_timeout
        sent, retried, partial = 0, 0, Message(role="model")
        while True:
            attempt = _Attempt(self, deadline)
            try:
                events = await attempt.start(messages, options)
                while events is not None:
                    for event in events:
                        yield event
                    events = await attempt.next_events()
            finally:
                await attempt.aclose()
            if attempt.failed is None:
                return
            sent, partial = sent + 1, attempt.arrived() or partial
            error, retryable, delay = attempt.failed
            if adapted := self._adapt_roles(attempt, error):
                delay, reason = 0.0, adapted
            elif not attempt.text_tools and options.tools and _is_about_tools(error):
                self.text_tools, delay, reason = True, 0.0, _TOOLS_IN_TEXT
            else:
                retried += 1
                delay = retry_delay(retried, delay, self.transport.longest_wait, random.random())
                left = deadline - asyncio.get_running_loop().time()
                if not retryable or retried > self.transport.retries or delay >= left:
                    raise _final(error, sent, partial)
                reason = _reason(error)
            yield Retrying(reason, delay, sent, attempt.shown)
            await asyncio.sleep(delay)

    def _adapt_roles(self, attempt: _Attempt, error: ModelError) -> str:
        """What is done differently from now on, if the server refused the order of the roles."""
        if self.chosen.endpoint.wire != "openai" or not _is_about_roles(error):
            return ""
        if not attempt.alternating_roles:
            profile = msgspec.structs.replace(self.chosen.profile, alternating_roles=True)
            self.chosen = msgspec.structs.replace(self.chosen, profile=profile)
            return ROLES_ALTERNATE
        if not attempt.text_tools:  # also without tools, for the sake of earlier calls
            self.text_tools = True
            return CALLS_IN_TEXT
        return ""

    def wire(self, options: RequestOptions) -> Wire:
        off = options.generation.effort == "none"
        built_of = (self.chosen, options.tools, self.text_tools, off)
        if self._wire is None or self._wire[0] != built_of:
            wire = build_wire(
                self.chosen, options.tools, text_tools=self.text_tools, thinking_off=off
            )
            self._wire = (built_of, wire)
        return self._wire[1]

    def options(self, options: RequestOptions) -> RequestOptions:
        """With this model's name and defaults."""
        return fill_options(self.chosen, options)

    def encode(self, messages: RequestMessages, options: RequestOptions) -> EncodedRequest:
        """The body that `stream` sends for these, byte for byte."""
        filled = self.options(options)
        return self.encoded(self.wire(filled), messages, filled)

    def encoded(
        self, wire: Wire, messages: RequestMessages, options: RequestOptions
    ) -> EncodedRequest:
        """Encodes only what is new since the last request."""
        if self._encoder is None or self._encoder.wire != wire:
            self._encoder = Encoder(wire)
        self._sent = self._encoder.encode(messages, options)
        return self._sent

    async def address(self) -> tuple[str, ApiKey | None]:
        """Where to send the next request, and with which key."""
        url, key = self.chosen.endpoint.url, self.chosen.key
        if self._locate is not None:
            url, secret = await self._locate()
            key = self._local_key
            if key is None or key.reveal() != secret:
                key = self._local_key = ApiKey(secret)
        if key is not None:
            self._keys.add(key)
        return url, key


class _Attempt:
    """One request and its response. A failure ends the events and is kept in `failed`.

    It is a value and not an exception, so that no error has another as its context, whose frames
    hold the key.
    """

    def __init__(self, model: HttpModel, deadline: float) -> None:
        self.failed: FailedAttempt | None = None
        self.shown = False
        self.text_tools = model.text_tools  # a concurrent request may change the model's
        self.alternating_roles = model.chosen.profile.alternating_roles  # so with this
        self._model, self._deadline = model, deadline
        self._response: HttpResponse | None = None
        self._decoder: Decoder | None = None
        self._message: Message | None = None  # the whole reply
        self._partial: Message | None = None  # one that came at once and has no end
        self._url = ""

    def arrived(self) -> Message | None:
        """What has arrived of the reply, after a failure; can be asked once."""
        message, decoder = self._message or self._partial, self._decoder
        self._decoder = None  # a large reply is in memory as seldom as possible
        if message is None and decoder is not None:
            message = decoder.message()
        if message is None or not message.parts:
            return None
        return self._own(message)

    async def start(
        self, messages: RequestMessages, options: RequestOptions
    ) -> Sequence[ModelEvent] | None:
        """Send the request. The first events; None if there will be none."""
        return await self._guarded(self._start(messages, options))

    async def next_events(self) -> Sequence[ModelEvent] | None:
        """The events of the next piece; None at the end."""
        if self.failed is not None or self._message is not None:
            return None
        return await self._guarded(self._read())

    async def aclose(self) -> None:
        if self._response is not None:
            await self._response.aclose()

    async def _guarded(self, work: Awaitable[Sequence[ModelEvent]]) -> Sequence[ModelEvent] | None:
        transport = self._model.transport
        try:
            async with asyncio.timeout_at(self._deadline):
                events = await work
            self.shown = self.shown or any(isinstance(event, Delta) for event in events)
            return events
        except TimeoutError:
            why = f"the reply was not complete after {transport.total_timeout:g} seconds"
            self._fail(FailedAttempt(self._unreachable(why), retryable=False))
        except TransportFailed as error:
            # a server of this process that is shutting down accepts one last connection; the next
            # attempt locates it anew
            retryable = error.retryable or self._model.is_local
            self._fail(FailedAttempt(self._unreachable(error.why), retryable=retryable))
        except ModelError as error:
            failed = judge_error(error, transport.longest_wait, time.time())
            if isinstance(error, BadReply):
                # damage after a reply has begun may be gone next time; a web page is not
                damaged = self.shown if error.is_damage is None else error.is_damage
                failed = failed._replace(retryable=damaged)
            self._fail(failed)
        return None

    async def _start(
        self, messages: RequestMessages, options: RequestOptions
    ) -> Sequence[ModelEvent]:
        model, endpoint = self._model, self._model.chosen.endpoint
        options = model.options(options)
        wire = model.wire(options)
        base, key = await model.address()
        self._url = build_url(endpoint, base, options.model)
        body = model.encoded(wire, messages, options)
        headers = build_headers(endpoint, key, model.transport)
        self._response = await model.client.post(self._url, headers, body.pages, body.size)
        return await self._judge(self._response, wire)

    async def _judge(self, response: HttpResponse, wire: Wire) -> Sequence[ModelEvent]:
        """What kind of response it is, from its status and content type."""
        kind = response.headers.get("content-type", "").lower()
        if not 200 <= response.status < 300:
            body = await response.read_most(MAX_ERROR_BODY)
            variable = self._model.chosen.variable
            raise response_error(response.status, response.headers, body, variable=variable)
        if "html" in kind:
            raise bad_reply_from(await response.read_most(_MAX_PAGE))
        if "application/json" in kind:  # from a server that ignores `stream`
            body = await _read_reply(response)
            if not body.lstrip().startswith(_EVENT_FIELDS):
                return self._finish(wire.decode_reply(body), whole=True)
            self._decoder = wire.stream_decoder()  # it is a stream all the same
            return self._decoder.feed(body)
        self._decoder = wire.stream_decoder()
        return ()

    async def _read(self) -> Sequence[ModelEvent]:
        assert self._response is not None
        assert self._decoder is not None
        if piece := await self._response.read():
            return self._decoder.feed(piece)
        try:
            rest = self._decoder.close()
        except BadReply as error:  # it ended in the middle of something
            self._fail(FailedAttempt(error, retryable=error.is_damage is not False))
            return ()
        return (*rest, *self._finish(self._decoder.message()))

    def _finish(self, message: Message, *, whole: bool = False) -> Sequence[ModelEvent]:
        """The reply, if it has an end. One that came whole has it in being complete, unless the
        provider says otherwise."""
        if whole and not message.finish and not take_history(message)[1].extra:
            finish = "calls" if content_of(message) == "calls" else "stop"
            message = msgspec.structs.replace(message, finish=finish)
        if not message.finish:
            self._partial = message
            self._fail(FailedAttempt(self._broken_off(message), retryable=True))
            return ()
        self._message = self._own(message)
        return (*(_deltas(message) if whole else ()), self._message)

    def _broken_off(self, message: Message) -> ModelError:
        """For a reply without an end, however complete it looks."""
        if content_of(message) == "nothing":
            return BadReply(_EMPTY)
        word = judge_reply(message).word
        return self._unreachable(f"{_BROKEN_OFF} ({word})" if word else _BROKEN_OFF)

    def _own(self, message: Message) -> Message:
        """With the model's name, and without a key in the server's word for its end."""
        history, message = take_history(message)
        extra = redact(message.extra, self._model.secrets) if message.extra else ""
        message = msgspec.structs.replace(message, model=self._model.name, extra=extra)
        return put_history(message, history)

    def _unreachable(self, why: str) -> Unreachable:
        answered = self._response is not None
        return Unreachable(display_host(self._url), why, answered=answered)

    def _fail(self, failed: FailedAttempt) -> None:
        error = redact_error(failed.error, self._model.secrets)
        error.__cause__ = error.__context__ = error.__traceback__ = None
        self.failed = failed._replace(error=error)


async def _read_reply(response: HttpResponse) -> bytes:
    """A reply in one piece."""
    body = await response.read_most(MAX_EVENT + 1)
    if len(body) > MAX_EVENT:
        raise refuse(MAX_EVENT, "bytes in one piece")
    check_values(body)
    return body


def _deltas(message: Message) -> Sequence[Delta]:
    """A reply that arrived whole, as if it had been streamed."""
    return [
        Delta("call", part.arguments, part.name)
        if isinstance(part, ToolCall)
        else Delta("text" if isinstance(part, Text) else "thought", part.text)
        for part in message.parts
        if isinstance(part, Text | Thought | ToolCall)
    ]


def _is_about_roles(error: ModelError) -> bool:
    return isinstance(error, ProviderFailed) and is_about_role_order(error.said, error.status)


def _is_about_tools(error: ModelError) -> bool:
    return isinstance(error, ProviderFailed) and refuses_tools(error.said, error.status)


def _reason(error: ModelError) -> str:
    if isinstance(error, ProviderFailed):
        return f"{error.said} ({error.status})" if error.status else error.said
    return str(getattr(error, "why", "") or getattr(error, "what", "") or error)


def _final(error: ModelError, sent: int, partial: Message) -> ModelError:
    if isinstance(error, ProviderBusy) and not isinstance(error, QuotaExhausted):
        error = ProviderBusy(error.said, error.status, sent)
    attach_partial(error, partial)
    return error
