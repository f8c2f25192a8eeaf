"""What went wrong with a request, as one error with one clear sentence.

`classify_response` judges an HTTP response that is no reply, in the server's own words where it has
some; of a JSON body it looks only at the upper levels. `describe_exception` judges an exception of
the HTTP library. Neither quotes a header that we sent.
"""

from __future__ import annotations

import json
import socket
import ssl
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import httpx2

from recollect.codecs.provider_errors import bad_reply_from, make_printable, provider_error_from
from recollect.errors import ApiKeyRefused, ProviderBusy, ProviderFailed
from recollect.models.decompression import UnsupportedEncoding
from recollect.models.http_request import display_host
from recollect.models.retry import FailedAttempt, may_recover, requested_delay
from recollect.settings import TransportSettings

MAX_ERROR_BODY = 64_000  # bytes of an error's body that are read
BROKEN = "the connection broke before the reply was complete"
MALFORMED = "the address or a header is malformed"
_NO_VARIABLE = "the settings (none is named for this endpoint)"
_PROXY_SCHEMES = "http://, https://, socks5:// and socks5h://"


def classify_response(
    status: int, headers: Mapping[str, str], body: bytes, *, variable: str, now: float
) -> FailedAttempt:
    """What this response means; `variable` names where the key is set."""
    if 300 <= status < 400:
        where = make_printable(headers.get("location", "nowhere"), 200)
        said = f"it redirects to {where}, and a key is not sent elsewhere"
        error = ProviderFailed(said, status, "set the address in the settings")
        return FailedAttempt(error, retryable=False)
    text = body.decode("utf-8", "replace")
    said, kind = provider_message(body)
    error = provider_error_from(said, status, kind)
    if isinstance(error, ApiKeyRefused):
        error = ApiKeyRefused(error.said, status, variable or _NO_VARIABLE)
    if isinstance(error, ProviderBusy) and may_recover(text):
        return FailedAttempt(error, retryable=True, delay=requested_delay(headers, text, now))
    return FailedAttempt(error, retryable=False)


def describe_exception(error: Exception, settings: TransportSettings) -> tuple[str, bool]:
    """Why a request failed, and whether to try again. The exception's own text is never used: it
    may quote a header."""
    match error:
        case httpx2.ConnectTimeout():
            return f"no connection within {settings.connect_timeout:g} seconds", True
        case httpx2.TimeoutException():
            return f"nothing arrived for {settings.read_timeout:g} seconds", True
        case httpx2.ConnectError():
            return next(_connect_reasons(error), "no connection could be made"), False
        case httpx2.ProxyError():
            return f"{_display_proxy(settings)} refused", False
    return _describe_other(error, settings)


def _describe_other(error: Exception, settings: TransportSettings) -> tuple[str, bool]:
    match error:
        case ImportError():
            need = "SOCKS proxies need an extra package; run `pip install 'recollect[socks]'`"
            return f"{_display_proxy(settings)} cannot be used: {need}", False
        case OSError():
            return "the certificates named by SSL_CERT_FILE or SSL_CERT_DIR cannot be read", False
        case UnsupportedEncoding():
            return f"the response is compressed in an unsupported way ({error.encoding})", False
        case zlib.error():
            return "the response is compressed and damaged", True
        case (
            UnicodeError()
            | httpx2.InvalidURL()
            | httpx2.UnsupportedProtocol()
            | httpx2.LocalProtocolError()
        ):
            return MALFORMED, False
        case ValueError():
            proxy = _display_proxy(settings)
            return f"{proxy} cannot be used: only {_PROXY_SCHEMES} are supported", False
    return BROKEN, True


def _display_proxy(settings: TransportSettings) -> str:
    return f"the proxy {display_host(settings.proxy) if settings.proxy else 'of the environment'}"


def _connect_reasons(error: BaseException) -> Iterator[str]:
    """From what the operating system or TLS said, wherever in the chain of causes it is."""
    chain = [error]
    for step in chain:
        grouped = step.exceptions if isinstance(step, BaseExceptionGroup) else ()
        causes = (*grouped, step.__cause__ or step.__context__)
        chain += [cause for cause in causes if cause is not None and len(chain) < 50]
        match step:
            case ssl.SSLCertVerificationError():
                yield f"its certificate is not trusted ({step.verify_message})"
            case ssl.SSLError():
                yield "no secure connection could be agreed on (TLS)"
            case socket.gaierror():
                yield "the host is unknown"
            case ConnectionRefusedError():
                yield "nothing answers there (the connection was refused)"


def provider_message(body: bytes) -> tuple[str, str]:
    """The provider's message and its own type of error, in any of the usual formats."""
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return _describe_body(body), ""
    if isinstance(value, list) and value:  # Gemini, where it would have streamed a list
        value = value[0]
    if isinstance(value, str):
        return value, ""
    if not isinstance(value, dict):
        return _describe_body(body), ""
    error = value.get("error", value)
    if isinstance(error, str):  # Ollama
        return error, ""
    if not isinstance(error, dict):
        error = value
    said = _first_text(error, "message", "detail", "error_description", "msg")
    kind = _first_text(error, "code", "type", "status")
    return _add_upstream_message(error, said) or _describe_body(body), kind


def _add_upstream_message(error: dict[str, Any], said: str) -> str:
    """OpenRouter wraps the message of the model's own provider."""
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return f"{said}: {raw}" if isinstance(raw, str) and raw else said


def _first_text(value: dict[str, Any], *names: str) -> str:
    return next((v for name in names if isinstance(v := value.get(name), str) and v), "")


def _describe_body(body: bytes) -> str:
    """Short plain text as it is; of anything else, what kind of thing it is."""
    what = bad_reply_from(body).what
    if what.startswith("text (") and len(body) <= 500:
        return body.decode("utf-8", "replace")
    return what
