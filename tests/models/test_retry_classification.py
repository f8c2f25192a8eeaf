"""What is retried, what ends the run, and after which delay: by what the provider says.

The cases of Google are those that the tests of Gemini CLI 0.61.0 decide; `docs/formats.md` names
the few in which we differ. Each is played as an error response and as an error inside a stream.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.wires import WIRES
from recollect.errors import ModelError, ProviderBusy, QuotaExhausted
from recollect.models.http_errors import response_error
from recollect.models.retry import FailedAttempt, judge_error
from recollect.profiles import WireName, find_profile

NOW = 1_800_000_000.0
LONGEST = 300.0
Expected = float | None | Literal["stop"]  # the delay, none, or that waiting is of no use
BILLING = "You exceeded your current quota, please check your plan and billing details."
METRIC = "generativelanguage.googleapis.com/generate_content_free_tier_requests"
GOOGLE = "type.googleapis.com/google.rpc."


def quota(*ids: str, value: str = "2") -> dict[str, Any]:
    violations = [{"quotaMetric": METRIC, "quotaId": id_, "quotaValue": value} for id_ in ids]
    return {"@type": f"{GOOGLE}QuotaFailure", "violations": violations}


def retry_info(delay: str) -> dict[str, Any]:
    return {"@type": f"{GOOGLE}RetryInfo", "retryDelay": delay}


def info(reason: str, **metadata: str) -> dict[str, Any]:
    return {"@type": f"{GOOGLE}ErrorInfo", "reason": reason, "metadata": metadata}


def google(said: str, *details: dict[str, Any], code: int = 429) -> dict[str, Any]:
    status = "RESOURCE_EXHAUSTED" if code == 429 else "UNAVAILABLE"
    error = {"code": code, "message": said, "status": status, "details": list(details)}
    return {"error": error}


def wrapped(error: dict[str, Any], indent: int | None = None) -> dict[str, Any]:
    return {"error": {"code": 429, "message": json.dumps(error, indent=indent), "details": []}}


def raw_wrapped(said: str) -> dict[str, Any]:
    """An error in the message of another, with line breaks in its strings that JSON forbids."""
    inner = '{"error": {"code": 429, "message": "' + said + '", "details": [{"detail": "?"}]}}'
    return {"error": {"code": 429, "message": inner, "status": "Too Many Requests"}}


MINUTE = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"
DAY = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
ORDINARY = google(
    f"{BILLING} * Quota exceeded for metric: {METRIC}, limit: 2\nPlease retry in 56.185908122s.",
    quota(MINUTE),
    {"@type": f"{GOOGLE}Help", "links": []},
    retry_info("56s"),
)
FROM_GOOGLE: list[tuple[dict[str, Any], Expected]] = [
    (ORDINARY, 56.0),
    (wrapped(ORDINARY), 56.0),
    (wrapped(wrapped(ORDINARY, 2), 2), 56.0),
    (raw_wrapped("limit: 2\nPlease retry in 44.5s."), 44.5),
    (raw_wrapped("limit: 0\nPlease retry in 44.5s."), "stop"),
    (google("Too many requests", retry_info("45.123s")), 45.123),
    (google("Too many requests", retry_info("300s")), 300.0),
    (google("Too many requests", retry_info("301s")), "stop"),
    (google("Quota exceeded", quota("RequestsPerDay-limit")), "stop"),
    (google(BILLING, quota(MINUTE, DAY), retry_info("10s")), "stop"),
    (google("Quota exceeded", quota("RequestsPerMinute-limit")), 60.0),
    (google("x", info("QUOTA_EXCEEDED", quota_limit="RequestsPerMinute_PerProject")), 60.0),
    (google("x", info("QUOTA_EXCEEDED", quota_limit="")), None),
    (google("Quota exceeded for limit: 0", retry_info("59s")), "stop"),
    (google("Quota exceeded ...\nlimit: 0, model: gemini-3-pro"), "stop"),
    (google("Quota exceeded ...\nlimit: 0. Please retry in 59s."), "stop"),
    (google("Quota exceeded ...\nlimit: 0.5. Please retry in 59s."), 59.0),
    (google("Quota exceeded", quota(MINUTE, value="0"), retry_info("5s")), "stop"),
    (google("Resource exhausted. Please retry in 5s"), 5.0),
    (google("Resource exhausted. Please retry in 400s"), "stop"),
    (google(f"{BILLING}\nPlease retry in 900.2ms."), 0.9002),
    (google("A generic 429 error with no retry message."), None),
    (google(BILLING), None),
    (google("Too many requests", {"@type": f"{GOOGLE}DebugInfo", "detail": "x"}), None),
    (google("Client Closed Request", code=499), None),
    (google("Service Unavailable", code=503), None),
    (google("x", info("RATE_LIMIT_EXCEEDED"), retry_info("0.539477544s")), 0.539477544),
    (google("x", info("RATE_LIMIT_EXCEEDED"), retry_info("600s")), "stop"),
    (google("x", info("RATE_LIMIT_EXCEEDED", quotaResetDelay="45s")), 45.0),
    (google("x", info("RATE_LIMIT_EXCEEDED", quotaResetTimeStamp="2027-01-15T08:01:00Z")), 60.0),
    (google("x", info("RATE_LIMIT_EXCEEDED", quotaResetDelay="120s"), retry_info("30s")), 30.0),
    (google("x", info("QUOTA_EXHAUSTED"), retry_info("0.5s")), "stop"),
    (google("Resource has been exhausted", info("INSUFFICIENT_G1_CREDITS_BALANCE")), "stop"),
    (google("No capacity available", info("MODEL_CAPACITY_EXHAUSTED"), retry_info("9s")), 9.0),
    (google("x", info("MODEL_CAPACITY_EXCEEDED")), None),
    (google("You have exhausted your capacity on this model."), None),
    (google("x", info("RATE_LIMIT_EXCEEDED")), None),
    (google("Quota exceeded, limit: 0", code=503), "stop"),
    (google("x", {" @type": "odd", "violations": [{"quotaId": DAY}]}), "stop"),
    (google(f"litellm: {{'quotaId': '{DAY}', 'retryDelay': '9s'}}"), "stop"),
    (google(f"litellm: {{'quotaId': '{MINUTE}', 'retryDelay': '9s'}}"), 9.0),
]
FROM_OTHERS: list[tuple[dict[str, Any], Expected]] = [
    ({"error": {"message": BILLING, "type": "insufficient_quota", "code": "x"}}, "stop"),
    ({"error": {"message": BILLING, "type": "x", "code": "insufficient_quota"}}, "stop"),
    ({"error": {"message": "x", "type": "exceeded_current_quota_error"}}, "stop"),
    ({"error": {"message": "RateLimitError: 'type': 'insufficient_quota'"}}, "stop"),
    ({"code": "exhausted", "error": "Your team has used all available credits"}, "stop"),
    ({"error": {"code": "1113", "message": "overdue"}}, "stop"),
    ({"error": {"message": "Rate limit reached. Please try again in 6s.", "code": "rate"}}, 6.0),
    ({"error": {"message": "Limit 200, Used 200. Please try again in 7m12s."}}, "stop"),
    ({"error": {"message": "Provider returned error", "metadata": {"raw": json.dumps(ORDINARY)}}},
     56.0),
    ({"error": {"message": "free-models-per-min", "metadata": {"headers":
     {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1800000012000"}}}}, 12.0),
]  # fmt: skip


def judge(error: ModelError) -> Expected:
    failed: FailedAttempt = judge_error(error, LONGEST, NOW)
    assert failed.retryable is not isinstance(failed.error, QuotaExhausted)
    assert isinstance(failed.error, ProviderBusy)  # another model is tried, if there is one
    return failed.delay if failed.retryable else "stop"


def status_of(body: dict[str, Any]) -> int:
    error = body["error"]
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) else 429


@pytest.mark.parametrize(("body", "expected"), FROM_GOOGLE + FROM_OTHERS)
def test_an_error_response_is_judged_by_what_it_says(
    body: dict[str, Any], expected: Expected
) -> None:
    for data in (body, [body]):
        error = response_error(status_of(body), {}, json.dumps(data).encode(), variable="A_KEY")
        assert judge(error) == expected


@pytest.mark.parametrize("wire", list(WIRES))
@pytest.mark.parametrize(("body", "expected"), FROM_GOOGLE + FROM_OTHERS)
def test_an_error_inside_a_stream_is_judged_the_same_way(
    wire: WireName, body: dict[str, Any], expected: Expected
) -> None:
    error = body["error"]
    if isinstance(error, dict):
        error = {"status": 429, **error}  # a stream has no status of its own
    decoder = WIRES[wire].build("m", find_profile("m")).stream_decoder()
    data = b"data: " + json.dumps({"type": "error", "error": error}).encode() + b"\n\n"
    with pytest.raises(ModelError) as caught:
        decoder.feed(data)
    assert judge(caught.value) == expected


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (429, {"retry-after": "7"}, 7.0),
        (429, {"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        (429, {"retry-after": "301"}, "stop"),
        (429, {"x-ratelimit-reset-requests": "2m59.56s"}, 179.56),
        (429, {"anthropic-ratelimit-tokens-reset": "2027-01-15T08:00:30Z"}, 30.0),
        (429, {"anthropic-ratelimit-tokens-reset": "2027-01-16T08:00:30Z"}, "stop"),
        (503, {"x-ratelimit-reset-requests": "2m59.56s"}, None),
        (503, {"retry-after": "3"}, 3.0),
        (529, {}, None),
        (499, {}, None),
        (429, {"x-should-retry": "false"}, "stop"),
        (429, {"x-should-retry": "true"}, None),
        (402, {}, "stop"),
    ],
)
def test_headers_are_respected(status: int, headers: dict[str, str], expected: Expected) -> None:
    error = response_error(status, headers, b'{"error":{"message":"no"}}', variable="")
    assert judge(error) == expected


def test_a_wait_that_is_too_long_is_said_with_its_time() -> None:
    body = json.dumps(google("Too many requests", retry_info("301s"))).encode()
    failed = judge_error(response_error(429, {}, body, variable=""), LONGEST, NOW)
    assert str(failed.error) == (
        "the provider refused (429): Too many requests; it asks for a wait of 5 min 1 s, and "
        "`transport.longest_wait` allows 5 min: try again then, or use another model"
    )


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (google(BILLING, quota(DAY)), "a quota of a day or longer is used up"),
        (google("limit: 0"), "its limit is 0"),
        ({"error": {"message": "x", "code": "insufficient_quota"}}, "no credit left"),
    ],
)
def test_an_end_says_why_waiting_is_of_no_use(body: dict[str, Any], words: str) -> None:
    error = response_error(429, {}, json.dumps(body).encode(), variable="")
    assert words in str(error)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(
            ["error", "message", "details", "violations", "metadata", "code", "status", "raw",
             "quotaId", "retryDelay", "headers", "reason", "type"]
        )
        | st.text(max_size=5),
        inner,
        max_size=4,
    ),
    max_leaves=20,
)  # fmt: skip


@given(JSON, st.integers(300, 599))
def test_any_json_is_judged(value: object, status: int) -> None:
    error = response_error(status, {}, json.dumps(value).encode(), variable="")
    failed = judge_error(error, LONGEST, NOW)
    assert len(str(failed.error)) < 1_000
    assert failed.delay is None or 0 <= failed.delay <= LONGEST
