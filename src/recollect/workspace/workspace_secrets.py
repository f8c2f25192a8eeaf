"""Which files of a workspace are secrets: nobody reads them for a model without the user's word.

A file is one if it has a secret name, lies in a folder of such a name, or is what a link of such a
name leads to. It is none if it is empty or a compiled program, if the user shows it
(`permissions.show_secrets`), if a tool of this session wrote it, or if git has its very content in
its index: then it is published with the project. The content decides and not the name, because a
command can put any name into an index, but not the hash of what it cannot read. What cannot be
found out counts as a secret.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from recollect.workspace.git_index import find_repository, has_content, read_index, read_regular
from recollect.workspace.secret_names import is_secret_name
from recollect.workspace.secret_walk import (
    MOST_ENTRIES,
    SKIPPED_FOLDERS,
    SecretWalk,
    is_secret_place,
)

MOST_SECRETS = 300  # each is a mount, and many of them take seconds
_LARGEST = 1_000_000  # bytes of a file that is compared with git's
_PROGRAM_STARTS = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
# A link to what everybody has installed, such as `ca.pem` to the system's certificates, hides
# nothing of the user's.
_SYSTEM = ("/usr", "/etc", "/lib", "/lib64", "/bin", "/sbin", "/nix", "/proc", "/sys", "/dev")


class WorkspaceSecrets(NamedTuple):
    """The secrets of a workspace; all paths are absolute, with links resolved."""

    paths: tuple[str, ...] = ()  # files, and folders as a whole
    parents: tuple[str, ...] = ()  # the folders above them in the workspace, the roots left out
    complete: bool = True  # False: there is too much to look at


class ShownSecrets:
    """Which secrets a session may read: those that the user shows, and contents that its own tools
    wrote, which the model knows. These are remembered while the session is open."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = tuple(names)
        self._written: set[bytes] = set()

    def note_written(self, content: bytes) -> None:
        self._written.add(hashlib.sha256(content).digest())

    def has_written(self, content: bytes) -> bool:
        return bool(self._written) and hashlib.sha256(content).digest() in self._written


