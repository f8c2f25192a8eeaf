"""A model that calls one tool again and again, and fails each time, does not go on for ever."""

from __future__ import annotations

from recollect.loop_detection import FAILED_TIMES
from recollect.testing import call
from tests.cli.model_server import ENV, reply, server
from tests.cli.runner import Cli


def test_calls_that_only_fail_are_a_loop_whatever_their_arguments(cli: Cli) -> None:
    failing = [
        reply(call("read_file", id=f"c{n}", absolute_path=f"no-{n}.txt"))
        for n in range(4 * FAILED_TIMES)
    ]
    with server(cli, *failing) as on:
        ended = cli("-p", "Read it.", "--output-format", "json", env=ENV)
    assert ended.json["subtype"] == "error_loop"
    assert len(on.asked) == 2 * FAILED_TIMES + 1
    warned = [f"{FAILED_TIMES} calls of" in one.body.decode() for one in on.asked]
    assert warned == [False] * (FAILED_TIMES + 1) + [True] * FAILED_TIMES
