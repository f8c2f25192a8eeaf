"""Answers of hooks in the words of several agents; what is not understood is no silent yes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.agent.hook_answers import parse_answer, parse_output
from recollect.hook_events import HookDecision


def nested(**fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}}


REFUSALS = [
    {"decision": "block", "reason": "no"},
    {"decision": "deny", "reason": "no"},
    {"decision": " DENY ", "reason": "no"},
    nested(permissionDecision="deny", permissionDecisionReason="no"),
    {"permissionDecision": "deny", "permissionDecisionReason": "no"},
    nested(decision={"behavior": "deny", "message": "no"}),
    {"permission": "deny", "agent_message": "no"},
    {"decision": "approve", **nested(permissionDecision="deny", permissionDecisionReason="no")},
    {"continue": True, "decision": "block", "reason": "no"},
    {"decision": "block", "reason": "no", "arguments": 7, "keep": [], "more": None},
    {"continue": False, "stopReason": "no"},
    {"continue": False, "decision": "approve", "stopReason": "no"},
    {"continue": False, "reason": "no"},
]


@pytest.mark.parametrize("answer", REFUSALS)
def test_a_refusal_is_understood_in_every_agents_words(answer: dict[str, Any]) -> None:
    found = parse_answer(answer)
    assert (found.allowed, found.reason) == (False, "no")
    assert found.stop == (answer.get("continue") is False)


@pytest.mark.parametrize(
    "answer",
    [
        {"decision": "ask", "reason": "sure?"},
        nested(permissionDecision="ask", permissionDecisionReason="sure?"),
        {"permission": "ask", "user_message": "sure?"},
        {"decision": "allow", **nested(permissionDecision="ask", permissionDecisionReason="sure?")},
    ],
)
def test_a_question_is_understood(answer: dict[str, Any]) -> None:
    found = parse_answer(answer)
    assert (found.allowed, found.ask, found.reason) == (True, True, "sure?")


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"continue": True},
        {"continue": True, "suppressOutput": True},
        {"decision": "approve", "reason": "fine"},
        {"decision": "allow"},
        {"decision": None},
        nested(permissionDecision="allow", permissionDecisionReason="fine"),
        {"permission": "allow"},
    ],
)
def test_a_consent_changes_nothing(answer: dict[str, Any]) -> None:
    assert parse_answer(answer) == HookDecision()


@pytest.mark.parametrize(
    "answer",
    [
        {"decision": "forbid"},
        {"decision": 0},
        {"decision": ["deny"]},
        nested(permissionDecision="defer"),
        {"permissionDecision": False},
        {"continue": "false"},
        {"continue": 0},
    ],
)
def test_a_decision_in_unknown_words_asks_and_warns(answer: dict[str, Any]) -> None:
    found = parse_answer(answer)
    assert found.ask
    assert "no decision that is understood" in found.warnings[0]


def test_a_field_that_is_not_understood_beside_others_is_a_warning() -> None:
    assert parse_answer({"decision": "allow", "async": True}).warnings == (
        "its answer has fields that are not understood: async",
    )


@pytest.mark.parametrize(
    "answer", [{"verdict": "deny"}, {"ok": False, "error": "no"}, nested(outcome="deny")]
)
def test_an_answer_of_which_nothing_is_understood_is_invalid(answer: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="none of its fields is understood"):
        parse_answer(answer)


def test_context_changed_arguments_and_messages_are_read_from_both_levels() -> None:
    found = parse_answer(
        {
            "systemMessage": "for the user",
            **nested(additionalContext="for the model", updatedInput={"path": "b"}),
        }
    )
    assert found.additional_context == "for the model"
    assert found.arguments == '{"path":"b"}'
    assert found.warnings == ("for the user",)
    assert parse_answer(nested(tool_input={"path": "c"})).arguments == '{"path":"c"}'


@pytest.mark.parametrize(
    "printed",
    [
        '{"decision": "deny"',
        "{decision: deny}",
        '[{"decision": "deny"}]',
        '"deny"',
        "deny",
        "Block.",
        '{"decision": "allow", "decision": "deny"}',
        'checking\n{"decision": "deny"',
        "{} {}",
    ],
)
def test_what_looks_like_an_answer_and_is_none_is_an_error(printed: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_output(printed, 1_000)


def test_an_answer_after_other_lines_counts_and_plain_text_is_none() -> None:
    assert not parse_output('checked 3 files\n{"decision": "deny"}\n', 1_000).allowed
    assert parse_output("all fine, nothing to deny\n", 1_000) == HookDecision()
    assert parse_output("", 1_000) == HookDecision()


_WORDS = st.sampled_from(["deny", "block", "allow", "approve", "ask", "x", "", None, 1, False])
_FIELDS = ("decision", "permissionDecision", "permission", "reason", "continue", "more")
_FLAT = st.dictionaries(st.sampled_from(_FIELDS), _WORDS)


@given(top=_FLAT, inner=_FLAT)
def test_whatever_else_an_answer_says_a_refusal_refuses_and_nothing_odd_is_silent(
    top: dict[str, Any], inner: dict[str, Any]
) -> None:
    answer = {**top, "hookSpecificOutput": inner}
    if {*top, *inner} == {"more"}:
        with pytest.raises(ValueError, match="more"):
            parse_answer(answer)
        return
    found = parse_answer(json.loads(json.dumps(answer)))
    deciding = ("decision", "permissionDecision", "permission")
    words = [level[name] for level in (top, inner) for name in deciding if name in level]
    stops = any(level.get("continue") is False for level in (top, inner))
    refused = stops or any(word in ("deny", "block") for word in words)
    assert found.allowed == (not refused)
    odd = any(word in ("x", 1, False) for word in words) or "more" in {*top, *inner}
    assert refused or not odd or found.warnings


DENIAL = '{"decision": "deny", "reason": "no"}'


@pytest.mark.parametrize(
    "output",
    [
        f"\ufeff{DENIAL}",
        f"\x1b[31m{DENIAL}\x1b[0m",
        f"checking {DENIAL}",
        f"checked 3 files\n   {DENIAL}",
        '{"permission": {"behavior": "deny", "message": "no"}}',
        '{"permissionDecision": {"behavior": "deny", "message": "no"}}',
    ],
)
def test_a_refusal_is_found_in_what_a_command_prints(output: str) -> None:
    found = parse_output(output, 10_000)
    assert (found.allowed, found.reason) == (False, "no")


@pytest.mark.parametrize(
    "output",
    [
        '{"ok": false, "reason": "no"}',
        '{"Decision": "deny", "reason": "no"}',
        '{"permission_decision": "deny", "additionalContext": "x", "reason": "no"}',
        '{"hookSpecificOutput": [{"permissionDecision": "deny"}]}',
        '{"hookSpecificOutput": "deny"}',
        DENIAL.encode("utf-16").decode("utf-8", "replace"),
        f"{DENIAL} {DENIAL}",
    ],
)
def test_an_answer_that_may_refuse_is_never_a_silent_yes(output: str) -> None:
    try:
        found = parse_output(output, 10_000)
    except (TypeError, ValueError):
        return  # before a tool call the user is asked then
    assert found.ask
    assert found.warnings


@pytest.mark.parametrize("output", ["", "formatted {3} files", "done", "a {name} of {}", "{}"])
def test_plain_text_is_no_answer(output: str) -> None:
    assert parse_output(output, 10_000) == HookDecision()
