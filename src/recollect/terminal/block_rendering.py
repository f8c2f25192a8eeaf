"""Blocks as styled lines of a given width: Markdown, folded thoughts, calls in one line, diffs.

Pure: the same block, width and look give the same lines. Everything that a model, a tool or a file
said is sanitized here, so that no control character reaches the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.markdown import Markdown
from rich.segment import Segment
from rich.style import Style
from rich.text import Text as RichText
from textual.strip import Strip

from recollect.display.display_text import one_line, sanitize, truncate
from recollect.display.entry_summary import format_argument
from recollect.terminal.transcript_blocks import Block
from recollect.toolkinds import parse_arguments

MAX_OUTPUT = 20_000  # characters of an unfolded output; the rest is in the log
_CODE_THEMES = {True: "ansi_dark", False: "ansi_light"}
_TITLES = {
    "run_shell_command": ("$", "command"),
    "read_file": ("read", "file_path"),
    "write_file": ("write", "file_path"),
    "replace": ("edit", "file_path"),
    "list_directory": ("list", "path"),
    "glob": ("find", "pattern"),
    "search_text": ("search", "pattern"),
}


class Look(NamedTuple):
    """What rendering depends on besides the block."""

    width: int
    dark: bool = True
    ascii: bool = False  # no symbols beyond ASCII


class Styles(NamedTuple):
    user: Style = Style(bold=True)
    dim: Style = Style(dim=True)
    failed: Style = Style(color="red")
    warned: Style = Style(color="yellow")
    added: Style = Style(color="green")
    removed: Style = Style(color="red")
    tool: Style = Style(color="cyan")


STYLES = Styles()


def render_block(block: Block, look: Look, *, unfolded: bool = False) -> list[Strip]:
    """The lines of a block, with an empty one after it."""
    if block.kind == "user":
        said = _plain(sanitize(block.text), look.width - 2, STYLES.user)
        lines = _prefixed(said, "> ", STYLES.user)
    elif block.kind == "reply":
        lines = _reply(block, look)
    elif block.kind == "thought":
        lines = _thought(block, look, unfolded=unfolded)
    elif block.kind == "tool":
        lines = _call(block, look, unfolded=unfolded)
    else:
        style = {"info": STYLES.dim, "warning": STYLES.warned, "error": STYLES.failed}[block.level]
        lines = _prefixed(_plain(sanitize(block.text), look.width - 2, style), "· ", style)
    return [*lines, Strip.blank(0)]


def estimate_height(block: Block, width: int, *, unfolded: bool = False) -> int:
    """About as many lines as `render_block` would give; cheap."""
    if block.kind in ("tool", "thought") and not unfolded:
        return 2
    text = block.text if block.kind != "tool" else block.output
    return 2 + text.count("\n") + len(text) // max(1, width)


def call_title(block: Block) -> str:
    """A call in one line: what it does, with what."""
    given = parse_arguments(block.text) or {}
    verb, key = _TITLES.get(block.name, (block.name, ""))
    value = given.get(key)
    if isinstance(value, str):
        return one_line(f"{verb} {value}"[:2_000])
    rest = ", ".join(f"{name}={format_argument(each)}" for name, each in given.items())
    return one_line(f"{verb} {rest}"[:2_000])


# --- one kind each -------------------------------------------------------------------------------


def _reply(block: Block, look: Look) -> list[Strip]:
    theme = _CODE_THEMES[look.dark]
    markdown = Markdown(sanitize(block.text), code_theme=theme, hyperlinks=False)
    lines = _render(markdown, look.width)
    if block.state == "interrupted":
        lines += _plain("(interrupted)", look.width, STYLES.warned)
    return lines


def _thought(block: Block, look: Look, *, unfolded: bool) -> list[Strip]:
    text = sanitize(block.text)
    if unfolded:
        return _prefixed(_plain(text, look.width - 2, STYLES.dim), "  ", STYLES.dim)
    first = truncate(one_line(text), max(8, look.width - 12))
    return _plain(f"thought: {first}", look.width, STYLES.dim)


def _call(block: Block, look: Look, *, unfolded: bool) -> list[Strip]:
    mark, style = {
        "running": ("○", STYLES.tool),
        "done": ("●", STYLES.tool),
        "failed": ("✗", STYLES.failed),
        "interrupted": ("◌", STYLES.warned),
    }[block.state]
    took = f" {block.seconds:.1f} s" if block.seconds is not None and block.seconds >= 1 else ""
    title = truncate(f"{mark} {call_title(block)}", max(8, look.width - len(took)))
    head = RichText.assemble((title, style), (took, STYLES.dim))
    lines = _render(head, look.width)
    if not unfolded:
        return lines
    return lines + _prefixed(list(_details(block, look)), "  ", STYLES.dim)


def _details(block: Block, look: Look) -> Iterator[Strip]:
    given = parse_arguments(block.text)
    width = look.width - 2
    if given is None:
        yield from _plain(sanitize(block.text[:MAX_OUTPUT]), width, STYLES.dim)
    else:
        for name, value in given.items():
            text = value if isinstance(value, str) else format_argument(value)
            yield from _plain(f"{one_line(name)}: {sanitize(text[:MAX_OUTPUT])}", width, STYLES.dim)
    for line in sanitize(block.output[:MAX_OUTPUT]).split("\n"):
        yield from _plain(line, width, _diff_style(line))
    if len(block.output) > MAX_OUTPUT:
        left = len(block.output) - MAX_OUTPUT
        yield from _plain(f"… {left:,} more characters are in the log", width, STYLES.dim)


def _diff_style(line: str) -> Style:
    if line.startswith("+") and not line.startswith("+++"):
        return STYLES.added
    if line.startswith("-") and not line.startswith("---"):
        return STYLES.removed
    return STYLES.tool if line.startswith("@@") else Style()


# --- lines ---------------------------------------------------------------------------------------


def _plain(text: str, width: int, style: Style) -> list[Strip]:
    return _render(RichText(text.expandtabs(4), style=style, overflow="fold"), width)


def _render(renderable: RichText | Markdown, width: int) -> list[Strip]:
    width = max(4, width)
    console = Console(
        width=width, color_system="truecolor", legacy_windows=False, force_terminal=True,
        file=None, emoji=False, highlight=False, markup=False, _environ={},
    )  # fmt: skip
    lines = console.render_lines(renderable, pad=False)
    return [Strip(_trimmed(line)) for line in lines]


def _trimmed(line: list[Segment]) -> list[Segment]:
    return [segment for segment in line if segment.text and not segment.control]


def _prefixed(lines: list[Strip], prefix: str, style: Style) -> list[Strip]:
    """Lines that are indented as far as the prefix, which stands before the first."""
    space = " " * cell_len(prefix)
    return [
        Strip([Segment(space if number else prefix, style), *line])
        for number, line in enumerate(lines)
    ]
