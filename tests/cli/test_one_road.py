"""`context`, `encode` and what a server receives are one request, to the byte and to the token."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.entries import Message, Text
from recollect.profiles import WireName
from recollect.testing import user
from tests.cli.model_server import ENV, server
from tests.cli.road_sessions import (
    FORMATS,
    GEMINI,
    HISTORY_SERVER,
    check_agreement,
    import_value,
    only_session,
    reads,
    requests,
    says,
    sent_text,
)
from tests.cli.runner import Cli

ELIDE_ALL = "[context]\nmin_saving = 0\n"


@pytest.mark.parametrize("wire", FORMATS)
def test_an_imported_session_agrees_in_every_format(
    cli: Cli, tmp_path: Path, wire: WireName
) -> None:
    (cli.project / "a.py").write_text("x = 1\n")
    with server(cli, says("Hello.", wire=wire), more=f'wire = "{wire}"\n') as on:
        session = import_value(cli, tmp_path, GEMINI)
        check_agreement(cli, on, session)
        check_agreement(cli, on, session, "And @a.py?")


@pytest.mark.parametrize("wire", FORMATS)
def test_a_session_whose_reads_are_left_out_agrees_in_every_format(
    cli: Cli, wire: WireName
) -> None:
    session, _ = cli.session(reads(7))
    with server(cli, says("Hello.", wire=wire), more=f'wire = "{wire}"\n{ELIDE_ALL}') as on:
        check_agreement(cli, on, session.id)
        assert sum(f"# version {number}" in sent_text(on) for number in range(7)) == 5
        check_agreement(cli, on, session.id)


@pytest.mark.parametrize("wire", FORMATS)
def test_a_session_that_must_be_compacted_first_agrees_in_every_format(
    cli: Cli, wire: WireName
) -> None:
    session, _ = cli.session(reads(5, lines=500))
    more = f'wire = "{wire}"\n'
    with server(cli, says("Hello.", wire=wire), more=more) as on:
        check_agreement(cli, on, session.id)


@pytest.mark.parametrize("wire", FORMATS)
def test_a_session_of_ask_agrees_in_every_format(cli: Cli, wire: WireName) -> None:
    more = f'wire = "{wire}"\n[generation]\ntemperature = 0.3\n'
    with server(cli, says("Hello.", wire=wire), more=more) as on:
        cli.ok("ask", "Hi?", "--temperature", "0.7", "--max-output", "77", env=ENV)
        session = only_session(cli)
        (asked,) = requests(cli, session)
        again = cli.ok("encode", session, "--at", asked.id, env=ENV).out.encode()
        assert again == on.asked[0].body
        check_agreement(cli, on, session)


def test_a_history_server_session_agrees(cli: Cli, tmp_path: Path) -> None:
    with server(cli, says("Hello.")) as on:
        check_agreement(cli, on, import_value(cli, tmp_path, HISTORY_SERVER))


def test_an_earlier_request_is_shown_as_it_was_after_the_settings_have_changed(cli: Cli) -> None:
    with server(cli, says("Hello."), more="[generation]\ntemperature = 0.3\n") as on:
        cli.ok("-p", "Hi?", env=ENV)
        session = only_session(cli)
        (asked,) = requests(cli, session)
        settings = cli.home / "settings.toml"
        settings.write_text(settings.read_text().replace("0.3", "0.9\nmax_output = 5"))
        again = cli.ok("encode", session, "--at", asked.id, env=ENV).out.encode()
        assert again == on.asked[0].body


@pytest.mark.parametrize(
    "setting", ["curation = 'drop_pair'", "keep_reads = 2", "threshold = 3000"]
)
def test_the_settings_of_the_context_hold_for_all_three(cli: Cli, setting: str) -> None:
    empty = Message(role="model", parts=(Text(text=""),))
    session, _ = cli.session([user("Did you see it?"), empty, *reads(7)])
    with server(cli, says("Hello."), more=f"{ELIDE_ALL}{setting}\n") as on:
        check_agreement(cli, on, session.id)
