"""`recollect ask` over a real connection, kept whatever happens; `recollect models`."""

from __future__ import annotations

import json
import signal

import pytest

from tests.cli.model_server import ENV, NAME, log, server, stall
from tests.cli.runner import PATIENCE, Cli
from tests.models.server import HELLO, KEY, Answer, http


def test_the_answer_is_on_stdout_and_what_it_cost_on_stderr(cli: Cli) -> None:
    price = "price = { input = 1000.0, output = 2000.0 }\n"
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3}}\n\n'
    told = HELLO.replace(b"data: [DONE]", usage + b"data: [DONE]")
    with server(cli, http(told), more=price) as found:
        done = cli.ok("ask", "what", "is it?", env=ENV)
    assert done.out == "hello\n"
    assert "mine · " in done.err
    assert "12 tokens in, 3 out" in done.err
    assert "$0.018" in done.err
    asked = json.loads(found.asked[0].body)
    assert asked["messages"][-1] == {"role": "user", "content": "what is it?"}
    assert log(cli)[2:] == [("user", "what is it?", ""), ("model", "hello", "stop")]


def test_a_session_continues_and_the_model_sees_its_messages(cli: Cli) -> None:
    with server(cli, http(HELLO)) as found:
        first = cli.ok("ask", "one", "--json", env=ENV).json
        assert first["result"] == "hello"
        assert first["is_error"] is False
        cli.ok("ask", "two", "--session", first["session_id"][:12], env=ENV)
    said = [m["content"] for m in json.loads(found.asked[1].body)["messages"]]
    assert said[2:] == ["one", "hello", "two"]
    assert found.asked[1].body.startswith(found.asked[0].body.removesuffix(b"]}"))


def test_piped_input_follows_the_question(cli: Cli) -> None:
    with server(cli, http(HELLO)) as found:
        cli.ok("ask", "Review this.", stdin="+ a line\n", env=ENV)
    said = json.loads(found.asked[0].body)["messages"][-1]["content"]
    assert said == "Review this.\n\n+ a line"


def test_no_session_stores_nothing(cli: Cli) -> None:
    with server(cli, http(HELLO)):
        done = cli.ok("ask", "hi", "--no-session", env=ENV)
    assert done.out == "hello\n"
    assert not cli.store.exists()


def test_a_terminal_shows_the_answer_as_it_streams(cli: Cli) -> None:
    with server(cli, http(HELLO)):
        seen = cli.screen("ask", "hi", env=ENV)
    assert seen.code == 0
    assert "hello\r\n" in seen.out


def test_an_interrupted_answer_is_kept_and_the_exit_code_says_so(cli: Cli) -> None:
    with server(cli, stall):
        process = cli.start("ask", "hi", "--stream", env=ENV)
        assert process.stdout is not None
        shown = process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        rest, err = process.communicate(timeout=PATIENCE)  # the server never goes on
    assert process.returncode == 130, err
    assert b"Traceback" not in err
    kept = log(cli)[-1]
    assert kept[0] == "model"
    assert kept[1] == (shown + rest).decode().strip()
    assert kept[2] == "interrupted"


HTML = http(b"<!doctype html><html><body>It works!</body></html>", kind="text/html")
REFUSED = http(
    json.dumps({"error": {"message": f"Incorrect API key: {KEY}"}}).encode(),
    status="401 Unauthorized",
    kind="application/json",
)
HALF = http(b'data: {"choices":[{"delta":{"content":"He')
ODD_END = http(
    b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"tired"}]}\n\n'
    b"data: [DONE]\n\n"
)
BROKEN: list[tuple[str, Answer, str]] = [
    ("a page", HTML, "got a web page ("),
    ("a wrong key", REFUSED, "check the key in MY_KEY"),
    ("half a JSON", HALF, "incomplete JSON"),
    ("nothing", http(b""), "an empty reply"),
    (
        "busy",
        http(b"{}", status="503 Service Unavailable", kind="application/json"),
        "tried 2 times",
    ),
]


