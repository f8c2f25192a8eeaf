"""The line-based program in a process of its own, on pipes and on a terminal."""

from __future__ import annotations

import re
import time

from recollect.testing import ProviderLine, call, faulty, model, says, user
from tests.cli.provider import ENV, provider
from tests.cli.runner import INTERRUPT_KEY, Cli
from tests.terminal.plain_process import plain, plain_terminal

WRITE = says("I write.", call("write_file", file_path="b.py", content="b = 2\n"))
END_KEY = "\x04"
PASTED = "\x1b[200~first line\nsecond line\x1b[201~\n"


def test_a_pipe_is_worked_through_line_by_line_with_questions_in_between(cli: Cli) -> None:
    (cli.project / "a.py").write_text("a = 1\nb = 2\n")
    read = says("Let me look.", call("read_file", file_path="a.py"))
    with provider(cli, "openai", [read, WRITE, "Done.", "More."]) as server:
        typed = ["first \\", "prompt", "no thanks", "/stats", "//second", "/quit", "third"]
        shown = plain(cli, *typed)
        assert shown.code == 0, shown
        assert len(server.requests) == 4
        assert b"first \\nprompt" in server.requests[0].body
        assert b"/second" in server.requests[3].body
    lines = shown.out.splitlines()
    assert any(re.fullmatch(r"tool read a\.py: done, \d lines", line) for line in lines)
    assert "question: [y]es once, [s]ession, [n]o, or type a reason for no" in lines
    assert any(line.startswith("tool write b.py: failed") for line in lines)
    assert not (cli.project / "b.py").exists()
    counted = next(line for line in lines if line.startswith("1 prompt, 3 turns"))
    assert lines.index("model: Done.") < lines.index(counted)
    assert re.fullmatch(r"note: `recollect --resume \w+` comes back to this session", lines[-1])
    assert "\x1b" not in shown.out
    assert shown.err == ""


def test_the_exit_code_tells_that_a_line_failed_and_the_rest_still_runs(cli: Cli) -> None:
    with provider(cli, "openai", ["One."]):
        shown = plain(cli, "/contxt", "", "hello")
    assert shown.code == 1
    assert "error: there is no command /contxt; did you mean /context?" in shown.out
    assert "model: One." in shown.out


def test_always_stores_the_rule_that_is_shown_and_session_holds_until_the_end(cli: Cli) -> None:
    touch = says("", call("run_shell_command", command="touch c"))
    script: list[ProviderLine] = [touch, "One.", touch, "Two.", WRITE, "Three.", WRITE, "Four."]
    with provider(cli, "openai", script):
        shown = plain(cli, "touch", "a", "again", "write", "s", "and again", "/permissions")
    assert shown.code == 0, shown.out
    assert shown.out.count("question: ") == 2
    rule = re.search(r"which stores the rule (.*), \[n\]o", shown.out)
    assert rule is not None
    assert f"approved here, until you leave: {rule[1]}" in shown.out
    assert f'"{rule[1]}"' in (cli.home / "settings.toml").read_text()
    assert "tool $ touch c: running" in shown.out


def test_a_question_at_the_end_of_the_input_is_refused(cli: Cli) -> None:
    with provider(cli, "openai", [WRITE, "Then not."]):
        shown = plain(cli, "write it")
    assert "note: refused, because nobody is there to answer" in shown.out
    assert "model: Then not." in shown.out
    assert not (cli.project / "b.py").exists()


def test_hostile_input_and_hostile_replies_are_shown_as_text(cli: Cli) -> None:
    evil = "\x1b]0;title\x07 \x1b[2J \u202edesrever \U0001f600 " + "x" * 100_000
    with provider(cli, "openai", [says(evil, call("read_file", file_path="\x1b[31m")), "End."]):
        shown = plain(cli, data=b"\xff\xfe \x1b[2J\x00 hi\n")
    assert shown.code == 0, shown.out[-500:]
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", shown.out)
    assert "model: End." in shown.out


def test_a_line_that_is_too_long_is_told_and_the_next_one_runs(cli: Cli) -> None:
    with provider(cli, "openai", ["Fine."]):
        began = time.monotonic()
        shown = plain(cli, data=b"x" * 100_000_000 + b"\nhello\n")
        assert time.monotonic() - began < 20
    assert shown.code == 1
    assert "error: a line of 100,000,000 bytes is too long" in shown.out
    assert "model: Fine." in shown.out