class SecretFinder:
    """Finds the secrets below some folders, apart from those that are shown."""

    def __init__(
        self,
        roots: Sequence[Path | str],
        shown: ShownSecrets | None = None,
        most_entries: int = MOST_ENTRIES,
    ) -> None:
        self._shown = shown or ShownSecrets()
        names = self._shown.names
        given = {os.path.abspath(root): os.path.realpath(root) for root in roots}
        self._given = tuple(given.items())
        self.roots = tuple(dict.fromkeys(given.values()))
        self._most_entries = most_entries
        self._names = {one for one in names if "/" not in one} - {"", ".", ".."}
        self._places = tuple(
            os.path.normpath(os.path.join(root, os.path.expanduser(one)))
            for root in self.roots
            for one in names
            if one and one not in self._names
        )
        self._indexes: dict[str, bytes | None] = {}  # by repository

    def find_all(self) -> WorkspaceSecrets:
        """What is there now; much of it takes a moment."""
        self._indexes.clear()
        found: dict[str, None] = {}
        complete = True
        for root in self.roots:
            if self._shows(root, root):
                continue
            walk = SecretWalk(root, self._most_entries)
            for path in self._secrets_in(root, walk):
                found[path] = None
                if len(found) > MOST_SECRETS:
                    return WorkspaceSecrets(tuple(found), complete=False)
            found.update((f"{root}/{below}", None) for below in walk.closed if below)
            complete = complete and walk.complete
        paths = tuple(_without_covered(found))
        return WorkspaceSecrets(paths, tuple(self._parents_of(paths)), complete)

    def shows(self, path: str) -> bool:
        """Whether the user shows this file."""
        return any(self._shows(one, self._root_of(one)) for one in (path, os.path.realpath(path)))

    def is_secret(self, *paths: Path | str) -> bool:
        """Whether a file is a secret. All paths lead to it: as it was named, and the real one."""
        places = [self._below_real_root(str(path)) for path in paths]
        named = [(path, root) for path in places if (root := self._root_of(path))]
        if any(self._shows(path, root) for path, root in named):
            return False
        return any(_is_named(path, root) for path, root in named) and self._holds(places[-1])

    def _below_real_root(self, path: str) -> str:
        """A root may be named through a link."""
        for given, real in self._given:
            if is_inside(path, given):
                return real + path[len(given) :]
        return path

    def _root_of(self, path: str) -> str:
        """The nearest root; a folder that the user works in is no secret by its name."""
        return max((one for one in self.roots if is_inside(path, one)), key=len, default="")

    def _secrets_in(self, root: str, walk: SecretWalk) -> Iterator[str]:
        """The secrets that a walk comes by; a secret folder as a whole if nothing in it is to be
        seen."""
        folders: dict[str, dict[str, bool]] = {}
        for name in walk:
            path = f"{root}/{name.path}"
            if self._root_of(path) != root:
                continue
            if name.entry.is_symlink():
                yield from self._behind_link(path, root, is_secret=name.is_secret)
            elif name.is_secret:
                secret = not self._shows(path, root) and self._holds(path)
                if folder := _secret_folder(path, root):
                    folders.setdefault(folder, {})[path] = secret
                elif secret:
                    yield path
        for folder, files in folders.items():
            if all(files.values()) and not any(is_inside(one, folder) for one in self.roots):
                yield folder
            else:
                yield from (path for path, secret in files.items() if secret)

    def _behind_link(self, link: str, root: str, *, is_secret: bool) -> Iterator[str]:
        try:
            target, real = os.readlink(link), os.path.realpath(link)
            mode = os.lstat(real).st_mode
        except (OSError, ValueError):
            return  # it leads nowhere
        named = is_secret or any(map(is_secret_name, target.lower().split("/")))
        if not named or self._shows(link, root) or self._shows(real, root):
            return
        if any(is_inside(one, real) for one in self.roots):
            return  # the workspace itself, or what it lies in
        if not stat.S_ISDIR(mode):
            if not any(is_inside(real, one) for one in _SYSTEM) and self._holds(real):
                yield real
        elif any(is_inside(real, one) for one in self.roots):
            files = list(SecretWalk(real, self._most_entries, all_names=True))
            kept = [path for name in files if self._holds(path := f"{real}/{name.path}")]
            yield from (real,) if kept and len(kept) == len(files) else kept
        elif is_inside(real, os.path.expanduser("~")):
            yield real

    def _shows(self, path: str, root: str) -> bool:
        """Whether the user's settings show it, or a folder that it lies in."""
        if any(is_inside(path, place) for place in self._places):
            return True
        return bool(self._names) and not self._names.isdisjoint(_names_below(path, root))

    def _holds(self, path: str) -> bool:
        """Whether a file has a content that nobody else has."""
        try:
            info = os.lstat(path)
            if stat.S_ISDIR(info.st_mode):
                return False
            if not stat.S_ISREG(info.st_mode):
                return True  # a pipe may give a secret to whoever opens it
            if not info.st_size or _is_program(path):
                return False
            content = read_regular(path, _LARGEST)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        if content is None:
            return True
        return not (self._shown.has_written(content) or self._is_published(path, content))

    def _is_published(self, path: str, content: bytes) -> bool:
        repository = find_repository(os.path.dirname(path))
        if not repository:
            return False
        if repository not in self._indexes:
            self._indexes[repository] = read_index(repository)
        index = self._indexes[repository]
        return index is not None and has_content(index, content)

    def _parents_of(self, paths: Iterable[str]) -> Iterator[str]:
        seen = set[str]()
        for path in paths:
            root = self._root_of(path)
            parent = os.path.dirname(path)
            while root and len(parent) > len(root) and parent not in seen:
                seen.add(parent)
                yield parent
                parent = os.path.dirname(parent)


def _is_program(path: str) -> bool:
    """Whether a file is a compiled program: `test_rsa` may be a key or what was built."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return file.read(4) in _PROGRAM_STARTS


def is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def describe_secrets(paths: Sequence[str], roots: Sequence[str], most: int = 3) -> str:
    """A few of them by name, from the folder that they lie in."""
    shown = []
    for path in paths[:most]:
        root = next((one for one in roots if path.startswith(f"{one}/")), "")
        shown.append(repr(path.removeprefix(f"{root}/"))[1:-1] if root else repr(path)[1:-1])
    more = f", +{len(paths) - most:,}" if len(paths) > most else ""
    return ", ".join(shown) + more


def _names_below(path: str, root: str) -> list[str]:
    return path[len(root) :].strip("/").split("/") if is_inside(path, root) else []


def _is_named(path: str, root: str) -> bool:
    """Whether a file below a root has a secret name, or lies in a folder that has."""
    *folders, name = _names_below(path, root) or [""]
    if not SKIPPED_FOLDERS.isdisjoint(folders):
        return False
    return is_secret_name(name.lower()) or bool(_secret_folder(path, root))


def _secret_folder(path: str, root: str) -> str:
    """The first folder below the root that makes what is in it secret; empty: none does."""
    folder = root
    for name in _names_below(path, root)[:-1]:
        folder = f"{folder}/{name}"
        if is_secret_place(folder):
            return folder
    return ""


def _without_covered(paths: Iterable[str]) -> Iterator[str]:
    """A folder hides what is in it."""
    last = ""
    for path in sorted(paths, key=lambda one: one.split("/")):
        if not last or not is_inside(path, last):
            last = path
            yield path
