"""`recollect -p`, when a provider says that it is busy, or that waiting is of no use."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from recollect.profiles import WireName
from tests.cli.model_server import ENV, log, readable, server
from tests.cli.runner import Cli
from tests.models.server import HELLO, Answer, http
from tests.models.test_retry_classification import (
    BILLING,
    DAY,
    METRIC,
    MINUTE,
    google,
    info,
    quota,
    retry_info,
)

GEMINI_HELLO = {"candidates": [{"content": {"parts": [{"text": "hello"}]}, "finishReason": "STOP"}]}
ORDINARY = google(
    f"{BILLING} * Quota exceeded for metric: {METRIC}, limit: 2\nPlease retry in 5.0ms.",
    quota(MINUTE),
    retry_info("0.005s"),
)


def answers(error: object, *, streamed: bool) -> tuple[Answer, Answer]:
    """First the error, then a reply of Gemini."""
    body = json.dumps(error).encode()
    first = (
        http(b"data: " + body + b"\n\n")
        if streamed
        else http(body, "429 Too Many Requests", "application/json")
    )
    return first, http(b"data: " + json.dumps(GEMINI_HELLO).encode() + b"\n\n")


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("error", [ORDINARY, google(BILLING, quota(MINUTE)), google(BILLING)])
def test_googles_limit_per_minute_is_waited_for(cli: Cli, error: object, streamed: bool) -> None:
    with server(cli, *answers(error, streamed=streamed), more='wire = "gemini"\n') as on:
        done = cli("-p", "hi", env=ENV)
    assert (done.code, done.out) == (0, "hello\n")
    assert len(on.asked) == 2


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (google(BILLING, quota(DAY), retry_info("0.001s")), "a quota of a day or longer"),
        (google("Quota exceeded, limit: 0\nPlease retry in 1ms."), "its limit is 0"),
        (google("Quota exceeded", retry_info("301s")), "asks for a wait of 5 min 1 s"),
        (google("Resource exhausted. Please retry in 400s"), "asks for a wait of 6 min 40 s"),
    ],
)
def test_a_wait_that_is_of_no_use_is_not_begun(
    cli: Cli, error: object, words: str, streamed: bool
) -> None:
    with server(cli, *answers(error, streamed=streamed), more='wire = "gemini"\n') as on:
        done = cli("-p", "hi", env=ENV)
    assert (done.code, len(on.asked)) == (1, 1)
    assert words in done.err
    assert words in log(cli)[-1][1]
    readable(done)


def test_an_empty_account_at_openai_is_not_asked_again(cli: Cli) -> None:
    body = json.dumps({"error": {"message": BILLING, "type": "insufficient_quota"}}).encode()
    with server(cli, http(body, "429 No", "application/json"), http(HELLO)) as on:
        done = cli("-p", "hi", env=ENV)
    assert (done.code, len(on.asked)) == (1, 1)
    assert "the account has no credit left" in done.err


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("429 Too Many Requests", google(BILLING, quota(DAY))),
        ("404 Not Found", {"error": {"message": "no model retired-1", "status": "NOT_FOUND"}}),
    ],
)
def test_a_model_without_quota_or_that_is_gone_leaves_the_work_to_the_fallback(
    cli: Cli, status: str, error: object
) -> None:
    first = http(json.dumps(error).encode(), status, "application/json")
    _, reply = answers(error, streamed=False)
    with server(cli, first, reply, more='wire = "gemini"\n') as on:
        file = cli.home / "settings.toml"
        spare = f'[models.spare]\nurl = "{on.url}"\nkey = "MY_KEY"\nwire = "gemini"\n'
        file.write_text(file.read_text() + spare + '[routing]\nfallback = ["spare"]\n')
        done = cli("-p", "hi", env=ENV)
    assert (done.code, done.out) == (0, "hello\n")
    assert len(on.asked) == 2
    assert "; trying spare" in done.err


@pytest.mark.parametrize("code", [None, "MODEL_CAPACITY_EXHAUSTED", "MODEL_CAPACITY_EXCEEDED"])
def test_a_model_without_capacity_is_asked_again(cli: Cli, code: str | None) -> None:
    words = "You have exhausted your capacity on this model."
    error = google(words) if code is None else google("No capacity", info(code))
    with server(cli, *answers(error, streamed=False), more='wire = "gemini"\n') as on:
        done = cli("-p", "hi", env=ENV)
    assert (done.code, done.out, len(on.asked)) == (0, "hello\n", 2)


def test_an_error_with_commas_too_many_is_understood(cli: Cli) -> None:
    error = json.dumps([google("The quota is gone", info("QUOTA_EXHAUSTED", model="m"))])
    damaged = error.replace('"metadata"', '\n ,   "metadata"').encode()
    first = http(damaged, "429 Too Many Requests", "application/json")
    with server(cli, first, http(HELLO), more='wire = "gemini"\n') as on:
        done = cli("-p", "hi", env=ENV)
    assert (done.code, len(on.asked)) == (1, 1)
    assert "The quota is gone; a quota of a day or longer is used up" in done.err


_WIRES: tuple[WireName, ...] = ("openai", "anthropic", "gemini")


@pytest.mark.parametrize("wire", _WIRES)
def test_a_status_of_a_client_that_went_away_is_retried(cli: Cli, wire: WireName) -> None:
    with server(cli, http(b"", "499 Closed", "text/plain"), more=f'wire = "{wire}"\n') as on:
        done = cli("-p", "hi", env=ENV)
    assert (done.code, len(on.asked)) == (1, 2)
    assert "tried 2 times" in done.err


_UNPLUGGED = ("bwrap", "--dev-bind", "/", "/", "--unshare-net", "--die-with-parent")


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("model.example", "the host's address cannot be looked up now"),
        ("10.1.2.3", "the network does not reach it"),
    ],
)
def test_without_a_network_a_request_is_tried_again_in_sight(
    cli: Cli, host: str, reason: str
) -> None:
    cli.home.mkdir()
    (cli.home / "settings.toml").write_text(
        f'model = "far"\n[transport]\nretries = 2\nlongest_wait = 0.01\n'
        f'[models.far]\nurl = "http://{host}/v1"\nwire = "openai"\nkey = "MY_KEY"\n'
    )
    done = subprocess.run(
        [*_UNPLUGGED, sys.executable, "-m", "recollect", "-p", "hi"],
        env=cli.env(ENV),
        cwd=cli.project,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr.count(f"retrying in 0.0 s: {reason}") == 2, done.stderr
    assert f"cannot reach {host}: {reason}" in done.stderr
