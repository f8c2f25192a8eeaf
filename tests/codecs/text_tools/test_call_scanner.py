"""Which parts of a model's reply are calls, and which are text."""

from __future__ import annotations

import pytest

from recollect.codecs.text_tools.argument_coercion import DeclaredTools
from recollect.codecs.text_tools.call_scanner import CallScanner
from recollect.codecs.wire_protocol import Delta
from tests.codecs.text_tools.replies import TOOLS, calls, fenced, inline, pieces, scanned, words

ONE = [("glob", '{"pattern":"*"}')]
CALL = inline("glob", pattern="*")


def test_a_fenced_call_is_found_with_its_explanation_before_and_after() -> None:
    found = pieces(f"I look.\n\n{fenced('glob', pattern='*')}\nDone.")
    assert found == (
        Delta("text", "I look.\n\n"),
        Delta("call", '{"pattern":"*"}', "glob"),
        Delta("text", "Done."),
    )


def test_an_inline_call_is_found() -> None:
    assert calls(f"I call {CALL} now.") == ONE
    assert words(f"I call {CALL} now.") == "I call  now."


def test_a_call_in_tags_is_found() -> None:
    text = '<tool_call>\n{"name": "glob", "arguments": {"pattern": "*"}}\n</tool_call>\nDone'
    assert calls(text) == ONE
    assert words(text) == "\nDone"


def test_a_call_in_tags_without_the_closing_tag_is_found() -> None:
    assert calls('<tool_call>{"name": "glob", "arguments": {"pattern": "*"}}') == ONE


def test_a_function_with_parameters_is_found_and_its_values_are_taken_as_they_stand() -> None:
    text = (
        "<function=write_file>\n<parameter=file_path>\n/x.py\n</parameter>\n"
        '<parameter=content>\nif a < b:\n    print("{")\n</parameter>\n</function>'
    )
    wanted = [("write_file", r'{"file_path":"/x.py","content":"if a < b:\n    print(\"{\")"}')]
    assert calls(text) == wanted
    assert calls(f"<tool_call>\n{text}\n</tool_call>") == wanted


def test_a_function_whose_value_quotes_a_closing_parameter_tag_is_whole() -> None:
    text = "<function=glob><parameter=pattern>a</parameter>b</parameter></function>"
    assert calls(text) == [("glob", '{"pattern":"a</parameter>b"}')]


def test_a_bare_object_alone_on_its_lines_is_a_call() -> None:
    assert calls('Now:\n{"name": "glob",\n "arguments": {"pattern": "*"}}\n') == ONE
    assert calls('{"name": "glob", "parameters": {"pattern": "*"}}') == ONE


def test_a_bare_object_within_a_sentence_is_text() -> None:
    assert calls('Send {"name": "glob", "arguments": {"pattern": "*"}}') == []
    assert calls('{"name": "glob", "arguments": {"pattern": "*"}} is the form') == []


def test_lines_with_tool_and_args_are_a_call() -> None:
    assert calls('TOOL: glob\nARGS: {"pattern": "*"}\n') == ONE
    assert calls('TOOL: nothing\nARGS: {"pattern": "*"}\n') == []
    assert calls("TOOL: glob is what I use\n") == []


def test_several_calls_are_found_in_order() -> None:
    text = f"a {CALL}\n{fenced('read_file', absolute_path='/b')}\nc\n{CALL}"
    assert [name for name, _ in calls(text)] == ["glob", "read_file", "glob"]


def test_adjacent_fences_are_several_calls() -> None:
    one = fenced("glob", pattern="*")
    assert calls(one + "\n" + one) == ONE * 2
    assert calls(one + one) == ONE * 2


def test_several_objects_in_one_fence_are_several_calls() -> None:
    assert calls(f"```json\n{CALL}\n{CALL}\n```") == ONE * 2
    assert calls(f"```json\n[{CALL}, {CALL}]\n```\n") == ONE * 2


def test_nested_arguments_are_kept() -> None:
    nested = fenced("plan", steps=["a"], options={"depth": 3, "more": {"deep": ["}", "]", "{"]}})
    assert calls(nested)[0][1] == (
        '{"steps":["a"],"options":{"depth":3,"more":{"deep":["}","]","{"]}}}'
    )


def test_fences_inside_string_arguments_do_not_end_the_call() -> None:
    content = '# Title\n```python\nprint("{}")\n```\n```json\n{}\n```\n'
    found = calls(fenced("write_file", file_path="/r", content=content) + "\n" + CALL)
    assert [name for name, _ in found] == ["write_file", "glob"]


def test_fences_inside_a_string_with_raw_newlines_do_not_end_the_call() -> None:
    text = (
        '```json\n{"tool_call": {"name": "write_file", "arguments": {"file_path": "/r", '
        '"content": "# T\n```sh\nls\n```\nend"}}}\n```\n'
    )
    assert calls(text) == [
        ("write_file", r'{"file_path":"/r","content":"# T\n```sh\nls\n```\nend"}')
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"```python\n{CALL}\n```",
        f"```text\n{fenced('glob', pattern='*')[8:]}",
        f"````markdown\n{fenced('glob', pattern='*')}\n````",
        f"Write `{CALL}` to search.",
        f"Write ``a ` {CALL}`` to search.",
        f"> {CALL}\n",
        f"  > {fenced('glob', pattern='*').splitlines()[1]}",
        f'The string "{CALL}" is a call.',
        f"“{CALL}”",
        "`<tool_call>` and `</tool_call>` stand around it",
        '`<tool_call>{"name": "glob", "arguments": {}}</tool_call>`',
    ],
)
def test_quoted_examples_and_documentation_are_text(text: str) -> None:
    assert calls(text) == []
    assert words(text) == text


