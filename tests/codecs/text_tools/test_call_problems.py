"""Whatever was meant as a call and does not run is a problem that the model is told of."""

from __future__ import annotations

import json

import pytest

from recollect.codecs.call_problems import call_problem_feedback
from recollect.codecs.openai import OpenAIWire
from recollect.codecs.text_tools import TextToolsWire
from recollect.codecs.text_tools.argument_check import find_argument_problem
from recollect.codecs.text_tools.argument_coercion import parse_schema
from recollect.entries import Message, Text, Thought, ToolCall
from tests.codecs.text_tools.replies import TOOLS, calls, fenced, inline, scanned, tool

UNKNOWN = "there is no tool 'rm'; the tools are glob, plan, read_file"

PATTERN = "<parameter=pattern>{}</parameter>"


def problems(text: str, *, cut_off: bool = False) -> tuple[str, ...]:
    return scanned(text, cut_off=cut_off)[1]


@pytest.mark.parametrize(
    "text",
    [
        fenced("rm", path="/"),
        inline("rm", path="/"),
        '<tool_call>{"name": "rm", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "rm"}</tool_call>',
        "<function=rm><parameter=path>/</parameter></function>",
        "<tool_call><function=rm>\n</function></tool_call>",
        'TOOL: rm\nARGS: {"path": "/"}\n',
        f"```json\n[{inline('rm')}, {inline('glob', pattern='*')}]\n```",
        '```json\n[{"name": "rm", "args": {}}, {"name": "glob", "args": {"pattern": "*"}}]\n```',
    ],
)
def test_an_unknown_tool_is_a_problem_in_every_explicit_form(text: str) -> None:
    (problem,) = problems(text)
    assert problem.startswith(UNKNOWN)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "rm", "arguments": {}}',
        '```json\n{"name": "Ada", "arguments": {}}\n```\n',
        '```json\n{"name": "Ada", "age":\n```\n',
        "Use <tool_call> and </tool_call> around it.",
        "The tag <function=glob> begins a call.",
        "The tag <function=rm> begins a call.",
        "TOOL: glob is what I use\n",
        "`<tool_call>` or `<function=glob>` or `" + inline("rm") + "`",
        "> " + inline("rm"),
        "```python\n" + inline("rm") + "\n```",
    ],
)
def test_other_json_and_mentioned_tags_are_no_problem(text: str) -> None:
    assert problems(text) == ()
    assert problems(text, cut_off=True) == ()
    assert calls(text) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (inline("glob"), "the required argument 'pattern' (string) is missing"),
        (inline("glob", pattern=None), "the required argument 'pattern' (string) is missing"),
        (
            inline("read_file", offset=1),
            "'absolute_path' (string: The absolute path to the file) is missing",
        ),
        (
            inline("read_file", path="/a", offset="one"),
            "the argument 'offset' (integer) is a string: 'one'",
        ),
        (inline("plan", steps=[{}]), "the argument 'steps.0' (string) is an object: '{}'"),
        (
            inline("plan", steps=[], options={"depth": "x"}),
            "the argument 'options.depth' (integer) is a string: 'x'",
        ),
        (inline("write_file", path="a", content=["x"]), "'content' (string) is a list"),
        ("<function=glob></function>", "the required argument 'pattern' (string) is missing"),
        ('TOOL: glob\nARGS: {"hidden": true}\n', "the required argument 'pattern'"),
        ('{"tool_call": {"name": "glob", "pattern": "*"}}', "'pattern' stands beside arguments"),
        (
            '{"tool_call": {"name": "glob", "arguments": {"pattern": "*"}, "hidden": true}}',
            "'hidden' stands beside arguments",
        ),
        (
            '{"name": "glob", "arguments": {"pattern": "a"}, "parameters": {"pattern": "b"}}\n',
            "it has arguments and parameters",
        ),
        ('{"name": "glob", "arguments": [1]}\n', "its arguments must be a JSON object"),
        (
            '{"name": "glob", "arguments": "{\\"pattern\\": \\"*"}\n',
            "a string that is not JSON: pattern has a string without a closing quotation mark",
        ),
        ('{"name": "glob", "arguments": "{\\"pattern\\": \\"*\\""}\n', "pattern is cut off"),
        ('<tool_call>glob("*")</tool_call>', "after <tool_call>"),
        ('<function=glob>{"pattern": "*"}</function>', "<parameter=…> is expected"),
        ("<function=glob>\npattern: *\n", "<parameter=…> is expected next"),
        ("TOOL: glob\nARGS: pattern=*\n", "a JSON object must follow ARGS:"),
        (
            "<function=glob><parameter=pattern>*</function>",
            "a parameter has no closing </parameter>",
        ),
        (
            "<function=glob><parameter=pattern>*<parameter=hidden>true</parameter></function>",
            "'pattern' holds a tag of calls",
        ),
        (
            "<function=glob>" + 2 * PATTERN.format("a") + PATTERN.format("b") + "</function>",
            "the parameter 'pattern' has two values",
        ),
    ],
)
def test_the_problem_says_which_tool_and_what_is_expected(text: str, why: str) -> None:
    found, (problem,) = scanned(text)
    assert why in problem
    assert {delta.kind for delta in found} == {"text"}
    assert "".join(delta.text for delta in found) == text


DEEP = '{"tool_call": {"name": "write_file", "arguments": {"file_path": "a.txt", "content": '


@pytest.mark.parametrize("form", ["{}", "```json\n{}\n```", "<tool_call>{}</tool_call>", "x {} y"])
def test_a_missing_value_is_never_guessed(form: str) -> None:
    text = form.format(DEEP + ",,,]]}}}").replace("{}", "")
    found, (problem,) = scanned(text)
    assert problem == (
        "the call of 'write_file' was not run: "
        "tool_call.arguments.content has no value before ',,,]]}'"
    )
    assert [delta.kind for delta in found] == ["text"]


