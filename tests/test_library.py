"""`Agent` and `coding_agent`, as a program uses them: real stores, a real local server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect
from recollect.events import AgentEvent, RunFinished, RunResult
from recollect.hook_events import HookEvent
from recollect.testing import ScriptedModel, call, says
from tests.cli.model_server import ENV, reply, server
from tests.cli.model_server import texts as sent_texts
from tests.cli.runner import Cli, surroundings


@recollect.tool
def weather(city: str) -> str:
    """Tells what the weather is like in a city."""
    return f"It rains in {city}."


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Cli]:
    cli = Cli(tmp_path)
    with surroundings(cli.env(ENV), cli.project):
        yield cli


def said(session: recollect.Session) -> list[str]:
    parts = [part for message in session.view().messages for part in message.parts]
    return [part.text for part in parts if isinstance(part, recollect.Text)]


def test_a_session_goes_on_from_run_to_run(home: Cli) -> None:
    agent = recollect.Agent(ScriptedModel(["one", "two", "three"]))

    async def loop() -> recollect.Session:
        result = await agent.run("a")
        result = await agent.run("b", result.session)
        assert result.text == "two"
        last: AgentEvent | None = None
        async for event in agent.stream("c", result.session):
            last = event
        assert isinstance(last, RunFinished)
        return last.session

    session = asyncio.run(loop())
    assert said(session) == ["a", "one", "b", "two", "c", "three"]
    assert home.ok("sessions", "--all", "--json").json[0]["id"] == session.id


def test_scripts_run_one_prompt_after_the_other(home: Cli) -> None:
    agent = recollect.Agent(ScriptedModel(["one", "two"]))
    result = agent.run_sync("a")
    result = agent.run_sync("b", result.session)
    assert said(result.session) == ["a", "one", "b", "two"]


def test_run_sync_inside_an_event_loop_says_what_to_do(home: Cli) -> None:
    async def inside() -> None:
        recollect.Agent(ScriptedModel(["one"])).run_sync("a")

    with pytest.raises(recollect.RecollectError, match=r"inside an event loop.*`await run"):
        asyncio.run(inside())


def test_a_tool_is_called_and_its_usage_and_text_are_in_the_result(home: Cli) -> None:
    used = recollect.Usage(input=5, output=2, total=7)
    script = [says(call("weather", city="Bergen"), usage=used), says("Yes.", usage=used)]
    model = ScriptedModel(script)
    result = recollect.Agent(model, tools=[weather]).run_sync("Umbrella?")
    assert (result.text, result.usage.total, result.turns) == ("Yes.", 14, 2)
    assert "It rains in Bergen." in str(model.requests[1].messages[-1])


def test_instructions_come_first_once_and_stay_what_they_were(home: Cli) -> None:
    model = ScriptedModel(["one", "two", "three"])
    agent = recollect.Agent(model, instructions="Be brief.")
    result = agent.run_sync("a")
    agent.run_sync("b", result.session)
    recollect.Agent(model, instructions="Be long.").run_sync("c", result.session)
    for request in model.requests:
        systems = [message for message in request.messages if message.role == "system"]
        assert systems == [request.messages[0]] == [recollect.system("Be brief.")]


def test_a_session_that_began_without_instructions_gets_them_first(home: Cli) -> None:
    model = ScriptedModel(["one", "two"])
    result = recollect.Agent(model).run_sync("a")
    recollect.Agent(model, instructions="Be brief.").run_sync("b", result.session)
    first, *others = model.requests[1].messages
    assert first == recollect.system("Be brief.")
    assert [message.role for message in others] == ["user", "model", "user"]


def test_hooks_may_be_a_list_of_functions(home: Cli) -> None:
    seen: list[str] = []

    def watch(event: HookEvent) -> str | None:
        seen.append(type(event).__name__)
        return "Mind the tests." if seen[-1] == "BeforeAgent" else None

    model = ScriptedModel(["ok"])
    recollect.Agent(model, hooks=[watch]).run_sync("a")
    assert seen == ["BeforeAgent", "BeforeModel", "AfterModel", "AfterAgent"]
    assert "Mind the tests." in str(model.requests[0].messages)


def test_a_plain_function_among_the_tools_is_refused_with_the_remedy() -> None:
    def plain(city: str) -> str:
        return city

    with pytest.raises(recollect.RecollectError, match=r"plain.*write `@tool` above the function"):
        recollect.Agent("gpt-5", tools=[plain])  # type: ignore[list-item]


# --- the coding agent ----------------------------------------------------------------------------

WRITE = call("write_file", id="w", file_path="new.txt", content="hello\n")
ANSWERS = (reply(WRITE), reply(recollect.Text(text="Done.")))


def test_the_coding_agent_asks_for_approval_and_writes(home: Cli) -> None:
    asked: list[recollect.ApprovalRequest] = []

    def approve(request: recollect.ApprovalRequest) -> bool:
        asked.append(request)
        return True

    with server(home, *ANSWERS) as on:
        coder = recollect.coding_agent(home.project, approve=approve)
        result = coder.run_sync("Write new.txt")
    assert [request.call.name for request in asked] == ["write_file"]
    assert (home.project / "new.txt").read_text() == "hello\n"
    assert (result.text, result.denials) == ("Done.", ())
    assert "You are recollect" in sent_texts(on, 0)[0]
    listed = home.ok("sessions", "--json").json
    assert [session["title"] for session in listed] == ["Write new.txt"]


def test_what_is_not_approved_is_not_done_and_the_model_reads_why(home: Cli) -> None:
    async def refuse(request: recollect.ApprovalRequest) -> bool:
        return False

    for approve in (refuse, None):
        with server(home, *ANSWERS) as on:
            result = recollect.coding_agent(home.project, approve=approve).run_sync("Write it")
        assert not (home.project / "new.txt").exists()
        assert [denial.tool for denial in result.denials] == ["write_file"]
        assert "not allowed" in sent_texts(on)[-1] or "the user refused" in sent_texts(on)[-1]


def test_the_coding_agent_goes_on_in_a_session_of_any_store(home: Cli) -> None:
    answers = [reply(recollect.Text(text=text)) for text in ("one", "two", "three")]

    async def inside() -> RunResult:
        async with recollect.open(home.home / "other.db") as store:
            coder = recollect.coding_agent(home.project, store=store)
            result = await coder.run("a")
            async for event in coder.stream("b", result.session):
                if isinstance(event, RunResult):
                    result = event
            assert [info.title for info in await store.sessions()] == ["a"]
            return result

    with server(home, *answers):
        result = asyncio.run(inside())
        assert said(result.session)[-2:] == ["b", "two"]
        coder = recollect.coding_agent(home.project, store=home.home / "third.db", mode="plan")
        first = coder.run_sync("c")
        assert said(coder.run_sync("d", first.session).session)[-4::2] == ["c", "d"]


def test_an_unknown_mode_or_folder_is_refused(home: Cli) -> None:
    with pytest.raises(recollect.errors.BadInput, match="the modes are plan, ask, edit, free"):
        recollect.coding_agent(mode="yolo")  # type: ignore[arg-type]
    with pytest.raises(recollect.errors.BadInput, match="there is no folder"):
        recollect.coding_agent(home.project / "nowhere")


def test_the_coding_agent_takes_folders_and_instructions_of_its_own(
    home: Cli, tmp_path: Path
) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "notes.txt").write_text("the secret is 42\n")
    asks = reply(call("read_file", id="r", absolute_path=str(beside / "notes.txt")))
    with server(home, asks, reply(recollect.Text(text="Done."))) as on:
        coder = recollect.coding_agent(home.project, directories=[beside], system="Be a pirate.")
        assert coder.run_sync("Read it").text == "Done."
    assert "Be a pirate." in sent_texts(on, 0)[0]
    assert "the secret is 42" in sent_texts(on)[-1]
