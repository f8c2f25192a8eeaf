"""`recollect compact`: of a session, with preview and undo; of another program's file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from recollect.entries import Body, Entry, Message, Text
from recollect.snapshot.snapshot_format import parse_snapshot
from recollect.store.contract import SessionInfo
from recollect.testing import call, model, result, user
from tests.cli.model_server import ENV, NAME, server, texts
from tests.cli.road_sessions import says
from tests.cli.runner import Cli


def exchange(number: int) -> list[Body]:
    use = call("read_file", id=f"c{number}", path=f"src/module_{number}.py")
    return [
        user(f"Look at src/module_{number}.py and never touch compute_{number}."),
        Message(role="model", parts=(Text(text="I look."), use), model="claude-opus-4"),
        result(use, f"def compute_{number}(): pass\n" * 40),
        model(f"compute_{number} is defined there."),
    ]


def talk(cli: Cli, exchanges: int = 8) -> tuple[SessionInfo, tuple[Entry, ...]]:
    return cli.session([body for n in range(exchanges) for body in exchange(n)], title="Modules")


def tokens(cli: Cli, session: SessionInfo) -> int:
    return sum(item["tokens"] for item in cli.ok("context", session.id, "--json").json["items"])


def kinds(cli: Cli, session: SessionInfo) -> list[str]:
    entries = cli.ok("show", session.id, "--json").json["entries"]
    return [entry["body"]["kind"] for entry in entries]


# --- of a session --------------------------------------------------------------------------------


def test_a_compaction_makes_the_context_smaller_and_says_what_went_and_what_stays(
    cli: Cli,
) -> None:
    session, _ = talk(cli)
    before = tokens(cli, session)
    out = cli.ok("compact", session.id, "--no-model", "--budget", "2000").out
    after = tokens(cli, session)
    assert after <= 2_000 < before
    assert out.startswith(f"compacted session {session.id[-8:]}")
    assert f": {before:,} → {after:,} tokens in messages\n" in out
    assert re.search(r"replaced +\d+ messages with \d calls and \d results, [\d,]+ tokens", out)
    assert re.search(r"kept +\d+ messages, 0 pins", out)
    assert kinds(cli, session)[-1] == "compaction"


def test_the_snapshot_keeps_the_users_directives(cli: Cli) -> None:
    session, _ = talk(cli)
    cli.ok("compact", session.id, "--budget", "2000")
    sent = cli.ok("show", session.id, "--curated", "--json").json["entries"]
    told = parse_snapshot(sent[0]["body"]["parts"][0]["text"])
    assert told is not None
    assert "never touch compute_0" in told.user_directives


def test_until_keeps_everything_from_an_entry_on(cli: Cli) -> None:
    session, entries = talk(cli)
    first = entries[18]  # the result of a call: the limit moves before the call
    out = cli.ok("compact", session.id, "--no-model", "--until", first.id[-8:]).out
    assert out.startswith(f"compacted session {session.id[-8:]}")
    items = cli.ok("context", session.id, "--json").json["items"]
    tail = [item["entry"] for item in items if item["place"] == "tail"]
    assert tail == [entry.id for entry in entries[17:]]
    again = cli("compact", session.id, "--until", entries[4].id)
    assert again.code == 1
    assert "replaces it already" in again.err
    undone = cli.ok("compact", "--undo", session.id).out
    assert undone.startswith("undid the compaction")
    nothing = cli("compact", session.id, "--until", entries[1].id)
    assert nothing.code == 1
    assert "no cut would save 300 tokens" in nothing.err


def test_a_preview_shows_snapshot_and_report_and_writes_nothing(cli: Cli) -> None:
    session, entries = talk(cli)
    out = cli.ok("compact", session.id, "--preview", "--budget", "2000").out
    assert out.startswith("would compact session ")
    assert parse_snapshot(out) is not None
    assert out.endswith("nothing was written\n")
    bare = cli.ok("compact", session.id, "--print", "--budget", "2000").out
    assert bare.startswith("<state_snapshot>\n")
    assert bare in out + "\n"
    assert kinds(cli, session) == ["message"] * len(entries)


def test_instructions_are_kept_in_the_snapshot(cli: Cli) -> None:
    session, _ = talk(cli)
    wish = "keep the API decisions"
    out = cli.ok("compact", session.id, "--print", "--budget", "2000", "--instructions", wish).out
    assert wish in out


def test_undo_says_what_it_undid_and_a_second_time_that_there_is_nothing(cli: Cli) -> None:
    session, _ = talk(cli)
    before = tokens(cli, session)
    entry = cli.ok("compact", session.id, "--budget", "2000", "--json").json["entry"]
    out = cli.ok("compact", "--undo", session.id).out
    assert f"undid the compaction {entry[-8:]} of just now" in out
    assert f"sees {before:,} tokens in messages again" in out
    assert tokens(cli, session) == before
    again = cli("compact", "--undo", session.id)
    assert (again.code, again.out) == (1, "")
    assert "no compaction is in force in session" in again.err
    assert "`recollect context " in again.err


def test_undoing_one_of_two_compactions_brings_the_first_back_into_force(cli: Cli) -> None:
    session, _ = talk(cli, 40)
    cli.ok("compact", session.id, "--budget", "6000")
    between = tokens(cli, session)
    cli.ok("compact", session.id, "--budget", "1500")
    cli.ok("compact", "--undo", session.id)
    assert tokens(cli, session) == between


def test_compactions_at_the_same_time_stay_in_their_session(cli: Cli) -> None:
    session, _ = talk(cli, 200)
    budgets = ("9000", "6000", "3000")
    started = [cli.start("compact", session.id, "--budget", b, "--no-model") for b in budgets]
    ended = [(process.communicate(), process.returncode)[1] for process in started]
    assert set(ended) <= {0, 1}
    assert len(cli.ok("sessions", "--all", "--json").json) == 1
    assert "compaction" in kinds(cli, session)


def test_the_json_document_has_status_report_and_snapshot(cli: Cli) -> None:
    session, _ = talk(cli)
    done = cli.ok("compact", session.id, "--budget", "2000", "--preview", "--json").json
    assert done["status"] == "COMPRESSED"
    assert done["entry"] is None
    assert done["report"]["messages"] > 0
    assert done["tokens_after"] <= done["target"] == 2_000 < done["tokens_before"]
    assert parse_snapshot(done["snapshot"]) is not None


def test_an_attempt_that_fails_is_recorded_with_its_status_and_a_remedy_that_works(
    cli: Cli,
) -> None:
    items = [body for number in range(8) for body in exchange(number)]
    session, entries = cli.session([user("keep this " * 2_000), *items])
    cli.ok("context", session.id, "--pin", entries[0].id)
    failed = cli("compact", session.id, "--budget", "2000")
    assert (failed.code, failed.out) == (1, "")
    assert "what has to stay takes" in failed.err
    assert kinds(cli, session)[-1] == "compaction"
    recorded = cli.ok("show", session.id, "--json").json["entries"][-1]["body"]
    assert recorded["status"] == "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT"
    assert "the last compaction, just now, failed: what has to stay" in (
        cli.ok("context", session.id).out
    )
    remedy = re.search(r"try --budget (\d+)", failed.err)
    assert remedy is not None
    assert cli.ok("compact", session.id, "--budget", remedy[1]).out.startswith("compacted")


def test_a_preview_of_an_attempt_that_fails_records_nothing(cli: Cli) -> None:
    session, _ = cli.session([user("hello"), model("hi"), user("bye"), model("bye")])
    failed = cli("compact", session.id, "--preview")
    assert failed.code == 1
    assert "no cut would save 300 tokens" in failed.err
    assert kinds(cli, session) == ["message"] * 4


def test_a_named_model_that_cannot_write_is_said_to(cli: Cli) -> None:
    session, _ = talk(cli)
    done = cli("compact", session.id, "--budget", "3000", "-m", "nosuch/model")
    assert (done.code, "built without a model" in done.out) == (0, True)
    assert "nosuch/model is unknown, has no API key or is too small" in done.err


@pytest.mark.parametrize("items", [[], [user("alone")]])
def test_where_there_is_nothing_to_compact_nothing_is_recorded(cli: Cli, items: list[Body]) -> None:
    session, _ = cli.session(items)
    done = cli("compact", session.id)
    assert (done.code, done.out) == (1, "")
    assert "there is nothing" in done.err
    assert kinds(cli, session) == ["message"] * len(items)


def test_pins_survive_a_compaction_word_for_word(cli: Cli) -> None:
    session, entries = talk(cli)
    cli.ok("context", session.id, "--pin", entries[3].id)
    assert "1 pin; with" in cli.ok("compact", session.id, "--budget", "2000").out
    sent = cli.ok("show", session.id, "--curated", "--json").json["entries"]
    assert entries[3].id in [entry["id"] for entry in sent]


@pytest.mark.parametrize(
    "arguments",
    [
        ("x", "--budget", "999"),
        ("x", "--budget-chars", "5000"),
        ("x", "--file", "chat.jsonl"),
        ("--file", "chat.jsonl", "--undo"),
        ("--file", "chat.jsonl", "--budget", "5000"),
        ("--file", "chat.jsonl", "--budget-chars", "3"),
        ("--undo", "x", "--preview"),
        ("x", "--instructions", "x" * 5_000),
    ],
)
def test_conflicting_options_are_wrong_usage(cli: Cli, arguments: tuple[str, ...]) -> None:
    wrong = cli("compact", *arguments)
    assert (wrong.code, wrong.out) == (2, "")


# --- of a file -----------------------------------------------------------------------------------


def transcript(cli: Cli, text: str = "Please repair lib/spotter.ex") -> Path:
    """A small Claude Code transcript."""
    records = [
        {"type": "user", "message": {"role": "user", "content": text}},
        {
            "type": "assistant",
            "message": {
                "role": "assistant",
                "id": "m1",
                "model": "claude-opus-4-6",
                "content": [
                    {
                        "type": "tool_use",
                        "id": "t1",
                        "name": "Edit",
                        "input": {"file_path": "/p/lib/spotter.ex", "new_string": "def run_now"},
                    }
                ],
            },
        },
        {
            "type": "user",
            "message": {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}],
            },
        },
    ]
    lines = [
        json.dumps(
            {
                "uuid": f"u{number}",
                "parentUuid": f"u{number - 1}" if number else None,
                "sessionId": "s",
                "timestamp": f"2026-02-12T10:00:0{number}.000Z",
                **record,
            }
        )
        for number, record in enumerate(records)
    ]
    path = cli.project / "chat.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_files_snapshot_is_all_that_is_printed_and_no_store_is_made(cli: Cli) -> None:
    path = transcript(cli)
    arguments = ("--file", str(path), "--no-model", "--budget-chars", "2000", "--print")
    result = cli.ok("compact", *arguments)
    assert result.out.startswith("<state_snapshot>\n")
    assert result.out.endswith("</state_snapshot>\n")
    assert result.err == ""
    told = parse_snapshot(result.out)
    assert told is not None
    assert "Please repair lib/spotter.ex" in told.user_directives
    assert "spotter.ex" in told.file_system_state
    assert not cli.home.exists()


@pytest.mark.parametrize("characters", [500, 700, 1_000, 5_000])
def test_the_output_never_exceeds_the_requested_characters(cli: Cli, characters: int) -> None:
    path = transcript(cli, "Ändere bitte alles, 请看 👋 " * 400)
    budget = ("--budget-chars", str(characters), "--print")
    out = cli.ok("compact", "--file", str(path), *budget).out
    assert len(out) <= characters
    assert out.startswith("<state_snapshot>")


def test_a_model_that_is_named_helps_with_the_snapshot_of_a_file(cli: Cli) -> None:
    path, characters = transcript(cli), 3_000
    budget = ("--budget-chars", str(characters))
    goal = "Repair the spotter without touching its tests."
    written = f"<state_snapshot><overall_goal>{goal}</overall_goal></state_snapshot>"
    command = ("compact", "--file", str(path), "-m", NAME, *budget, "--json")
    with server(cli, says(written)) as on:
        found = cli.ok(*command, env=ENV).json
        alone = cli.ok(*command, "--no-model", env=ENV).json
    assert len(on.asked) == 1
    assert "user: Please repair lib/spotter.ex" in texts(on)[1]
    assert (found["by_model"], alone["by_model"]) == (True, False)
    assert goal in found["snapshot"]
    assert "- [" in found["snapshot"]  # what code quotes stands beside it
    assert len(found["snapshot"]) <= characters
    assert [file.name for file in cli.home.iterdir()] == ["settings.toml"]  # no store was made


def test_a_model_that_fails_leaves_the_snapshot_of_a_file_to_code(cli: Cli) -> None:
    path = transcript(cli)
    alone = cli.ok("compact", "--file", str(path), "--print").out
    with server(cli, says("I would rather not.")):
        found = cli.ok("compact", "--file", str(path), "--print", "-m", NAME, env=ENV)
    assert found.out == alone
    assert "built by code: the model wrote no snapshot" in found.err
    unknown = cli("compact", "--file", str(path), "-m", "nowhere/at-all")
    assert (unknown.code, unknown.out) == (1, "")


def test_without_print_stderr_says_what_was_done(cli: Cli) -> None:
    path = transcript(cli)
    result = cli.ok("compact", "--file", str(path))
    assert "nothing was stored" in result.err
    document = cli.ok("compact", "--file", str(path), "--json").json
    assert document["snapshot"] + "\n" == result.out
    assert document["entries"] == 3


def test_a_file_that_is_none_or_holds_nothing_is_an_error(cli: Cli) -> None:
    missing = cli("compact", "--file", "nowhere.jsonl", "--print")
    assert (missing.code, missing.out) == (1, "")
    assert "nowhere.jsonl" in missing.err
    odd = cli.project / "odd.jsonl"
    odd.write_text("what is this\n")
    assert cli("compact", "--file", str(odd), "--print").code == 1
    empty = cli.project / "empty.json"
    empty.write_text('{"session_id": "s", "messages": []}')
    nothing = cli("compact", "--file", str(empty), "--print")
    assert nothing.code == 1
    assert "it holds no messages" in nothing.err


def test_a_torn_file_is_read_as_far_as_it_goes_and_the_damage_reported_on_stderr(cli: Cli) -> None:
    path = transcript(cli)
    path.write_bytes(path.read_bytes()[:-40])
    result = cli.ok("compact", "--file", str(path), "--print")
    assert parse_snapshot(result.out) is not None
    assert "recollect: warning: chat.jsonl, line 3: " in result.err


def test_nothing_hostile_reaches_a_terminal(cli: Cli) -> None:
    path = transcript(cli, "look \x1b]0;owned\x07\u202e\u200b here")
    out = cli.screen("compact", "--file", str(path), "--print").out
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202e\u200b]", out)
