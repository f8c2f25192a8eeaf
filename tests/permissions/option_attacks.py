"""Attacks made from the judge's own data: each option of each known program with a payload that
would fire, in every way in which two readers of options can disagree.

An option is given with `--` as its value, before and after `--`, glued to its value or to the
payload, twice, abbreviated, after the operands, and with the payload as its value.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import NamedTuple

from recollect.permissions.program_record import ProgramRecord
from recollect.permissions.program_table import find_record
from recollect.permissions.wrapper_programs import WRAPPERS

Words = tuple[str, ...]


class Target(NamedTuple):
    """A program with payloads that fire if they are read as options, and its usual operands."""

    program: str  # with its sub-command
    payloads: tuple[Words, ...]
    operands: Words = ()
    honest: bool = False  # mode `free` runs such code, so only rules are tried
    writes: bool = False  # it may change files of the folder


class OptionAttack(NamedTuple):
    line: str
    target: Target


_OUTPUT = (("--output=marker",), ("--output", "marker"))
_SHORT_OUTPUT = (("-o", "marker"), ("-omarker",))
_UPLOAD = (("--upload-pack=touch marker;git-upload-pack",),)
_WEB = "file:///mnt/trap/home/work/a.txt"
_AWK = (("-f", "evil.awk"), ("-fevil.awk",), ('BEGIN { system("touch marker") }',))
_TARGETS = (
    Target("sed", (("1e touch marker",), ("-e", "1e touch marker"), ("-e1e touch marker",),
                   ("--expression=1e touch marker",), ("-fevil.sed",), ("-f", "evil.sed")),
           ("a.txt",)),
    Target("sed -n", (("1e touch marker",), ("-e1e touch marker",)), ("a.txt",)),
    Target("git grep", (("-Otouch marker;:",), ("--open-files-in-pager=touch marker;:",)), ("x",)),
    Target("git log", _OUTPUT), Target("git show", _OUTPUT),
    Target("git diff", _OUTPUT, ("HEAD~1",)),
    Target("git diff", (("/dev/null", ".env"), ("--no-index", "/dev/null", ".env"))),
    Target("git fetch", _UPLOAD, (".",), writes=True), Target("git ls-remote", _UPLOAD, (".",)),
    Target("git pull", _UPLOAD, (".", "HEAD"), writes=True),
    Target("git commit --allow-empty", (("-F", ".env"), ("-F.env",), ("--file=.env",)),
           writes=True),
    Target("git blame", (("--contents", ".env"), ("--contents=.env",)), ("a.txt",)),
    Target("git config", (("-f", ".env", "-l"), ("a.b", "c"))),
    Target("git", (("push",), ("p",), ("sh",), ("config", "a.b", "c")), writes=True),
    Target("rg", (("--pre=./runme",), ("--pre", "./runme")), ("x",)),
    Target("fd", (("-x", "touch", "marker"), ("-xtouch", "marker"), ("--exec=touch", "marker"))),
    Target("tree", _SHORT_OUTPUT, (".",)), Target("sort", (*_SHORT_OUTPUT, *_OUTPUT), ("a.txt",)),
    Target("shuf", (*_SHORT_OUTPUT, *_OUTPUT), ("a.txt",)), Target("uniq", (("a.txt", "marker"),)),
    Target("date", (("-s", "2020-01-01"), ("--set=2020-01-01",), ("010100002020",))),
    Target("tar", (("-I", "./runme"), ("-I./runme",), ("--use-compress-program=./runme",)),
           ("-tf", "t.tar"), writes=True),
    Target("tar", (("--to-command=./runme",),), ("-xf", "t.tar"), writes=True),
    Target("file", (("-f", ".env"), ("-f.env",)), ("a.txt",)),
    Target("awk", _AWK, ("a.txt",)), Target("gawk", _AWK, ("a.txt",)),
    Target("xxd", (("a.txt", "marker"),)), Target("test", (("-v", "PIPESTATUS[$(touch marker)]"),)),
    Target("curl", (*_SHORT_OUTPUT, ("-K", "curl.conf"), ("-Kcurl.conf",)), (_WEB,), honest=True),
    Target("curl", (("file:///mnt/trap/home/work/.env",), ("-w", "@.env", _WEB))),
    Target("jq", (("-R", ".", ".env"), ("-n", "--rawfile", "x", ".env", "$x"))),
    Target("find", (("-fprint", "marker"), ("-exec", "touch", "marker", ";"))),
    Target("sqlite3", (("-cmd", ".shell touch marker"),), ("x.db",), writes=True),
    Target("make", (("-f", "evil.mk"), ("-fevil.mk",), ("CMD=touch marker",)), (), honest=True),
    Target("python3", (("-c", "open('marker', 'w')"),), (), honest=True),
    Target("bash", (("-c", "touch marker"), ("-s",)), (), honest=True),
    *(Target(name, ((".env",), ("-n", ".env")), ("a.txt",))
      for name in ("cat", "grep -r K", "wc -l")),
    *(Target(name, (("touch", "marker"), ("git", "-P", "push")))
      for name in ("env", "nice", "nohup", "setsid", "stdbuf", "timeout", "xargs", "command")),
)  # fmt: skip


def _find_options(target: Target) -> dict[str, str]:
    """Every spelling of every option that the data has, with how it takes its value."""
    words = target.program.split()
    if words[0] in WRAPPERS and len(words) == 1:
        found: ProgramRecord | None = WRAPPERS[words[0]][0].options
    else:
        found = find_record(words[0])
        while found is not None and len(words) > 1 and words[1] in found.commands:
            found, words = found.commands[words[1]], words[1:]
    listed = {} if found is None else {name: spec.value for name, spec in found.options.items()}
    return {**listed, "-e": "required", "-I": "required", "--": "none", "-": "none"}


def _arrange(option: str, payload: Words, operands: Words) -> Iterator[Words]:
    glued = f"{option}=1" if option.startswith("--") else f"{option}1"
    yield (option, *payload, *operands)
    yield (option, "--", *payload, *operands)
    yield (option, "1", *payload, *operands)
    yield (glued, *payload, *operands)
    yield (option, "1", "--", *payload, *operands)
    yield (*operands, option, *payload)
    yield (*operands, option, "--", *payload)
    yield (option, option, *payload, *operands)
    yield ("--", option, *payload, *operands)
    yield (option, "-e", "--", *payload, *operands)
    yield (*payload, *operands, option)
    if option.startswith("--") and len(option) > 4:
        yield (option[:-1], *payload, *operands)
        yield (f"{option}={payload[0]}", *payload[1:], *operands)
    elif option[1:].isalpha() and payload[0][:1] == "-" and payload[0][1:2] != "-":
        yield (f"{option}{payload[0][1:]}", *payload[1:], *operands)  # letters in one word
    else:
        yield (f"{option}{payload[0]}", *payload[1:], *operands)


def make_option_attacks() -> Iterator[OptionAttack]:
    for target in _TARGETS:
        program = tuple(target.program.split())
        before = ("5",) if target.program == "timeout" else ()
        for option in _find_options(target):
            for payload in target.payloads:
                for words in _arrange(option, (*before, *payload), target.operands):
                    yield OptionAttack(shlex.join((*program, *words)), target)
