"""May this command line run? Rules over the words of each sub-command, and the mode for the rest.

A rule is a line of words: `git status` is these two words and no others, `git diff *` these two
and any further ones. It is compared word by word, never as a string. Deny comes first, then ask,
then allow, then the mode's default; a line is judged as strictly as the strictest of its
sub-commands. A line that was not understood asks whatever the rules say, and so does one that
`dangerous` objects to or that names a file which decides what runs later. Where nobody can be
asked, ask means no. A verdict carries the very bytes that were judged. Everything here is pure.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from recollect.errors import BadInput
from recollect.tools.commands import (
    Reading,
    SubCommand,
    Unreadable,
    Word,
    names,
    program_of,
    read,
    scan,
)

if TYPE_CHECKING:
    from recollect.tools.dangerous import Words

Decision: TypeAlias = Literal["allow", "ask", "deny"]
# plan   nothing runs that no rule allows
# ask    a person is asked
# edit   as ask; but files of the working folder may be written without asking
# free   runs, unless it was not understood or is objected to
Mode: TypeAlias = Literal["plan", "ask", "edit", "free"]
_DEFAULTS: dict[Mode, Decision] = {"plan": "deny", "ask": "ask", "edit": "ask", "free": "allow"}
_STRICTNESS: tuple[Decision, ...] = ("allow", "ask", "deny")
_MODES: tuple[Mode, ...] = ("plan", "ask", "edit", "free")  # from strict to lax


class Rule(msgspec.Struct, frozen=True):
    words: tuple[str, ...]
    further: bool = False  # any further words may follow

    def __str__(self) -> str:
        return " ".join([*map(shlex.quote, self.words), *(["*"] if self.further else [])])

    def fits(self, words: tuple[str, ...]) -> bool:
        if self.further:
            return words[: len(self.words)] == self.words
        return words == self.words


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    deny: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    allow: tuple[Rule, ...] = ()
    mode: Mode = "ask"
    project_ask: tuple[Rule, ...] = ()  # ask where it would be allowed; never instead of a no


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    decision: Decision
    reason: str  # one sentence for the person and the model
    source: bytes  # what was judged, and the only thing that may be run
    always: tuple[str, ...] = ()  # rules that would allow it from now on; none: it always asks


def rule(text: str) -> Rule:
    """A rule as it stands in the settings. `*` means further words only as the last word."""
    try:
        tokens = scan(text)
    except Unreadable as trouble:
        raise BadInput(f"the rule {text[:80]!r} cannot be read: {trouble}; quote it") from None
    words = [token for token in tokens if isinstance(token, Word)]
    if len(words) < len(tokens):
        raise BadInput(f"the rule {text[:80]!r} has an operator; write one rule for each command")
    further = bool(words) and words[-1].value == "*" and words[-1].globs
    if further:
        words.pop()
    if not words or any(word.globs for word in words):
        raise BadInput(
            f"the rule {text[:80]!r} must begin with a command and may have `*` only as last word"
        )
    return Rule(tuple(word.value for word in words), further)


def rules(
    deny: tuple[str, ...] = (),
    ask: tuple[str, ...] = (),
    allow: tuple[str, ...] = (),
    mode: Mode = "ask",
) -> Rules:
    return Rules(
        deny=tuple(map(rule, deny)),
        ask=tuple(map(rule, ask)),
        allow=tuple(map(rule, allow)),
        mode=mode,
    )


def tightened(own: Rules, project: Rules) -> Rules:
    """The person's rules with a project's: it may deny, ask and be stricter, and never allow."""
    return Rules(
        deny=own.deny + project.deny,
        ask=own.ask,
        allow=own.allow,
        project_ask=own.project_ask + project.ask + project.project_ask,
        mode=min(own.mode, project.mode, key=_MODES.index),
    )


def judge(text: str, given: Rules, *, interactive: bool = True, root: str = "") -> Verdict:
    """May the line run? `root` is the working folder, if absolute paths into it are to count."""
    reading = read(text)
    decision, reason = _decided(reading, given, root)
    always: tuple[str, ...] = ()
    if decision == "ask":
        always = _always(reading, given, root)
        if not interactive:
            decision, reason = "deny", f"{reason}, and nobody can be asked"
    return Verdict(decision=decision, reason=reason, source=reading.source, always=always)


def _decided(reading: Reading, given: Rules, root: str) -> tuple[Decision, str]:
    for command in reading.commands:
        if (found := _first(given.deny, command.words, loosely=True)) is not None:
            return "deny", f"the rule {str(found)!r} denies it"
    if not reading.runnable:
        return "deny", f"it cannot be run: {reading.trouble}"
    if reading.trouble:
        return "ask", f"it is not understood: {reading.trouble}"
    judged = [_judged(command, given, root) for command in reading.commands]
    judged.append(_whole(reading, given.mode, root))
    return max(judged, key=lambda one: _STRICTNESS.index(one[0]))


def _first(among: tuple[Rule, ...], words: tuple[str, ...], *, loosely: bool) -> Rule | None:
    """Loosely: `/bin/rm` is `rm`. That can only make a judgement stricter."""
    forms = {words, (program_of(words[0]), *words[1:])} if loosely else {words}
    return next((one for one in among if any(map(one.fits, forms))), None)


def _judged(command: SubCommand, given: Rules, root: str) -> tuple[Decision, str]:
    words = command.words
    if (found := _first(given.ask, words, loosely=True)) is not None:
        return "ask", f"the rule {str(found)!r} asks"
    allowing = [one for one in given.allow if one.fits(words)]
    default = _DEFAULTS[given.mode]
    if not allowing and default != "allow":
        return default, f"no rule allows {words[0][:80]!r}"
    if (found_in_path := _path_objection(words, root)) is not None:
        return "ask", found_in_path
    named = max((len(one.words) for one in allowing), default=1)
    objected = objection(words, globs=command.globs, named=named)
    if objected is not None and not (root and words == ("cd", root)):
        return "ask", objected
    if (found := _first(given.project_ask, words, loosely=True)) is not None:
        return "ask", f"the project's rule {str(found)!r} asks"
    return "allow", f"the rule {str(allowing[0])!r} allows it" if allowing else "the mode allows it"


def _whole(reading: Reading, mode: Mode, root: str) -> tuple[Decision, str]:
    """What concerns the line as a whole: where it writes, and in which folder git would run."""
    for redirection in reading.redirections:
        target = redirection.target
        if target == "/dev/null":
            continue
        if keeps_secrets(target) or target.startswith("/dev/"):
            return "ask", f"it redirects {target[:80]!r}"
        if redirection.operator == "<":
            continue
        if leaves(target, root) or decides_later(target) or mode in ("plan", "ask"):
            return "ask", f"it writes to {target[:80]!r}"
    programs = {program_of(command.words[0]) for command in reading.commands}
    if ("cd",) in [command.words for command in reading.commands]:
        return "ask", "it goes to the home folder"
    moves = any(
        command.words[0] == "cd" and command.words[1:] != (root,) for command in reading.commands
    )
    if "git" in programs and moves:
        # a folder can be made to look like a repository, and its settings name programs
        return "ask", "it runs git in another folder"
    return "allow", "nothing is written"


def _always(reading: Reading, given: Rules, root: str) -> tuple[str, ...]:
    """Exact rules for what no rule allows yet, if the line would then run without asking."""
    if reading.trouble:
        return ()
    new = tuple(Rule(command.words) for command in reading.commands)
    more = msgspec.structs.replace(given, allow=given.allow + new)
    if _decided(reading, more, root)[0] != "allow":
        return ()
    needed = [one for one in new if _judged(SubCommand(one.words), given, root)[0] != "allow"]
    return tuple(dict.fromkeys(map(str, needed)))


# --- files that decide what runs later ----------------------------------------------------------

_DECIDING = names(
    ".bash_aliases .bash_login .bash_logout .bash_profile .bashrc .claude .config .cshrc .curlrc"
    " .emacs .emacs.d .envrc .exrc .gdbinit .gemini .git .gitattributes .gitconfig .gitmodules .hg"
    " .husky .idea .inputrc .kshrc .lldbinit .local .login .mailcap .npmrc .nvmrc .pam_environment"
    " .pdbrc .pre-commit-config.yaml .profile .pypirc .pythonrc .recollect .rprofile .screenrc"
    " .svn .tcshrc .tmux.conf .vim .vimrc .vscode .wgetrc .xinitrc .xprofile .yarnrc .yarnrc.yml"
    " .zlogin .zlogout .zprofile .zshenv .zshrc agents.md authorized_keys claude.md cron.d crontab"
    " gemini.md memory.md recollect.toml settings.toml sitecustomize.py usercustomize.py"
)
_SECRET = names(
    ".aws .azure .docker .env .gnupg .kube .netrc .password-store .pgpass .ssh credentials.json"
    " id_ed25519 id_rsa shadow"
)
_ENVIRONMENT = r"/proc/[^/]+/(environ|mem|fd|cwd|root)|/dev/(tcp|udp)/"
_BETWEEN = r"[/=:,@]+"


def _names(word: str, known: frozenset[str]) -> bool:
    lowered = word.lower()
    if any(part in known for part in re.split(_BETWEEN, lowered)):
        return True
    # `-o.bashrc`: the value stands in the option's own word
    return lowered.startswith("-") and any(
        name in lowered for name in known if name.startswith(".")
    )


def keeps_secrets(word: str) -> bool:
    return _names(word, _SECRET) or re.search(_ENVIRONMENT, word) is not None


def decides_later(word: str) -> bool:
    """Does the word name settings, memory, hooks or a start-up file, or a folder of them?"""
    return _names(word, _DECIDING) or word.lower().endswith(".pth")


def leaves(word: str, root: str = "") -> bool:
    """Does the word, as a path, begin or lead outside of the working folder?"""
    path = word.rpartition("=")[2] if word.startswith("-") else word
    if root and (path == root or path.startswith(root.rstrip("/") + "/")):
        path = path[len(root.rstrip("/")) + 1 :]
    # an option's value can be glued to its letter: `-t/etc`, `-t../x`
    glued = word.startswith("-") and ("/" in word.partition("=")[0])
    return path.startswith(("/", "~")) or ".." in path.split("/") or glued


_WRITERS = names("chgrp chmod chown cp ln mkdir mv rm rmdir tar tee touch")
# `cp -r x/. .` and `cp -rT x .` pour a folder out, with whatever hidden files it has
_POURS = r".*/\.\Z|-[A-Za-z]*T|--no-t"
_SAYERS = frozenset({"echo", "printf", "true", "false"})


def _path_objection(words: tuple[str, ...], root: str) -> str | None:
    program = program_of(words[0])
    if words[0] in _SAYERS:
        return None
    for word in words[1:]:
        if keeps_secrets(word):
            return f"{word[:80]!r} may hold secrets"
        if not reads_only(words) and decides_later(word):
            return f"{word[:80]!r} decides what runs later"
        if program == "cp" and re.match(_POURS, word):
            return "it copies over what is there, hidden files too"
        if program in _WRITERS and leaves(word, root):
            return f"{word[:80]!r} is outside of the working folder"
    return None


# --- what no rule alone allows ----------------------------------------------------------------


# In programs that nobody listed here these usually carry code, a command or another configuration.
_SUSPECT = (
    r"-[cefxCDEFIPSX]\Z|-?-(?:c|conf|config|eval|expression|file|filter|import|init|interpreter|load"
    r"|log-?file|o|out|output|pre|program|rc|require|run"
    r"|[\w-]*(?:cmd|command|exec|hook|plugin|script|shell))(?:[-_][\w-]*)?(?:=.*)?\Z"
    r"|-[CDEFIPSX].|alias\Z|dlx\Z|e(?:val|xec|xtension)\Z|plugin\Z|run\Z|s(?:cript|hell)\Z"
)


def reads_only(words: Words) -> bool:
    """Nothing is written, whatever paths are named (and whatever `objection` then says)."""
    from recollect.tools.dangerous import FINDERS, READERS

    git = words[0] == "git" and not {"checkout", "mv", "reset", "restore", "rm"} & set(words[1:4])
    return git or words[0] in READERS | FINDERS | {
        "rg",
        "fd",
        "sed",
        "sort",
        "test",
        "file",
        "awk",
    }


def objection(words: Words, *, globs: bool = False, named: int = 1) -> str | None:
    """Why a rule alone does not allow these words. `named` is how many of them the rule names
    itself: of a program that nobody listed, those need no second look."""
    from recollect.tools.dangerous import READERS, SHELL_WORDS, WRAPPERS, by_program

    program, given = program_of(words[0]), words[1:]
    if program in SHELL_WORDS or program.startswith(("ld-linux", "ld.so")):
        return f"{program} changes what the shell does next"
    if given == ("--version",):
        return None
    if program in WRAPPERS:
        return f"{program} can run or write anything that it is told"
    if words[0] in READERS:
        return None
    if globs:
        return "names of files stand in place of a pattern, and a name can be an option"
    known, objected = by_program(program, given)
    if known or program in _WRITERS:
        return objected
    suspect = next((word for word in words[named:] if re.match(_SUSPECT, word)), None)
    return f"{program[:40]} {suspect[:40]} may carry a command" if suspect else None
