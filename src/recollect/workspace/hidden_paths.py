"""Which files and folders are hidden from an agent, and which ignore file hides each of them.

One set of rules for every door: the folder tree, memory, listings, searches, reads and mentions.
`.geminiignore` and `.recollectignore` are the user's word to the agent and decide first. Below them
count `.gitignore`, `.git/info/exclude` and the user's own excludes of git. As in git, ignore files
may be nested, the last match of the deepest file decides, `!` re-includes, and nothing below a
hidden folder can be re-included. A file is parsed again only when it has changed.

If the user's word cannot be read in full (the file is too large, unreadable, not UTF-8), everything
in its folder counts as hidden: what it would have hidden is not known. Of git's files counts
what could be read. Secrets of the home and recollect's own data are hidden without any file.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
import time
from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from recollect.workspace.ignore_files import MAX_RULES, IgnoreRuleSet, parse_ignore_file
from recollect.workspace.private_paths import PathNames, private_below
from recollect.workspace.project_identity import git_root
from recollect.workspace.protected_names import canonical_name
from recollect.workspace.safe_files import FileContent, read_inside, resolve_named
from recollect.workspace.untrusted_text import one_line

AGENT_IGNORE_FILES = (".geminiignore", ".recollectignore")
# Large folders of generated or foreign files: trees and the search for memory do not enter them.
ALWAYS_IGNORED = frozenset(
    {".git", ".hg", ".svn", ".jj", "node_modules", "bower_components", "dist", "__pycache__"}
    | {".venv", "venv", ".tox", ".nox", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
    | {".hypothesis", ".gradle", ".idea", ".cache"}
)
MAX_BYTES = 1_000_000  # of one ignore file
RECENT = 2_000_000_000  # nanoseconds: a file this young may change again without a newer time

_Signature: TypeAlias = tuple[int, ...]
_NO_RULES = IgnoreRuleSet()


class IgnoreSource(msgspec.Struct, frozen=True):
    """The rules of one ignore file."""

    name: str  # for display, from the top
    depth: int  # how many names are between the top and the folder that its patterns begin in
    rules: IgnoreRuleSet = _NO_RULES
    of_git: bool = True
    problem: str = ""  # why the rules are not all that the file has; the end of a sentence

    @property
    def hides_all(self) -> bool:
        return bool(self.problem) and not self.of_git

    @property
    def reason(self) -> str:
        """Why a path is hidden, as the end of a sentence that begins with it."""
        if self is GIT_FOLDER:
            return "belongs to git itself"
        if self is PRIVATE:
            return "is private: no tool touches secrets of the home or recollect's own data"
        if self.hides_all:
            return f"is hidden because {one_line(self.name)} {self.problem}"
        return f"is {'ignored' if self.of_git else 'hidden'} by {one_line(self.name)}"

    @property
    def warning(self) -> str:
        """What the user should know about the file; empty if it could be read in full."""
        if not self.problem:
            return ""
        effect = "the rest of it is not used"
        if self.hides_all:
            effect = "until that is repaired, everything in its folder is hidden from the agent"
        return f"{one_line(self.name)} {self.problem}; {effect}"


GIT_FOLDER = IgnoreSource(".git", 0)
PRIVATE = IgnoreSource("recollect", 0, of_git=False)


class IgnoreRules(msgspec.Struct, frozen=True):
    """The rules below `top`, from the ignore files read so far."""

    top: Path
    of_git: tuple[IgnoreSource, ...] = ()  # the later decides over the earlier
    of_agent: tuple[IgnoreSource, ...] = ()
    uses_git: bool = True
    private: frozenset[PathNames] = frozenset()  # whatever the files say

    def enter_folder(
        self, names: Sequence[str], present: Collection[str] | None = None
    ) -> IgnoreRules:
        """Add the rules of one more folder, named from the top; `present` are the names in it, if
        they are known."""

        def found(name: str) -> tuple[IgnoreSource, ...]:
            if present is not None and name not in present:
                return ()
            return self._read(self.top.joinpath(*names, name), names)

        git = (*self._excludes(names, present), *found(".gitignore")) if self.uses_git else ()
        agent = tuple(source for name in AGENT_IGNORE_FILES for source in found(name))
        if not git and not agent:
            return self
        return msgspec.structs.replace(
            self, of_git=_add(self.of_git, git), of_agent=_add(self.of_agent, agent)
        )

    def hider(self, names: Sequence[str], *, folder: bool) -> IgnoreSource | None:
        """The ignore file that hides this path, if it hides no folder above it."""
        if self.uses_git and names[-1] == ".git":
            return GIT_FOLDER
        if self.private and (
            () in self.private or tuple(map(canonical_name, names)) in self.private
        ):
            return PRIVATE
        for source in self.of_agent:
            if source.hides_all:
                return source
        for source in (*reversed(self.of_agent), *reversed(self.of_git)):
            ignored = source.rules.decide(names[source.depth :], folder=folder)
            if ignored is not None:
                return source if ignored else None
        return None

    def warnings(self) -> tuple[str, ...]:
        """Which of the ignore files could not be read in full, and what follows from it."""
        sources = (*self.of_agent, *self.of_git)
        return tuple(source.warning for source in sources if source.warning)

    def ignores(self, names: Sequence[str], *, folder: bool) -> bool:
        """Whether a tree leaves this path out, if no folder above it is."""
        usual = folder and names[-1] in ALWAYS_IGNORED
        return usual or self.hider(names, folder=folder) is not None

    def _excludes(
        self, names: Sequence[str], present: Collection[str] | None
    ) -> tuple[IgnoreSource, ...]:
        """What a repository excludes without saying so in its tree."""
        if present is not None and ".git" not in present:
            return ()
        file = _exclude_file(self.top.joinpath(*names, ".git"))
        return () if file is None else self._read(file, names)

    def _read(self, file: Path, names: Sequence[str]) -> tuple[IgnoreSource, ...]:
        inside = file.is_relative_to(self.top)
        name = file.relative_to(self.top).as_posix() if inside else str(file)
        return _read_source(file, self.top if inside else file.parent, name, len(names))


def _read_source(file: Path, root: Path, name: str, depth: int) -> tuple[IgnoreSource, ...]:
    """The rules of a file that is inside the folder `root`; none if there is no such file."""
    of_git = file.name not in AGENT_IGNORE_FILES
    read = _read_text(file, root)
    rules = _parse(read.text, of_git)
    problem = read.problem or rules.problem
    if not rules and not problem:
        return ()
    return (IgnoreSource(name, depth, rules, of_git, problem),)


def _add(
    held: tuple[IgnoreSource, ...], found: tuple[IgnoreSource, ...]
) -> tuple[IgnoreSource, ...]:
    """One kind's sources with further ones, until they have `MAX_RULES` rules together."""
    for source in found:
        if sum(len(other.rules) for other in held) >= MAX_RULES:
            problem = f"comes after {MAX_RULES:,} rules of the folders above it"
            source = msgspec.structs.replace(source, rules=_NO_RULES, problem=problem)  # noqa: PLW2901
        held = (*held, source)
    return held


