"""No key in any error, event or log, whatever a server sends back."""

from __future__ import annotations

import logging

import pytest

from recollect.models.http_model import HttpModel
from tests.models.server import (
    HELLO,
    KEY,
    Answer,
    break_off,
    call_model,
    chosen,
    event,
    fails,
    http,
    plays,
    refused,
    retries,
)

QUOTED = "sk-fake-0123456789abcdef%2F%2Bsecret"
LEAKS: list[Answer] = [
    refused("401 No", f"Incorrect API key provided: {KEY}"),
    refused("400 No", f"bad header Authorization: Bearer {KEY}"),
    refused("429 No", f"{KEY} is over its limit"),
    refused("500 No", "x" * 470 + KEY),
    http(f"<html>{KEY}</html>".encode(), "502 Bad", "text/html"),
    http(f"<html>{KEY}</html>".encode(), "200 OK", "text/html"),
    http(f"your key {KEY} is odd".encode()),
    http(b"", "302 Found", "text/plain", [f"Location: http://x.invalid/?key={QUOTED}"]),
    http(f'data: {{"error":{{"message":"key {KEY}"}}}}\n\n'.encode()),
    http(f'{{"nonsense":"{KEY}"}}'.encode(), kind="application/json"),
    plays(event("one"), then=break_off),
    b"nonsense\r\n\r\n",
]


@pytest.mark.parametrize("answer", LEAKS)
def test_a_key_is_in_no_error_no_event_and_no_log(
    answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    error = fails(answer)
    told = [str(error), repr(error), repr(vars(error)), repr(error.args), caplog.text]
    step: BaseException | None = error.__cause__ or error.__context__
    while step is not None:
        told += [repr(step), repr(vars(step))]
        step = step.__cause__ or step.__context__
    for text in told:
        assert KEY not in text
        assert QUOTED not in text
        assert "0123456789" not in text
    assert KEY not in repr(chosen("http://localhost")) + repr(HttpModel(chosen("http://localhost")))


def test_a_key_is_in_no_retry_either() -> None:
    events, _ = call_model(refused("503 No", f"{KEY} has to wait"), http(HELLO))
    assert retries(events)[0].reason == "[key] has to wait (503)"
