"""What recollect tells the supervisor of one command, and what the supervisor reports.

Both travel as JSON. The standard library only, because the supervisor starts without packages.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from recollect.execution.landlock import LandlockRules
from recollect.execution.saved_files import SavedFiles

FIRST_DESCRIPTOR = 10  # what a command gets as its first descriptor; the next is one more


class ProtectedPaths(NamedTuple):
    """The files of a workspace that decide what runs later."""

    roots: tuple[str, ...]
    projects: tuple[str, ...]  # folders in which protected names count
    home: str  # in which further names count, if it is one of them
    kept: tuple[str, ...]  # existing paths to compare; none where mounts hold them
    occupied: tuple[str, ...]  # existing paths that are not compared
    absent: tuple[str, ...]  # paths that must not appear
    git_folders: tuple[str, ...]
    git_links: tuple[str, ...]  # each `.git` that is a file or a link
    all_git: bool  # whether these are all
    aside: str  # the folder for what is replaced


class CommandPlan(NamedTuple):
    words: tuple[str, ...]  # bytes that are not UTF-8 as surrogates
    environment: dict[str, str]
    directory: str
    descriptors: tuple[int, ...] = ()  # of ours, that the command gets
    rules: LandlockRules | None = None
    shared_memory: str = ""  # with rules: a folder in place of /dev/shm
    protected: ProtectedPaths | None = None
    before: SavedFiles | None = None  # with protected paths: what was there
    checks: LandlockRules | None = None  # what the checks after the command are held to


class CommandReport(NamedTuple):
    code: int | None = None  # None: it was ended from outside
    survivors: tuple[int, ...] = ()
    repairs: tuple[str, ...] = ()


def encode_plan(plan: CommandPlan) -> bytes:
    fields = plan._asdict()
    for name in ("rules", "checks", "protected"):
        value = fields[name]
        fields[name] = value and value._asdict()
    fields["before"] = plan.before and plan.before.to_json()
    return json.dumps(fields).encode()


def decode_plan(text: bytes) -> CommandPlan:
    given = json.loads(text)
    before = given.get("before")
    made: dict[str, Any] = {"before": None if before is None else SavedFiles.from_json(before)}
    for name, kind in (("rules", LandlockRules), ("checks", LandlockRules)):
        value = given.get(name)
        made[name] = None if value is None else kind(**value)
    protected = given.get("protected")
    made["protected"] = None if protected is None else ProtectedPaths(**protected)
    return CommandPlan(**(given | made))


def encode_report(report: CommandReport) -> bytes:
    return json.dumps(report._asdict()).encode()


def decode_report(text: bytes) -> CommandReport:
    given = json.loads(text)
    return CommandReport(given["code"], tuple(given["survivors"]), tuple(given["repairs"]))