def test_a_session_is_resumed_with_its_last_words(cli: Cli) -> None:
    session, _ = cli.session([user("first question"), model("One.")])
    with provider(cli, "openai", ["Two."]):
        shown = plain(cli, "second question", session=session.id)
    assert "you: first question\nmodel: One." in shown.out
    assert "you: second question" in shown.out


def test_a_session_that_is_not_there_is_an_error_and_prompts_are_not_lost_elsewhere(
    cli: Cli,
) -> None:
    with provider(cli, "openai", []) as server:
        broken = plain(cli, "hello", session="nothing")
        assert server.requests == ()
    assert broken.code == 1
    assert "error: " in broken.out


def test_on_a_terminal_prompts_are_queued_pasted_blocks_stay_whole_and_ctrl_d_leaves(
    cli: Cli,
) -> None:
    slow = faulty("Slowly.", delay=1.5)
    with provider(cli, "openai", [slow, WRITE, "Three."]) as server:
        keys = [
            ("you: ", "begin\n"),
            ("answers, mode ask", PASTED),
            ("queued, 1 waiting", ""),
            ("question: ", "y\n"),
            ("model: Three.", ""),
            ("you: ", END_KEY),
        ]
        shown = plain_terminal(cli, keys)
        assert shown.code == 0, shown.out
        assert b"first line\\nsecond line" in server.requests[1].body
    assert "you: first line\r\nsecond line" in shown.out
    assert (cli.project / "b.py").exists()
    assert "recollect --resume" in shown.out
    moved = re.sub(r"\x1b\[\?2004[hl]|\x1b\[20[01]~", "", shown.out)
    assert "\x1b" not in moved
    assert "^[" not in moved


def test_ctrl_c_interrupts_and_then_leaves_a_dumb_terminal(cli: Cli) -> None:
    with provider(cli, "openai", [faulty("Never.", delay=30)]):
        keys = [
            ("you: ", "begin\n"),
            ("answers, mode ask", INTERRUPT_KEY),
            ("interrupted", ""),
            ("you: ", INTERRUPT_KEY),
        ]
        shown = plain_terminal(cli, keys, term="dumb")
    assert shown.code == 130, shown.out
    assert "note: interrupting; Ctrl-C again leaves" in shown.out
    assert "\x1b" not in shown.out


def test_what_is_attached_goes_with_the_first_prompt_and_is_named_when_it_is_taken_back(
    cli: Cli,
) -> None:
    (cli.project / "a.py").write_text("a = 1\n")
    keys = [
        ("you: ", "!echo by hand\n"),
        ("by hand", ""),
        ("you: ", "look at it\n"),
        ("done in", "/rewind 1 yes\n"),
        ("undoes this", "\x04"),
    ]
    with provider(cli, "openai", ["Seen."]) as server:
        shown = cli.terminal("--plain", "--attach", "a.py", keys=keys, env=ENV)
        assert "with it went: file a.py" in shown.out
        assert "1→a = 1" in str(server.requests[0].json["messages"][-1])


def test_the_line_after_resume_is_about_the_session_that_was_gone_to(cli: Cli) -> None:
    session, _ = cli.session([user("about walruses"), model("they are large")], title="walrus")
    with provider(cli, "openai", []):
        shown = plain(cli, f"/resume {session.id}", "/context")
    assert "about walruses" in shown.out.partition("ENTRY ")[2]
    assert "░" not in shown.out  # no bar: it may be read aloud


def test_import_without_a_name_says_what_is_on_this_machine(cli: Cli) -> None:
    folder = cli.home.parent / ".claude" / "projects" / "-somewhere"
    folder.mkdir(parents=True)
    (folder / "one.jsonl").write_text('{"type":"user","message":{"role":"user","content":"hi"}}\n')
    with provider(cli, "openai", []):
        shown = plain(cli, "/import")
    assert shown.code == 0, shown
    assert "Claude Code: 1 session" in shown.out
    assert f"/import {folder.parent.parent}" in shown.out
