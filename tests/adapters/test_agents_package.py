"""The program of docs/adapters.md with the real openai-agents, in an environment of its own.

It talks to a real HTTP server, in both formats that the package speaks.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from recollect.adapters.openai_agents import RecollectSession
from recollect.codecs.call_pairing import INTERRUPTED
from recollect.store.sqlite import SqliteStore
from tests.adapters.items import called, said
from tests.cli.runner import Cli
from tests.models.server import Server, http, serving

ROOT = Path(__file__).parent.parent.parent
VERSION = "0.24.0"
PATIENCE = 120  # seconds, for a process on a busy machine
UNREACHABLE = re.compile(
    r"(?i)failed to (fetch|download)|error sending request|network (is|was) disabled"
)
CHAT = "import agents; agents.set_default_openai_api('chat_completions')\n"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with recollect and openai-agents, and nothing else."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("needs uv, to make an environment with openai-agents; `./test` brings it along")
    folder = tmp_path_factory.mktemp("openai-agents") / "venv"
    python = folder / "bin" / "python"
    subprocess.run([uv, "venv", "--quiet", str(folder)], check=True, timeout=PATIENCE)
    install = [uv, "pip", "install", "--quiet", "--python", str(python)]
    done = subprocess.run(
        [*install, str(ROOT), f"openai-agents=={VERSION}"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    if done.returncode and UNREACHABLE.search(done.stderr):
        pytest.skip("needs openai-agents from a package index, and none can be reached")
    assert done.returncode == 0, done.stderr
    return python


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def example() -> str:
    page = (ROOT / "docs" / "adapters.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.S)
    return str(program)


def converse(python: Path, cli: Cli, before: str, prompts: list[str], *answers: bytes) -> Server:
    """The example, one process for each prompt, with a server that answers like this."""

    async def main() -> Server:
        async with serving(*answers) as server:
            env = cli.env() | {
                "OPENAI_BASE_URL": server.url,
                "OPENAI_API_KEY": "sk-test",
                "OPENAI_AGENTS_DISABLE_TRACING": "1",
            }
            for prompt in prompts:
                process = await asyncio.create_subprocess_exec(
                    *(str(python), "-c", before + example(), prompt),
                    env=env,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                )
                out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
                assert process.returncode == 0, err.decode()
                assert out.decode().startswith("Answer ")
            return server

    return asyncio.run(main())


def as_json(value: Any) -> bytes:
    return http(json.dumps(value).encode(), kind="application/json")


def chat_reply(message: dict[str, Any]) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return as_json(
        {
            "id": "chat-1",
            "object": "chat.completion",
            "created": 1,
            "model": "m-1",
            "choices": [choice],
        }
    )


def response(*items: dict[str, Any]) -> bytes:
    settings = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m-1"}
    return as_json({**head, **settings, "output": list(items)})


def weather_call(id_: str = "call_1") -> dict[str, Any]:
    return called(id_, "weather", '{"city":"Bergen"}')  # type: ignore[no-any-return]


def message(text: str, id_: str) -> dict[str, Any]:
    block = {"type": "output_text", "text": text, "annotations": []}
    head = {"type": "message", "id": id_, "role": "assistant", "status": "completed"}
    return {**head, "content": [block]}


def chat_call() -> bytes:
    function = {"name": "weather", "arguments": '{"city":"Bergen"}'}
    calls = [{"id": "call_1", "type": "function", "function": function}]
    return chat_reply({"content": None, "tool_calls": calls})


def test_it_is_a_session_by_the_packages_own_check(python: Path) -> None:
    check = (
        "from agents.memory import Session, SessionSettings\n"
        "from recollect.adapters.openai_agents import RecollectSession\n"
        "session = RecollectSession('x', session_settings=SessionSettings(limit=3))\n"
        "assert isinstance(session, Session)"
    )
    done = subprocess.run([str(python), "-c", check], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


COMPARISON = """
import asyncio, random
from agents import SQLiteSession
from recollect.adapters.openai_agents import RecollectSession
from tests.adapters.items import EVERY_KIND

