from __future__ import annotations

import pytest

from recollect.display.display_text import display_width
from recollect.entries import Body, Entry
from recollect.errors import BadInput, BadSettings, NoApiKey, RecollectError, UnknownModel
from recollect.runtime.prompt_run import RunStarted
from recollect.runtime.runtime import Overrides
from recollect.runtime.session_model import model_choice
from recollect.terminal.slash_commands import ANSWER_WIDTH
from recollect.terminal.start_options import StartOptions
from recollect.testing import call, model, says, user
from tests.cli.provider import ENV, provider
from tests.cli.runner import Cli
from tests.terminal.running_session import RunningSession, play

SECOND = '[models.second]\nurl = "{}"\nwire = "openai"\nkey = "MY_KEY"\nwindow = 30000\n'


def assert_fits(text: str) -> None:
    """In 80 columns, beside the margins of the screen."""
    assert [line for line in text.split("\n") if display_width(line) > ANSWER_WIDTH] == []


def test_a_fact_is_added_in_the_users_own_words_and_sent_with_the_next_prompt(cli: Cli) -> None:
    async def work(session: RunningSession) -> None:
        await session.say("Hi.")
        shown = await session.type("/memory add We use tabs.")
        assert "+- We use tabs." in shown
        assert "nothing was added" in await session.type("/memory add We use tabs.")
        assert "We use tabs." in await session.type("/memory")
        assert "AGENTS.md" in await session.type("/memory list")
        assert (await session.type("/memory refresh")).startswith("new ")
        with pytest.raises(BadInput):
            await session.type("/memory forget")
        await session.say("And now?")

    with provider(cli, "openai", ["one", "two"]) as server:
        play(cli, work)
        assert b"We use tabs." in server.requests[-1].body


def test_a_directory_is_added_for_the_next_prompt(cli: Cli) -> None:
    other = cli.project.parent / "other"
    other.mkdir()
    (other / "b.py").write_text("b = 2\n")

    async def work(session: RunningSession) -> None:
        assert str(cli.project) in await session.type("/directory")
        with pytest.raises(BadInput, match="there is no folder"):
            await session.type("/dir add ../nothing")
        assert str(other) in await session.type("/dir add ../other")
        assert str(other) in await session.type("/directory show")
        await session.say("Read it.")

    read = says("", call("read_file", file_path=str(other / "b.py")))
    with provider(cli, "openai", [read, "done"]) as server:
        play(cli, work)
        assert b"b = 2" in server.requests[-1].body


def test_a_model_holds_for_the_session_also_when_it_is_resumed(cli: Cli) -> None:
    async def choose(session: RunningSession) -> None:
        listed = await session.type("/model")
        assert "*  mine" in listed
        assert_fits(listed)
        with pytest.raises(UnknownModel, match="second"):
            await session.type("/model secnd")
        with pytest.raises(NoApiKey, match="OPENAI_API_KEY"):
            await session.type("/model gpt-5-mini")
        assert "second" in await session.type("/model second")
        await session.say("Hi.")
        assert session.runner.session is not None

    async def resume(session: RunningSession) -> None:
        await session.say("Again.")
        assert "goes to mine" in await session.type("/model default")
        await session.say("Once more.")
        started = [event for event in session.events if isinstance(event, RunStarted)]
        assert [one.model.name for one in started] == ["second", "mine"]

    with provider(cli, "openai", ["one", "two", "three", "four"]) as server:
        with (cli.home / "settings.toml").open("a") as settings:
            settings.write(SECOND.format(server.url))
        play(cli, choose)
        assert server.requests[0].json["model"] == "second"
        cli.ok("-p", "From the command line.", "-c", env=ENV)
        assert server.requests[1].json["model"] == "second"
        play(cli, resume, StartOptions(session="last"))


