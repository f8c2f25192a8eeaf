"""Files as lines of `file_system_state`: by directory, each with what was done and what it holds.

    lib/web/live/
    session_live.ex (edited ×3, read ×2): def SessionLive handle_event; socket.assigns rows
    session_live.ex (more): toggle_debug expanded_tool_groups
    seen: router.ex endpoint.ex

Every name is within `NEAR` characters of its file's name: long lines are wrapped, and the next one
begins with the file's name again. `parse_section` reads what `format_section` wrote; any other text
is notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from recollect.snapshot.ledger import FileFacts

NEAR = 395
MORE = " (more):"
SEEN = "seen:"
TOGETHER = "together:"
NOTES = "Notes:"
LEGEND = (
    "(Paths are below the root. After a file: what this session did to it; def, what it defines; "
    "names used in it. together: files and names of one text. seen: only listed.)"
)
_LINE = re.compile(r"([^\s():]{1,400})(?: \(([a-z0-9×, ]{1,80})\))?(?:: ?(.*))?")
_DONE = re.compile(r"(created|edited|read|deleted)(?: ×(\d{1,6}))?")


class FileLine(NamedTuple):
    """A file with the names chosen for it."""

    facts: FileFacts
    defines: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def file_name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def directory_name(path: str) -> str:
    head, slash, _ = path.rpartition("/")
    return head + slash or "./"


def file_heading(facts: FileFacts) -> str:
    """A file's name with what was done to it, like `a.py (created, edited ×3)`."""
    counted = (("edited", facts.edits), ("read", 0 if facts.created else facts.reads))
    words = ["created"] if facts.created else []
    words += (f"{verb} ×{n}" if n > 1 else verb for verb, n in counted if n)
    done = "deleted" if facts.deleted else ", ".join(words)
    return file_name(facts.path) + (f" ({done})" if done else "")


def format_file(line: FileLine) -> Iterator[str]:
    words = [f"{one};" if one == line.defines[-1] else one for one in line.defines]
    words = [*(["def"] if words else []), *words, *line.names]
    return wrap_words(
        file_heading(line.facts) + (":" if words else ""), file_name(line.facts.path) + MORE, words
    )


def wrap_words(first: str, next_: str, words: Iterable[str]) -> Iterator[str]:
    """Words after a heading, in lines so short that each word is near a heading."""
    text = first
    for word in words:
        if len(text) + len(word) + 1 > NEAR:
            yield text
            text = next_
        text += f" {word}"
    yield text


class FileGroup(NamedTuple):
    """Files that one text names, with the names chosen from that text."""

    files: tuple[str, ...]
    names: tuple[str, ...]


def group_heading(files: tuple[str, ...]) -> str:
    return " ".join((TOGETHER, *dict.fromkeys(map(file_name, files)))) + ":"


def format_section(lines: list[FileLine], groups: list[FileGroup], notes: str = "") -> str:
    """The lines by directory, in the order of their first appearance."""
    directories: dict[str, list[FileLine]] = {}
    for line in lines:
        directories.setdefault(directory_name(line.facts.path), []).append(line)
    written = [LEGEND] if lines or groups else []
    for directory, members in directories.items():
        written.append(directory)
        bare = [m for m in members if not (m.defines or m.names or m.facts.touched)]
        for member in members:
            if member not in bare:
                written += format_file(member)
        if bare:
            written.append(" ".join((SEEN, *(file_name(member.facts.path) for member in bare))))
    for group in groups:
        heading = group_heading(group.files)
        written += wrap_words(heading, heading, group.names)
    return "\n".join((*written, *((NOTES, notes) if notes else ())))


class ParsedFiles(NamedTuple):
    files: tuple[FileFacts, ...] = ()  # with all their names as `defines`
    groups: tuple[FileGroup, ...] = ()
    notes: str = ""


def parse_section(text: str) -> ParsedFiles:
    """The inverse of `format_section`; a text from elsewhere is notes as a whole."""
    if not text.startswith(LEGEND):
        return ParsedFiles(notes=text.removeprefix(NOTES + "\n"))
    lines, _, notes = text.partition(f"\n{NOTES}\n")
    found: dict[str, FileFacts] = {}
    groups: list[FileGroup] = []
    directory = ""
    for line in lines.split("\n")[1:]:
        if line.endswith("/"):
            directory = "" if line == "./" else line
        elif line.startswith(SEEN):
            for name in line[len(SEEN) :].split():
                found.setdefault(directory + name, FileFacts(path=directory + name))
        elif line.startswith(TOGETHER):
            files, _, names = line[len(TOGETHER) :].partition(":")
            groups.append(FileGroup(tuple(files.split()), tuple(names.split())))
        elif match := _LINE.fullmatch(line):
            facts = _parse_facts(directory + match[1], match[2] or "", match[3] or "")
            before = found.get(facts.path, facts)
            more = () if before is facts else facts.defines
            found[facts.path] = msgspec.structs.replace(before, defines=before.defines + more)
    return ParsedFiles(tuple(found.values()), tuple(groups), notes)


def _parse_facts(path: str, done: str, names: str) -> FileFacts:
    times = {verb: int(count or 1) for verb, count in _DONE.findall(done)}
    words = names.replace(";", " ").split()
    return FileFacts(
        path=path,
        created="created" in times,
        deleted="deleted" in times,
        edits=times.get("edited", 0),
        reads=times.get("read", 0),
        defines=tuple(words[1:] if words[:1] == ["def"] else words),
    )
