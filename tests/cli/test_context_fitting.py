"""Before every request of `recollect -p` the context is made to fit: rules, oversized output,
compaction, in this order, and what begins a session is in every request."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from recollect.entries import Body, Compaction, Elide, Message, Pin, Request
from recollect.testing import call, model, result, user
from recollect.tokens import counter_for
from tests.cli.model_server import (
    ENV,
    NAME,
    hook,
    messages,
    path,
    recorded,
    recording_hook,
    server,
    texts,
)
from tests.cli.road_sessions import says
from tests.cli.runner import Cli
from tests.cli.test_one_road_limits import set_window, size
from tests.models.server import Answer, Server, http

WINDOW = 32_000
LINES = 160  # of the file that is read again and again: about 2,000 tokens
REFUSED = http(b'{"error": {"message": "no"}}', "400 Bad", "application/json")


def write_file(cli: Cli, lines: int = LINES) -> None:
    text = "".join(f"value_{number} = compute({number}) + {number}\n" for number in range(lines))
    (cli.project / "a.py").write_text(text)


def read_again(times: int) -> list[bytes]:
    """Replies that read the file whole, each with another call."""
    reads = (
        call("read_file", id=f"r{n}", absolute_path="a.py", limit=300 + n) for n in range(times)
    )
    return [says(f"Look {number}.", read) for number, read in enumerate(reads)]


def copies(on: Server, number: int) -> int:
    return sum("value_80 = compute(80)" in text for text in texts(on, number))


def bodies(cli: Cli) -> list[Body]:
    return [entry.body for entry in path(cli)]


# --- rules before every request ------------------------------------------------------------------


def test_in_one_long_prompt_a_file_is_not_sent_again_and_again(cli: Cli) -> None:
    write_file(cli)
    with server(cli, *read_again(43), says("Done.")) as on:
        set_window(cli, WINDOW)
        cli.ok("-p", "Watch a.py.", env=ENV)
        found = [copies(on, number) for number in range(len(on.asked))]
        assert len(found) == 44
        assert all(size(on, number) < WINDOW for number in range(44))
    assert max(found) < 12
    assert min(found[20:]) == 5
    log = bodies(cli)
    first = next(n for n, body in enumerate(log) if isinstance(body, Elide))
    assert any(isinstance(body, Request) for body in log[first:])  # in the middle of the prompt
    assert not any(isinstance(body, Compaction) for body in log)  # the rules were enough


# --- the guard -----------------------------------------------------------------------------------


def is_summary(on: Server, number: int) -> bool:
    return "scratchpad" in on.asked[number].body.decode()


def with_writer(answers: list[bytes], writer: bytes) -> tuple[list[Server], Answer]:
    """Answers in order; a request for a snapshot gets the writer's, and takes none of them."""
    at: list[Server] = []

    async def play(_: asyncio.StreamReader, writing: asyncio.StreamWriter) -> None:
        (on,) = at
        last = len(on.asked) - 1
        replies = sum(not is_summary(on, number) for number in range(last))
        writing.write(writer if is_summary(on, last) else answers[min(replies, len(answers) - 1)])
        await writing.drain()

    return at, play


def long_history(exchanges: int = 30) -> list[Body]:
    found: list[Body] = []
    for number in range(exchanges):
        found += [user(f"Question {number}: " + "why " * 120), model("Because. " * 90)]
    return found


def test_a_writer_that_fails_is_called_once_in_a_prompt_and_again_in_the_next(cli: Cli) -> None:
    write_file(cli, 700)
    session, _ = cli.session(long_history(60))
    at, play = with_writer([*read_again(12), says("Done.")], REFUSED)
    with server(cli, play) as on:
        at.append(on)
        set_window(cli, WINDOW)
        cli.ok("-r", session.id, "-p", "Watch a.py.", env=ENV)
        asked = len(on.asked)
        assert sum(is_summary(on, number) for number in range(asked)) == 1
        assert asked == 14
        assert all(size(on, number) < WINDOW for number in range(asked))
        cli.ok("-r", session.id, "-p", "why " * 16_000, env=ENV)
        assert sum(is_summary(on, number) for number in range(len(on.asked))) <= 2


