"""Which files `find` can find: its expression, for one path, with what cannot be told as both.

`! -name '.env*'`, `-name '*.py' -o -name '*.md'`, `-path ./a -prune -o -print`: a file is found if
an action, or the end of an expression without one, may be reached for it. Tests that need more
than a name (a size, an age) may be true or false. Pure; one pass over the words.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

from recollect.permissions.parsed_line import word_set

_ACTIONS = word_set("-print -print0 -printf -ls -exec -execdir -ok -okdir -delete")
_VALUED = word_set(
    "-amin -anewer -atime -cmin -cnewer -ctime -group -gid -ilname -inum -iregex -links -lname"
    " -mindepth -mmin -mtime -newer -newermt -newerat -newerct -perm -printf -regex -regextype"
    " -samefile -size -uid -used -user -xtype -fstype -context -since"
)
_NAMES = word_set("-name -iname")
_PATHS = word_set("-path -ipath -wholename -iwholename")
_MOST_OPENED = 20
ANY_NAME = "\1"  # stands for a file that no pattern means


class _Truth(NamedTuple):
    """Whether an expression can be true, and whether it can be false."""

    true: bool
    false: bool


_YES = _Truth(true=True, false=False)
_NO = _Truth(true=False, false=True)
_EITHER = _Truth(true=True, false=True)


def may_find(words: tuple[str, ...], start: str, path: str) -> bool:
    """Whether find with this expression can print, or act on, `path` below `start`."""
    if words.count("(") > _MOST_OPENED:
        return True
    return _Evaluation(words, start, path).may_find()


class _Evaluation:
    def __init__(self, words: tuple[str, ...], start: str, path: str) -> None:
        self.words, self.at = words, 0
        self.name = path.rpartition("/")[2]
        self.path = f"{start.rstrip('/') or ('/' if start else '.')}/{path}"
        self.depth = path.count("/") + 1
        self.acted = self.too_deep = False

    def may_find(self) -> bool:
        value = _YES
        while self.at < len(self.words):  # after a `)` too many nothing is certain
            value = self._either(reached=True)
            if self.at < len(self.words):
                return True
        acts = not _ACTIONS.isdisjoint(self.words)
        return not self.too_deep and (self.acted if acts else value.true)

    def _peek(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ")"

    def _take(self) -> str:
        word = self._peek()
        self.at += 1
        return word

    def _either(self, *, reached: bool) -> _Truth:
        left = self._both(reached=reached)
        while self._peek() in ("-o", "-or", ","):
            if self._take() == ",":
                left = self._both(reached=reached)
                continue
            right = self._both(reached=reached and left.false)
            left = _Truth(left.true or right.true, left.false and right.false)
        return left

    def _both(self, *, reached: bool) -> _Truth:
        left = self._one(reached=reached)
        while self._peek() not in (")", "-o", "-or", ","):
            if self._peek() in ("-a", "-and"):
                self.at += 1
                continue
            right = self._one(reached=reached and left.true)
            left = _Truth(left.true and right.true, left.false or right.false)
        return left

    def _one(self, *, reached: bool) -> _Truth:
        turned = False
        while self._peek() in ("!", "-not"):
            turned = not turned
            self.at += 1
        if self._peek() == "(":
            self.at += 1
            value = self._either(reached=reached)
            self.at += self._peek() == ")"
        else:
            value = self._test(reached=reached)
        return _Truth(value.false, value.true) if turned else value

    def _test(self, *, reached: bool) -> _Truth:
        word = self._take()
        if word in _ACTIONS:
            self.acted = self.acted or reached
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            self._skip_command()
            return _EITHER
        if word in ("-print", "-print0", "-true", "-prune"):
            return _YES
        if word in _NAMES or word in _PATHS:
            compared = self.name if word in _NAMES else self.path
            return _compare(self._take(), compared, any_case=word[1] == "i")
        if word == "-type":
            return _NO if self._take() == "d" else _EITHER
        if word == "-maxdepth":
            value = self._take()
            self.too_deep = self.too_deep or (value.isdecimal() and int(value) < self.depth)
            return _YES
        if word in _VALUED:
            self.at += 1
        return _NO if word == "-false" else _EITHER

    def _skip_command(self) -> None:
        while self.at < len(self.words):
            word = self._take()
            if word == ";" or (word == "+" and self.words[self.at - 2] == "{}"):
                return


def _compare(glob: str, text: str, *, any_case: bool) -> _Truth:
    if any(sign in glob for sign in "[\\"):
        return _EITHER
    if any_case:
        glob, text = glob.lower(), text.lower()
    return _YES if fnmatchcase(text, glob) else _NO