def test_a_compaction_keeps_the_model_of_the_session(cli: Cli) -> None:
    words = "word " * 30
    talk: list[Body | Entry] = [user("begin"), model("yes"), model_choice("second")]
    talk += [one for n in range(300) for one in (user(f"{n} {words}"), model(f"{n} {words}"))]

    async def work(session: RunningSession) -> None:
        await session.say("Go on.")
        started = [event for event in session.events if isinstance(event, RunStarted)]
        assert [one.model.name for one in started] == ["second"]

    with provider(cli, "openai", ["Good."]) as server:
        with (cli.home / "settings.toml").open("a") as settings:
            settings.write(SECOND.format(server.url))
        made, _ = cli.session(talk)
        cli.ok("compact", made.id, "--budget", "2000", "--no-model", env=ENV)
        play(cli, work, StartOptions(session=made.id))


def test_the_mode_is_switched_and_the_sandbox_only_left_by_those_who_came_without(cli: Cli) -> None:
    async def work(session: RunningSession) -> None:
        shown = await session.type("/permissions")
        assert shown.startswith("mode ask")
        assert "sandbox: " in shown
        assert "may change files" in await session.type("/permissions EDIT")
        assert "edit" in (await session.type("/tools"))
        with pytest.raises(BadInput, match="--mode unrestricted"):
            await session.type("/permissions unrestricted")
        with pytest.raises(BadInput, match="take plan, ask"):
            await session.type("/permissions nonsense")
        await session.say("Write it.")
        assert (cli.project / "b.py").exists()

    async def unrestricted(session: RunningSession) -> None:
        await session.type("/permissions plan")
        assert "without a sandbox" in await session.type("/permissions unrestricted")

    write = says("", call("write_file", file_path="b.py", content="b\n"))
    with provider(cli, "openai", [write, "done"]):
        play(cli, work)
        start = StartOptions(overrides=Overrides(mode="unrestricted"))
        play(cli, unrestricted, start)


def test_trust_holds_for_exactly_what_was_shown(cli: Cli) -> None:
    memory = cli.project / "AGENTS.md"
    memory.write_text("Never touch \x1b[31mmain.\n")
    settings = cli.project / ".recollect" / "settings.toml"
    settings.parent.mkdir()
    settings.write_text(
        '[agent]\nmax_turns = 7\n[[hooks]]\nevent = "BeforeAgent"\ncommand = "./check"\n'
    )
    (cli.project / "check").write_text("#!/bin/sh\n")

    async def work(session: RunningSession) -> None:
        with pytest.raises(BadInput, match="look first"):
            await session.type("/trust all")
        shown = await session.type("/trust")
        assert "\x1b" not in shown
        assert "Never touch" in shown
        assert "agent.max_turns = 7" in shown
        assert "BeforeAgent: ./check" in shown
        memory.write_text("Push to main.\n")
        with pytest.raises(BadInput, match="memory changed since you saw"):
            await session.type("/trust memory")
        await session.type("/trust")
        assert "trusted: memory" in await session.type("/trust memory")
        assert "not approved" in await session.type("/hooks")
        await session.type("/trust")
        (cli.project / "check").write_text("#!/bin/sh\nrm -rf /\n")
        with pytest.raises(BadInput, match="hooks changed"):
            await session.type("/trust all")
        assert session.runner.runtime.settings.agent.max_turns == 100
        shown = await session.type("/trust")
        assert "memory: trusted" in shown
        assert "settings, hooks" in await session.type("/trust all")
        assert session.runner.runtime.settings.agent.max_turns == 7
        assert "of this project, approved" in await session.type("/hooks")

    with provider(cli, "openai", []):
        play(cli, work)


def test_hooks_show_what_came_of_each_the_last_time(cli: Cli) -> None:
    hook = '[[hooks]]\nevent = "{}"\ncommand = "{}"\n'
    scripts = {"fine": "exit 0", "odd": "echo '{{'", "no": "echo not today >&2; exit 2"}
    events = {"fine": "BeforeAgent", "odd": "BeforeTool", "no": "BeforeModel"}
    for name, script in scripts.items():
        (cli.project / name).write_text(f"#!/bin/sh\n{script}\n")
        (cli.project / name).chmod(0o755)

    async def work(session: RunningSession) -> None:
        assert (await session.type("/hooks")).count(
            "has not run since this session was opened"
        ) == 3
        await session.say("go")
        shown = await session.type("/hooks")
        assert "last: ok at BeforeAgent, just now, in 0." in shown
        assert "last: refused at BeforeModel" in shown
        assert "not today" in shown
        (cli.project / "no").write_text("#!/bin/sh\n")
        await session.say("go on")
        shown = await session.type("/hooks")
        assert "last: failed at BeforeTool" in shown
        assert "hook odd: its output is invalid" in shown
        assert "last: ok at BeforeModel" in shown

    more = "".join(hook.format(events[name], cli.project / name) for name in scripts)
    read = says("", call("read_file", file_path="fine"))
    with provider(cli, "openai", [read, "done"], more):
        play(cli, work)