def test_where_no_compaction_is_possible_no_model_is_called_and_none_is_announced(
    cli: Cli, tmp_path: Path
) -> None:
    told, heard = recording_hook(tmp_path)
    hooks = hook("PreCompress", told) + hook("ChatCompressed", told)
    (cli.project / "a.py").write_text("x = 1\n")
    big = user("keep this " * 6_000)
    session, entries = cli.session([big, *long_history(20)])
    cli.write(
        lambda store: store.append(
            session.id, [Pin(entries=(entries[0].id,))], parent=entries[-1].id
        )
    )
    at, play = with_writer(
        [*read_again(6), says("Done.")], says("<state_snapshot></state_snapshot>")
    )
    with server(cli, play, more=hooks) as on:
        at.append(on)
        set_window(cli, WINDOW)
        cli.ok("-r", session.id, "-p", "Watch a.py.", env=ENV)
        assert not any(is_summary(on, number) for number in range(len(on.asked)))
        assert len(on.asked) == 7
    attempts = [body for body in bodies(cli) if isinstance(body, Compaction)]
    assert [body.status for body in attempts] == ["COMPRESSION_FAILED_INFLATED_TOKEN_COUNT"]
    assert [event for event, _ in recorded(heard)] == ["ChatCompressed"]


# --- initial context -----------------------------------------------------------------------------


def test_a_prompt_larger_than_the_window_takes_nothing_else_away(cli: Cli) -> None:
    cli.ok("trust", "--yes")
    (cli.project / "AGENTS.md").write_text("The port of the service is 4711.\n")
    session, _ = cli.session(long_history(4))
    with server(cli, says("Hello.")) as on:
        set_window(cli, 20_000)
        cli.ok(
            "-r", session.id, "-p", "First words. " + "padding " * 90_000 + "Last words.", env=ENV
        )
        for number in range(3):
            cli.ok("-r", session.id, "-p", f"And {number}?", env=ENV)
        assert len(on.asked) == 4
        for number in range(4):
            sent = texts(on, number)
            assert messages(on, number)[0]["role"] == "system"
            assert any("4711" in text for text in sent), number
            assert any("This is recollect" in text for text in sent), number
            assert size(on, number) < 20_000
        first = next(text for text in texts(on, 0) if text.startswith("First words."))
        assert first.endswith("Last words.")
        assert any("Question 3" in text for text in texts(on, 0))


def test_memory_larger_than_the_window_loses_its_middle_and_nothing_else(cli: Cli) -> None:
    cli.ok("trust", "--yes")
    (cli.project / "AGENTS.md").write_text(
        "The port is 4711.\n" + ("padding " * 12 + "\n") * 900 + "Use tabs.\n"
    )
    with server(cli, says("Hello.")) as on:
        set_window(cli, 16_000)
        cli.ok("-p", "Hi?", env=ENV)
        cli.ok("-c", "-p", "And?", env=ENV)
        for number in range(2):
            sent = on.asked[number].body.decode()
            assert "The port is 4711." in sent
            assert "This is recollect" in sent
            assert "recall" in sent
            assert size(on, number) < 16_000


# --- by hand -------------------------------------------------------------------------------------


def one_long_turn() -> list[Body]:
    """About 84,000 tokens in one turn of the user, with twenty calls."""
    found: list[Body] = [user("Do it all, and never touch lib.py.")]
    for number in range(20):
        use = call("run_shell_command", id=f"c{number}", command=f"make part{number}")
        lines = "".join(f"part {number} step {line} compiled\n" for line in range(560))
        found += [Message(role="model", parts=(use,)), result(use, lines)]
    return [*found, model("All parts are built.")]


def test_compact_by_hand_cuts_one_long_turn_where_it_saves(cli: Cli) -> None:
    session, _ = cli.session(one_long_turn())
    with server(cli, says("Hello.")):
        set_window(cli, 200_000)
        made = cli.ok("compact", session.id, "--no-model", "--json", env=ENV).json
    before, after = made["tokens_before"], made["tokens_after"]
    assert before > 70_000
    assert after < before * 0.5
    assert after > before * 0.2  # the newest part is kept word for word
    assert "never touch lib.py" in made["snapshot"]


def test_a_compaction_in_one_long_turn_keeps_the_newest_part(cli: Cli) -> None:
    session, _ = cli.session(one_long_turn()[:-1])
    with server(cli, says("Hello.")) as on:
        set_window(cli, 100_000)
        cli.ok("-r", session.id, "-p", "Go on.", env=ENV)
    sent = on.asked[-1].body.decode()
    assert "part 19 step 559" in sent
    assert "part 16 step 0 compiled" in sent
    assert "part 9 step 7 compiled" not in sent
    tokens = [counter_for(NAME).text(json.dumps(one)) for one in messages(on)]
    assert sum(tokens) < 60_000