@pytest.mark.parametrize(
    ("answer", "sentence"), [b[1:] for b in BROKEN], ids=[b[0] for b in BROKEN]
)
def test_an_invalid_reply_is_one_sentence_and_the_question_stays(
    cli: Cli, answer: Answer, sentence: str
) -> None:
    with server(cli, answer):
        failed = cli("ask", "why?", env=ENV)
    assert (failed.code, failed.out) == (1, "")
    assert sentence in failed.err
    assert "Traceback" not in failed.err
    assert KEY not in failed.err
    kept = log(cli)
    assert ("user", "why?", "") in kept
    assert kept[-1][0] == "error"
    assert KEY not in str(kept)
    assert KEY.encode() not in cli.store.read_bytes()


def test_an_unknown_finish_reason_is_reported_and_the_answer_kept(cli: Cli) -> None:
    with server(cli, ODD_END):
        done = cli("ask", "hi", env=ENV)
    assert (done.code, done.out) == (1, "Hi\n")
    assert "ended for an unknown reason" in done.err


def test_an_unknown_host_is_one_sentence(cli: Cli) -> None:
    with server(cli, http(HELLO), url="http://nowhere.invalid/v1"):
        failed = cli("ask", "hi", env=ENV)
    assert failed.code == 1
    assert "cannot reach nowhere.invalid" in failed.err


def test_an_unknown_model_is_refused_with_the_nearest_names(cli: Cli) -> None:
    failed = cli("ask", "hi", "--model", "gtp-5")
    assert failed.code == 1
    assert "did you mean gpt-5" in failed.err
    missing = cli("ask", "hi", "--model", "gpt-5")
    assert missing.code == 1
    assert "set OPENAI_API_KEY" in missing.err


def test_invalid_settings_are_named_with_their_line(cli: Cli) -> None:
    cli.home.mkdir()
    (cli.home / "settings.toml").write_text('modle = "x"\n')
    failed = cli("ask", "hi")
    assert failed.code == 1
    assert "line 1, `modle` is not a setting (did you mean `model`?)" in failed.err


@pytest.mark.parametrize("arguments", [(), ("",), ("hi", "--session", "x", "--no-session")])
def test_a_question_is_needed_and_options_must_fit(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert cli("ask", *arguments).code == 2


def test_an_unknown_session_is_refused_before_any_request(cli: Cli) -> None:
    with server(cli, http(HELLO)) as found:
        cli.session([])
        failed = cli("ask", "hi", "--session", "feed", env=ENV)
    assert failed.code == 1
    assert "no session 'feed'" in failed.err
    assert not found.asked


def test_the_embedded_model_answers_without_a_key_and_says_that_it_is_small(cli: Cli) -> None:
    done = cli.process("ask", "What is the capital of France?", "--max-output", "40")
    assert done.code == 0, done
    assert done.out.strip()
    assert "small" in done.err
    assert "smollm2-135m · " in done.err
    assert log(cli)[-1][1].strip() == done.out.strip()


# --- recollect models --------------------------------------------------------------------------


def test_models_are_listed_with_the_keys_that_are_there_and_never_a_key(cli: Cli) -> None:
    env = {"OPENAI_API_KEY": KEY, **ENV}
    with server(cli, http(HELLO)):
        listed = cli.ok("models", env=env)
        document = cli.ok("models", "--json", env=env).json
    assert KEY not in listed.out + listed.err
    assert KEY not in json.dumps(document)
    by_name = {model["name"]: model for model in document}
    assert by_name[NAME]["default"]
    assert by_name[NAME]["window"] == 9_000
    assert by_name["gpt-5-mini"]["ready"]
    assert not by_name["claude-sonnet-5"]["ready"]
    assert "* the default model: mine (from the settings)" in listed.out


def test_one_model_is_described_in_full_listed_or_not(cli: Cli) -> None:
    told = cli.ok("models", "ollama/qwen3:8b").out
    assert "http://localhost:11434/v1" in told
    assert "131,072" in told
    assert cli("models", "no-such-model").code == 1


def test_without_settings_and_keys_the_embedded_model_is_the_default(cli: Cli) -> None:
    document = cli.ok("models", "--json").json
    assert [model["name"] for model in document if model["default"]] == ["smollm2-135m"]
