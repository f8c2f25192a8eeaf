"""`context --replay` and `encode --at`: the bytes that a server received, from the log alone."""

from __future__ import annotations

import msgspec
import pytest

from recollect.entries import Compaction, Elide, Entry, Message, Pin, Request, Restore, Text
from recollect.profiles import WireName
from recollect.store.contract import SessionInfo
from recollect.store.ids import new_id, now
from recollect.store.sqlite import SqliteStore
from recollect.testing import call, model, user
from tests.cli.context_session import append
from tests.cli.model_server import ENV, path, server
from tests.cli.road_sessions import FORMATS, only_session, requests, says
from tests.cli.runner import Cli
from tests.cli.test_one_road_limits import LARGE, set_window
from tests.models.server import Server

DAY = 86_400_000  # milliseconds
EXACT = "the very bytes that were sent: SHA-256 "


def check_replays(cli: Cli, on: Server, session: str, *, besides: int = 0) -> None:
    """Every request again, in both ways, beside what the server received: in this order, with
    `besides` that belong to no request of the session (a snapshot that a model wrote)."""
    found, received = requests(cli, session), iter([asked.body for asked in on.asked])
    assert len(found) + besides == len(on.asked)
    for request in found:
        again = cli.ok("context", session, "--at", request.id, "--replay", "sent")
        assert again.out.encode() in received
        assert EXACT in again.err
        assert cli.ok("encode", session, "--at", request.id).out == again.out


def old_session(cli: Cli) -> str:
    block = Message(role="user", parts=(Text(text="The setup."),), context="initial")
    old = [Entry(new_id(), None, now() - 3 * DAY, body) for body in (block, user("Hi?"))]
    session, _ = cli.session([*old, model("Hello.")])
    return session.id


def edit(cli: Cli, session: str, text: str, *options: str) -> None:
    """Edit the newest message that has this text."""
    newest = reversed(path(cli))
    entries = (e for e in newest if isinstance(e.body, Message) and text in repr(e.body.parts))
    cli.ok("context", session, *options, next(entries).id, env=ENV)


def run(cli: Cli, session: str, prompt: str) -> None:
    cli.ok("-r", session, "-p", prompt, env=ENV)


@pytest.mark.parametrize("wire", FORMATS)
def test_every_request_is_replayed_byte_for_byte_after_every_kind_of_edit(
    cli: Cli, wire: WireName
) -> None:
    (cli.project / "a.py").write_text("value = 1\n" * 400)
    reads = [says(call("read_file", id=f"r{n}", absolute_path="a.py"), wire=wire) for n in range(4)]
    session = old_session(cli)
    more = f'wire = "{wire}"\n[context]\nkeep_reads = 1\nmin_saving = 1\n'
    with server(cli, *reads, says("Hello.", wire=wire), more=more) as on:
        set_window(cli, LARGE)
        run(cli, session, "Read it four times.")
        edit(cli, session, "Read it", "--pin")
        edit(cli, session, "Hi?", "--drop")
        run(cli, session, "Two.")
        edit(cli, session, "Hi?", "--restore")
        run(cli, session, "Three.")
        cli.ok("compact", session, "--no-model", "--budget", "2200", env=ENV)
        run(cli, session, "Four.")
        compaction = next(e for e in reversed(path(cli)) if isinstance(e.body, Compaction))
        cli.ok("context", session, "--restore", compaction.id, env=ENV)
        run(cli, session, "Five.")
        check_replays(cli, on, session)
        (cli.home / "settings.toml").unlink()  # the settings of today are others
        check_replays(cli, on, session)
    kinds = {type(entry.body) for entry in path(cli)}
    assert {Elide, Pin, Restore, Compaction} <= kinds
    assert any("Today's date is" in asked.body.decode() for asked in on.asked)


def test_the_requests_around_an_automatic_compaction_are_replayed(cli: Cli) -> None:
    (cli.project / "a.py").write_text("value = 1\n" * 400)
    reads = [says(call("read_file", id=f"r{n}", absolute_path="a.py")) for n in range(4)]
    with server(cli, *reads, says("Hello.")) as on:
        cli.ok("-p", "Read it four times.", env=ENV)
        session = only_session(cli)
        compactions = [e for e in path(cli) if isinstance(e.body, Compaction)]
        assert compactions
        besides = len(on.asked) - len(requests(cli, session))
        check_replays(cli, on, session, besides=besides)


