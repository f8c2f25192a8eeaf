"""Takes off what only runs another command: `timeout 60`, `env CI=1`, `uv run`, `xargs`.

What stood there is judged by its own options; whatever could do harm by itself is left behind as an
objection to the command inside.
"""

from __future__ import annotations

import re
from itertools import takewhile

import msgspec

from recollect.permissions.environment_variables import judge_assignment
from recollect.permissions.find_reading import FindReading, read_find
from recollect.permissions.normal_command import NormalCommand, add_objection, advance
from recollect.permissions.path_objections import writes_files
from recollect.permissions.program_record import (
    Objection,
    OptionReading,
    ReadOption,
    read_options,
)
from recollect.permissions.program_table import find_record
from recollect.permissions.protected_paths import matches_config, matches_secret, names_config
from recollect.permissions.wrapper_programs import PYTHON_MODULES, SHELLS, WRAPPERS, Wrapper

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_LISTERS = frozenset({"fd", "fdfind", "find", "git", "grep", "ls", "rg"})  # they print file names
FILE_NAME = "./$@"  # stands for the name of a file that only run time knows
ANY_WORDS = "$@"
_SPLIT = "--split-string"
# what npm runs, and with which settings
_NPM_DECIDES = re.compile(r"-c|--(?:sc|she|cal|cac|prefi\b|prefix|us|reg|node)")


def is_reader(step: NormalCommand) -> bool:
    found = find_record(step.words[0])
    return found is not None and found.nature == "reads"


def surely_writes(step: NormalCommand) -> bool:
    return writes_files(step) or step.program in SHELLS


def object_to_found(found: FindReading, *, writes: bool, root: str = "") -> Objection | None:
    """Files that decide what runs later, if find is to pass them to what may write; `writes`: it
    surely does."""
    if writes and found.takes_all_of(root):
        return Objection("refused", "it changes or removes whatever is in the working folder")
    for start in found.starts:
        if writes and names_config(start):
            return Objection("refused", f"{start[:80]!r} decides what runs later")
    for pattern in found.patterns:
        if not pattern.startswith("*") and matches_config(pattern):
            return Objection("refused", f"{pattern[:80]!r} decides what runs later")
    return None


def take_off_wrapper(step: NormalCommand, producer: NormalCommand | None) -> NormalCommand | None:
    """The command that a wrapper runs; None if it is no wrapper. One that runs nothing keeps its
    words, with what its options are objected to."""
    words = step.words
    if words[0] == "python":
        return _take_off_module(step)
    if words[0] == "command" and words[1:2] in (("-v",), ("-V",)):
        return advance(step, ("which", *words[2:]), 2, keep_allowed=False, front=1)
    for wrapper in WRAPPERS.get(words[0], ()):
        start = 1 if not wrapper.subcommands else _after_subcommand(step, wrapper)
        if start:
            return _run_wrapped(step, wrapper, start, producer)
    return None


def _after_subcommand(step: NormalCommand, wrapper: Wrapper) -> int:
    """The position after `run` in `uv -q run pytest`; 0 if another sub-command is meant."""
    found = find_record(step.words[0])
    at = 0
    if found is not None and found.commands:
        reading = read_options(found, step.words[1:], step.doubtful())
        operands = reading.operands[:1]
        # options after the sub-command are its own: `npm exec -c 'a | b'`
        before = step.words[1 : operands[0] + 2] if operands else step.words[1:]
        reading = read_options(found, before, step.doubtful())
        at = operands[0] if operands and not reading.problem and not reading.unlisted else -1
        if at < 0 and not found.permutes and operands:
            at = operands[0]
    names = step.words[at + 1 : at + 2]
    return at + 2 if names and names[0] in wrapper.subcommands else 0


def _run_wrapped(
    step: NormalCommand, wrapper: Wrapper, start: int, producer: NormalCommand | None
) -> NormalCommand:
    words = step.words
    doubtful = frozenset(at + 1 - start for at in step.doubtful() if at + 1 >= start)
    reading = read_options(wrapper.options, words[start:], doubtful)
    step = object_to_options(step, words[0], reading)
    at = start + (reading.operands[0] if reading.operands else len(words)) + wrapper.before
    module = reading.values("--module")
    if module:
        front = ("python", "-m", module[0])
        return advance(step, (*front, *words[at:]), at, keep_allowed=True, front=3)
    text = next((one for one in reading.options if one.spec.name in ("--call", _SPLIT)), None)
    if text is not None:
        return _run_text(step, text, start, words[at:])
    if words[0] == "env" and words[at : at + 1] == ("-",):  # the same as -i
        at += 1
    while words[0] == "env" and at < len(words) and (name := _ASSIGNMENT.match(words[at])):
        if (objected := judge_assignment(name[1], words[at][name.end() :])) is not None:
            step = msgspec.structs.replace(step, objections=(*step.objections, objected))
        at += 1
    if at >= len(words):
        return _run_nothing(step)
    if words[0] == "npm":
        step = _object_to_late_options(step, wrapper, words[at + 1 :])
    inner = words[at:]
    if wrapper.appends:
        return _append_input(step, at, reading, producer)
    keep = wrapper.kind == "project"
    if wrapper.scripts and inner[0].endswith(".py"):
        return advance(step, (wrapper.scripts, *inner), at, keep_allowed=keep, front=1)
    return advance(step, inner, at, keep_allowed=keep)


