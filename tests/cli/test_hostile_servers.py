"""`recollect -p` and a server that means harm: one sentence, bounded memory, the session kept.

The command runs in a process of its own, which reports the most memory that it ever had.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from recollect.entries import Message, Note
from tests.cli.model_server import ENV, path, readable, server
from tests.cli.runner import PATIENCE, Cli, Result
from tests.models.hostile_server import ATTACKS, LARGE, Attack
from tests.models.server import HELLO, Answer, http

BEYOND = 165_000  # kB that any reply may take beyond a short one
MEASURED = """
import sys
from pathlib import Path
from recollect.__main__ import main
peak = Path(sys.argv.pop(1))
try:
    main(sys.argv[1:])
finally:
    peak.write_text(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="only Linux says how much memory was used"
)


# the same harm over another format, or much slower
SLOW = {
    *("text-gemini", "text-anthropic", "text-tiny", "text-large", "text-tools-call", "think-tags"),
    *("empty-gemini", "empty-anthropic", "parts-gemini", "parts-anthropic", "signatures"),
    *("calls-gemini", "calls-anthropic", "arguments-anthropic", "newlines", "comment-without-end"),
    *("no-newline-data", "no-newline-gemini", "stray-gemini", "page-as-events", "error-event"),
    *("json", "json-wide", "json-parts", "thoughts", "gzip-unknown"),
}


def cases(attacks: dict[str, Attack]) -> list[Any]:
    return [pytest.param(n, marks=pytest.mark.long if n in SLOW else ()) for n in attacks]


class Run(NamedTuple):
    result: Result
    requests: int
    memory: int  # kB


def run(cli: Cli, answer: Answer, settings: str = "") -> Run:
    peak = cli.home.parent / "peak"
    with server(cli, answer, more=settings) as on:
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, str(peak), "-p", "hi"],
            cwd=cli.project,
            env=cli.env(ENV),
            capture_output=True,
            timeout=3 * PATIENCE,
            stdin=subprocess.DEVNULL,
        )
    result = Result(done.returncode, done.stdout.decode(), done.stderr.decode())
    return Run(result, len(on.asked), int(peak.read_text()))


def attacked(cli: Cli, attack: Attack) -> Run:
    return run(cli, attack.play, f'wire = "{attack.wire}"\n{attack.settings}')


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> int:
    """Memory for a short reply."""
    found = run(Cli(tmp_path_factory.mktemp("usual")), http(HELLO))
    assert found.result.out == "hello\n"
    return found.memory


@needs_proc
@pytest.mark.parametrize("name", cases(ATTACKS))
def test_a_hostile_server_gets_one_sentence_and_no_memory(cli: Cli, usual: int, name: str) -> None:
    found = attacked(cli, ATTACKS[name])
    assert found.result.code == 1
    readable(found.result)
    sentences = [line for line in found.result.err.splitlines() if line.startswith("recollect: ")]
    assert len(sentences) == 1
    assert found.memory < usual + BEYOND
    bodies = [entry.body for entry in path(cli)]
    assert any(isinstance(body, Message) and body.role == "user" for body in bodies)
    assert isinstance(bodies[-1], Note)  # the session is kept, with the reason


@needs_proc
@pytest.mark.parametrize("name", cases(LARGE))
def test_the_largest_replies_that_are_accepted_take_bounded_memory(
    cli: Cli, usual: int, name: str
) -> None:
    found = attacked(cli, LARGE[name])
    assert (found.result.code, found.requests) == (0, 1)
    assert found.result.out
    assert found.memory < usual + BEYOND


@pytest.mark.parametrize("claimed", [10**30, -(10**30), 1e30])
def test_tokens_that_no_window_could_hold_are_not_shown(cli: Cli, claimed: float) -> None:
    usage = json.dumps({"prompt_tokens": claimed, "completion_tokens": 3}).encode()
    lie = b'data: {"choices":[],"usage":' + usage + b"}\n\n"
    with server(cli, http(HELLO.replace(b"data: [DONE]", lie + b"data: [DONE]"))):
        done = cli.ok("-p", "hi", "--output-format", "json", env=ENV)
        told = cli("-p", "hi", env=ENV).err
    assert "0 tokens in, 0 out" in told
    assert "0000000" not in done.out + told


def test_tokens_that_an_imported_file_claims_are_not_believed_either(cli: Cli) -> None:
    time = "2026-01-01T00:00:00Z"
    base = {"sessionId": "C-1", "cwd": "/x", "version": "1", "timestamp": time}
    usage = {"input_tokens": 10**30, "output_tokens": 3}
    model = {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "hello"}]}
    records = [
        {**base, "type": "user", "uuid": "u1", "message": {"role": "user", "content": "hi"}},
        {**base, "type": "assistant", "uuid": "u2", "parentUuid": "u1",
         "message": {**model, "model": "claude", "usage": usage}},
    ]  # fmt: skip
    file = cli.project / "C-1.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    cli.ok("import", str(file))
    messages = [entry.body for entry in path(cli) if isinstance(entry.body, Message)]
    assert [(body.role, body.usage) for body in messages] == [("user", None), ("model", None)]
