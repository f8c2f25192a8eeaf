"""What went wrong with a request, as one error with one clear sentence.

`response_error` judges an HTTP response that is no reply, in the server's own words where it has
some; no header that we sent is quoted. `TransportFailed` says that there was no complete response.
"""

from __future__ import annotations

from collections.abc import Mapping

from recollect.codecs.error_reports import ErrorReport, load_error, read_error
from recollect.codecs.provider_errors import bad_reply_from, make_printable, provider_error_from
from recollect.codecs.requested_delays import wait_in_headers
from recollect.errors import ApiKeyRefused, ProviderBusy, ProviderFailed, QuotaExhausted

MAX_ERROR_BODY = 64_000  # bytes of an error's body that are read
BROKEN = "the connection broke before the reply was complete"
COMPRESSED = "the response is compressed ({name}), which was not asked for"
MALFORMED = "the address or a header is malformed"
_TOLD_NOT_TO_RETRY = "it says that a retry is of no use"
_NO_VARIABLE = "the settings (none is named for this endpoint)"


class TransportFailed(Exception):
    """No complete response. `retryable` if another attempt may get one."""

    def __init__(self, why: str, *, retryable: bool) -> None:
        super().__init__(why)
        self.why, self.retryable = why, retryable


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
