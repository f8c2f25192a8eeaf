"""What the conformance kit can play, against the command line: each fault comes to what it says."""

from __future__ import annotations

import pytest

from recollect.profiles import WireName
from recollect.testing import FAULT_CASES, FAULTS, ProviderLine, call
from tests.cli.provider import provider, run
from tests.cli.runner import Cli

# what a run ends with, by what a careful client makes of the fault
SUBTYPES = {
    "answer": {"success"},
    "calls": {"success"},
    "ask again": {"success"},
    "retried": {"success"},
    "interrupted": {"error", "error_interrupted"},
    "cut off": {"error_cut_off"},
    "blocked": {"error_blocked"},
    "error": {"error"},
}
# they never end by themselves; the tests of memory have them
ENDLESS = {"gzip-bomb", "endless-text", "endless-comments", "endless-line"}
IMPATIENT = "read_timeout = 0.5\n"
# a fault only for a client that asks for one document; recollect asks for streams
CASES = [(n, wire) for n, wire in FAULT_CASES if n not in ENDLESS and n != "streamed"]


@pytest.mark.parametrize(("name", "wire"), CASES, ids=str)
def test_a_fault_comes_to_what_the_catalogue_says(cli: Cli, name: str, wire: WireName) -> None:
    fault = FAULTS[name]
    (cli.project / "notes.txt").write_text("The harbour opens at six.")
    reply = fault.reply(wire, call("read_file", absolute_path=str(cli.project / "notes.txt")))
    again = fault.expected in ("interrupted", "error")
    script: list[ProviderLine] = [reply, reply if again else "It is done."]
    silent = reply.close == "silence" or reply.delay > 1
    with provider(cli, wire, script, transport=IMPATIENT if silent else "") as server:
        done = run(cli)
    assert done.result["subtype"] in SUBTYPES[fault.expected], done
    assert done.code == (0 if done.result["subtype"] == "success" else done.code or 1)
    told = [*done.of("retrying"), *done.of("correction")]
    if fault.expected in ("ask again", "retried"):
        assert told, done
    # a request that is too long is followed by shorter ones
    if fault.expected in ("answer", "error", "cut off", "blocked") and name != "context-too-long":
        assert (len(server.requests), told) == (1, []), done
    ran = [line for line in done.of("tool_result") if not line["is_error"]]
    assert bool(ran) is (fault.expected == "calls"), done
