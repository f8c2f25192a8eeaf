"""The first message of a session: date, system, folder tree and memory.

The message is made once and stored, so its content stays the same in every request and after every
resume; a resume on another day adds `date_change_line`. Folders are read in parallel. Only
`read_environment` reads the clock, the locale and the environment variables.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date, datetime
from functools import partial
from pathlib import Path

import msgspec

from recollect.entries import Message, Text, json_text
from recollect.settings import data_directory, make_private_folder
from recollect.workspace.folder_tree import MAX_ITEMS, render_folder_tree
from recollect.workspace.memory_files import MemoryFile, memory_text, remember_seen
from recollect.workspace.untrusted_text import one_line
from recollect.workspace.working_folders import WorkingFolders

REMINDER = "Reminder: Do not return an empty response when a tool call is required."
READY = "My setup is complete. I will provide my first command in the next turn."
DEFAULT_LOCALE = "en_US"
_LOCALE = re.compile(
    r"([a-z]{2,3})(?:[_-]([A-Za-z]{4}))?(?:[_-]([A-Za-z]{2}|[0-9]{3}))?(?:[.@].*)?"
)


class SessionEnvironment(msgspec.Struct, frozen=True):
    today: date
    locale: str
    system: str
    temporary: Path


def read_environment(
    project: Path,
    *,
    now: datetime | None = None,
    environment: Mapping[str, str] | None = None,
    system: str = sys.platform,
    home: Path | None = None,
) -> SessionEnvironment:
    """The session's environment; creates the project's temporary directory, private to the user."""
    environment = os.environ if environment is None else environment
    name = hashlib.sha256(os.fsencode(project.resolve())).hexdigest()[:16]
    temporary = data_directory(home) / "tmp" / name
    with suppress(OSError):  # a later write reports that the directory is read-only
        make_private_folder(temporary)
    today = (datetime.now().astimezone() if now is None else now).date()
    return SessionEnvironment(today, locale_from(environment), system, temporary)


def locale_from(environment: Mapping[str, str]) -> str:
    """The user's locale for dates, from the POSIX variables."""
    for name in ("LC_ALL", "LC_TIME", "LANG"):
        if value := environment.get(name):
            if value.partition(".")[0] in ("C", "POSIX", DEFAULT_LOCALE):  # the most common
                return DEFAULT_LOCALE
            match = _LOCALE.fullmatch(value[:100])
            return "_".join(filter(None, match.groups())) if match else DEFAULT_LOCALE
    return DEFAULT_LOCALE


def long_date(day: date, locale: str = DEFAULT_LOCALE) -> str:
    """`Monday, November 16, 2026`, in the words and the order of the locale, if Babel is there."""
    if locale == DEFAULT_LOCALE:
        return f"{day:%A, %B} {day.day}, {day.year}"
    try:
        import babel.dates  # an extra; it takes 0.1 s to import, and most users do not need it
    except ImportError:
        return long_date(day)
    try:
        known = babel.Locale.parse(locale)
    except (babel.UnknownLocaleError, ValueError):
        return long_date(day)
    return babel.dates.format_date(day, format="full", locale=known)


def _name_directories(folders: WorkingFolders) -> str:
    directories = folders.directories
    if len(directories) == 1:
        where = f"I'm currently working in the directory: {one_line(str(folders.cwd), 4_000)}"
    else:
        named = "".join(f"\n  - {one_line(str(folder), 4_000)}" for folder in directories)
        where = (
            f"I'm currently working in the following directories:{named}\n"
            "Relative paths begin in the first of them."
        )
    if folders.root != folders.cwd:
        where += f"\nThe project's root is: {one_line(str(folders.root), 4_000)}"
    return where


async def directory_context(folders: WorkingFolders) -> str:
    """The working directories and their trees, and the project's root if it is another folder."""
    render = partial(render_folder_tree, roots=folders.roots)
    reads = (asyncio.to_thread(render, folder) for folder in folders.directories)
    trees = await asyncio.gather(*reads)
    where = _name_directories(folders)
    return (
        f"{where}\nHere is the folder structure (at most {MAX_ITEMS} items for each; where `...` "
        "stands there is more that is ignored or not shown):\n\n" + "\n\n".join(trees)
    )


async def directory_message(folders: WorkingFolders) -> Message:
    """The directory context again, for a session with additional directories."""
    text, extra = await directory_context(folders), json_text(folders.record())
    return Message(role="user", parts=(Text(text=text),), context="aside", extra=extra)


async def initial_message(
    folders: WorkingFolders,
    environment: SessionEnvironment,
    memory: Iterable[MemoryFile] = (),
    *,
    tree: bool = True,
) -> Message:
    """The message that every session starts with; `tree` shows what is in the folders."""
    memory = tuple(memory)
    where = await directory_context(folders) if tree else _name_directories(folders)
    block = (
        "This is recollect. We are setting up the context for our chat.\n"
        f"Today's date is {long_date(environment.today, environment.locale)} "
        "(formatted according to the user's locale).\n"
        f"My operating system is: {one_line(environment.system)}\n"
        f"The project's temporary directory is: {one_line(str(environment.temporary), 4_000)}\n"
        f"{where}"
    )
    text = "\n\n".join(filter(None, (block, memory_text(memory), REMINDER, READY)))
    extra = json_text({**folders.record(), **remember_seen(memory)})
    return Message(role="user", parts=(Text(text=text),), context="initial", extra=extra)


def date_change_line(stated: date, today: date, locale: str = DEFAULT_LOCALE) -> str:
    """The date for a resumed session; empty if it is still the date last stated."""
    if stated == today:
        return ""
    return f"Today's date is now {long_date(today, locale)}; this session goes on from another day."
