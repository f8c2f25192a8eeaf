"""A session as a tree of its branches, with the sessions forked from it, as rows of text.

The nodes are prompts, compactions, and where a branch begins in the middle of a turn. What followed
a node until the next one is its turn, and its end is where one goes on when it is opened again. The
path to the head runs straight down; other branches stand beside the node that they leave, folded.
Building takes one look at each entry, and rows are made only of what is unfolded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec

from recollect.display.dates import format_age
from recollect.display.display_text import one_line, pluralize, sanitize
from recollect.display.entry_summary import role_of
from recollect.display.rewind_points import call_text
from recollect.entries import Compaction, Message
from recollect.runtime.session_outline import START, SessionOutline, read_outline
from recollect.store.contract import SessionInfo, Store
from recollect.text import clip
from recollect.tools.history_text import full_text

MAX_TEXT = 100_000  # characters shown of an entry; `/recall` has all
MAX_SESSIONS = 5_000  # looked through for forks

NodeKind: TypeAlias = Literal["start", "prompt", "compaction", "branch"]


class TreeNode(msgspec.Struct):
    kind: NodeKind
    place: int  # among the entries of the outline
    end: int  # the last entry of its turn
    tokens: int = 0
    children: list[int] = []  # nodes, oldest first
    branch_end: int = START  # the last entry of the branch that goes on from here
    size: int = 0  # prompts in it and below
    is_heard: bool = False  # whether there is a message in it or below


class RelatedSessions(msgspec.Struct, frozen=True):
    """The session that this one was forked from, and those forked from it."""

    parent: SessionInfo | None = None
    forks: tuple[SessionInfo, ...] = ()


class TreeRow(msgspec.Struct, frozen=True):
    """One line of the tree: a node, or another session."""

    prefix: str  # the lines before it
    node: int = -1
    session: SessionInfo | None = None  # a fork, or the parent
    branch: str = ""  # the key of the branch that begins here; empty: none does
    folded: bool = False
    is_parent: bool = False  # of the other session: this one was forked from it


class SessionTree:
    def __init__(self, outline: SessionOutline, related: RelatedSessions) -> None:
        self.outline, self.related = outline, related
        self.nodes = _build_nodes(outline)
        self._on_path = frozenset(outline.path) | {START}
        self._forks: dict[int, list[SessionInfo]] = {}
        owner = _owners(outline, self.nodes)
        for fork in related.forks:
            place = outline.place(fork.forked_from)
            self._forks.setdefault(owner[place], []).append(fork)
        self.head_node = owner[outline.path[-1]] if outline.path else 0

    def rows(self, unfolded: Collection[str]) -> list[TreeRow]:
        """The path to the head, and of the other branches those with these keys."""
        parent = self.related.parent
        rows = [] if parent is None else [TreeRow("", session=parent, is_parent=True)]
        waiting: list[tuple[str, str, int, bool]] = [("", "", 0, False)]
        while waiting:
            before, after, number, begins = waiting.pop()
            key = (self.outline.id_at(self.nodes[number].place) or "") if begins else ""
            folded = begins and key not in unfolded
            rows.append(TreeRow(before, number, branch=key, folded=folded))
            forks = self._forks.get(number, ())
            rows += (TreeRow(after + "├─", session=fork) for fork in forks)
            if not folded:
                waiting += self._branches(number, after)
        return rows

    def _branches(self, number: int, lines: str) -> Iterator[tuple[str, str, int, bool]]:
        """In reverse order; one goes straight on, unless the path to the head ends here."""
        children = self.nodes[number].children
        # a branch of notes alone, such as a rewind leaves behind, is none to go to
        beside = [each for each in children if self.nodes[each].is_heard]
        if not beside:
            return
        trunk = max(beside, key=lambda each: (self.is_on_path(each), each))
        if self.is_on_path(trunk) or not self.is_on_path(number):
            beside.remove(trunk)
            yield lines, lines, trunk, False
        for each in reversed(beside):
            yield lines + "├─", lines + "│ ", each, True

    def is_on_path(self, number: int) -> bool:
        return self.nodes[number].place in self._on_path

    # --- one row ---------------------------------------------------------------------------------

    def target(self, row: TreeRow) -> str | None:
        """Where one goes on when it is opened: after the turn, or at the end of a folded branch;
        None: the start."""
        node = self.nodes[row.node]
        return self.outline.id_at(node.branch_end if row.folded else node.end)

    def label(self, row: TreeRow, width: int) -> str:
        """The lines before it, as far as there is room for them, whether it is folded, and what
        it is."""
        room = max(2, width // 2)
        lines = row.prefix if len(row.prefix) <= room else "…" + row.prefix[1 - room :]
        if row.session is not None:
            return f"{lines}⑂ {self.text(row)}"
        mark = "●" if self.is_on_path(row.node) else "○"
        if row.branch:
            mark = "▸" if row.folded else "▾"
        return f"{lines}{mark} {self.text(row)}"

    def text(self, row: TreeRow) -> str:
        """What it is, in one line."""
        if row.session is not None:
            title = one_line(row.session.title) or "(no title)"
            return f"{'forked from' if row.is_parent else 'fork'}: {title}"
        node = self.nodes[row.node]
        if node.kind == "start":
            return "the start"
        entry = self.outline.entries[node.place]
        if node.kind == "compaction":
            return f"compaction: {one_line(entry.text)}"
        if node.kind == "prompt":
            return one_line(entry.text) or "(no text)"
        return f"… {self._continuation(node)}"

    def about(self, row: TreeRow, now: int | None = None) -> str:
        """Its size and age."""
        if row.session is not None:
            return format_age(row.session.used, now)
        node, outline = self.nodes[row.node], self.outline
        created = outline.session.created
        time = created if node.place == START else outline.entries[node.place].time
        parts = [
            pluralize(node.size, "prompt") if row.folded and node.size > 1 else "",
            f"{node.tokens:,} tokens" if node.tokens else "",
            format_age(time, now),
        ]
        return ", ".join(filter(None, parts))

    def _continuation(self, node: TreeNode) -> str:
        """What a branch that begins within a turn begins with."""
        for place in reversed(list(self._turn(node))):
            entry = self.outline.entries[place]
            if said := entry.text if entry.kind == "reply" else "":
                return one_line(said)
            if entry.calls:
                return call_text(entry.calls[0])
        return "the rest of the turn"

    def _turn(self, node: TreeNode) -> Iterator[int]:
        """The entries of a node's turn, the last one first."""
        for place in self.outline.walk(node.end):
            yield place
            if place == node.place:
                return

    def branch_keys(self) -> frozenset[str]:
        """The keys of all branches that can be unfolded."""
        return frozenset(
            self.outline.id_at(self.nodes[child].place) or ""
            for number in range(len(self.nodes))
            for _, _, child, begins in self._branches(number, "")
            if begins
        )

    def turn_length(self, row: TreeRow) -> int:
        return sum(1 for _ in self._turn(self.nodes[row.node]))


