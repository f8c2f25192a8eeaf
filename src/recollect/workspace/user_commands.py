"""The user's own commands: Markdown files whose text is sent as a prompt.

They lie in `commands/` of the settings directory and in `.recollect/commands/` of a project whose
memory is trusted; a file in a folder there is `folder:name`. Only regular UTF-8 files without
invisible characters are read, below their folder and never through a link that leads out, a bounded
number of bounded size; what is left out is named with the reason. Nothing in a file is run, and a
project's file cannot choose the model.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path
from typing import Literal

import msgspec

from recollect.workspace.safe_files import ReadRefused, read_inside
from recollect.workspace.untrusted_text import one_line, strip_invisible

COMMANDS_FOLDER = "commands"
MAX_COMMANDS = 200  # of one folder with those below it
MAX_COMMAND_FILE = 50_000  # bytes
MAX_DEPTH = 3  # folders below each other
MAX_NAMES = 2_000  # looked at in one folder with those below it
MAX_PROBLEMS = 20
_NAME = re.compile(r"[^\W_][\w.-]{0,59}")
_PLACE = re.compile(r"\$ARGUMENTS\b|\{\{\s*args\s*\}\}|\$([1-9])(?!\d)")
_SHELL = re.compile(r"^\s*!`|(?<!\S)!`|!\{", re.MULTILINE)
_FRONT = re.compile(r"---[ \t]*\n(.*?\n)?---[ \t]*(?:\n|\Z)", re.DOTALL)
_MAX_FIELD = 300  # characters of a description


class UserCommand(msgspec.Struct, frozen=True):
    """A prompt in a file, with a name."""

    name: str  # in lower case; of a file in a folder `folder:name`
    text: str
    path: str
    origin: Literal["yours", "project"]
    description: str = ""
    argument_hint: str = ""
    model: str = ""  # that answers it
    notes: tuple[str, ...] = ()  # what of the file has no effect


class UserCommands(msgspec.Struct, frozen=True):
    commands: tuple[UserCommand, ...] = ()
    problems: tuple[str, ...] = ()  # what was not read, and why

    def find(self, name: str) -> UserCommand | None:
        return next((one for one in self.commands if one.name == name.lower()), None)


def read_user_commands(
    home: Path | None, project_folder: Path | None = None, taken: Collection[str] = ()
) -> UserCommands:
    """The commands of the settings directory, then those of a trusted project's `.recollect`.
    Names that are `taken`, and names that an earlier file has, are told as problems."""
    found: dict[str, UserCommand] = {}
    problems: list[str] = []
    own = _read_folder(home, "yours") if home is not None else ()
    projects = _read_folder(project_folder, "project") if project_folder is not None else ()
    for one in chain(own, projects):
        if isinstance(one, str):
            problems.append(one)
        elif one.name in taken:
            why = f"/{one.name} is a command of the program, which wins; rename the file"
            problems.append(f"{one_line(one.path)}: {why}")
        elif one.name in found:
            other = one_line(found[one.name].path)
            problems.append(f"{one_line(one.path)}: /{one.name} is {other} already")
        else:
            found[one.name] = one
    if len(problems) > MAX_PROBLEMS:
        problems[MAX_PROBLEMS:] = [f"{len(problems) - MAX_PROBLEMS:,} more files were left out"]
    return UserCommands(tuple(found.values()), tuple(problems))


def expand_command(command: UserCommand, arguments: str) -> str:
    """The prompt: arguments at their places, or after the text if it has none."""
    words = _split(arguments)

    def put(match: re.Match[str]) -> str:
        if match[1] is None:
            return arguments
        number = int(match[1]) - 1
        return words[number] if number < len(words) else ""

    text, places = _PLACE.subn(put, command.text)
    text = text.strip()
    return f"{text}\n\n{arguments}" if arguments and not places else text


def _split(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError:  # an open quote, such as an apostrophe
        return arguments.split()


# --- files ---------------------------------------------------------------------------------------


def _read_folder(above: Path, origin: Literal["yours", "project"]) -> Iterator[UserCommand | str]:
    """Each command below `above`/commands, or why a file is none."""
    top = above / COMMANDS_FOLDER
    count = 0
    for path in _markdown_files(top):
        if isinstance(path, str):
            yield path
            continue
        if count == MAX_COMMANDS:
            yield f"{one_line(str(top))}: only the first {MAX_COMMANDS} commands are read"
            return
        count += 1
        yield _read_command(path, above, top, origin)


def _markdown_files(top: Path) -> Iterator[Path | str]:
    """In the order of their names, folders after files; links to folders are not followed."""
    waiting, seen = [(top, 0)], 0
    while waiting:
        folder, depth = waiting.pop(0)
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)[: MAX_NAMES + 1]
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            yield f"{one_line(str(folder))}: {error.strerror or type(error).__name__}"
            continue
        for entry in listed:
            seen += 1
            if seen > MAX_NAMES:
                yield f"{one_line(str(top))}: only the first {MAX_NAMES:,} names are looked at"
                return
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                if depth < MAX_DEPTH:
                    waiting.append((Path(entry.path), depth + 1))
            elif entry.name.lower().endswith(".md"):
                yield Path(entry.path)


def _read_command(
    path: Path, above: Path, top: Path, origin: Literal["yours", "project"]
) -> UserCommand | str:
    shown = one_line(str(path))
    names = [*path.relative_to(top).parent.parts, path.name[: -len(".md")]]
    if not all(_NAME.fullmatch(name) for name in names):
        return f"{shown}: a command's name has letters, digits, `.`, `_` and `-` only"
    file = read_inside(path, (above,), MAX_COMMAND_FILE)
    if isinstance(file, ReadRefused):
        return f"{shown}: {file.why}"
    if origin == "project" and file.writable_by_others:
        return f"{shown}: other users can write to it"
    try:
        text = file.data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return f"{shown}: it is not UTF-8"
    if strip_invisible(text) != text:
        return f"{shown}: it has control or invisible characters"
    fields, text = _split_front_matter(text)
    if not text.strip():
        return f"{shown}: it has no text"
    return _build(":".join(names).lower(), text, str(path), fields, origin)


def _build(
    name: str, text: str, path: str, fields: dict[str, str], origin: Literal["yours", "project"]
) -> UserCommand:
    notes = []
    model = fields.pop("model", "")
    if model and origin == "project":
        notes.append("`model` of a project's command has no effect")
        model = ""
    description = fields.pop("description", "") or text.strip().split("\n", 1)[0].lstrip("# ")
    hint = fields.pop("argument-hint", "") or fields.pop("argument_hint", "")
    notes += [f"`{one_line(key, 60)}` has no effect" for key in list(fields)[:5]]
    if _SHELL.search(text):
        notes.append("shell commands in it (`!`) are not run")
    return UserCommand(
        name, text, path, origin, one_line(description, _MAX_FIELD), one_line(hint, 60),
        one_line(model, 200), tuple(notes),
    )  # fmt: skip


def _split_front_matter(text: str) -> tuple[dict[str, str], str]:
    """The `key: value` lines between two lines of three dashes at the beginning, and the rest."""
    match = _FRONT.match(text)
    if match is None:
        return {}, text
    fields: dict[str, str] = {}
    for line in (match[1] or "").split("\n"):
        key, colon, value = line.partition(":")
        if colon and key.strip() and not key.startswith((" ", "\t", "#", "-")):
            fields[key.strip().lower()] = value.strip().strip("\"'")
    return fields, text[match.end() :]
