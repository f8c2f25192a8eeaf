"""The normal form of a command: what it means, without what only stands in front of it.

Wrappers that only run another command (`timeout 60`, `env CI=1`, `uv run`, `xargs`, `bash -c '…'`),
global options before a sub-command (`git --no-pager`, `npm --silent`), the path of a program and
harmless assignments are taken off, one after the other. Deny and ask rules see every form on the
way; allow rules see the last one, and the earlier ones where only options were taken off. Whatever
could do harm by itself is left behind as an objection. Pure; bounded depth; linear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from shlex import quote

import msgspec

from recollect.permissions.command_parser import (
    CommandWords,
    ParsedLine,
    Redirection,
    SubCommand,
    parse_line,
    program_name,
)
from recollect.permissions.environment_variables import judge_assignment
from recollect.permissions.find_reading import FindReading, read_find
from recollect.permissions.git_programs import HARMLESS_SETTING
from recollect.permissions.normal_command import (
    NormalCommand,
    add_objection,
    advance,
    start_normal_form,
)
from recollect.permissions.parsed_line import word_set
from recollect.permissions.path_objections import is_outside
from recollect.permissions.program_record import (
    Objection,
    ProgramRecord,
    ReadOption,
    read_options,
)
from recollect.permissions.program_table import find_record
from recollect.permissions.protected_paths import (
    leads_elsewhere,
    leaves_folder,
    matches_config,
    matches_secret,
    names_config,
)
from recollect.permissions.shell_builtins import SET_NAMES, SHOPT_NAMES
from recollect.permissions.shell_values import may_be_option
from recollect.permissions.wrapper_programs import SHELLS, WRAPPERS
from recollect.permissions.wrapper_removal import (
    ANY_WORDS,
    FILE_NAME,
    is_reader,
    object_to_found,
    object_to_options,
    surely_writes,
    take_off_wrapper,
)

_MAX_WRAPPERS, _MAX_DEPTH, _MAX_IMPLIED = 60, 4, 20
# Their names are hardly ever words of another program's language, as `test` and `install` are.
DISGUISES = word_set("awk bash env find git node perl python rg sed sh sort tar xargs")
_SYSTEM_FOLDERS = ("/usr/bin/", "/bin/", "/usr/local/bin/", "/usr/sbin/", "/sbin/")


class NormalLine(msgspec.Struct, frozen=True, kw_only=True):
    commands: tuple[NormalCommand, ...]
    redirections: tuple[Redirection, ...]
    objections: tuple[Objection, ...]  # to the line as a whole
    other_words: CommandWords = ()  # of loops, cases, tests, assignments and here-strings

    def __str__(self) -> str:
        return "; ".join(map(_as_typed, self.commands))


def _as_typed(command: NormalCommand) -> str:
    """With quotes around what the shell would take apart; what it decides stays as it is."""
    shown = []
    for at, word in enumerate(command.words):
        if at not in command.uncertain:
            shown.append(quote(word))
        else:
            whole = at not in command.splitting and any(map(str.isspace, word))
            shown.append(f'"{word}"' if whole else word)
    return " ".join(shown)


def normalize_line(
    line: ParsedLine, root: str = "", check_time: Callable[[], None] = lambda: None
) -> NormalLine:
    """`check_time` is called for each command, and raises when there is none left."""
    collector = _Collector(root, check_time)
    collector.add_line(line, (), 0)
    return NormalLine(
        commands=tuple(collector.commands),
        redirections=tuple(collector.redirections),
        objections=tuple(collector.objections),
        other_words=tuple(collector.other_words),
    )


class _Collector:
    def __init__(self, root: str, check_time: Callable[[], None]) -> None:
        self.root, self.check_time = root, check_time
        self.commands: list[NormalCommand] = []
        self.redirections: list[Redirection] = []
        self.objections: list[Objection] = []
        self.other_words: list[str] = []

    def add_line(
        self,
        line: ParsedLine,
        outer: tuple[CommandWords, ...],
        depth: int,
        stdin_text: str | None = None,
        *,
        captured: bool = False,
    ) -> None:
        self.redirections.extend(line.redirections)
        self.other_words.extend(line.other_words)
        for name, value in line.assignments:
            if (objected := judge_assignment(name, value)) is not None:
                self.objections.append(objected)
        producer: NormalCommand | None = None
        for command in line.commands:
            start = start_normal_form(command, outer)
            if captured:  # so is the shell that runs the line
                start = msgspec.structs.replace(start, captured=True)
            if start.stdin_text is None:
                start = msgspec.structs.replace(start, stdin_text=stdin_text)
            last = self._unwrap(start, producer)
            producer = last
            if not self._add_nested(last, depth):
                self.commands.append(last)
            self._add_implied(last)

    def _add_implied(self, outer: NormalCommand) -> None:
        """A program that nobody knows may run the words after it: `eatmydata git push`."""
        found = find_record(outer.words[0])
        if found is not None and not _may_run_words(found, outer.words):
            return
        starts = [at for at in range(1, len(outer.words)) if _is_known(outer.words[at])]
        for at in starts[:_MAX_IMPLIED]:
            words = outer.words[at:]
            uncertain = _moved(outer.uncertain, at, len(words))
            splitting = _moved(outer.splitting, at, len(words))
            run = SubCommand(words, uncertain=uncertain, splitting=splitting)
            inner = self._unwrap(start_normal_form(run, ()), None)
            hides = inner.program in DISGUISES
            refused = [one for one in inner.objections if hides and one.concern == "refused"]
            self.commands.append(
                msgspec.structs.replace(inner, implied=True, objections=tuple(refused))
            )

    def _unwrap(self, step: NormalCommand, producer: NormalCommand | None) -> NormalCommand:
        self.check_time()
        for _ in range(_MAX_WRAPPERS):
            if 0 in step.uncertain and step.words[0].startswith(("~/", "$HOME/")):
                step = add_objection(step, "code", "it runs a program in the home folder")
                return msgspec.structs.replace(step, uncertain=step.uncertain - {0})
            if 0 in step.uncertain:
                return add_objection(step, "refused", "the shell decides which program it runs")
            step = _take_off_path(step)
            inner = take_off_wrapper(step, producer)
            if inner is None or inner.words == step.words:
                plain = inner or step
                inner = _take_off_options(plain, self.root)
                if inner.words == plain.words:
                    return inner
            step = inner
        return add_objection(step, "refused", "it has too many wrappers")

    def _add_nested(self, step: NormalCommand, depth: int) -> bool:
        """Judge what a shell is given as lines of their own; False: the command itself counts."""
        if step.program in ("find", "gfind"):
            found = read_find(step.words[1:])
            begun = zip(found.places, found.commands, strict=True)
            run = [self._add_found(at, words, step) for at, words in begun]
            if found.deletes or not all(map(is_reader, run)):
                writes = found.deletes or any(map(surely_writes, run))
                self._object_to_find(found, writes=writes)
            return False
        text = _nested_text(step)
        if text is None:
            return False
        line = parse_line(text)
        if line.problem or not line.runnable or depth >= _MAX_DEPTH:
            why = line.problem or "it is nested too deep"
            self.commands.append(
                add_objection(step, "refused", f"its code was not understood: {why}")
            )
            return True
        self.objections.extend(step.objections)
        self._object_to_parameters(step, text)
        inherited = None if text == step.stdin_text else step.stdin_text
        self.add_line(line, step.forms, depth + 1, inherited, captured=step.captured)
        return bool(line.commands)

    def _object_to_parameters(self, step: NormalCommand, text: str) -> None:
        """`bash -c 'cat "$0"' .env`: the code may do anything with the words after it."""
        first = step.words.index(text) + 1 if text in step.words else len(step.words)
        for at, word in enumerate(step.words[first:], first):
            self.check_time()
            config = matches_config(word) if at in step.uncertain else names_config(word)
            if matches_secret(word) or config or is_outside(word, self.root):
                why = f"{word[:80]!r} is passed to code and is protected, or outside the folder"
                self.objections.append(Objection("refused", why))

    def _object_to_find(self, found: FindReading, *, writes: bool) -> None:
        """What find passes on is written: it must be in the folder, and no protected name."""
        if (objected := object_to_found(found, writes=writes, root=self.root)) is not None:
            self.objections.append(objected)
        for word in found.starts:
            if leads_elsewhere(word) or leaves_folder(word, self.root):
                why = f"{word[:80]!r} is outside the working folder"
                self.objections.append(Objection("refused", why))

    def _add_found(self, at: int, words: CommandWords, outer: NormalCommand) -> NormalCommand:
        """What `find -exec` runs; a file's name begins with the place where find started."""
        replaced = tuple(word.replace("{}", FILE_NAME) for word in words)
        changed = {number for number, word in enumerate(words) if "{}" in word}
        starts = [word for word in outer.words[1:2] if not word.startswith("-")]
        if starts and may_be_option(starts[0]) and 1 in outer.uncertain:
            replaced = tuple(word.replace(FILE_NAME, ANY_WORDS) for word in replaced)
        inner = SubCommand(
            replaced,
            uncertain=_moved(outer.uncertain, at + 1, len(words)) | changed,
            splitting=_moved(outer.splitting, at + 1, len(words)),
        )
        last = self._unwrap(start_normal_form(inner, ()), None)
        if not self._add_nested(last, 1):
            self.commands.append(last)
        return last


