"""The tree of a session: every branch is in it, and every branch can be reached."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.display.session_tree import RelatedSessions, SessionTree, find_unfolded
from recollect.entries import Compaction, Entry, Note
from recollect.store.contract import SessionInfo
from recollect.store.ids import new_id
from recollect.testing import model, user
from tests.display.test_rewind_points import chain, outline_of


def tree_of(
    entries: tuple[Entry, ...], head: str | None = None, *forks: SessionInfo
) -> SessionTree:
    return SessionTree(outline_of(entries, head), RelatedSessions(forks=forks))


def draw(tree: SessionTree, *unfolded: str) -> list[str]:
    return [tree.label(row, 76) for row in tree.rows(unfolded)]


def beside(parent: Entry, *texts: str) -> tuple[Entry, ...]:
    """A branch of prompts that leaves the path after this entry."""
    made: list[Entry] = []
    for text in texts:
        before = made[-1].id if made else parent.id
        made.append(Entry(new_id(), before, 1, user(text)))
    return tuple(made)


def test_the_path_runs_straight_down_and_branches_stand_beside_it_folded() -> None:
    path = chain([user("a"), model("ok"), user("b"), model("ok"), user("c")])
    old = beside(path[1], "x", "y")
    tree = tree_of((*path[:2], *old, *path[2:]), path[-1].id)
    assert draw(tree) == ["● the start", "● a", "├─▸ x", "● b", "● c"]
    assert draw(tree, old[0].id) == ["● the start", "● a", "├─▾ x", "│ ○ y", "● b", "● c"]
    folded = next(row for row in tree.rows(()) if row.branch)
    assert tree.about(folded, 1).startswith("2 prompts, ")
    assert tree.target(folded) == old[-1].id  # the whole branch
    unfolded = next(row for row in tree.rows((old[0].id,)) if row.branch)
    assert tree.target(unfolded) == old[0].id
    assert tree.branch_keys() == {old[0].id}
    rows = tree.rows((old[0].id,))
    assert [find_unfolded(rows, number) for number in range(len(rows))] == [
        None, None, unfolded, unfolded, None, None
    ]  # fmt: skip
    assert find_unfolded(tree.rows(()), 2) is None


def test_what_follows_the_head_is_a_branch_also_within_a_turn() -> None:
    path = chain([user("a"), model("first words"), model("last words")])
    tree = tree_of(path, path[1].id)
    assert draw(tree) == ["● the start", "● a", "├─▸ … last words"]
    assert tree.nodes[tree.head_node].place == 0


def test_notes_alone_are_no_branch_and_a_compaction_is_a_node() -> None:
    made = Compaction(status="COMPRESSED", snapshot="short", tokens_before=9_000, tokens_after=100)
    path = chain([user("a"), model("ok"), made, user("b")])
    left = Entry(new_id(), path[1].id, 1, Note(text="left behind"))
    tree = tree_of((*path[:2], left, *path[2:]), path[-1].id)
    assert draw(tree) == ["● the start", "● a", "● compaction: 9,000 to 100 tokens", "● b"]


def test_forks_stand_at_the_turn_that_they_share() -> None:
    path = chain([user("a"), model("ok"), user("b")])
    fork = SessionInfo(
        id=new_id(), title="other\x1b", head=None, entries=2, created=0, used=0,
        forked_from=path[1].id,
    )  # fmt: skip
    tree = tree_of(path, None, fork)
    assert draw(tree) == ["● the start", "● a", "├─⑂ fork: other␛", "● b"]


def test_an_empty_session_has_its_start() -> None:
    tree = tree_of(())
    assert draw(tree) == ["● the start"]
    assert tree.target(tree.rows(())[0]) is None


shapes = st.lists(st.tuples(st.integers(0, 30), st.booleans()), min_size=1, max_size=30)


@given(shapes, st.integers(0, 30))
def test_every_message_of_every_branch_can_be_reached(
    shape: list[tuple[int, bool]], head: int
) -> None:
    entries: list[Entry] = []
    for back, prompt in shape:
        parent = entries[-1 - back].id if back < len(entries) else None
        entries.append(Entry(new_id(), parent, 0, user("u") if prompt else model("m")))
    tree = tree_of(tuple(entries), entries[head % len(entries)].id)
    rows = tree.rows(tree.branch_keys())
    assert len({row.node for row in rows}) == len(rows) == len(tree.nodes)
    reached: set[int] = set()
    for row in rows:
        reached |= set(tree.outline.walk(tree.outline.place(tree.target(row))))
    assert reached == set(range(len(entries)))
    for row in tree.rows(()):
        assert tree.text(row)
        assert tree.label(row, 4)
    assert sum(tree.nodes[row.node].tokens for row in rows) == sum(
        entry.tokens for entry in tree.outline.entries
    )
