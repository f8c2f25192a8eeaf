"""What went wrong with a request, as one error with one clear sentence.

`response_error` judges an HTTP response that is no reply, in the server's own words where it has
some. `describe_exception` judges an exception of the HTTP library. Neither quotes a header that we
sent.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping

import httpx2

from recollect.codecs.error_reports import ErrorReport, load_error, read_error
from recollect.codecs.provider_errors import bad_reply_from, make_printable, provider_error_from
from recollect.codecs.requested_delays import wait_in_headers
from recollect.errors import ApiKeyRefused, ProviderBusy, ProviderFailed, QuotaExhausted
from recollect.models.http_request import display_host
from recollect.settings import TransportSettings

MAX_ERROR_BODY = 64_000  # bytes of an error's body that are read
BROKEN = "the connection broke before the reply was complete"
COMPRESSED = "the response is compressed ({name}), which was not asked for"
MALFORMED = "the address or a header is malformed"
_TOLD_NOT_TO_RETRY = "it says that a retry is of no use"
_NO_VARIABLE = "the settings (none is named for this endpoint)"
_REASONS: dict[type[Exception], str] = {  # the first that fits
    httpx2.ConnectTimeout: "no connection within {settings.connect_timeout:g} seconds",
    httpx2.TimeoutException: "nothing arrived for {settings.read_timeout:g} seconds",
    httpx2.ProxyError: "{proxy} refused",
    ImportError: "{proxy} cannot be used: SOCKS proxies need an extra package; "
    "run `pip install 'recollect[socks]'`",
    OSError: "the certificates named by SSL_CERT_FILE or SSL_CERT_DIR cannot be read",
    UnicodeError: MALFORMED,
    httpx2.InvalidURL: MALFORMED,
    httpx2.UnsupportedProtocol: MALFORMED,
    httpx2.LocalProtocolError: MALFORMED,
    ValueError: "{proxy} cannot be used: "
    "only http://, https://, socks5:// and socks5h:// are supported",
}


def response_error(
    status: int, headers: Mapping[str, str], body: bytes, *, variable: str
) -> ProviderFailed:
    """The error that this response reports; `variable` names where the key is set."""
    if 300 <= status < 400:
        where = make_printable(headers.get("location", "nowhere"), 200)
        said = f"it redirects to {where}, and a key is not sent elsewhere"
        return ProviderFailed(said, status, "set the address in the settings")
    wait = wait_in_headers(headers, limited=status == 429)
    error = provider_error_from(read_error_body(body), status, wait)
    if isinstance(error, ApiKeyRefused):
        return ApiKeyRefused(error.said, status, variable or _NO_VARIABLE)
    if type(error) is ProviderBusy and headers.get("x-should-retry", "").strip() == "false":
        return QuotaExhausted(error.said, status, _TOLD_NOT_TO_RETRY)
    return error


def describe_exception(error: Exception, settings: TransportSettings) -> tuple[str, bool]:
    """Why a request failed, and whether to try again. The exception's own text is never used: it
    may quote a header."""
    if isinstance(error, httpx2.ConnectError):
        return next(_connect_reasons(error), ("no connection could be made", False))
    reason = next((_REASONS[kind] for kind in _REASONS if isinstance(error, kind)), None)
    if reason is None:
        return BROKEN, True
    proxy = f"the proxy {display_host(settings.proxy) if settings.proxy else 'of the environment'}"
    sentence = reason.format(settings=settings, proxy=proxy)
    return sentence, isinstance(error, httpx2.TimeoutException)


def _connect_reasons(error: BaseException) -> Iterator[tuple[str, bool]]:
    """From what the operating system or TLS said, wherever in the chain of causes it is, and
    whether that may pass: a line that broke, unlike an address or a server that is wrong."""
    chain = [error]
    for step in chain:
        grouped = step.exceptions if isinstance(step, BaseExceptionGroup) else ()
        causes = (*grouped, step.__cause__ or step.__context__)
        chain += [cause for cause in causes if cause is not None and len(chain) < 50]
        match step:
            case ssl.SSLCertVerificationError():
                yield f"its certificate is not trusted ({step.verify_message})", False
            case (
                ssl.SSLEOFError()
                | ssl.SSLZeroReturnError()  # the same, in Python 3.11.2
                | ConnectionResetError()
                | BrokenPipeError()
            ):
                yield "the connection broke while it was made", True
            case ssl.SSLError():
                # OpenSSL names the reason in several ways, all with these words
                broken = "BAD_RECORD_MAC" in (step.reason or "")
                yield "no secure connection could be agreed on (TLS)", broken
            case socket.gaierror():
                yield "the host is unknown", False
            case ConnectionRefusedError():
                yield "nothing answers there (the connection was refused)", False


def read_error_body(body: bytes) -> ErrorReport:
    """What the body says, in any of the usual formats."""
    value = load_error(body.decode("utf-8", "replace").removeprefix("\ufeff"))
    if isinstance(value, dict | list | str) and (report := read_error(value)).said:
        return report
    # of other text, what it looks like; a delay in its words is understood nevertheless
    return read_error(body.decode("utf-8", "replace"))._replace(said=_describe_body(body))


def _describe_body(body: bytes) -> str:
    """Short plain text as it is; of anything else, what kind of thing it is."""
    what = bad_reply_from(body).what
    if what.startswith("text (") and len(body) <= 500:
        return body.decode("utf-8", "replace")
    return what
