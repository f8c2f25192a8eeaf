"""Real hook programs, written for several agents, in a real run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.testing import call
from tests.cli.model_server import ENV, hook, outputs, readable, reply, script, server
from tests.cli.runner import Cli, Result, surroundings
from tests.models.server import HELLO, http

EDIT = '[permissions]\nmode = "edit"\n'


def run(cli: Cli, text: str, event: str = "BeforeTool", more: str = EDIT) -> tuple[Result, str]:
    """The end of a run that writes a file, with this hook, and what the model was told."""
    file = script(cli.project.parent, "hook.sh", text)
    write = reply(call("write_file", id="a", file_path="new.txt", content="hello"))
    with server(cli, write, http(HELLO), more=more + hook(event, file)) as on:
        done = cli("-p", "Write it.", env=ENV)
        readable(done)
        told = outputs(on) if len(on.asked) > 1 else []
    return done, "".join(told)


def prints(answer: object) -> str:
    return f"cat <<'END'\n{json.dumps(answer)}\nEND\n"


def written(cli: Cli) -> bool:
    return (cli.project / "new.txt").exists()


@pytest.mark.parametrize(
    "answer",
    [
        {"decision": "block", "reason": "ask Anna"},
        {"decision": "deny", "reason": "ask Anna"},
        {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": "ask Anna",
            }
        },
    ],
)
def test_a_refusal_in_another_agents_words_refuses(cli: Cli, answer: dict[str, Any]) -> None:
    _, told = run(cli, prints(answer))
    assert "a hook refused it: ask Anna" in told
    assert not written(cli)


@pytest.mark.parametrize("event", ["BeforeTool", "AfterTool", "BeforeModel", "AfterModel"])
def test_continue_false_ends_the_run_and_leaves_no_call_open(cli: Cli, event: str) -> None:
    done, told = run(cli, prints({"continue": False, "stopReason": "budget used up"}), event)
    assert (done.code, told) == (1, "")
    assert "budget used up" in done.err
    assert written(cli) == (event == "AfterTool")
    with server(cli, http(HELLO)) as on:  # the session goes on with every call answered
        cli.ok("-c", "-p", "And now?", env=ENV)
        asked = json.loads(on.asked[-1].body)["messages"]
    calls = [each["id"] for message in asked for each in message.get("tool_calls") or ()]
    results = [message["tool_call_id"] for message in asked if message["role"] == "tool"]
    assert calls == results


@pytest.mark.parametrize(
    "answer",
    [
        {"decision": "ask", "reason": "is that so?"},
        {
            "hookSpecificOutput": {
                "permissionDecision": "ask",
                "permissionDecisionReason": "is that so?",
            }
        },
    ],
)
def test_a_question_is_a_no_where_nobody_can_be_asked(cli: Cli, answer: dict[str, Any]) -> None:
    _, told = run(cli, prints(answer))
    assert "nobody can be asked here: is that so?" in told
    assert not written(cli)


@pytest.mark.parametrize("agrees", [True, False])
def test_a_question_reaches_the_user_with_the_hooks_reason(cli: Cli, agrees: bool) -> None:
    file = script(cli.project.parent, "hook.sh", prints({"decision": "ask", "reason": "sure?"}))
    write = reply(call("write_file", id="a", file_path="new.txt", content="hello"))
    asked: list[recollect.ApprovalRequest] = []

    def approve(request: recollect.ApprovalRequest) -> bool:
        asked.append(request)
        return agrees

    more = EDIT + hook("BeforeTool", file)
    with server(cli, write, http(HELLO), more=more) as on, surroundings(cli.env(ENV), cli.project):
        recollect.coding_agent(cli.project, approve=approve).run_sync("Write it.")
        told = outputs(on)[0]
    assert [request.reason for request in asked] == ["a hook asks: sure?"]
    assert asked[0].call.name == "write_file"
    assert written(cli) == agrees
    assert agrees or "the user refused write_file, about which a hook had asked: sure?" in told


def test_a_question_at_the_start_refuses_the_session(cli: Cli) -> None:
    done, _ = run(cli, prints({"decision": "ask", "reason": "today?"}), "SessionStart")
    assert done.code == 1
    assert "a hook refused the session: today? (nobody can be asked at SessionStart)" in done.err


@pytest.mark.parametrize(
    "answer",
    [{"decision": "approve"}, {"hookSpecificOutput": {"permissionDecision": "allow"}}],
)
def test_a_consent_overrides_no_permission(cli: Cli, answer: dict[str, Any]) -> None:
    _, told = run(cli, prints(answer), more='[permissions]\nmode = "ask"\n')
    assert "write_file is not allowed" in told
    assert not written(cli)
    assert "Created" in run(cli, prints(answer))[1]


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ('echo \'{"decision": "deny"\'\n', "its output is invalid"),
        ("echo deny\n", "its output is invalid: an object was expected"),
        (
            'echo \'{"verdict": "deny"}\'\n',
            "its output is invalid: none of its fields is understood: verdict",
        ),
    ],
)
def test_an_answer_that_is_not_understood_is_a_warning_and_no_yes(
    cli: Cli, text: str, warning: str
) -> None:
    done, told = run(cli, text)
    assert f"warning: hook sh: {warning}" in done.err
    assert "its answer about this call cannot be understood" in told
    assert not written(cli)


def test_one_field_that_is_not_understood_beside_others_is_a_warning(cli: Cli) -> None:
    done, _ = run(cli, prints({"decision": "approve", "confidence": 0.9}))
    assert "its answer has fields that are not understood: confidence" in done.err
    assert written(cli)


def test_an_answer_that_is_not_understood_does_not_keep_a_session_from_starting(cli: Cli) -> None:
    done, _ = run(cli, "echo deny\n", "SessionStart")
    assert done.code == 0
    assert "its output is invalid" in done.err


def test_an_unknown_decision_is_not_taken_for_a_yes(cli: Cli) -> None:
    done, told = run(cli, prints({"decision": "forbid", "reason": "never"}))
    assert "'forbid' is no decision that is understood" in done.err
    assert "nobody can be asked here: never" in told
    assert not written(cli)


def test_a_refusal_that_comes_too_late_is_a_warning(cli: Cli) -> None:
    done, _ = run(cli, prints({"decision": "block", "reason": "no tabs"}), "AfterTool")
    assert "a hook refused at AfterTool, when it was too late to refuse: no tabs" in done.err
    assert written(cli)


def test_a_message_for_the_user_is_shown(cli: Cli) -> None:
    done, _ = run(cli, prints({"systemMessage": "the linter is off", "suppressOutput": True}))
    assert "hook sh: the linter is off" in done.err
    assert written(cli)


def test_a_hook_finds_the_call_where_other_agents_put_it(cli: Cli) -> None:
    text = "grep -q '\"tool_name\": \"write_file\"' && exit 0\necho 'no tool_name' >&2; exit 2\n"
    assert "Created" in run(cli, text)[1]
    deny = prints({"decision": "deny", "reason": "tool_input is there"})
    text = f'if grep -q \'"tool_input": {{"file_path": "new.txt"\'; then\n{deny}fi\n'
    assert "tool_input is there" in run(cli, text)[1]


# --- the environment ---------------------------------------------------------------------------


def environment_of(cli: Cli, more: str = "") -> dict[str, str]:
    """The variables that a hook got."""
    seen = cli.project.parent / "seen"
    file = script(cli.project.parent, "env.sh", f'env -0 > "{seen}"\n')
    secrets = {
        "OPENAI_API_KEY": "sk-secret",
        "ANTHROPIC_API_KEY": "secret",
        "GITHUB_TOKEN": "secret",
        "DATABASE_URL": "postgres://u:secret@h/d",
        "BASH_ENV": "/tmp/evil",
        "LD_PRELOAD": "",
        "PATH": f".:bin:{cli.env()['PATH']}",
    }
    with server(cli, http(HELLO), more=hook("SessionStart", file) + more):
        cli.ok("-p", "Hi.", env={**ENV, **secrets})
    pairs = (line.partition("=") for line in seen.read_text().split("\0") if line)
    return {name: value for name, _, value in pairs}


def test_a_hook_gets_no_keys_and_no_programs_of_the_project(cli: Cli) -> None:
    found = environment_of(cli)
    assert "secret" not in json.dumps(found)
    assert not {"MY_KEY", "BASH_ENV", "LD_PRELOAD"} & set(found)
    assert found["HOME"] == str(cli.home.parent)
    assert all(item.startswith("/") for item in found["PATH"].split(":"))


def test_a_hook_gets_the_variables_that_its_settings_name(cli: Cli) -> None:
    found = environment_of(cli, 'env = ["GITHUB_TOKEN", "NOT_SET"]\n')
    assert found["GITHUB_TOKEN"] == "secret"
    assert not {"OPENAI_API_KEY", "NOT_SET"} & set(found)


def test_a_value_in_the_place_of_a_name_is_refused_and_not_repeated(cli: Cli) -> None:
    cli.home.mkdir(exist_ok=True)
    bad = '[[hooks]]\nevent = "AfterTool"\ncommand = "a"\nenv = ["TOKEN=hunter2"]\n'
    Path(cli.home / "settings.toml").write_text(bad)
    refused = cli("config")
    assert refused.code != 0
    assert "takes names of environment variables" in refused.err
    assert "hunter2" not in refused.err