def test_a_stray_backtick_hides_no_call() -> None:
    assert calls(f"a stray ` and {CALL}\n") == ONE
    assert calls(f"a stray ` and {CALL}") == ONE
    assert calls(f"a stray `\n{CALL}") == ONE


@pytest.mark.parametrize(
    "text",
    [
        fenced("rm", path="/"),
        inline("rm", path="/"),
        '<tool_call>{"name": "rm", "arguments": {}}</tool_call>',
        "<function=rm><parameter=path>/</parameter></function>",
        '{"name": "rm", "arguments": {}}',
        '```json\n{"name": "Ada", "age": 36}\n```\n',
        '```json\n{"tool_call": {"name": ["glob"], "arguments": {}}}\n```',
        '```json\n{"tool_call": "glob"}\n```',
        "```\n{ int main() { return 0; } }\n```\n",
        "```json\n[]\n```\n",
    ],
)
def test_only_declared_names_are_calls_and_the_rest_is_text_to_the_letter(text: str) -> None:
    assert pieces(text) == (Delta("text", text),)


def test_a_tool_that_does_not_exist_is_noted_as_a_problem() -> None:
    _, problems = scanned(fenced("rm", path="/"))
    assert problems == (
        "there is no tool 'rm'; the tools are glob, plan, read_file, run_shell_command, write_file",
    )
    assert scanned('```json\n{"name": "Ada", "age": 36}\n```\n')[1] == ()


@pytest.mark.parametrize(
    "damaged",
    [
        '{"tool_call": {"name": "glob", "arguments": {"pattern": "*",},}}',
        '{"tool_call": {"name": "glob", "arguments": {"pattern": "*"}}',
        '{"tool_call": {"name": "glob", "arguments": {"pattern": "*"',
        "{'tool_call': {'name': 'glob', 'arguments': {'pattern': '*'}}}",
        '{"tool_call": {"name": "glob", "arguments": "{\\"pattern\\": \\"*\\"}"}}',
    ],
)
def test_damaged_json_in_a_fence_is_repaired(damaged: str) -> None:
    assert calls(f"```json\n{damaged}\n```\nSo.") == ONE


def test_a_raw_newline_in_a_string_is_repaired() -> None:
    text = '{"tool_call": {"name": "glob", "arguments": {"pattern": "a\nb"}}}'
    assert calls(text) == [("glob", r'{"pattern":"a\nb"}')]


def test_a_missing_brace_at_the_end_of_the_reply_is_repaired() -> None:
    assert calls('{"tool_call": {"name": "glob", "arguments": {"pattern": "*"}}') == ONE


def test_a_call_cut_off_inside_a_string_is_not_run_and_noted_as_a_problem() -> None:
    text = '{"tool_call": {"name": "write_file", "arguments": {"content": "half a fi'
    why = "the call of 'write_file' was not run: "
    unclosed = "tool_call.arguments.content has a string without a closing quotation mark"
    assert scanned(text) == ((Delta("text", text),), (why + unclosed,))
    cut = "it was cut off before its end"
    assert scanned(text, cut_off=True) == ((Delta("text", text),), (why + cut,))


def test_nothing_is_completed_in_a_reply_that_was_cut_off() -> None:
    text = '{"tool_call": {"name": "glob", "arguments": {"pattern": "*"}}'
    assert calls(text, cut_off=True) == []
    assert calls("<function=glob><parameter=pattern>x</parameter>", cut_off=True) == []
    assert calls("<function=glob><parameter=pattern>x</parameter>") == [("glob", '{"pattern":"x"}')]


def test_a_call_beyond_repair_stays_text_and_the_other_calls_run() -> None:
    broken = '```json\n{"tool_call": : : {{{ "name" glob\n```\n'
    found, problems = scanned(f"{CALL}\n{broken}{fenced('glob', pattern='*')}")
    assert [d.name for d in found if d.kind == "call"] == ["glob", "glob"]
    assert broken in "".join(d.text for d in found if d.kind == "text")
    assert len(problems) == 1


def test_a_string_that_never_ends_swallows_no_call_after_the_fence_around_it() -> None:
    broken = '```json\n{"tool_call": {"name": "glob", "arguments": {"pattern": "no end}}}\n```\n'
    for separator in ("", "And then:\n"):
        found = calls(broken + separator + fenced("glob", pattern="*") + "\n" + CALL)
        assert found[-2:] == ONE * 2


def test_a_call_that_may_be_part_of_an_open_string_is_not_run() -> None:
    for head in ("", "```json\n"):
        text = (
            head + '{"tool_call": {"name": "write_file", "arguments": {"content": "Docs:\n' + CALL
        )
        found, problems = scanned(text)
        assert found == (Delta("text", text),)
        assert len(problems) == 1
        assert "'write_file'" in problems[0]


def test_text_is_given_out_as_soon_as_it_cannot_belong_to_a_call() -> None:
    scanner = CallScanner(DeclaredTools(TOOLS))
    shown = ["".join(d.text for d in scanner.feed(p)) for p in ("Hel", "lo {", "x", "} <too", "l>")]
    assert shown == ["Hel", "lo ", "{x", "} ", "<tool>"]
