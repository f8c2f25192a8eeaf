"""`recollect -p` against a real server: no line of a file is lost behind a false placeholder."""

from __future__ import annotations

import re

from recollect.entries import Elide, Message, handle_of
from recollect.testing import call, result, user
from tests.cli.model_server import ENV, outputs, path, server
from tests.cli.road_sessions import says
from tests.cli.runner import Cli
from tests.models.server import Server

_CLAIM = re.compile(
    r"\[recall (\w{8}): earlier read of big\.py lines (\d+)-(\d+), shown by (\w{8});"
)


def write_file(cli: Cli, lines: int) -> None:
    text = "".join(f"value_{n} = {n}\n" for n in range(1, lines + 1))
    (cli.project / "big.py").write_text(text)


def use_window(cli: Cli, tokens: int) -> None:
    file = cli.home / "settings.toml"
    file.write_text(file.read_text().replace("window = 9000", f"window = {tokens}"))


def read(number: int, **asked: object) -> bytes:
    return says(call("read_file", id=f"c{number}", absolute_path="big.py", **asked))


def ask_again(cli: Cli) -> None:
    cli.ok("-c", "-p", "And now?", env=ENV)


def line_is_sent(on: Server, line: int) -> bool:
    return any(f"→value_{line} = " in output for output in outputs(on))


def test_lines_that_later_whole_reads_did_not_show_are_sent_still(cli: Cli) -> None:
    write_file(cli, 5_000)
    answers = [read(0, offset=3_000, limit=101), *(read(n) for n in range(1, 7))]
    with server(cli, *answers, says("Read."), says("Still there.")) as on:
        use_window(cli, 1_000_000)
        cli.ok("-p", "Read it.", env=ENV)
        ask_again(cli)
    assert line_is_sent(on, 3_050)
    assert sum("→value_400 = " in output for output in outputs(on)) >= 5


def test_of_many_reads_of_1_500_lines_the_newest_stay_whole(cli: Cli) -> None:
    write_file(cli, 1_500)
    answers = [read(n) for n in range(12)]
    more = "[agent]\ndetect_loops = false\n"
    with server(cli, *answers, says("Read."), says("Still there."), more=more) as on:
        use_window(cli, 1_000_000)
        cli.ok("-p", "Read it.", env=ENV)
        ask_again(cli)
    sent = outputs(on)
    assert sum("→value_400 = " in output for output in sent) >= 5
    assert "CONTENT TRUNCATED" not in "".join(sent)
    claims = [found for output in sent for found in _CLAIM.findall(output)]
    for _, first, last, _ in claims:
        assert (first, last) == ("1", "1500")


def test_of_43_reads_in_one_prompt_no_request_has_more_than_nine_copies(cli: Cli) -> None:
    write_file(cli, 400)
    more = "[agent]\ndetect_loops = false\n"
    with server(cli, *(read(n) for n in range(43)), says("Read."), more=more) as on:
        use_window(cli, 1_000_000)
        cli.ok("-p", "Read it.", env=ENV)
        copies = [
            sum("→value_300 = " in output for output in outputs(on, number))
            for number in range(len(on.asked))
        ]
    assert len(copies) == 44
    assert 5 <= max(copies) <= 9
    reasons = {entry.body.reason for entry in path(cli) if isinstance(entry.body, Elide)}
    assert reasons
    assert all(reason.startswith("earned back after about ") for reason in reasons)


def test_output_of_5_000_lines_is_shortened_with_a_handle_to_the_whole(cli: Cli) -> None:
    run = call("mcp__logs__tail", id="c0")
    text = "".join(f"value_{n} = {n}\n" for n in range(1, 5_001))
    begun = [user("Show it."), Message(role="model", parts=(run,)), result(run, text)]
    session, entries = cli.session(begun)
    with server(cli, says("Seen.")) as on:
        use_window(cli, 1_000_000)
        cli.ok("-r", session.id, "-p", "And?", env=ENV)
    (sent,) = outputs(on)
    handle = handle_of(entries[-1].id)
    assert f"[recall {handle}: ... [CONTENT TRUNCATED] ..., " in sent
    assert "value_5000 = 5000" in sent
    assert "value_2000 = 2000" not in sent
