"""`OpenAIConversationsSession` of the real openai-agents, unchanged, over our conversations."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from recollect.testing import ProviderLine, call, says
from tests.adapters.test_agents_package import PATIENCE, UNREACHABLE, VERSION
from tests.server.responses.harness import stage

PROGRAM = """
import asyncio, sys
import agents
from agents import Agent, OpenAIConversationsSession, Runner, function_tool
from openai import AsyncOpenAI

agents.set_tracing_disabled(True)

@function_tool
def get_weather(place: str) -> str:
    return f"20 degrees in {place}"

async def main() -> None:
    client = AsyncOpenAI(base_url=sys.argv[1], api_key="token-of-ann", max_retries=0)
    agents.set_default_openai_client(client)
    agent = Agent(name="Helper", instructions="Help.", model="mine", tools=[get_weather])
    session = OpenAIConversationsSession(openai_client=client)
    for words in ("Weather in Paris?", "Thanks"):
        result = await Runner.run(agent, words, session=session)
        print(result.final_output)
    items = await session.get_items()
    print([item.get("role") or item["type"] for item in items])
    print((await session.pop_item())["content"][0]["text"])
    print(len(await session.get_items()), len(await session.get_items(limit=2)))
    await session.add_items([{"role": "user", "content": f"n{n}"} for n in range(45)])
    found = await session.get_items()
    print(len(found), found[-1]["content"][0]["text"])
    await session.clear_session()
    print(await session.get_items())
    streamed = Runner.run_streamed(agent, "Stream", session=session)
    async for event in streamed.stream_events():
        pass
    print(streamed.final_output)
    await client.close()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with openai-agents and nothing else."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("needs uv, to make an environment with openai-agents; `./test` brings it along")
    folder = tmp_path_factory.mktemp("agents-client") / "venv"
    subprocess.run([uv, "venv", "--quiet", str(folder)], check=True, timeout=PATIENCE)
    interpreter = folder / "bin" / "python"
    done = subprocess.run(
        [uv, "pip", "install", "--quiet", "--python", interpreter, f"openai-agents=={VERSION}"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    if done.returncode and UNREACHABLE.search(done.stderr):
        pytest.skip("needs openai-agents from a package index, and none can be reached")
    assert done.returncode == 0, done.stderr
    return interpreter


def test_the_session_of_openai_agents_works_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python: Path
) -> None:
    script: list[ProviderLine] = [
        says(call("get_weather", place="Paris")),
        "It is 20 degrees.",
        "You are welcome.",
        "Streamed.",
    ]
    with stage(tmp_path, monkeypatch, script, validate=True) as of:
        server = of.serve()
        done = subprocess.run(
            [python, "-c", PROGRAM, server.url],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.stdout.splitlines() == [
            "It is 20 degrees.",
            "You are welcome.",
            "['user', 'function_call', 'function_call_output', 'assistant', 'user', 'assistant']",
            "You are welcome.",
            "5 2",
            "50 n44",
            "[]",
            "Streamed.",
        ], done.stderr