CUT = (
    *(
        DEEP + '"half a fi',
        DEEP,
        '{"tool_call": {"name": "glob"',
        '{"tool_c',
        'Then {"tool',
        "<tool_",
    ),
    *(
        "```json\n" + DEEP + '"half',
        '```json\n{"tool_ca',
        '```json\n{"name": "glob", "arguments": {',
    ),
    *('<tool_call>\n{"name": "glob", "arg', "<tool_call>", "<function=glo", "<function=glob>"),
    *('Well.\n{ "tool_call', "```\n<tool_c", "```\n<function=gl", "Then <function=gl"),
    *("<function=glob>\n<parameter=pattern>\n*", "<function=glob><parameter=pattern>*</parameter>"),
    *(
        'TOOL: glob\nARGS: {"pattern": "*"',
        "TOOL: glob\nARGS: ",
        '{"name": "glob", "args": {"a": 1',
    ),
    *('{"tool_call": {"name": "glob", "arguments": {"pattern": "*"}}', DEEP + '"all of it"}'),
)


@pytest.mark.parametrize("text", CUT)
def test_a_call_that_the_end_of_the_reply_cuts_off_does_not_run_and_is_a_problem(text: str) -> None:
    found, problem = scanned(text, cut_off=True)
    assert "".join(delta.text for delta in found) == text
    assert {delta.kind for delta in found} == {"text"}
    assert len(problem) == 1
    assert problem[0].endswith("was not run: it was cut off before its end")


@pytest.mark.parametrize("finish", ["length", "", "safety", "other", "stop"])
def test_problems_are_in_the_reply_whatever_its_finish(finish: str) -> None:
    inner = OpenAIWire(model="m")
    wire = TextToolsWire(wire=inner, tools=TOOLS)
    text = f"{inline('glob', pattern='*')}\n{DEEP}" + '"half a fi'
    reply = wire.find_calls(Message(role="model", parts=(Text(text=text),), finish=finish))
    assert [part.name for part in reply.parts if isinstance(part, ToolCall)] == ["glob"]
    (problem,) = json.loads(reply.extra)["tool_call_problems"]
    assert "'write_file'" in problem
    assert problem in call_problem_feedback(reply)


def test_a_call_that_a_thought_interrupts_does_not_run() -> None:
    parts = (Text(text=DEEP + '"x"'), Thought(text="hm"), Text(text="}}}"))
    wire = TextToolsWire(wire=OpenAIWire(model="m"), tools=TOOLS)
    reply = wire.find_calls(Message(role="model", parts=parts, finish="stop"))
    assert reply.parts == parts
    assert "cut off" in call_problem_feedback(reply)


def test_the_other_calls_of_a_fence_still_run() -> None:
    good = inline("glob", pattern="*")
    for bad in (
        inline("rm"),
        inline("glob"),
        DEEP + "}}}",
        '<tool_call>{"name": "rm"}</tool_call>',
    ):
        found, problem = scanned(f"```json\n{good}\n{bad}\n{good}\n```\n{good}")
        assert [delta.name for delta in found if delta.kind == "call"] == ["glob"] * 3, bad
        assert len(problem) == 1


def test_calls_that_a_parameter_quotes_do_not_run() -> None:
    inner = "<function=glob>\n<parameter=pattern>x</parameter>\n</function>"
    text = f"<function=write_file>\n<parameter=content>\nUse {inner} or {inner}\n</parameter>\n"
    found, problem = scanned(text + "</function>\n" + inner)
    assert [delta.name for delta in found if delta.kind == "call"] == ["glob"]
    assert len(problem) == 1


def test_a_call_that_is_cut_off_after_another_is_a_problem() -> None:
    for first in (inline("glob", pattern="*"), f"<function=glob>{PATTERN}</function>"):
        found, problem = scanned(f'{first}\n{{"tool_ca', cut_off=True)
        assert [delta.kind for delta in found] == ["call", "text"]
        assert problem == ("a call was not run: it was cut off before its end",)


def test_a_function_whose_value_quotes_the_tags_that_end_it_does_not_run() -> None:
    quoted = "End with\n</parameter>\n</function>\nalways."
    path = "<parameter=file_path>a</parameter>"
    text = f"<function=write_file>{path}\n<parameter=content>\n{quoted}\n</parameter>\n</function>"
    after = "\n<function=glob><parameter=pattern>x</parameter></function>\nSo."
    for form in (text + after, f"```\n{text}\n```{after}"):
        found, (problem,) = scanned(form)
        assert "'write_file' was not run: a value holds a closing tag" in problem
        assert [delta.name for delta in found if delta.kind == "call"] == ["glob"]
        assert scanned(form, *range(len(form))) == scanned(form)


def test_a_number_that_a_tool_takes_as_text_stays_as_it_was_written() -> None:
    text = '{"tool_call": {"name": "glob", "arguments": {"pattern": 1.10}}}'
    assert calls(text) == [("glob", '{"pattern":"1.10"}')]


def test_what_a_schema_says_in_other_ways_is_left_to_the_tool() -> None:

    odd = tool("odd", "", a={"$ref": "#/x"}, b={"anyOf": [{"type": "string"}, {"const": 3}]})
    assert find_argument_problem({"a": 1, "b": 3, "c": []}, parse_schema(odd)) == ""
    modes = tool("modes", "", mode={"type": "string", "enum": ["r", "w"]})
    assert find_argument_problem({"mode": "r"}, parse_schema(modes)) == ""
    problem = find_argument_problem({"mode": "x"}, parse_schema(modes))
    assert problem == "the argument 'mode' (one of \"r\", \"w\") is 'x'"
