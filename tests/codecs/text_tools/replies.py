"""Declared tools, and replies of models in every dialect, for the tests of text tools."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

from recollect.codecs.text_tools.argument_coercion import DeclaredTools
from recollect.codecs.text_tools.call_scanner import CallScanner
from recollect.codecs.wire_protocol import Declaration, Delta
from recollect.entries import json_text


def tool(name: str, description: str = "", /, **properties: object) -> Declaration:
    schema = {"type": "object", "properties": properties, "required": list(properties)[:1]}
    return Declaration(name=name, description=description, parameters=json_text(schema))


STRING = {"type": "string"}
TOOLS = (
    tool(
        "read_file",
        "Reads a file.",
        absolute_path={"type": "string", "description": "The absolute path to the file"},
        offset={"type": "integer"},
        limit={"type": "number"},
    ),
    tool("write_file", "Writes a file.", file_path=STRING, content=STRING),
    tool("run_shell_command", "Runs a command.", command=STRING, directory=STRING),
    tool("glob", "Finds files.", pattern=STRING, hidden={"type": "boolean"}),
    tool(
        "plan",
        "Keeps a plan.",
        steps={"type": "array", "items": {"type": "string"}},
        options={"type": "object", "properties": {"depth": {"type": "integer"}}},
    ),
)
NAMES = frozenset(t.name for t in TOOLS)


def pieces(text: str, *cuts: int, root: str = "", cut_off: bool = False) -> tuple[Delta, ...]:
    """What the scanner makes of a text, cut at these places; neighbouring texts joined."""
    return scanned(text, *cuts, root=root, cut_off=cut_off)[0]


def scanned(
    text: str, *cuts: int, root: str = "", cut_off: bool = False
) -> tuple[tuple[Delta, ...], tuple[str, ...]]:
    scanner = CallScanner(DeclaredTools(TOOLS, root))
    found: list[Delta] = []
    edges = [0, *sorted(cuts), len(text)]
    for start, end in itertools.pairwise(edges):
        found += scanner.feed(text[start:end])
    found += scanner.close(cut=cut_off)
    joined: list[Delta] = []
    for delta in found:
        if joined and joined[-1].kind == delta.kind == "text":
            joined[-1] = Delta("text", joined[-1].text + delta.text)
        else:
            joined.append(delta)
    return tuple(joined), scanner.problems


def calls(text: str, root: str = "", *, cut_off: bool = False) -> list[tuple[str, str]]:
    found = pieces(text, root=root, cut_off=cut_off)
    return [(delta.name, delta.text) for delta in found if delta.kind == "call"]


def words(text: str) -> str:
    return "".join(delta.text for delta in pieces(text) if delta.kind == "text")


def fenced(name: str, /, **arguments: object) -> str:
    return "```json\n" + inline(name, **arguments) + "\n```"


def inline(name: str, /, **arguments: object) -> str:
    return json_text({"tool_call": {"name": name, "arguments": arguments}})


SAMPLES = (
    "I look at it.\n\n" + fenced("read_file", absolute_path="/a.py", offset=3) + "\n",
    "First " + inline("glob", pattern="**/*.py") + " and then more.\n",
    '<tool_call>\n{"name": "glob", "arguments": {"pattern": "*"}}\n</tool_call>',
    (
        "<function=write_file>\n<parameter=file_path>\n/x\n</parameter>\n<parameter=content>\n"
        "if a < b:\n    {}\n</parameter>\n</function>"
    ),
    '{"name": "glob", "arguments": {"pattern": "*.md"}}\n',
    'TOOL: read_file\nARGS: {"absolute_path": "/b"}\n',
    "```python\nprint('{\"tool_call\": 1}')\n```\n",
    "It is `" + inline("glob", pattern="*") + "` in code.\n> " + inline("glob", pattern="q") + "\n",
    fenced("write_file", file_path="/r.md", content="# T\n```sh\nls {}\n```\n"),
    '```json\n{"tool_call": {"name": "glob", "arguments": {"pattern": "a\nb",}}\n```\n',
    '```\n[{"name": "glob", "arguments": {"pattern": "1"}}, 2]\n```\n',
    '```json\n{"a": [1, 2, {"b": "}"}]}\n```\nA stray ` and ' + inline("glob", pattern="2") + "\n",
    '```json\n{"tool_call": {"name": "glob", "arguments": {"pattern": "never ends}}\n```\n',
    (
        "~~~\n<tool_call>\n<function=glob>\n<parameter=pattern>x</parameter>\n</function>\n"
        "</tool_call>\n~~~\n"
    ),
)
# whole replies, each with calls that run
CORPUS = (
    *(SAMPLES[n] for n in (0, 1, 2, 3, 4, 5, 8, 9, 13)),
    fenced("plan", steps=["one", "two"], options={"depth": 12}) + "\nThen we see.",
    fenced("read_file", absolute_path="src/a.py", offset=100, limit=2.5),
    fenced("write_file", file_path="/n.md", content='He said: "it\'s 5 }" \\ and\n{"a": 1}\n'),
    "I write it.\n\n" + inline("write_file", path="b.txt", content="line one\nline two\n"),
    '{"tool_call": {"name": "glob", "arguments": "{\\"pattern\\": \\"*.py\\"}"}}',
    "{'tool_call': {'name': 'glob', 'arguments': {'pattern': '**/*.rs', 'hidden': true}}}",
    '```json\n{"tool_call": {"name": "glob", "arguments": {"pattern": "c", "hidden": "true"}}\n```',
    f"```json\n[{inline('glob', pattern='a')}, {inline('glob', pattern='b')}]\n```\n",
    f"```json\n{inline('glob', pattern='c')}\n{inline('run_shell_command', command='ls -l')}\n```",
    "<think>\nI could call " + inline("glob", pattern="no") + "\n</think>\n\n" + SAMPLES[2],
    (
        "<tool_call>\n<function=run_shell_command>\n<parameter=command>\ngit log -3\n"
        "</parameter>\n<parameter=directory>\nsrc\n</parameter>\n</function>\n</tool_call>"
    ),
    'TOOL: write_file\nARGS: {"file_path": "a", "content": "TOOL: glob\\nARGS: {}"}\n\nDone.\n',
    "1. First\n\n    " + inline("glob", pattern="in a list") + "\n2. Second\n",
)
_TOKENS = st.sampled_from(
    [
        *("`", "``", "```", "```json\n", "```\n", "~~~\n", "\n", "\n\n", " ", "> ", "{", "}", '"'),
        *("\\", '\\"', ",", "[", "]", "<tool_call>", "</tool_call>", "<function=glob>", "x"),
        *("<parameter=pattern>", "</parameter>", "</function>", "TOOL: glob\n", "ARGS: ", "<", "'"),
        *('{"tool_call": ', '{"name": "glob", ', '"arguments": {', '"pattern": "*"', "}}", "}}}"),
        *(
            "{\n",
            ' "name"',
            ":",
            "tool_call",
            " " * 50,
            "\t",
            "\r\n",
            "é",
            "TOOL:",
            "<tool",
            "```js",
        ),
        *(inline("glob", pattern="*"), fenced("read_file", absolute_path="/a")),
    ]
)
noise = st.lists(_TOKENS, max_size=30).map("".join)
samples = st.lists(st.sampled_from(SAMPLES), max_size=4).map("".join)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    text = draw(samples)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(text)))
        width = draw(st.integers(0, 12))
        text = text[:at] + draw(noise)[:20] + text[at + width :]
    return text


replies = samples | noise | damaged() | st.tuples(damaged(), noise, samples).map("".join)
