"""`/context`: the list, its edits, their cost, the difference and the exact request."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
from functools import partial

import msgspec

from recollect.entries import Body, Elide, Elided
from recollect.runtime.request_replay import encode_next
from recollect.terminal.context_screen import ContextScreen
from recollect.terminal.context_texts import ExactRequestScreen
from recollect.terminal.row_list import RowList
from recollect.terminal.text_screen import TextScreen
from recollect.testing import call, model, result, says, user
from tests.terminal.context_places import command, exchange, opened, store
from tests.terminal.pilot import DrivenTerminal, TerminalPlace


def screen(driven: DrivenTerminal) -> ContextScreen:
    found = driven.app.screen
    assert isinstance(found, ContextScreen)
    return found


async def open_context(driven: DrivenTerminal) -> ContextScreen:
    await command(driven, "/context")
    await driven.wait(lambda: isinstance(driven.app.screen, ContextScreen), "the screen")
    shown = screen(driven)
    await driven.wait(lambda: shown.report is not None and shown.report.next, "the next request")
    return shown


def tokens(driven: DrivenTerminal) -> int:
    return driven.session.view().tokens


async def go_to(driven: DrivenTerminal, entry: str) -> None:
    """Put the cursor on the row of an entry."""
    shown = screen(driven)
    at = [row.entry.id if row.entry else "" for row in shown.arranged].index(entry)
    shown.query_one(RowList).move_to(at)
    await driven.wait(lambda: shown.current is not None and shown.current.key.startswith(entry))


def has_requests(driven: DrivenTerminal, count: int) -> bool:
    return len(driven.server.requests) >= count


def has_tokens(driven: DrivenTerminal, wanted: int) -> bool:
    return tokens(driven) == wanted


def printed(*arguments: str) -> bytes:
    """What `recollect encode` prints."""
    command = [sys.executable, "-m", "recollect", "encode", *arguments]
    return subprocess.run(command, capture_output=True, check=True).stdout


def is_another(request: ExactRequestScreen, before: bytes) -> bool:
    return request.body != before


def talk(count: int = 3) -> list[Body]:
    return [body for number in range(count) for body in exchange(number)]


def test_rows_are_dropped_restored_pinned_and_undone(terminal: TerminalPlace) -> None:
    async def use() -> None:
        session, entries = await store(talk())
        async with opened(terminal, session) as driven:
            shown = await open_context(driven)
            whole = tokens(driven)
            result = entries[2].id
            await go_to(driven, result)
            await driven.wait_shown("dropping saves")
            await driven.press("space")
            await driven.wait(lambda: tokens(driven) < whole, "fewer tokens")
            await driven.wait_shown("drop")
            await driven.wait(lambda: shown.current is not None and bool(shown.current.rule))
            assert shown.report is not None
            assert shown.report.view.tokens == tokens(driven)
            await driven.wait_shown("restoring adds")
            await driven.press("u")
            await driven.wait(lambda: tokens(driven) == whole, "everything back")
            # a question that is dropped leaves no text, and stands in its place
            await go_to(driven, entries[0].id)
            await driven.press("space")
            await driven.wait(lambda: tokens(driven) < whole)
            await driven.wait(
                lambda: any(row.kind == "left_out" for row in shown.rows), "a grey row"
            )
            kinds = [row.kind for row in shown.rows if row.entry is not None]
            assert kinds.index("left_out") == 0
            await driven.press("space")
            await driven.wait(lambda: tokens(driven) == whole)
            await driven.press("p")
            await driven.wait_shown("pinned")
            await driven.press("space")  # a pinned row is not dropped, and the footer says why
            await driven.wait_shown("it is pinned; p takes the pin away")
            await driven.press("p")
            await driven.wait(lambda: not any(row.pinned for row in shown.rows), "no pin")
            await driven.press("q")
            await driven.wait(lambda: driven.app.screen is driven.app.chat)

    asyncio.run(use())


def test_what_a_rule_left_out_comes_back_with_space(terminal: TerminalPlace) -> None:
    async def use() -> None:
        session, entries = await store(talk())
        left = Elided(entry=entries[2].id, placeholder="[left out]", tokens=300)
        async with opened(terminal, session) as driven:
            await command(driven, "/help")
            held = driven.app.runner.session
            assert held is not None
            await held.append(Elide(rule="superseded", items=(left,), reason="over budget"))
            shown = await open_context(driven)
            small = tokens(driven)
            await go_to(driven, entries[2].id)
            await driven.wait_shown("superseded leaves out")
            assert "over budget" in driven.shown()
            await driven.press("enter")
            await driven.wait(lambda: isinstance(driven.app.screen, TextScreen), "the text")
            await driven.wait_shown("def compute_0")
            assert "[left out]" in driven.shown()
            await driven.press("escape", "space")
            await driven.wait(lambda: tokens(driven) > small, "more tokens")
            await driven.wait(lambda: not any(row.rule for row in shown.rows))
            await driven.press("u")  # and away again
            await driven.wait(lambda: tokens(driven) == small)
            await driven.wait(lambda: any(row.rule == "superseded" for row in shown.rows))

    asyncio.run(use())


def test_a_message_in_a_compaction_comes_back_and_the_whole_too(terminal: TerminalPlace) -> None:
    async def use() -> None:
        session, entries = await store(talk(12))
        async with opened(terminal, session) as driven:
            await command(driven, "/help")
            held = driven.app.runner.session
            assert held is not None
            whole = tokens(driven)
            await held.compact(budget=3_000)
            shown = await open_context(driven)
            small = tokens(driven)
            await driven.wait(lambda: any(row.kind == "replaced" for row in shown.rows))
            await go_to(driven, entries[0].id)
            await driven.wait_shown("pinning adds")
            await driven.press("space")
            await driven.wait(lambda: tokens(driven) > small, "the question")
            await driven.wait(lambda: any(row.pinned for row in shown.rows))
            await driven.press("u")
            await driven.wait(lambda: tokens(driven) == small, "the pin undone")
            await driven.wait(lambda: not any(row.pinned for row in shown.rows), "its row")
            assert shown.current is not None
            assert shown.current.key == entries[0].id  # the cursor stays, for the next key
            at = next(n for n, row in enumerate(shown.arranged) if row.snapshot)
            shown.query_one(RowList).move_to(at)
            await driven.wait_shown("restoring adds")
            await driven.press("space")
            await driven.wait(lambda: tokens(driven) == whole, "the compaction undone")

    asyncio.run(use())


def test_the_difference_names_what_breaks_the_cache(terminal: TerminalPlace) -> None:
    async def use() -> None:
        async with terminal.open(["first answer", "second answer"]) as driven:
            for number, words in enumerate(("a first question " + "with words " * 30, "more")):
                driven.app.runner.send(words)
                await driven.wait(partial(has_requests, driven, number + 1), "a request")
                await driven.wait_idle()
            shown = await open_context(driven)
            await driven.press("d")
            await driven.wait(lambda: isinstance(driven.app.screen, TextScreen))
            await driven.wait_shown("keeps the prompt cache")
            await driven.press("escape")
            spoken = next(row for row in shown.rows if row.who == "user")
            assert spoken.entry is not None
            await go_to(driven, spoken.entry.id)
            await driven.wait_shown("breaks the cache")
            said = " ".join(driven.shown().split())
            assert re.search(r"tokens before the end: pays off after \d+ requests?", said), said
            before = tokens(driven)
            await driven.press("space")
            await driven.wait(lambda: tokens(driven) < before)
            await driven.press("d")
            await driven.wait_shown("the next request breaks the prompt cache")
            assert "drop" in driven.shown()
            assert "1 item went" in driven.shown()

    asyncio.run(use())


def test_the_exact_request_is_what_encode_prints(terminal: TerminalPlace) -> None:
    async def use() -> None:
        session, _ = await store(talk())
        async with opened(terminal, session) as driven:
            shown = await open_context(driven)
            await driven.press("e")
            await driven.wait(lambda: isinstance(driven.app.screen, ExactRequestScreen))
            request = driven.app.screen
            assert isinstance(request, ExactRequestScreen)
            await driven.wait(lambda: request.body, "the bytes")
            runtime, report = driven.app.runner.runtime, shown.report
            assert report is not None
            assert request.body == await asyncio.to_thread(printed, session)
            for key, wire in (("g", "gemini"), ("a", "anthropic"), ("o", "openai")):
                before = request.body
                await driven.press(key)
                await driven.wait(partial(is_another, request, before), wire)
                to = None if wire == "openai" else wire
                wanted = await encode_next(runtime, report.session, to)  # type: ignore[arg-type]
                assert request.body == wanted
                if wire == "gemini":
                    assert wanted == await asyncio.to_thread(printed, session, "--to", wire)
            parsed = msgspec.json.decode
            await driven.wait(lambda: parsed(request.text) == parsed(request.body), "all of it")
            await driven.wait_shown('  "model": ')  # indented
            await driven.press("c")
            assert driven.app.clipboard == request.body.decode()  # as it is sent

    asyncio.run(use())


def test_edits_wait_for_a_prompt_and_the_list_follows_it(terminal: TerminalPlace) -> None:
    async def use() -> None:
        session, entries = await store(talk())
        async with opened(terminal, session, says("never mind", delay=600)) as driven:
            shown = await open_context(driven)
            rows, runner = len(shown.rows), driven.app.runner
            runner.send("go on")
            await driven.wait(lambda: driven.server.requests, "a request")
            await driven.wait(lambda: any("go on" in row.text for row in shown.rows), "its row")
            await go_to(driven, entries[2].id)
            before = tokens(driven)
            await driven.press("space")
            await driven.wait_shown("cannot change the context while a prompt runs")
            assert tokens(driven) == before
            runner.interrupt()
            await driven.wait_idle()
            await driven.press("space")
            await driven.wait(lambda: tokens(driven) < before, "the edit")
            assert len(shown.rows) > rows

    asyncio.run(use())


def test_it_filters_sorts_and_fits_small_terminals(terminal: TerminalPlace) -> None:
    async def use() -> None:
        session, _ = await store([*talk(), user("hostile \x1b]0;x\x07 \u202e line"), *exchange(7)])
        async with opened(terminal, session, size=(40, 12)) as driven:
            shown = await open_context(driven)
            assert "\x1b" not in driven.shown()
            await driven.press("slash")
            await driven.type("compute_1")
            await driven.wait(lambda: 0 < len(shown.arranged) < len(shown.rows), "a filter")
            await driven.press("escape")
            await driven.wait(lambda: len(shown.arranged) == len(shown.rows))
            await driven.press("s")
            await driven.wait(
                lambda: shown.arranged[0].tokens == max(row.tokens for row in shown.rows)
            )
            for width, height in ((20, 5), (120, 40), (80, 24)):
                await driven.pilot.resize_terminal(width, height)
                await driven.pilot.pause()
                assert driven.shown()
            await driven.wait_shown("compaction threshold")
            await driven.wait_shown("next request")

    asyncio.run(use())


def test_ten_thousand_entries_open_quickly(terminal: TerminalPlace) -> None:
    async def use() -> None:
        session, _ = await store([body for n in range(2_500) for body in exchange(n, size=4)])
        async with opened(terminal, session) as driven:
            await driven.wait(lambda: driven.app.runner.session is not None)
            begun = time.perf_counter()
            shown = ContextScreen(driven.app.runner)
            await driven.app.push_screen(shown)
            await driven.wait(lambda: len(shown.rows) > 9_000, "the rows")
            assert time.perf_counter() - begun < 3.0  # 0.3 on a quiet machine
            await driven.press("home", "pagedown", "end")
            assert shown.query_one(RowList).cursor == len(shown.arranged) - 1
            await driven.wait(lambda: shown.report is not None and shown.report.next)

    asyncio.run(use())


def test_many_edits_are_undone_one_by_one_and_the_totals_follow(terminal: TerminalPlace) -> None:
    async def use() -> None:
        session, entries = await store(talk())
        async with opened(terminal, session) as driven:
            shown = await open_context(driven)
            totals = [tokens(driven)]
            for number in (2, 6, 10):
                await go_to(driven, entries[number].id)
                await driven.press("space")
                await driven.wait(lambda: tokens(driven) < totals[-1], "a drop")
                totals.append(tokens(driven))
            for wanted in reversed(totals[:-1]):
                await driven.press("u")
                await driven.wait(partial(has_tokens, driven, wanted), "an undo")
            await driven.press("u")
            await driven.wait_shown("nothing was changed here")
            report = shown.report
            assert report is not None
            assert report.view.tokens == totals[0]

    asyncio.run(use())


def test_a_line_of_ten_megabytes_and_hostile_text_are_harmless(terminal: TerminalPlace) -> None:
    async def use() -> None:
        huge = "\x1b[31m\u202e" + "x" * 10_000_000 + "needle"
        use = call("read_file", id="c", file_path="a.py")
        bodies: list[Body] = [
            user("look"),
            model("", use),
            result(use, huge),
            user("👩‍👩‍👧 宽 " * 50),
        ]
        session, entries = await store(bodies)
        async with opened(terminal, session, size=(40, 12)) as driven:
            shown = await open_context(driven)
            await go_to(driven, entries[2].id)
            await driven.press("enter")
            await driven.wait(lambda: isinstance(driven.app.screen, TextScreen))
            await driven.wait_shown("␛[31m\\u202e")
            pager = driven.app.screen
            assert isinstance(pager, TextScreen)
            assert pager.view.seek("needle")
            await driven.wait_shown("needle")
            await driven.pilot.resize_terminal(20, 5)
            await driven.press("escape")
            await driven.wait(lambda: driven.app.screen is shown)

    asyncio.run(use())
