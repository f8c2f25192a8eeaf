"""Exceptions of the HTTP library, as one clear sentence each; none quotes a header that we sent."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator

import httpx2

from recollect.models.http_errors import BROKEN, MALFORMED
from recollect.models.http_request import display_host
from recollect.settings import TransportSettings

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

# without a network, or on the way to one that comes and goes
_NO_WAY = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN, errno.ETIMEDOUT)


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
            case socket.gaierror(errno=socket.EAI_AGAIN):
                yield "the host's address cannot be looked up now", True
            case socket.gaierror():
                yield "the host is unknown", False
            case OSError(errno=number) if number in _NO_WAY:
                yield "the network does not reach it", True
            case ConnectionRefusedError():
                yield "nothing answers there (the connection was refused)", False
