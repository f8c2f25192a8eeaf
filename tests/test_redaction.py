"""Made-up credentials are removed, and texts that only look like one stay."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.openai import OpenAIWire
from recollect.entries import Body, Compaction, Message, Note, Thought, Title, ToolCall
from recollect.redaction import MARK, redact, redact_json
from recollect.testing import call, model, result, user
from tests.cli.model_server import ENV, server
from tests.cli.runner import Cli
from tests.credentials import CREDENTIALS, LOOK_ALIKES, SENTENCES, left_of, made, pem
from tests.growth import is_linear
from tests.models.server import HELLO, http


def test_more_than_forty_kinds_are_tested() -> None:
    assert len(CREDENTIALS) > 40


@pytest.mark.parametrize(("name", "secret", "sentence"), SENTENCES, ids=list(CREDENTIALS))
def test_a_credential_is_removed_and_its_sentence_stays(
    name: str, secret: str, sentence: str
) -> None:
    clean = redact(sentence)
    assert left_of(secret, clean) == []
    assert MARK in clean
    if sentence.startswith("The deploy log"):
        assert re.fullmatch(r"The deploy log says \[redacted: [a-z. ]+\] and then goes on\.", clean)


SURROUNDINGS = (
    "'{}'",
    '"{}",',
    "\n  12\t{}\n",
    "`{}`",
    "+{}",
    "> {}",
    "({})",
    "{}\x1b[0m",
    "x={};y",
)


@pytest.mark.parametrize(("name", "secret", "sentence"), SENTENCES, ids=list(CREDENTIALS))
def test_a_credential_is_removed_whatever_surrounds_it(
    name: str, secret: str, sentence: str
) -> None:
    for around in SURROUNDINGS:
        assert left_of(secret, redact(around.replace("{}", sentence))) == [], around


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_text_that_only_looks_like_a_credential_stays(text: str) -> None:
    assert redact(text) == text


def test_the_marker_names_the_kind_of_credential() -> None:
    secret, _sentence = CREDENTIALS["github token"]
    assert redact(secret) == "[redacted: github token]"
    assert redact("postgresql://app:pass1@db/x") == "postgresql://app:[redacted: password]@db/x"
    assert redact("PGPASSWORD=hunter22 psql") == "PGPASSWORD=[redacted: secret] psql"


def test_a_private_key_is_removed_also_when_numbered_cut_off_or_in_a_diff() -> None:
    whole = pem("RSA PRIVATE KEY").splitlines()
    numbered = "\n".join(f"{n:6}\t{line}" for n, line in enumerate(whole, 1))
    added = "\n".join(f"+{line}" for line in whole)
    removed = "\n".join(f"-{line}" for line in whole)
    cut = "\n".join(whole[:5]) + "\n[cut]"
    for text in (
        numbered,
        added,
        removed,
        cut,
        json.dumps("\n".join(whole)),
        json.dumps(json.dumps("\n".join(whole))),
    ):
        clean = redact(text)
        assert [line for line in whole[1:4] if line[:20] in clean] == []


_pieces = st.sampled_from([*(text for *_, text in SENTENCES), *LOOK_ALIKES])


@given(st.lists(_pieces, max_size=6).map("\n".join))
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(st.text(max_size=300))
def test_any_text_can_be_redacted(text: str) -> None:
    assert isinstance(redact(text), str)


@given(st.text(alphabet=" abcdefghij.,;\n", max_size=300))
def test_words_stay_words(text: str) -> None:
    assert redact(text) == text


HOSTILE = [
    "eyJ",
    "eyJa.",
    "eyJaaaaaaaaa.eyJ",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "token=",
    "password",
    "PASSWORD=",
    "token='",
    "a://",
    "a:b@",
    "http://a:",
    "Bearer ",
    "authorization: ",
    "ghp_",
    "sk-",
    "sk-a",
    "xoxb-",
    "glpat-",
    "$6$",
    "\\n",
    "\\\\\"'",
    "AKIA",
    "cookie: a=",
    "login a\n",
    "login a password",
    "-u a:",
    "A",
    "a7",
    "7",
    "-",
    "_",
    ".",
    "/",
    "=",
    " ",
    "SG.",
    "Maaaaaaaaaaaaaaaaaaaaaaaa.",
    "cio",
    "key-",
    "hooks.slack.com/services/",
    'secret: \\"',
    "aws_secret_access_key=",
    "?sig=",
    "A: b\n",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_twice_the_text_takes_about_twice_the_time(piece: str) -> None:
    assert is_linear(lambda size: partial(redact, piece * (size // len(piece))), 25_000, 200_000)


def test_a_document_keeps_its_shape_and_secret_names_are_known() -> None:
    document = {
        "messages": [
            {
                "args": {"password": "correct horse", "path": "a.py", "n": 7, "tokens": 12},
                "token": "abc",
            },
            {"text": "Bearer " + made(40), "nested": json.dumps({"api_key": made(20)})},
        ],
        "sha": "9fceb02d0ae598e95dc970b74767f19372d61af8",
        "half": "\ud800",
    }
    clean = json.loads(redact_json(json.dumps(document).encode()))
    first, second = clean["messages"]
    assert first == {
        "args": {"password": "[redacted: secret]", "path": "a.py", "n": 7, "tokens": 12},
        "token": "abc",
    }
    assert second["text"] == "Bearer [redacted: bearer token]"
    assert json.loads(second["nested"]) == {"api_key": "[redacted: secret]"}
    assert (clean["sha"], clean["half"]) == (document["sha"], "\ud800")


def test_a_document_without_a_secret_comes_back_byte_for_byte() -> None:
    data = (
        json.dumps({"a": ["b", {"c": 1.5}], "限": "流"}, ensure_ascii=False, indent=2) + "\n"
    ).encode()
    assert redact_json(data) == data


def test_a_deeply_nested_document_is_redacted() -> None:
    deep = '{"a":' * 300 + '"' + CREDENTIALS["npm token"][0] + '"' + "}" * 300
    assert b"npm_" not in redact_json(deep.encode())


# --- through the whole program -----------------------------------------------------------------

FORMATS = ["gemini", "history-server"]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


@pytest.fixture(scope="module")
def leaky(tmp_path_factory: pytest.TempPathFactory) -> tuple[Cli, str]:
    """A session with every credential in every kind of part, of both roles."""
    cli = Cli(tmp_path_factory.mktemp("leaky"))
    items: list[Body] = []
    for number, (*_, sentence) in enumerate(SENTENCES):
        shell = call(
            "run_shell_command", id=f"c{number}", command=sentence, nested={"in": [sentence]}
        )
        items += [user(sentence), Message(role="model", parts=(Thought(text=sentence), shell))]
        items += [result(shell, sentence, is_error=bool(number % 2)), model(sentence)]
        items += [Note(text=sentence), Title(title=sentence)]
    items += [user(text) for text in LOOK_ALIKES]
    items.append(Compaction(status="COMPRESSED", snapshot="\n".join(s for *_, s in SENTENCES)))
    return cli, cli.session(items, title=SENTENCES[0][2])[0].id


@pytest.mark.parametrize("to", FORMATS)
def test_a_redacted_export_has_no_credential_and_everything_else(
    leaky: tuple[Cli, str], to: str
) -> None:
    cli, session = leaky
    whole = cli.ok("export", session, "--to", to, "-o", "-").out
    assert left_of(CREDENTIALS["npm token"][0], whole)  # it was there
    done = cli.ok("export", session, "--to", to, "-o", "-", "--redact")
    assert done.err == ""
    text = every_text(json.loads(done.out))
    assert [name for name, secret, _ in SENTENCES if left_of(secret, done.out)] == []
    assert [name for name, secret, _ in SENTENCES if left_of(secret, text)] == []
    for harmless in LOOK_ALIKES:
        assert harmless in text
    assert len(json.loads(done.out)["messages"]) == len(json.loads(whole)["messages"])


@pytest.mark.parametrize("to", FORMATS)
def test_a_redacted_export_can_be_imported(leaky: tuple[Cli, str], to: str, tmp_path: Path) -> None:
    cli, session = leaky
    file = tmp_path / "file.json"
    cli.ok("export", session, "--to", to, "-o", str(file), "--redact")
    elsewhere = ["--store", str(tmp_path / "new" / "other.db")]
    cli.ok("import", str(file), *elsewhere)
    (found,) = cli.ok("sessions", "--json", *elsewhere).json
    shown = cli.ok("show", found["id"], *elsewhere).out
    assert "[redacted: npm token]" in shown
    assert [name for name, secret, _ in SENTENCES if left_of(secret, shown)] == []


def test_no_credential_in_the_output_of_tools_is_printed(cli: Cli) -> None:
    """Files are read, and edits fail with an error that quotes the nearest lines of the file."""
    calls: list[ToolCall] = []
    for number, (*_, sentence) in enumerate(SENTENCES):
        file = f"f{number}.txt"
        (cli.project / file).write_text(sentence + "\n")
        edit = {"file_path": file, "old_string": f"{sentence} ?", "new_string": "x"}
        calls += [call("read_file", id=f"r{number}", absolute_path=file)]
        calls += [call("replace", id=f"e{number}", **edit)]
    message = Message(role="model", parts=tuple(calls), finish="calls")
    answers = (http(b"".join(OpenAIWire(model="m").encode_stream(message))), http(HELLO))
    with server(cli, *answers, more='[permissions]\nmode = "edit"\n') as asked:
        done = cli.ok("-p", "Look.", env=ENV)
    sent = "".join(request.body.decode() for request in asked.asked)
    assert any(left_of(secret, sent) for _, secret, _ in SENTENCES)  # the model was sent them
    assert "→ replace" in done.err
    assert "[redacted: " in done.err
    assert [name for name, secret, _ in SENTENCES if left_of(secret, done.err + done.out)] == []


def test_no_credential_that_a_provider_quotes_is_in_an_error(cli: Cli) -> None:
    for name, secret, sentence in SENTENCES[::40]:
        said = json.dumps({"error": {"message": f"cannot take this: {sentence}"}}).encode()
        refusal = http(said, status="400 Bad Request", kind="application/json")
        with server(cli, refusal):
            done = cli("-p", "Look.", env=ENV)
        assert done.code != 0
        assert left_of(secret, done.err) == [], name


def every_text(value: object) -> str:
    found: list[str] = []
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, dict):
            todo += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            todo += item
    return "\n".join(found)
