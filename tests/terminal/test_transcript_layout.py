"""What is in sight stays where it is, whatever happens around it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import Entry
from recollect.store.ids import new_id
from recollect.terminal.height_index import HeightIndex
from recollect.terminal.styled_lines import Look
from recollect.terminal.transcript_blocks import BlockList
from recollect.terminal.transcript_layout import TranscriptLayout
from recollect.testing import call, model, result, user

HEIGHT = 12


def some_entries(count: int, start: int = 0) -> list[Entry]:
    """Prompts, replies of many sizes, and calls with results."""
    found = []
    for number in range(start, start + count):
        read = call("read_file", id=f"c{number // 4}", file_path=f"{number // 4}.py")
        messages = (
            user(f"prompt {number}"),
            model(f"# reply {number}\n\n" + "words and more words. " * (number * 7 % 60)),
            model("", read),
            result(read, "line\n" * (number * 5 % 40)),
        )
        found.append(Entry(new_id(), None, 0, messages[number % 4]))
    return found


def shown(blocks: BlockList, width: int = 50) -> TranscriptLayout:
    layout = TranscriptLayout(blocks)
    layout.use(Look(width))
    layout.settle(HEIGHT)
    blocks.listener = _Listener(layout)
    return layout


class _Listener:
    def __init__(self, layout: TranscriptLayout) -> None:
        self._layout = layout

    def blocks_replaced(self, start: int) -> None:
        self._layout.replaced(start)

    def blocks_prepended(self, count: int) -> None:
        self._layout.prepended(count)

    def block_changed(self, position: int) -> None:
        self._layout.changed(position)

    def text_grew(self) -> None:
        pass


def first_line(layout: TranscriptLayout) -> tuple[int, str]:
    return layout.rows[0].number, layout.rows[0].strip.text.rstrip()


@given(st.lists(st.integers(0, 30), max_size=40), st.data())
def test_the_index_of_heights_agrees_with_a_list(heights: list[int], data: st.DataObject) -> None:
    index = HeightIndex(heights)
    more = data.draw(st.lists(st.integers(0, 30), max_size=600))
    index.prepend(more)
    heights = [*more, *heights]
    keep = data.draw(st.integers(0, len(heights)))
    index.truncate(keep)
    heights = heights[:keep]
    if heights:
        at = data.draw(st.integers(0, len(heights) - 1))
        index[at] = heights[at] = data.draw(st.integers(0, 50))
        assert index.before(at) == sum(heights[:at])
    assert (index.total, index.count) == (sum(heights), len(heights))
    for line in range(0, sum(heights), 7):
        position, offset = index.find(line)
        assert sum(heights[:position]) + offset == line
        assert offset < heights[position]


STEPS = st.lists(
    st.sampled_from(["prepend", "append", "grow", "end", "result", "fold", "settle"]), max_size=12
)


@given(STEPS, st.integers(1, 120))
def test_for_a_user_who_scrolled_up_nothing_moves(steps: list[str], up: int) -> None:
    blocks = BlockList()
    blocks.add_entries(some_entries(40, 100))
    layout = shown(blocks)
    layout.move(-up)
    layout.settle(HEIGHT)
    before, rows = first_line(layout), [row.strip.text for row in layout.rows]
    older = 100
    for step in steps:
        if step == "prepend":
            older -= 8
            blocks.prepend_entries(some_entries(8, older))
        elif step == "append":
            blocks.add_entries(some_entries(3, 200))
        elif step == "grow":
            blocks.add_piece("reply", "more and more words\n\n")
        elif step == "end":
            blocks.end_pieces("done")
        elif step == "fold":
            last = blocks.blocks[-1]
            if last.key not in {blocks.blocks[r.number - blocks.first].key for r in layout.rows}:
                layout.toggle(last.key)
        layout.settle(HEIGHT)
        if layout.following:  # there was no more than a screenful
            return
        assert first_line(layout) == before
    assert [row.strip.text for row in layout.rows][: HEIGHT // 2] == rows[: HEIGHT // 2]


@given(STEPS, st.lists(st.integers(20, 90), min_size=1, max_size=4))
def test_the_end_stays_in_sight_while_it_was(steps: list[str], widths: list[int]) -> None:
    blocks = BlockList()
    blocks.add_entries(some_entries(20, 100))
    layout = shown(blocks)
    for step, width in zip(steps, widths * 12, strict=False):
        if step == "prepend":
            blocks.prepend_entries(some_entries(5, 20))
        elif step in ("append", "result"):
            blocks.add_entries(some_entries(3, 200))
        elif step == "grow":
            blocks.add_piece("reply", "more words " * 9)
        elif step == "end":
            blocks.end_pieces("done")
        layout.use(Look(width))
        layout.settle(HEIGHT)
        assert layout.following
        assert layout.rows[-1].number == blocks.first + len(blocks.blocks) - 1
        assert layout.top + len(layout.rows) == layout.total


@given(st.lists(st.integers(-40, 40), min_size=1, max_size=20))
def test_scrolling_passes_every_line_once(moves: list[int]) -> None:
    blocks = BlockList()
    blocks.add_entries(some_entries(60))
    layout = shown(blocks)
    whole = _all_rows(layout)
    for move in moves:
        layout.move(move)
        layout.settle(HEIGHT)
        number, text = first_line(layout)
        place = layout.place
        same = [at for at, (n, line) in enumerate(whole) if n == number and line == text]
        assert same, (place, text)


def _all_rows(layout: TranscriptLayout) -> list[tuple[int, str]]:
    layout.place, layout.following = layout.place._replace(number=0, piece=0, line=0), False
    layout.settle(100_000)
    rows = [(row.number, row.strip.text.rstrip()) for row in layout.rows]
    layout.settle(HEIGHT)
    return rows


def test_moving_up_and_down_again_comes_back() -> None:
    blocks = BlockList()
    blocks.add_entries(some_entries(200))
    layout = shown(blocks)
    layout.move(-50)
    layout.settle(HEIGHT)
    before = first_line(layout)
    for step in (*(-3,) * 40, *(3,) * 40):
        layout.move(step)
        layout.settle(HEIGHT)
    assert first_line(layout) == before


def test_another_width_keeps_the_block_on_top() -> None:
    blocks = BlockList()
    blocks.add_entries(some_entries(80))
    layout = shown(blocks)
    layout.move(-60)
    layout.settle(HEIGHT)
    before = layout.rows[0].number
    for width in (30, 100, 20, 50):
        layout.use(Look(width))
        layout.settle(HEIGHT)
        assert layout.rows[0].number == before


def test_unfolding_a_block_keeps_where_it_begins() -> None:
    blocks = BlockList()
    blocks.add_entries(some_entries(80))
    layout = shown(blocks)
    layout.move(-30)
    layout.settle(HEIGHT)
    before = first_line(layout)
    on_screen = {row.number for row in layout.rows[1:]} - {layout.rows[0].number}
    tools = [n for n in on_screen if blocks.blocks[n - blocks.first].kind == "tool"]
    for number in tools:
        layout.toggle(blocks.blocks[number - blocks.first].key)
        layout.settle(HEIGHT)
        assert first_line(layout) == before
    assert tools


def test_a_reply_is_shown_while_it_arrives_in_the_place_of_what_was_cleared_away() -> None:
    """As the first reply of a new session, where the welcome was."""
    blocks = BlockList()
    layout = shown(blocks)
    for text in ("welcome", "press F1 for the keys"):
        blocks.add_notice(text)
    layout.settle(HEIGHT)
    blocks.clear()
    blocks.add_said("hello")
    for number in range(3):
        blocks.add_piece("reply", f"word{number} ")
        layout.settle(HEIGHT)
        assert f"word{number}" in layout.rows[2].strip.text