def find_unfolded(rows: Sequence[TreeRow], number: int) -> TreeRow | None:
    """The row at which the innermost unfolded branch begins that this row belongs to."""
    room = len(rows[number].prefix) if rows else 0
    for row in reversed(rows[: number + 1]):
        if row.branch and len(row.prefix) <= room:
            if not row.folded:
                return row
            room = len(row.prefix) - 1
    return None


# --- nodes ---------------------------------------------------------------------------------------


def _build_nodes(outline: SessionOutline) -> list[TreeNode]:
    """Parents come before their children; the first node is the start."""
    nodes = [TreeNode("start", START, START)]
    owner: list[int] = []  # of each entry, its node
    children = [0] * (len(outline.entries) + 1)  # by place; the start has the last one
    for entry in outline.entries:
        children[entry.parent] += 1
    on_path = set(outline.path) | {START}
    for place, entry in enumerate(outline.entries):
        before = owner[entry.parent] if entry.parent != START else 0
        kind: NodeKind | None = None
        if entry.kind in ("prompt", "compaction"):
            kind = "prompt" if entry.kind == "prompt" else "compaction"
        elif place not in on_path and (entry.parent in on_path or children[entry.parent] > 1):
            kind = "branch"
        if kind is not None:
            nodes[before].children.append(len(nodes))
            before = len(nodes)
            nodes.append(TreeNode(kind, place, place))
        owner.append(before)
        if entry.kind != "change":  # a rewind leaves such notes behind the end of a turn
            nodes[before].end = place
        nodes[before].tokens += entry.tokens
    for node in reversed(nodes):
        node.size = (node.kind == "prompt") + sum(nodes[each].size for each in node.children)
        below = (nodes[each].is_heard for each in node.children)
        node.is_heard = node.kind != "branch" or node.tokens > 0 or any(below)
        node.branch_end = nodes[node.children[-1]].branch_end if node.children else node.end
    return nodes


def _owners(outline: SessionOutline, nodes: Sequence[TreeNode]) -> list[int]:
    """Of each entry, the node in whose turn it is."""
    first = {node.place: number for number, node in enumerate(nodes)}
    owner: list[int] = []
    for place, entry in enumerate(outline.entries):
        before = owner[entry.parent] if entry.parent != START else 0
        owner.append(first.get(place, before))
    return owner


async def read_tree(store: Store, session: str) -> SessionTree:
    """Read in steps, and built in a thread: it holds nobody up, however long the session is."""
    outline = await read_outline(store, session)
    related = await read_related(store, outline)
    return await asyncio.to_thread(SessionTree, outline, related)


async def read_related(store: Store, outline: SessionOutline) -> RelatedSessions:
    """The session that this one was forked from, and those that were forked from it."""
    session, parent = outline.session, None
    if session.forked_from is not None:
        parent, _ = await store.entry(session.forked_from)
    own = {entry.id for entry in outline.entries}
    project = await store.project_of(session.id)
    found = await store.sessions(project=project, owner=session.owner, limit=MAX_SESSIONS)
    return RelatedSessions(parent, tuple(_forks_of(session, found, own)))


def _forks_of(
    session: SessionInfo, found: Iterable[SessionInfo], own: Collection[str]
) -> Iterator[SessionInfo]:
    for one in found:
        if one.forked_from in own and one.id != session.id:
            yield one


async def read_turn(store: Store, tree: SessionTree, row: TreeRow) -> list[str]:
    """The whole text of a turn, in lines that are safe to show."""
    session, end = tree.outline.session.id, tree.outline.id_at(tree.nodes[row.node].end)
    if end is None:
        return ["(nothing was said here)"]
    entries = await store.path(session, at=end, last=tree.turn_length(row))
    lines: list[str] = []
    for entry in entries:
        if isinstance(entry.body, Message | Compaction):
            text = entry.body.snapshot if isinstance(entry.body, Compaction) else ""
            said = sanitize(clip(text or full_text(entry.body), MAX_TEXT))
            lines += [f"── {role_of(entry.body)}, {format_age(entry.time)}", *said.split("\n"), ""]
    return lines or ["(nothing was said here)"]