def _object_to_late_options(
    step: NormalCommand, wrapper: Wrapper, words: tuple[str, ...]
) -> NormalCommand:
    """npm takes options as its own wherever they stand before `--`, shortened ones too."""
    given = takewhile(lambda word: word != "--", words)
    own = tuple(word for word in given if _NPM_DECIDES.match(word))
    if not own:
        return step
    return object_to_options(step, "npm", read_options(wrapper.options, own, frozenset()))


def _run_nothing(step: NormalCommand) -> NormalCommand:
    if step.words[0] == "env":
        return advance(step, ("printenv",), len(step.words), keep_allowed=True, front=1)
    if step.words[0] == "xargs":
        return advance(step, ("echo",), len(step.words), keep_allowed=True, front=1)
    return step


def _run_text(
    step: NormalCommand, option: ReadOption, start: int, rest: tuple[str, ...]
) -> NormalCommand:
    """`npx -c 'a | b'` is a line for a shell; `env -S 'git push'` splits its words itself."""
    at = start + (option.at if option.value_at < 0 else option.value_at)
    text = option.value or ""
    if option.spec.name == _SPLIT:
        split = ("env", *text.split())
        after = len(step.words) - len(rest)
        inner = advance(step, (*split, *rest), after, keep_allowed=False, front=len(split))
        decided = range(1, len(split)) if at in step.uncertain else ()
        return msgspec.structs.replace(inner, uncertain=inner.uncertain.union(decided))
    uncertain = frozenset({2}) if at in step.uncertain else frozenset[int]()
    inner = advance(step, ("sh", "-c", text), len(step.words), keep_allowed=False)
    return msgspec.structs.replace(inner, uncertain=uncertain)


def _append_input(
    step: NormalCommand, at: int, reading: OptionReading, producer: NormalCommand | None
) -> NormalCommand:
    """What xargs runs: names of files if the command before prints such, else anything."""
    listed = producer is not None and producer.program in _LISTERS
    value = FILE_NAME if listed else ANY_WORDS
    token = next(iter(reading.values("-I", "--replace")), None)
    inner = advance(step, step.words[at:], at, keep_allowed=False)
    if listed and not is_reader(inner) and producer is not None and producer.program != "find":
        inner = add_objection(inner, "code", "a file's name can be an option")
    if producer is not None and producer.program in ("find", "gfind"):
        found = read_find(producer.words[1:])
        objected = object_to_found(found, writes=surely_writes(inner))
        if found.has_regex:
            objected = Objection("refused", "nobody can tell which files find -regex means")
        elif is_reader(inner):
            objected = None
        if objected is not None:
            inner = msgspec.structs.replace(inner, objections=(*inner.objections, objected))
    if token is None:
        end = len(inner.words)
        words = (*inner.words, value)
        changed, split = frozenset({end}), frozenset({end})
    else:
        token = token or "{}"
        changed = frozenset(i for i, word in enumerate(inner.words) if token in word)
        words, split = tuple(word.replace(token, value) for word in inner.words), frozenset[int]()
    return msgspec.structs.replace(
        inner,
        words=words,
        uncertain=inner.uncertain | changed,
        splitting=inner.splitting | split,
        allowed_forms=(words,),
    )


def _take_off_module(step: NormalCommand) -> NormalCommand | None:
    found = find_record("python")
    if found is None:
        return None
    reading = read_options(found, step.words[1:], step.doubtful())
    module = reading.values("-m")
    if not module or module[0] not in PYTHON_MODULES or reading.unlisted:
        return None
    at = 1 + (reading.operands[0] if reading.operands else len(step.words))
    words = (module[0], *step.words[at:])
    step = object_to_options(step, "python", reading)
    return advance(step, words, at, keep_allowed=True, front=1)


def object_to_options(step: NormalCommand, program: str, reading: OptionReading) -> NormalCommand:
    if reading.problem or reading.unlisted:
        why = reading.problem or f"{reading.unlisted[0][:40]} is on no list"
        step = add_objection(
            step, "refused", f"the options of {program} cannot be told apart: {why}"
        )
    for option in reading.options:
        if option.value and matches_secret(option.value):
            step = add_objection(step, "refused", f"{option.value[:80]!r} may hold secrets")
        if option.spec.concern:
            step = add_objection(
                step, option.spec.concern, f"{program} {option.spec.name} was given"
            )
    return step
