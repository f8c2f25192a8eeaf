"""What cannot be opened or read is said on the screen, and the program goes on."""

from __future__ import annotations

import asyncio

import apsw

from recollect.terminal.start_options import StartOptions
from tests.terminal.pilot import TerminalPlace
from tests.terminal.stored_sessions import add_session, exchange


def damage(place: TerminalPlace, entry: str) -> None:
    db = apsw.Connection(str(place.home / "recollect.db"))
    db.execute("UPDATE entries SET body = x'00' WHERE id = ?", (bytes.fromhex(entry),))
    db.close()


def test_a_session_that_cannot_be_opened_at_the_start_is_named_above_the_new_one(
    terminal: TerminalPlace,
) -> None:
    async def use() -> None:
        bad = await add_session(terminal, "damaged", exchange("two", "due"))
        damage(terminal, bad.head or "")
        for given, why in (("nonsense", "nonsense"), (bad.id, "damaged")):
            options = StartOptions(session=given)
            async with terminal.open(["hello"], options=options) as driven:
                await driven.wait_shown("/help lists the commands")
                assert why in driven.shown()
                await driven.say("hi")
                await driven.wait_shown("hello")

    asyncio.run(use())


def test_a_warning_about_the_settings_stays_in_sight(terminal: TerminalPlace) -> None:
    async def use() -> None:
        settings = '[[hooks]]\nevent = "Nonsense"\ncommand = "x"\n'
        terminal.write(".recollect/settings.toml", settings)
        async with terminal.open(["hello"]) as driven:
            await driven.wait_shown("/help lists the commands")
            assert "settings.toml" in driven.shown()

    asyncio.run(use())