def test_other_tools_options_and_curation_since_then_change_no_replay(cli: Cli) -> None:
    with server(cli, says("Hello."), more="[generation]\ntemperature = 0.3\n") as on:
        cli.ok("-p", "Hi?", env=ENV)
        session, settings = only_session(cli), cli.home / "settings.toml"
        text = settings.read_text()
        settings.write_text(text.replace("window = 9000", "window = 90000"))  # more tools
        run(cli, session, "And?")
        settings.write_text(text.replace("0.3", "0.7") + '[context]\nvalidity = "any_part"\n')
        run(cli, session, "And?")
        check_replays(cli, on, session)
    sizes = [len(asked.body) for asked in on.asked]
    assert sizes[1] > sizes[0] + 1_000


def test_a_setup_is_stored_once_for_all_requests_that_share_it(cli: Cli) -> None:
    with server(cli, says("Hello.")) as on:
        cli.ok("-p", "Hi?", env=ENV)
        session = only_session(cli)
        for number in range(3):
            run(cli, session, f"And {number}?")
        check_replays(cli, on, session)
    first, *others = [body for e in requests(cli, session) if isinstance(body := e.body, Request)]
    assert first.setup
    holder = requests(cli, session)[0].id
    assert {(one.setup, one.settings) for one in others} == {("", holder)}


def test_a_fork_replays_what_its_beginning_sent(cli: Cli) -> None:
    with server(cli, says("Hello.")) as on:
        cli.ok("-p", "Hi?", env=ENV)
        session = only_session(cli)
        forked = cli.ok("fork", session, "--json").json["id"]
        run(cli, forked, "And?")
        check_replays(cli, on, forked)


def test_another_format_is_another_body_and_that_is_said(cli: Cli) -> None:
    with server(cli, says("Hello.")):
        cli.ok("-p", "Hi?", env=ENV)
        session = only_session(cli)
        shown = cli.ok("context", session, "--replay", "anthropic", env=ENV)
    assert "max_tokens" in shown.out
    assert "it was sent to another model or in another format" in shown.err


def last_request(cli: Cli, session: str) -> Request:
    body = requests(cli, session)[-1].body
    assert isinstance(body, Request)
    return body


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"digest": "0" * 32}, "not the bytes that were sent: SHA-256 "),
        ({"setup": "", "settings": None}, "did not record its tools and format"),
        ({"setup": "[", "settings": None}, "did not record its tools and format"),
        ({"setup": "", "settings": "f" * 32}, "did not record its tools and format"),
    ],
)
def test_a_replay_that_cannot_be_exact_says_so(
    cli: Cli, changes: dict[str, str | None], said: str
) -> None:
    with server(cli, says("Hello.")):
        cli.ok("-p", "Hi?", env=ENV)
        session = only_session(cli)
        found = last_request(cli, session)

        async def info(store: SqliteStore) -> SessionInfo:
            return await store.session(session)

        other = msgspec.structs.replace(found, **changes)
        (made,) = append(cli, cli.write(info), other)
        shown = cli.ok("context", session, "--at", made.id, "--replay", "sent", env=ENV)
    assert said in shown.err
    assert "Hi?" in shown.out


def test_a_session_without_requests_has_nothing_to_replay(cli: Cli) -> None:
    session, entries = cli.session([user("Hi?"), model("Hello.")])
    failed = cli("context", session.id, "--replay", "sent")
    assert (failed.code, failed.out) == (1, "")
    assert "no request was sent in this session; `recollect encode` shows the next" in failed.err
    shown = cli.ok("context", session.id, "--at", entries[0].id, "--replay", "openai")
    assert "Hi?" in shown.out


def test_a_request_for_text_tools_is_replayed_in_text(cli: Cli) -> None:
    with server(cli, says("Hello."), more='tools = "text"\n') as on:
        cli.ok("-p", "Hi?", env=ENV)
        check_replays(cli, on, only_session(cli))
