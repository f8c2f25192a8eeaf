"""Points to go back to: where they lead, and that a provider accepts what is left there."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from recollect.display.rewind_points import RewindPoint, list_points
from recollect.entries import Body, Entry, Message, Note, Request, ToolCall
from recollect.profiles import WireName
from recollect.provider_messages import request_body
from recollect.runtime.session_outline import SessionOutline
from recollect.store.contract import SessionInfo
from recollect.store.ids import new_id
from recollect.testing import call, model, result, user
from recollect.testing.request_checks import find_violation
from recollect.tools.file_backups import FileState, change_note
from recollect.view.view import View

FORMATS: tuple[WireName, ...] = ("openai", "anthropic", "gemini")


def chain(bodies: Sequence[Body]) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    for number, body in enumerate(bodies):
        parent = entries[-1].id if entries else None
        entries.append(Entry(new_id(), parent, number, body))
    return tuple(entries)


def outline_of(entries: Sequence[Entry], head: str | None = None) -> SessionOutline:
    last = head or (entries[-1].id if entries else None)
    info = SessionInfo(id=new_id(), title="", head=last, entries=len(entries), created=0, used=0)
    outline = SessionOutline(info)
    outline.add(entries)
    outline.finish()
    return outline


def points_of(outline: SessionOutline) -> list[RewindPoint]:
    return [
        point
        for group in list_points(outline)
        for point in (*([group.prompt] if group.prompt else []), *group.calls)
    ]


def reply(*calls: ToolCall) -> Message:
    return Message(role="model", parts=calls)


def answer(number: int) -> Message:
    return result(call("f", f"c{number}"), "done")


def note(path: str, stage: str) -> Note:
    assert stage in ("before", "after")
    return change_note(path, "before" if stage == "before" else "after", FileState())


def test_the_newest_is_first_and_each_leads_to_where_it_says() -> None:
    entries = chain(
        [
            user("one"),
            Request(head=None, as_of=0),
            reply(call("f", "c1", path="a"), call("f", "c2", path="b")),
            note("a", "before"),
            note("a", "after"),
            answer(1),
            note("b", "before"),
            note("b", "after"),
            answer(2),
            model("fine"),
            user("two"),
        ]
    )
    told = [(p.kind, p.text, p.to, p.files) for p in points_of(outline_of(entries))]
    assert told == [
        ("prompt", "two", entries[9].id, 0),
        ("prompt", "one", None, 2),
        ("call", "f b", entries[5].id, 1),
        ("call", "f a", entries[0].id, 2),  # the request belongs to the reply
    ]
    assert list_points(outline_of(entries))[1].prompt is not None


def test_results_in_one_message_cannot_be_split() -> None:
    both = Message(role="user", parts=(*answer(1).parts, *answer(2).parts))
    entries = chain([user("go"), reply(call("f", "c1"), call("f", "c2")), both])
    calls = [point for point in points_of(outline_of(entries)) if point.kind == "call"]
    assert [point.to for point in calls] == [entries[0].id, entries[0].id]


def test_ids_that_come_again_in_a_later_reply_belong_to_it() -> None:
    turn = [reply(call("f", "c1"), call("f", "c2")), answer(1), answer(2)]
    entries = chain([user("go"), *turn, *turn])
    calls = [point for point in points_of(outline_of(entries)) if point.kind == "call"]
    assert [point.to for point in calls] == [entries[n].id for n in (5, 3, 2, 0)]


def test_a_session_without_anything_has_no_points() -> None:
    assert list_points(outline_of(())) == ()


turns = st.lists(
    st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=6
)


@given(turns)
def test_what_is_left_at_any_point_is_a_request_that_providers_accept(
    given_turns: list[tuple[bool, int, int]],
) -> None:
    bodies: list[Body] = [user("begin")]
    number = 0
    for prompted, calls, answered in given_turns:
        bodies += [user("more")] if prompted else []
        names = [f"c{number + each}" for each in range(calls)]
        bodies.append(Message(role="model", parts=tuple(call("f", name) for name in names)))
        bodies[-1] = bodies[-1] if calls else model("fine")
        bodies += [answer(number + each) for each in range(min(calls, answered))]
        number += calls
    entries = chain(bodies)
    outline = outline_of(entries)
    for point in points_of(outline):
        left = entries[: outline.place(point.to) + 1]
        view = View.fold(left).append(Entry(new_id(), point.to, 99, user("instead")))
        for form in FORMATS:
            assert find_violation(form, request_body(view, form, "")) == ""
