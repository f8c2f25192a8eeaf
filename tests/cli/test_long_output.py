"""What commands print stays in the log: later prompts and processes find all of it."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path

import pytest

from recollect.agent.tool_calls import UNKNOWN_OUTCOME
from recollect.entries import Note, ToolResult
from recollect.store.output_notes import output_part
from recollect.testing import call
from tests.cli.model_server import (
    ENV,
    hook,
    outputs,
    parts_of,
    path,
    reply,
    script,
    server,
    stall,
)
from tests.cli.runner import PATIENCE, Cli
from tests.models.server import HELLO, Server, http

LINES = 200_000
MARKER = "needle-in-the-middle"
ALLOW = '[permissions]\nallow = ["python3 *"]\n'
WINDOW = 60_000
PRINTS = (
    "import sys\n"
    f"for n in range({LINES}):\n"
    f"    print(f'line {{n:06d}}' + (' {MARKER}' if n == {LINES // 2} else ''))\n"
)


def run_print(cli: Cli) -> bytes:
    """A reply that runs a script which prints many lines."""
    (cli.project / "prints.py").write_text(PRINTS)
    return reply(call("run_shell_command", id="a", command="python3 prints.py"))


def handle_in(text: str) -> str:
    (handle,) = re.findall(r"bytes left out here; recall (\w+) ", text)
    return str(handle)


def recall(handle: str, **more: object) -> bytes:
    return reply(call("recall", id=f"r{len(more)}", handle=handle, **more))


def print_lines(cli: Cli) -> tuple[str, str]:
    """Run the script in a process of its own; what the model was shown, and the handle in it."""
    with server(cli, run_print(cli), http(HELLO), more=ALLOW, window=WINDOW) as on:
        done = cli.process("-p", "Print.", env=ENV)
        assert done.code == 0, done.err
    (shown,) = outputs(on)
    return shown, handle_in(shown)


def test_a_later_process_shows_finds_and_recalls_what_was_left_out(cli: Cli) -> None:
    shown, handle = print_lines(cli)
    assert shown.startswith("line 000000\n")
    assert f"line {LINES - 1}\n[exit code 0" in shown
    assert MARKER not in shown
    assert len(shown) < 30_000

    full = cli.process("show", handle, "--full").out
    lines = [line.strip() for line in full.splitlines() if line.strip().startswith("line ")]
    assert len(lines) == LINES
    assert lines[LINES // 2] == f"line {LINES // 2:06d} {MARKER}"
    short = cli.process("show", handle).out
    assert "--full shows them" in short
    assert "python3 prints.py" in short

    both = [h for h in cli.ok("search", "000005", "--json").json if not h["missing"]]
    assert [len(hit["alike"]) for hit in both] == [1]  # in the result and in the output
    found = cli.process("search", MARKER).out
    assert f"line {LINES // 2:06d} {MARKER}" in found
    assert "python3 prints.py" in found
    assert MARKER in cli.ok("search", MARKER, "--tool", "run_shell_command").out
    (hit,) = [h for h in cli.ok("search", f"{MARKER} 100000", "--json").json if not h["missing"]]
    assert MARKER in cli.ok("show", hit["handle"], "--full").out

    asks = [
        recall(handle, around=MARKER),
        recall(handle, offset=12_000, limit=500),
        reply(call("search_history", id="s", words=MARKER)),
    ]
    with server(cli, *asks, http(HELLO), more=ALLOW, window=WINDOW) as on:
        cli.ok("-c", "-p", "Where is the marker?", env=ENV)
    around, offset, searched = outputs(on)[-3:]
    assert f"line {LINES // 2:06d} {MARKER}" in around
    assert "what run_shell_command gave, as it came" in around
    assert "characters 12,001 to 12,500 of 2,400,021" in offset
    assert f"> line {LINES // 2:06d} {MARKER}" in searched
    assert len(around) < 9_000


def test_following_what_recall_says_leads_through_all_of_it(cli: Cli) -> None:
    """From the result's own handle to that of the output, and on from offset to offset."""
    _, handle = print_lines(cli)
    result = next(
        entry.id[-8:]
        for entry in path(cli)
        if isinstance(getattr(entry.body, "parts", (None,))[0], ToolResult)
    )
    with server(cli, recall(result), http(HELLO), more=ALLOW, window=WINDOW) as on:
        cli.ok("-c", "-p", "Recall the result.", env=ENV)
    assert handle_in(outputs(on)[-1]) == handle
    seen, offset = list[str](), 0
    for _ in range(3):
        ask = recall(handle, offset=offset, limit=20_000)
        with server(cli, ask, http(HELLO), more=ALLOW, window=WINDOW) as on:
            cli.ok("-c", "-p", "Go on.", env=ENV)
        given = outputs(on)[-1]
        (following,) = re.findall(rf"for more: recall {handle} with offset (\d+)]", given)
        offset = int(following)
        seen.append(given.split("\n", 1)[1].rsplit("\n", 1)[0])
    whole = "".join(f"line {n:06d}\n" for n in range(10_000))
    assert "".join(seen) == whole[:offset]
    assert offset > 3 * 10_000  # as many lines as no rule would leave out again