async def main():
    choose = random.Random(7)
    ours, theirs = RecollectSession("u"), SQLiteSession("u")
    for _ in range(150):
        start = choose.randrange(len(EVERY_KIND))
        items = EVERY_KIND[start : start + choose.randrange(6)]
        limit = choose.choice([0, 1, 3, 10, 1000])
        match choose.randrange(12):
            case 0 | 1 | 2 | 3:
                assert await ours.pop_item() == await theirs.pop_item()
            case 4:
                await ours.clear_session(), await theirs.clear_session()
            case _:
                await ours.add_items(items), await theirs.add_items(items)
        assert await ours.get_items(limit) == await theirs.get_items(limit)

asyncio.run(main())
"""


def test_it_returns_what_the_packages_own_session_returns(python: Path, cli: Cli) -> None:
    done = subprocess.run(
        [str(python), "-c", COMPARISON], env=cli.env(), cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_next_process_sends_the_turns_before_as_chat_completions(
    python: Path, cli: Cli
) -> None:
    answers = [chat_call(), *(chat_reply({"content": f"Answer {n}"}) for n in (1, 2))]
    server = converse(python, cli, CHAT, ["Umbrella in Bergen?", "And tomorrow?"], *answers)
    assert [request.line for request in server.asked] == ["POST /chat/completions HTTP/1.1"] * 3
    sent = json.loads(server.asked[-1].body)["messages"]
    assert [each["role"] for each in sent] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert sent[1]["content"] == "Umbrella in Bergen?"
    assert sent[2]["tool_calls"][0]["function"]["name"] == "weather"
    assert (sent[3]["tool_call_id"], sent[3]["content"]) == ("call_1", "Bergen: rain, 9 degrees")
    assert "Answer 1" in str(sent[4]["content"])
    assert sent[5]["content"] == "And tomorrow?"
    assert_stored(cli)


def test_the_next_process_sends_the_items_before_as_responses(python: Path, cli: Cli) -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA=="}
    answers = [
        response(thought, weather_call()),
        *(response(message(f"Answer {n}", f"msg_{n}")) for n in (1, 2)),
    ]
    server = converse(python, cli, "", ["Umbrella in Bergen?", "And tomorrow?"], *answers)
    assert [request.line for request in server.asked] == ["POST /responses HTTP/1.1"] * 3
    first, last = (json.loads(server.asked[n].body)["input"] for n in (1, 2))
    assert [each.get("type", each.get("role")) for each in last] == [
        "user",
        "reasoning",
        "function_call",
        "function_call_output",
        "message",
        "user",
    ]
    assert last[: len(first)] == first  # what the first process sent, its cached prefix
    assert last[1]["encrypted_content"] == "gAAAA=="
    assert_stored(cli)


def assert_stored(cli: Cli) -> None:
    """Both turns are in the user's store, and the commands work on them."""
    assert "user_123" in cli.ok("sessions", "--all").out
    (hit, *_) = cli.ok("search", "rain", "--tool", "weather", "--all", "--json").json
    shown = cli.ok("show", hit["session"]["id"]).out
    for text in ("Umbrella in Bergen?", "weather", "Answer 1", "And tomorrow?", "Answer 2"):
        assert text in shown


@pytest.mark.parametrize(
    ("before", "answer", "read"),
    [
        (CHAT, chat_reply({"content": "Answer 1"}), "messages"),
        ("", response(message("Answer 1", "msg_1")), "input"),
    ],
    ids=["chat completions", "responses"],
)
def test_a_run_after_a_crash_sends_an_output_for_the_call(
    python: Path, cli: Cli, before: str, answer: bytes, read: str
) -> None:
    async def crash(store: SqliteStore) -> None:
        items = [said("Umbrella in Bergen?"), weather_call("lost")]
        await RecollectSession("user_123", store=store).add_items(items)

    cli.write(crash)
    server = converse(python, cli, before, ["Are you there?"], answer)
    sent = json.loads(server.asked[0].body)[read]
    assert INTERRUPTED in [each.get("output", each.get("content")) for each in sent]
