"""The status line and the line that says what is happening."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.display.display_text import display_width
from recollect.display.session_cost import SessionCost
from recollect.entries import Message, Text, Usage
from recollect.settings import Settings
from recollect.store.sqlite import SqliteStore
from recollect.terminal.activity_line import activity_text
from recollect.terminal.status_line import (
    SessionStatus,
    WindowUse,
    draw_window_bar,
    format_tokens,
    status_text,
)
from recollect.testing import user
from tests.agent.harness import in_store, new_session

STATUS = SessionStatus(
    mode="confirm",
    model="claude-sonnet-4-5",
    title="Make the parser faster 解析",
    use=WindowUse(61_400, 200_000, 140_000),
    cost=1.234,
    cached=900,
    input=1_000,
)


RICHEST = "confirm · claude-sonnet-4-5 · ███░░░░│░░ 61.4k/200k · cache 90 % · $1.23"


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (120, f"{RICHEST} · Make the parser faster 解析"),
        (80, RICHEST),
        (60, "confirm · claude-sonnet-4-5 · ███░░░░│░░ 61.4k/200k · $1.23"),
        (40, "confirm · claude-sonnet-4-5 · 61.4k/200k"),
        (30, "claude-sonnet-4-5 · 61.4k/200k"),
        (12, "30 % full"),
        (5, "30 %…"),
    ],
)  # fmt: skip
def test_the_least_important_is_left_out_first(width: int, text: str) -> None:
    assert status_text(STATUS, width) == text
    assert display_width(text) <= width


def test_a_hostile_title_or_model_cannot_change_the_terminal() -> None:
    status = SessionStatus(model="\x1b[2J", title="\x1b]0;x\x07\u202e" * 3)
    assert status_text(status, 200).isprintable()


def test_the_bar_marks_the_threshold() -> None:
    assert draw_window_bar(WindowUse(0, 100, 70)) == "░░░░░░░│░░"
    assert draw_window_bar(WindowUse(90, 100, 70)) == "███████▐█░"
    assert draw_window_bar(WindowUse()) == ""


def test_tokens_are_short() -> None:
    assert [format_tokens(n) for n in (950, 12_340, 128_000, 1_000_000, 1_050_000)] == [
        "950", "12.3k", "128k", "1M", "1.05M",
    ]  # fmt: skip


def test_what_is_happening_fits() -> None:
    assert activity_text("replying", 12.7, 60) == "replying · 12 s · esc to interrupt"
    assert activity_text("replying", 125, 60) == "replying · 2 min 5 s · esc to interrupt"
    assert activity_text("replying", 12, 20) == "replying · 12 s"
    assert activity_text("replying\x1b", 12, 6) == "reply…"


def reply(model: str, tokens: int) -> Message:
    usage = Usage(input=tokens, output=tokens, total=2 * tokens)
    return Message(role="model", parts=(Text(text="x"),), model=model, usage=usage)


def test_a_session_costs_what_each_of_its_models_does(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store, user("a"), reply("gpt-4o", 1_000_000))
        cost = SessionCost()
        await cost.follow(store, session.id)
        assert cost.cost(Settings()) == (12.5, True)
        # a branch that was left costs, too, and what is new is added to what is known
        entries = await store.path(session.id)
        await session.rewind(entries[0])
        await session.append(reply("gpt-4o-mini", 1_000_000))
        await cost.follow(store, session.id)
        await cost.follow(store, session.id)
        known = cost.cost(Settings())
        assert known.dollars == pytest.approx(13.25)
        assert known.complete is True
        await session.append(*(reply("nobody-knows", 5) for _ in range(600)))
        await cost.follow(store, session.id)
        known = cost.cost(Settings())
        assert known.dollars == pytest.approx(13.25)
        assert known.complete is False
        other = await new_session(store, user("a"))
        await cost.follow(store, other.id)
        assert cost.cost(Settings()) == (None, True)

    in_store(tmp_path, story)