def test_settings_are_shown_and_set_as_config_does(cli: Cli) -> None:
    async def work(session: RunningSession) -> None:
        everything = await session.type("/settings")
        assert "agent.max_turns" in everything
        assert "set in" in await session.type("/settings agent.max_turns 7")
        assert "agent.max_turns = 7" in await session.type("/settings agent.max_turns")
        with pytest.raises(RecollectError, match=r"did you mean 'agent\.max_turns'"):
            await session.type("/settings agent.maxturns 7")
        with pytest.raises((BadInput, BadSettings)):
            await session.type("/settings agent.max_turns many")
        assert "* auto" in await session.type("/theme")
        await session.type("/theme light")
        with pytest.raises(BadInput, match="take auto, light, dark"):
            await session.type("/theme solarized")

    with provider(cli, "openai", []):
        play(cli, work)
        assert cli.ok("config", "terminal.theme").out == "light\n"


def test_stats_count_what_the_log_has_and_copy_takes_the_last_answer(cli: Cli) -> None:
    answer = "Two ways:\n\n```sh\nmake\n```\n\n- also\n\n  ```\n  ninja\n  ```\n"

    async def work(session: RunningSession) -> None:
        assert "nothing to count" in await session.type("/stats")
        with pytest.raises(BadInput, match="no answer"):
            await session.type("/copy")
        await session.say("How is it built?")
        shown = await session.type("/cost")
        assert shown.startswith("1 prompt, 2 turns")
        assert "read_file      1       1" in shown
        assert_fits(shown)
        assert (await session.type("/copy")).strip() == answer.strip()
        assert await session.type("/copy 1") == "make\n"
        assert await session.type("/copy 2") == "ninja\n"
        with pytest.raises(BadInput, match="2 code blocks"):
            await session.type("/copy 3")

    read = says("", call("read_file", file_path="missing.py"))
    with provider(cli, "openai", [read, answer]):
        play(cli, work)


def test_the_model_drafts_the_memory_file_and_only_the_user_writes_it(cli: Cli) -> None:
    file = cli.project / "AGENTS.md"
    tool = says("", call("write_file", file_path="AGENTS.md", content="mine now\n"))
    reply = "I looked.\n\nBEGIN MEMORY FILE\n# Project\n\nRun `make`.\nEND MEMORY FILE\n"

    async def work(session: RunningSession) -> None:
        with pytest.raises(BadInput, match="no draft"):
            await session.type("/init write")
        await session.type("/init")
        await session.settle()
        drafting = session.runner.shown.drafting
        assert drafting is not None
        await drafting
        assert "+# Project" in session.notices
        assert "/init write" in session.notices
        assert not file.exists()
        assert "/trust memory" in await session.type("/init write")
        assert file.read_text() == "# Project\n\nRun `make`.\n"
        with pytest.raises(BadInput, match="no draft"):
            await session.type("/init write")

    with provider(cli, "openai", [tool, reply]) as server:
        play(cli, work)
        assert b"only the user changes it" in server.requests[-1].body


def test_help_groups_every_command_and_fits_the_screen(cli: Cli) -> None:
    async def work(session: RunningSession) -> None:
        shown = await session.type("/help")
        assert "This folder:" in shown
        assert_fits(shown)
        assert "/memory add We use tabs." in await session.type("/help /memory")
        assert "also: /clear" in await session.type("/help clear")
        with pytest.raises(RecollectError, match="did you mean /memory"):
            await session.type("/help memry")

    with provider(cli, "openai", []):
        play(cli, work)
