"""A block as pieces that can be measured and rendered one by one.

Pure, and linear in what is shown of the block. However large a block is, a piece is at most about a
screenful, so that showing one takes a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from recollect.display.entry_summary import format_argument
from recollect.entries import handle_of
from recollect.terminal.block import OWN_COMMAND, Block, is_long
from recollect.terminal.call_summary import (
    find_diff,
    partial_title,
    subagent_answer,
    subagent_session,
    summarize_call,
    title_of_call,
)
from recollect.terminal.markdown_pieces import MarkdownPiece, split_markdown
from recollect.toolkinds import classify_call, find_paths, parse_arguments

PieceKind: TypeAlias = Literal[
    "user", "prose", "code", "thought", "thinking", "call", "field", "text", "diff", "source",
    "more", "answer", "info", "warning", "error", "gap",
]  # fmt: skip
PIECE_LINES, PIECE_SIZE = 60, 4_000  # of a piece of plain text
FOLDED_CALL = 1  # line
FOLDED_LINES, FOLDED_SIZE = 12, 1_500  # of a long prompt
_IN_DIFF = ("old_string", "new_string", "old_str", "new_str", "oldText", "newText", "edits")


class Piece(NamedTuple):
    kind: PieceKind
    text: str
    info: str = ""  # a language, what came of a call, the name of an argument
    state: str = "done"
    first: bool = True  # it gets the mark of its block
    gap: bool = False  # an empty line follows


def pieces_of(block: Block, *, unfolded: bool, tight: bool = False) -> list[Piece]:
    """The last one is followed by an empty line, unless the next block stands close."""
    match block.kind:
        case "user":
            found = _user(block, unfolded=unfolded)
        case "reply":
            found = [*markdown_pieces(split_markdown(block.text))]
        case "thought":
            found = _thought(block, unfolded=unfolded)
        case "tool":
            found = [_call(block), *(_details(block) if unfolded else ())]
        case "notice":
            is_answer = block.level == "info" and "\n" in block.text
            found = [*_plain("answer" if is_answer else block.level, block.text)]
    if block.state == "interrupted" and block.kind == "reply":
        found.append(Piece("warning", "interrupted"))
    if block.omitted and (unfolded or block.kind in ("reply", "notice")):
        found.append(_more(block))
    return found if tight and found else end_with_gap(found)


def end_with_gap(pieces: list[Piece]) -> list[Piece]:
    if pieces and not pieces[-1].gap:
        pieces[-1] = pieces[-1]._replace(gap=True)
    return pieces or [Piece("gap", "", gap=True)]


def markdown_pieces(pieces: Iterable[MarkdownPiece]) -> Iterator[Piece]:
    for kind, text, language, ends in pieces:
        yield Piece(kind, text, language, gap=ends)


def growing_call(name: str, arguments: str, size: int) -> list[Piece]:
    """A call whose arguments still arrive; `arguments` is their beginning."""
    so_far = f"{size:,} characters so far" if size > 400 else ""
    return [Piece("call", partial_title(name, arguments), so_far, "running", gap=True)]


def growing_thought(lines: int) -> list[Piece]:
    return [Piece("thinking", "", str(lines), "running", gap=True)]


def estimate_piece(piece: Piece, width: int) -> int:
    """About as many lines as it will have; cheap."""
    if piece.kind in ("call", "thinking", "more"):
        return 1 + piece.gap
    text = piece.text
    return 1 + text.count("\n") + len(text) // max(1, width) + piece.gap


def estimate_weights(block: Block) -> tuple[int, int, int]:
    """What the height of a block is estimated by: its lines while folded (0: it does not fold),
    of a call without the empty line after it), its line ends and its characters."""
    if block.kind == "tool":
        return FOLDED_CALL, block.output.count("\n") + 3, len(block.output) + len(block.text)
    folded = 2 if block.kind == "thought" else FOLDED_LINES + 2 if is_long(block.text) else 0
    folded = 0 if block.kind in ("reply", "notice") else folded
    lines, size = block.text.count("\n"), len(block.text)
    if block.output:  # of a prompt
        folded = min(FOLDED_LINES, lines) + 2
        folded += FOLDED_LINES + 1 if block.name == OWN_COMMAND else 0
        lines, size = lines + block.output.count("\n") + 1, size + len(block.output)
    return folded, lines, size


# --- one kind each -------------------------------------------------------------------------------


def _plain(kind: PieceKind, text: str, info: str = "") -> Iterator[Piece]:
    for number, part in enumerate(split_lines(text)):
        yield Piece(kind, part, info, first=not number)


def split_lines(text: str) -> Iterator[str]:
    """A text in parts of some lines each, long lines cut."""
    lines, size = list[str](), 0
    for line in text.split("\n"):
        while len(line) > PIECE_SIZE:
            if lines:
                yield "\n".join(lines)
                lines, size = [], 0
            yield line[:PIECE_SIZE]
            line = line[PIECE_SIZE:]  # noqa: PLW2901 - what is left of it
        lines.append(line)
        size += len(line) + 1
        if size > PIECE_SIZE or len(lines) >= PIECE_LINES:
            yield "\n".join(lines)
            lines, size = [], 0
    if lines:
        yield "\n".join(lines)


def _user(block: Block, *, unfolded: bool) -> list[Piece]:
    found = [*_part_of("user", block.text.rstrip("\n"), whole=unfolded or not is_long(block.text))]
    if block.output and (unfolded or block.name == OWN_COMMAND):
        found += _part_of("text", block.output.strip("\n"), whole=unfolded)
    return found


def _part_of(kind: PieceKind, text: str, *, whole: bool) -> Iterator[Piece]:
    """A text, or its beginning and how much follows."""
    head = text if whole else "\n".join(text[:FOLDED_SIZE].split("\n")[:FOLDED_LINES])
    yield from _plain(kind, head)
    if len(head) < len(text):
        left = text[len(head) :].count("\n")
        what = f"{left:,} more lines" if left else f"{len(text) - len(head):,} more characters"
        yield Piece("more", f"… {what}")


def _thought(block: Block, *, unfolded: bool) -> list[Piece]:
    text = block.text.strip("\n")
    lines = str(text.count("\n") + 1)
    if unfolded:
        return [Piece("thinking", "", lines, "done"), *_plain("thought", text)]
    return [Piece("thinking", text[:400], lines, "done")]


def _call(block: Block) -> Piece:
    if block.state == "running" and not block.call_id:  # its arguments never came to an end
        return growing_call(block.name, block.text, len(block.text))[0]
    title, facts = summarize_call(block)
    return Piece("call", title, "\n".join(fact.replace("\n", " ") for fact in facts), block.state)


def _details(block: Block) -> Iterator[Piece]:
    given = parse_arguments(block.text)
    diff = find_diff(block)
    if given is None and block.text:
        yield from _plain("text", block.text)
    yield from _arguments(block, given or {}, diff)
    output = block.output
    if diff and diff in output:
        output = output[: output.index(diff)].rstrip("\n")
    if block.name == "task" and block.state == "done":
        yield from _plain("text", subagent_answer(output))
        if session := subagent_session(output):
            yield from _plain("field", session, "session")
    elif output.strip():
        yield from _plain("text", output.strip("\n"))
    if diff.startswith("--- ") and "\n--- " not in diff:  # the title names the file
        diff = "\n".join(diff.split("\n")[2:])
    if diff:
        yield from _plain("diff", diff)


def _arguments(block: Block, given: Mapping[str, Any], diff: str) -> Iterator[Piece]:
    """What neither the title nor the difference says."""
    kind, title = classify_call(block.name, given), title_of_call(block)
    for name, value in given.items():
        is_content = kind == "write" and name == "content"
        if diff and (name in _IN_DIFF or is_content or value == diff):
            continue
        if is_content and isinstance(value, str):
            yield from _plain("source", value, _language(block))
        elif not (isinstance(value, str) and value in title):
            text = value if isinstance(value, str) else format_argument(value)
            yield from _plain("field", text, name)


def _language(block: Block) -> str:
    """The language of a file that a call writes, by the end of its name."""
    places = find_paths(parse_arguments(block.text) or {})
    return places[0].path.rsplit(".", 1)[-1] if places and "." in places[0].path else ""


def _more(block: Block) -> Piece:
    where = block.result or block.entry
    how = f"; /recall {handle_of(where)} shows all" if where else "; they are in the log"
    return Piece("more", f"… {block.omitted:,} more characters{how}")