def read_ignore_rules(
    folder: Path, roots: Collection[Path] = (), *, use_git: bool = True
) -> tuple[IgnoreRules, list[str]]:
    """The rules in a folder, also those of its repository and of the root around it, and its names
    from the top."""
    rules, names = _rules_at_top(folder.resolve(), roots, use_git=use_git)
    for depth in range(len(names) + 1):
        rules = rules.enter_folder(names[:depth])
    return rules, names


def find_hider(
    path: Path, roots: Collection[Path] = (), *, use_git: bool = True
) -> IgnoreSource | None:
    """The ignore file that hides a path, itself or through a folder above it. Links in the path
    are the caller's business."""
    rules, names = _rules_at_top(path.parent, roots, use_git=use_git)
    names = [*names, path.name]
    for depth in range(len(names)):
        rules = rules.enter_folder(names[:depth])
        is_folder = depth + 1 < len(names) or path.is_dir()
        if hider := rules.hider(names[: depth + 1], folder=is_folder):
            return hider
    return None


def find_link_hider(
    link: Path, roots: Collection[Path], *, use_git: bool = True
) -> IgnoreSource | None:
    """The ignore file that hides what a link leads to, if that is in one of the roots."""
    real = Path(os.path.realpath(link))
    tops = [Path(os.path.realpath(root)) for root in roots]
    if real in tops or not any(real.is_relative_to(top) for top in tops):
        return None
    return find_hider(real, roots, use_git=use_git)