def wait_for_requests(on: Server, count: int) -> None:
    until = time.monotonic() + PATIENCE
    while len(on.asked) < count:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_process_that_is_killed_before_the_next_reply_has_lost_nothing(cli: Cli) -> None:
    with server(cli, run_print(cli), stall, more=ALLOW, window=WINDOW) as on:
        process = cli.start("-p", "Print.", env=ENV)
        wait_for_requests(on, 2)
        process.kill()
        process.communicate(timeout=PATIENCE)
    handle = handle_in(outputs(on)[0])
    assert MARKER in cli.process("search", MARKER).out
    assert MARKER in cli.process("show", handle, "--full").out


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_leaves_what_it_had_printed(cli: Cli, by: signal.Signals) -> None:
    (cli.project / "prints.py").write_text(
        f"print('found {MARKER}', flush=True)\nopen('sub/printed', 'w').close()\n"
        "import time\ntime.sleep(6000)\n"
    )
    mark = cli.project / "sub" / "printed"
    mark.parent.mkdir(mode=0o777)
    run = reply(call("run_shell_command", id="a", command="python3 prints.py"))
    with server(cli, run, http(HELLO), more=ALLOW, window=WINDOW) as on:
        process = cli.start("-p", "Print.", env=ENV)
        until = time.monotonic() + PATIENCE
        while not mark.exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        process.send_signal(by)
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130, err
        (result,) = parts_of(cli, ToolResult)
        (handle,) = re.findall(r"recall (\w+) gives what it had printed", result.content[0].text)
        assert UNKNOWN_OUTCOME in result.content[0].text
    with server(cli, recall(handle), http(HELLO), more=ALLOW, window=WINDOW) as on:
        cli.ok("-c", "-p", "What had it printed?", env=ENV)
    assert f"found {MARKER}" in outputs(on)[-1]


def test_what_a_job_had_printed_is_there_when_its_program_is_gone(cli: Cli) -> None:
    (cli.project / "sub").mkdir()
    wait = "import os, time\nwhile not os.path.exists('sub/{}'): time.sleep(0.01)\n"
    (cli.project / "job.py").write_text(
        f"{wait.format('go')}print('{MARKER}', flush=True)\n"
        "open('sub/printed', 'w').close()\ntime.sleep(6000)\n"
    )
    (cli.project / "see.py").write_text(f"open('sub/go', 'w').close()\n{wait.format('printed')}")
    run = call("run_shell_command", id="a", command="python3 job.py", background=True)
    see = call("run_shell_command", id="b", command="python3 see.py")
    with server(cli, reply(run), reply(see), http(HELLO), more=ALLOW, window=WINDOW):
        cli.ok("-p", "Start it.", env=ENV)
    notes = [entry.body for entry in path(cli) if isinstance(entry.body, Note)]
    assert [note.text for note in notes if output_part(note) is not None] == [f"{MARKER}\n"]
    ask = reply(call("read_job", id="j", job="job-1"))
    with server(cli, ask, http(HELLO), more=ALLOW, window=WINDOW) as on:
        cli.ok("-c", "-p", "What does it say?", env=ENV)
    (handle,) = re.findall(r"started it; recall (\w+) gives what it had printed", outputs(on)[-1])
    with server(cli, recall(handle), http(HELLO), more=ALLOW, window=WINDOW) as on:
        cli.ok("-c", "-p", "Recall it.", env=ENV)
    assert MARKER in outputs(on)[-1]


def test_a_disk_with_no_room_for_the_output_still_has_the_result(cli: Cli) -> None:
    (cli.project / "prints.py").write_text(
        "import os, sys\nsys.stdout.buffer.write(os.urandom(3_000_000))\n"
    )
    run = reply(call("run_shell_command", id="a", command="python3 prints.py"))
    small = ["bash", "-c", 'ulimit -f 500; exec "$@"', "bash"]  # a file of 0.5 MB is a full disk
    with server(cli, run, http(HELLO), more=ALLOW, window=WINDOW) as on:
        done = cli.process("-p", "Print.", env=ENV, before=small)
    assert (done.code, done.out) == (0, "hello\n"), done.err
    (shown,) = outputs(on)
    assert "bytes left out here; they could not be stored (" in shown
    assert "run it again with less output, for instance through `tail` or `grep` ...]" in shown
    assert cli.process("doctor").code == 0
    assert len(parts_of(cli, ToolResult)) == 1


def test_hooks_get_a_transcript_without_megabytes_that_no_result_shows(
    cli: Cli, tmp_path: Path
) -> None:
    copy = script(
        tmp_path,
        "copy.sh",
        f"python3 -c 'import json, shutil, sys\n"
        f'given = json.load(sys.stdin)["transcript_path"]\n'
        f'shutil.copy(given, "{tmp_path / "copy.json"}")\'\n',
    )
    more = ALLOW + hook("SessionEnd", copy)
    with server(cli, run_print(cli), http(HELLO), more=more, window=WINDOW):
        cli.ok("-p", "Print.", env=ENV)
    copied = (tmp_path / "copy.json").read_text()
    assert "bytes left out here; recall" in copied
    assert len(copied) < 200_000


def test_an_exported_session_brings_its_outputs_along(cli: Cli, tmp_path: Path) -> None:
    print_lines(cli)
    file = tmp_path / "session.json"
    cli.ok("export", "last", "--to", "gemini", "--output", str(file))
    records = json.loads(file.read_text())["messages"]
    assert not any(MARKER in str(record["content"]) for record in records)
    (tmp_path / "other").mkdir()
    other = Cli(tmp_path / "other")
    other.ok("import", str(file))
    found = other.ok("search", MARKER, "--json", "--all").json
    parts = [hit["entry"] for hit in found if "output" in hit["entry"]["body"]]
    newest = max(parts, key=lambda entry: entry["time"])
    assert newest["body"]["output"]["before"]
    whole = other.ok("show", newest["id"], "--full").out
    assert "line 000000" in whole
    assert MARKER in whole