def _moved(positions: frozenset[int], start: int, count: int) -> frozenset[int]:
    """Those of `count` words from `start` on, as positions among these."""
    return frozenset(at - start for at in positions if start <= at < start + count)


def _may_run_words(found: ProgramRecord, words: CommandWords) -> bool:
    """`pnpm git push` runs git, because pnpm has no sub-command of that name."""
    if words[:3] == ("uv", "tool", "run"):
        return True
    unknown = bool(found.commands) and words[1:2] != () and words[1] not in found.commands
    return found.nature in ("code", "refused") or (found.nature == "builds" and unknown)


def _is_known(word: str) -> bool:
    name = word.rpartition("/")[2]
    return bool(name) and (find_record(name) is not None or name in WRAPPERS)


def _take_off_path(step: NormalCommand) -> NormalCommand:
    """`/usr/bin/python3.11` is python, `[ x ]` is `test x`; a program elsewhere is itself."""
    name = step.words[0]
    if name == "[" and step.words[-1] == "]":
        return advance(step, ("test", *step.words[1:-1]), 0, keep_allowed=True)
    base = name.rpartition("/")[2]
    if base.startswith("git-") and len(base) > 4:
        return advance(step, ("git", base[4:], *step.words[1:]), 1, keep_allowed=True, front=2)
    plain = next((name[len(top) :] for top in _SYSTEM_FOLDERS if name.startswith(top)), name)
    plain = program_name(plain) if "/" not in plain else plain
    if plain == name:
        return step
    return advance(step, (plain, *step.words[1:]), 0, keep_allowed=True)