def _rules_at_top(
    folder: Path, roots: Collection[Path], *, use_git: bool
) -> tuple[IgnoreRules, list[str]]:
    """No rules yet but the user's own of git; the top is the outermost of the root and the
    repository that the folder is in."""
    repository = git_root(folder)
    around = [top for root in roots if folder.is_relative_to(top := Path(os.path.realpath(root)))]
    top = min((*around, repository or folder), key=lambda path: len(path.parts))
    own = _users_excludes() if use_git and repository else ()
    names = list(folder.relative_to(top).parts)
    private = private_below(top, roots)
    return IgnoreRules(top, of_git=own, uses_git=use_git, private=private), names


# --- files of git outside the tree -------------------------------------------------------------

_EXCLUDES_FILE = re.compile(r"^\s{0,20}excludesfile\s{0,20}=\s{0,20}(\S.{0,1000})$", re.I)
_SECTION = re.compile(r"^\s{0,20}\[\s{0,20}([^\]\s]{1,200})")


def _users_excludes() -> tuple[IgnoreSource, ...]:
    """The user's global ignore file: `core.excludesFile`, or git's usual place for it."""
    try:
        home = Path.home()
    except RuntimeError:
        return ()
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git"
    files = (home / ".gitconfig", config / "config")
    named = next(filter(None, (_excludes_file(_read_text(f, f.parent).text) for f in files)), "")
    path = resolve_named(home, named) if named else config / "ignore"
    return _read_source(path, path.parent, str(path), 0)


def _excludes_file(text: str) -> str:
    """The last value of `core.excludesFile` in a configuration of git; empty if there is none."""
    section, found = "", ""
    for line in text.split("\n"):
        if match := _SECTION.match(line):
            section = match[1].lower()
        elif section == "core" and (match := _EXCLUDES_FILE.match(line)):
            found = match[1].strip().strip('"')
    return found


def _exclude_file(git: Path) -> Path | None:
    """The file `info/exclude` of the repository that a `.git` belongs to."""
    if git.is_dir():
        return git / "info" / "exclude"
    link = _read_text(git, git.parent).text  # in a worktree or a submodule `.git` is a file
    if not link.startswith("gitdir:"):
        return None
    place = git.parent / link.removeprefix("gitdir:").strip()
    shared = _read_text(place / "commondir", place).text.strip()
    return Path(os.path.normpath(place / shared)) / "info" / "exclude"


# --- reading -----------------------------------------------------------------------------------


class _ReadText(NamedTuple):
    text: str
    problem: str = ""  # why the text is not all that the file has; the end of a sentence


def _read_text(file: Path, root: Path) -> _ReadText:
    """The text of a file that is inside this folder; empty if there is none, or none of a regular
    file."""
    try:
        info = os.stat(file)  # noqa: PTH116 - one call for every folder of a walk
    except (OSError, ValueError):
        # a link that leads nowhere is a file that cannot be read
        return _ReadText("", "leads nowhere" if os.path.islink(file) else "")  # noqa: PTH114
    if not stat.S_ISREG(info.st_mode):
        return _ReadText("")
    changed = max(info.st_mtime_ns, info.st_ctime_ns)
    if abs(time.time_ns() - changed) < RECENT:
        return _read_now(str(file), str(root))
    signature = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
    return _read_known(str(file), str(root), signature)


@lru_cache(maxsize=128)
def _read_known(file: str, root: str, signature: _Signature) -> _ReadText:
    del signature  # part of the key: another one means that the file has changed
    return _read_now(file, root)


def _read_now(file: str, root: str) -> _ReadText:
    read = read_inside(Path(file), (Path(root),), MAX_BYTES, partial=True)
    if not isinstance(read, FileContent):
        return _ReadText("", f"cannot be read: {read.why}")
    # names that are not UTF-8 have the same letters in Python
    text = read.data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
    if read.size <= MAX_BYTES:
        return _ReadText(text)
    problem = f"has {read.size:,} bytes, more than the limit of {MAX_BYTES:,}"
    return _ReadText(text[: text.rfind("\n") + 1], problem)  # half a pattern could hide anything


@lru_cache(maxsize=128)
def _parse(text: str, of_git: bool) -> IgnoreRuleSet:  # noqa: FBT001 - part of the cache's key
    return parse_ignore_file(text, of_git=of_git)
