"""A piece of Markdown as styled lines.

Headings stand at the left, links show their address, HTML and entities are text like any other:
what a model wrote is never more than it seems. Nothing nests deeper than a screen can show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from rich.segment import Segment
from rich.style import Style

from recollect.terminal.code_highlighting import highlight_code
from recollect.terminal.markdown_table import layout_table
from recollect.terminal.styled_lines import (
    PLAIN,
    Line,
    Look,
    Span,
    fill_lines,
    prefix_lines,
    wrap_spans,
)

MAX_NESTING = 12
_MARKED = {"strong": Style(bold=True), "em": Style(italic=True), "s": Style(strike=True)}


@lru_cache(1)
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_NESTING})
    # a piece has no definitions of other pieces: they are shown as they are written
    return parser.enable(["table", "strikethrough"]).disable(["reference", "html_block"])


def render_markdown(text: str, look: Look, width: int) -> list[Line]:
    root = SyntaxTreeNode(_parser().parse(text))
    return _Renderer(look).blocks(root.children, width)


def render_code(text: str, language: str, look: Look, width: int) -> list[Line]:
    lines = highlight_code(look.clean(text), language, width - 2, dark=look.dark)
    indented = prefix_lines(lines, " ", PLAIN, " ")
    return list(fill_lines(indented, width, look.palette.code))


class _Renderer:
    def __init__(self, look: Look) -> None:
        self.look, self.palette = look, look.palette
        self._by_type: dict[str, Callable[[SyntaxTreeNode, int], list[Line]]] = {
            "heading": self._heading,
            "paragraph": self._paragraph,
            "fence": self._code,
            "code_block": self._code,
            "bullet_list": self._list,
            "ordered_list": self._list,
            "blockquote": self._quote,
            "hr": self._rule,
            "table": self._table,
        }

    def blocks(
        self, nodes: Sequence[SyntaxTreeNode], width: int, *, tight: bool = False
    ) -> list[Line]:
        found: list[Line] = []
        for node in nodes:
            if found and not tight:
                found.append([])
            render = self._by_type.get(node.type)
            found += render(node, max(4, width)) if render else self._other(node, width)
        return found

    def _heading(self, node: SyntaxTreeNode, width: int) -> list[Line]:
        style = self.palette.heading
        if node.tag == "h1":
            style += Style(underline=True)
        return wrap_spans(self._spans(node, style), width)

    def _paragraph(self, node: SyntaxTreeNode, width: int) -> list[Line]:
        return wrap_spans(self._spans(node, PLAIN), width)

    def _code(self, node: SyntaxTreeNode, width: int) -> list[Line]:
        language = node.info.strip() if node.type == "fence" else ""
        return render_code(node.content.removesuffix("\n"), language, self.look, width)

    def _list(self, node: SyntaxTreeNode, width: int) -> list[Line]:
        found: list[Line] = []
        number = int(node.attrs.get("start", 1))
        tight = all(
            child.hidden for item in node.children for child in item.children
            if child.type == "paragraph"
        )  # fmt: skip
        for item in node.children:
            mark = f"{number}. " if node.type == "ordered_list" else f"{self.look.mark('•')} "
            number += 1
            if found and not tight:
                found.append([])
            lines = self.blocks(item.children, width - len(mark), tight=tight) or [[]]
            found += prefix_lines(lines, mark, self.palette.dim)
        return found

    def _quote(self, node: SyntaxTreeNode, width: int) -> list[Line]:
        bar = f"{self.look.mark('▎')} "
        lines = self.blocks(node.children, width - 2)
        return prefix_lines(lines, bar, self.palette.dim, bar)

    def _rule(self, node: SyntaxTreeNode, width: int) -> list[Line]:
        del node
        return [[Segment(self.look.mark("─") * min(width, 40), self.palette.dim)]]

    def _table(self, node: SyntaxTreeNode, width: int) -> list[Line]:
        rows = [
            [list(self._spans(cell, PLAIN)) for cell in row.children]
            for part in node.children
            for row in part.children
        ]
        head = node.children[0].children[0].children
        to_right = ["right" in str(cell.attrs.get("style", "")) for cell in head]
        return layout_table(rows, width, self.look, to_right)

    def _other(self, node: SyntaxTreeNode, width: int) -> list[Line]:
        if node.children:
            return self.blocks(node.children, width)
        return wrap_spans([(self.look.clean(node.content), PLAIN)], width)

    # --- inside a line -------------------------------------------------------------------------

    def _spans(self, node: SyntaxTreeNode, style: Style) -> Iterator[Span]:
        for child in node.children:
            yield from self._inline(child, style)

    def _inline(self, node: SyntaxTreeNode, style: Style) -> Iterator[Span]:
        match node.type:
            case "softbreak":
                yield " ", style
            case "hardbreak":
                yield "\n", style
            case "code_inline":
                yield self.look.clean(node.content), style + self.palette.inline_code
            case "strong" | "em" | "s":
                yield from self._spans(node, style + _MARKED[node.type])
            case "link":
                yield from self._link(node, style)
            case "image":
                text = self.look.clean(node.content)
                yield f"[image: {text}]" if text else "[image]", style
                yield f" ({self._address(node, 'src')})", self.palette.dim
            case _ if node.children:
                yield from self._spans(node, style)
            case _:
                yield self.look.clean(node.content), style

    def _link(self, node: SyntaxTreeNode, style: Style) -> Iterator[Span]:
        """The text and where it leads, unless the text says so."""
        spans = list(self._spans(node, style + self.palette.link))
        address = self._address(node, "href")
        yield from spans
        if "".join(text for text, _ in spans) not in (address, address.removeprefix("mailto:")):
            yield f" ({address})", self.palette.dim

    def _address(self, node: SyntaxTreeNode, name: str) -> str:
        return " ".join(self.look.clean(str(node.attrs.get(name, ""))).split())