# --- sub-commands -------------------------------------------------------------------------------


def _take_off_options(step: NormalCommand, root: str) -> NormalCommand:
    """Global options before a sub-command, and its aliases: `npm --silent i` is `npm install`."""
    words = step.words
    found = find_record(words[0])
    if found is None or not found.commands or len(words) < 2:
        return step
    reading = read_options(found, words[1:], step.doubtful())
    if not reading.operands:
        return object_to_options(step, words[0], reading)
    at = reading.operands[0] + 1
    before = [option for option in reading.options if option.at + 1 < at]
    unlisted = read_options(found, words[1 : at + 1], step.doubtful()).unlisted
    swallowed = words[at] in ("true", "false", "null")  # npm takes these for an option's value
    if reading.problem or unlisted or swallowed or at in step.uncertain:
        why = reading.problem or f"{(*unlisted, words[at])[0][:40]!r} is on no list"
        return add_objection(step, "refused", f"its sub-command cannot be told: {why}")
    step = _object_to_global(step, before, root)
    names = found.full_names(words[at])
    if len(names) > 1:
        return add_objection(step, "refused", f"{words[at][:40]!r} may be one of {names[:3]}")
    name = names[0]
    if at == 1 and name == words[at]:
        return step
    return advance(step, (words[0], name, *words[at + 1 :]), at + 1, keep_allowed=True, front=2)


def _object_to_global(
    step: NormalCommand, options: Iterable[ReadOption], root: str
) -> NormalCommand:
    """Objections to options before a sub-command, which are then taken off."""
    program = step.words[0]
    for option in options:
        if option.spec.name == "-C" and program == "git":
            if option.value not in (".", "./", root or "."):
                step = add_objection(step, "refused", "it runs git in another folder")
        elif option.value and is_outside(option.value, root):
            step = add_objection(step, "refused", f"{option.value[:80]!r} is outside the folder")
        elif option.spec.concern and not _is_harmless_setting(program, option):
            name = option.spec.name
            step = add_objection(
                step, option.spec.concern, f"{program} {name} can decide what is run"
            )
    return step


def _is_harmless_setting(program: str, option: ReadOption) -> bool:
    given = program == "git" and option.spec.name == "-c"
    return given and HARMLESS_SETTING.match(option.value or "") is not None


# --- code as text -------------------------------------------------------------------------------


def _nested_text(step: NormalCommand) -> str | None:
    """The lines that a shell is given; None if it gets none, or if the shell decides them."""
    words = step.words
    if words[0] == "eval" and len(words) > 1 and not step.uncertain:
        return " ".join(words[1:])
    if words[0] == "trap" and len(words) > 2 and 1 not in step.uncertain:
        return words[1] if words[1] not in ("-", "", "--") else None
    if words[0] not in SHELLS or (found := find_record(words[0])) is None:
        return None
    reading = read_options(found, words[1:], step.doubtful())
    if reading.problem or reading.unlisted or any(one.spec.concern for one in reading.options):
        return None
    if not (
        SET_NAMES.issuperset(reading.values("-o")) and SHOPT_NAMES.issuperset(reading.values("-O"))
    ):
        return None  # the same words mean something else: `bash -O dotglob -c 'cat *'`
    operands = [at + 1 for at in reading.operands]
    if reading.has("-c"):
        return words[operands[0]] if operands and operands[0] not in step.uncertain else None
    return step.stdin_text if not operands or words[operands[0]] == "-" else None
