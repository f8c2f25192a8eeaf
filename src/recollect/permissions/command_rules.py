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
from recollect.permissions.command_parser import (
    ParsedLine,
    SubCommand,
    UnsupportedSyntax,
    Word,
    parse_line,
    program_name,
    tokenize,
    word_set,
)

if TYPE_CHECKING:
    from recollect.permissions.dangerous_programs import CommandWords

PermissionDecision: TypeAlias = Literal["allow", "ask", "deny"]
# plan   nothing runs that no rule allows
# ask    a person is asked
# edit   as ask; but files of the working folder may be written without asking
# free   runs, unless it was not understood or is objected to
PermissionMode: TypeAlias = Literal["plan", "ask", "edit", "free"]
_DEFAULTS: dict[PermissionMode, PermissionDecision] = {
    "plan": "deny",
    "ask": "ask",
    "edit": "ask",
    "free": "allow",
}
_STRICTNESS: tuple[PermissionDecision, ...] = ("allow", "ask", "deny")
_MODES: tuple[PermissionMode, ...] = ("plan", "ask", "edit", "free")  # from strict to lax


class CommandRule(msgspec.Struct, frozen=True):
    words: tuple[str, ...]
    is_prefix: bool = False  # any further words may follow

    def __str__(self) -> str:
        return " ".join([*map(shlex.quote, self.words), *(["*"] if self.is_prefix else [])])

    def fits(self, words: tuple[str, ...]) -> bool:
        if self.is_prefix:
            return words[: len(self.words)] == self.words
        return words == self.words


class CommandRules(msgspec.Struct, frozen=True, kw_only=True):
    deny: tuple[CommandRule, ...] = ()
    ask: tuple[CommandRule, ...] = ()
    allow: tuple[CommandRule, ...] = ()
    mode: PermissionMode = "ask"
    project_ask: tuple[
        CommandRule, ...
    ] = ()  # ask where it would be allowed; never instead of a no


class CommandVerdict(msgspec.Struct, frozen=True, kw_only=True):
    decision: PermissionDecision
    reason: str  # one sentence for the person and the model
    source: bytes  # what was judged, and the only thing that may be run
    suggested_rules: tuple[
        str, ...
    ] = ()  # rules that would allow it from now on; none: it always asks


def parse_rule(text: str) -> CommandRule:
    """A rule as it stands in the settings. `*` means further words only as the last word."""
    try:
        tokens = tokenize(text)
    except UnsupportedSyntax as trouble:
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
    return CommandRule(tuple(word.value for word in words), further)


def parse_rules(
    deny: tuple[str, ...] = (),
    ask: tuple[str, ...] = (),
    allow: tuple[str, ...] = (),
    mode: PermissionMode = "ask",
) -> CommandRules:
    return CommandRules(
        deny=tuple(map(parse_rule, deny)),
        ask=tuple(map(parse_rule, ask)),
        allow=tuple(map(parse_rule, allow)),
        mode=mode,
    )


def tighten(own: CommandRules, project: CommandRules) -> CommandRules:
    """The person's rules with a project's: it may deny, ask and be stricter, and never allow."""
    return CommandRules(
        deny=own.deny + project.deny,
        ask=own.ask,
        allow=own.allow,
        project_ask=own.project_ask + project.ask + project.project_ask,
        mode=min(own.mode, project.mode, key=_MODES.index),
    )


def judge_line(
    text: str, given: CommandRules, *, interactive: bool = True, root: str = ""
) -> CommandVerdict:
    """May the line run? `root` is the working folder, if absolute paths into it are to count."""
    reading = parse_line(text)
    decision, reason = _decide(reading, given, root)
    always: tuple[str, ...] = ()
    if decision == "ask":
        always = _suggest_rules(reading, given, root)
        if not interactive:
            decision, reason = "deny", f"{reason}, and nobody can be asked"
    return CommandVerdict(
        decision=decision, reason=reason, source=reading.source, suggested_rules=always
    )


def _decide(reading: ParsedLine, given: CommandRules, root: str) -> tuple[PermissionDecision, str]:
    for command in reading.commands:
        if (found := _first_match(given.deny, command.words, loosely=True)) is not None:
            return "deny", f"the rule {str(found)!r} denies it"
    if not reading.runnable:
        return "deny", f"it cannot be run: {reading.problem}"
    if reading.problem:
        return "ask", f"it is not understood: {reading.problem}"
    judged = [_judge_sub_command(command, given, root) for command in reading.commands]
    judged.append(_judge_whole_line(reading, given.mode, root))
    return max(judged, key=lambda one: _STRICTNESS.index(one[0]))


def _first_match(
    among: tuple[CommandRule, ...], words: tuple[str, ...], *, loosely: bool
) -> CommandRule | None:
    """Loosely: `/bin/rm` is `rm`. That can only make a judgement stricter."""
    forms = {words, (program_name(words[0]), *words[1:])} if loosely else {words}
    return next((one for one in among if any(map(one.fits, forms))), None)


def _judge_sub_command(
    command: SubCommand, given: CommandRules, root: str
) -> tuple[PermissionDecision, str]:
    words = command.words
    if (found := _first_match(given.ask, words, loosely=True)) is not None:
        return "ask", f"the rule {str(found)!r} asks"
    allowing = [one for one in given.allow if one.fits(words)]
    default = _DEFAULTS[given.mode]
    if not allowing and default != "allow":
        return default, f"no rule allows {words[0][:80]!r}"
    if (found_in_path := _path_objection(words, root)) is not None:
        return "ask", found_in_path
    named = max((len(one.words) for one in allowing), default=1)
    objected = find_objection(words, globs=command.globs, named=named)
    if objected is not None and not (root and words == ("cd", root)):
        return "ask", objected
    if (found := _first_match(given.project_ask, words, loosely=True)) is not None:
        return "ask", f"the project's rule {str(found)!r} asks"
    return "allow", f"the rule {str(allowing[0])!r} allows it" if allowing else "the mode allows it"


def _judge_whole_line(
    reading: ParsedLine, mode: PermissionMode, root: str
) -> tuple[PermissionDecision, str]:
    """What concerns the line as a whole: where it writes, and in which folder git would run."""
    for redirection in reading.redirections:
        target = redirection.target
        if target == "/dev/null":
            continue
        if names_secret(target) or target.startswith("/dev/"):
            return "ask", f"it redirects {target[:80]!r}"
        if redirection.operator == "<":
            continue
        if leaves_folder(target, root) or names_config(target) or mode in ("plan", "ask"):
            return "ask", f"it writes to {target[:80]!r}"
    programs = {program_name(command.words[0]) for command in reading.commands}
    if ("cd",) in [command.words for command in reading.commands]:
        return "ask", "it goes to the home folder"
    moves = any(
        command.words[0] == "cd" and command.words[1:] != (root,) for command in reading.commands
    )
    if "git" in programs and moves:
        # a folder can be made to look like a repository, and its settings name programs
        return "ask", "it runs git in another folder"
    return "allow", "nothing is written"


def _suggest_rules(reading: ParsedLine, given: CommandRules, root: str) -> tuple[str, ...]:
    """Exact rules for what no rule allows yet, if the line would then run without asking."""
    if reading.problem:
        return ()
    new = tuple(CommandRule(command.words) for command in reading.commands)
    more = msgspec.structs.replace(given, allow=given.allow + new)
    if _decide(reading, more, root)[0] != "allow":
        return ()
    needed = [
        one for one in new if _judge_sub_command(SubCommand(one.words), given, root)[0] != "allow"
    ]
    return tuple(dict.fromkeys(map(str, needed)))


# --- files that decide what runs later ----------------------------------------------------------

_CONFIG_NAMES = word_set(
    ".bash_aliases .bash_login .bash_logout .bash_profile .bashrc .claude .config .cshrc .curlrc"
    " .emacs .emacs.d .envrc .exrc .gdbinit .gemini .git .gitattributes .gitconfig .gitmodules .hg"
    " .husky .idea .inputrc .kshrc .lldbinit .local .login .mailcap .npmrc .nvmrc .pam_environment"
    " .pdbrc .pre-commit-config.yaml .profile .pypirc .pythonrc .recollect .rprofile .screenrc"
    " .svn .tcshrc .tmux.conf .vim .vimrc .vscode .wgetrc .xinitrc .xprofile .yarnrc .yarnrc.yml"
    " .zlogin .zlogout .zprofile .zshenv .zshrc agents.md authorized_keys claude.md cron.d crontab"
    " gemini.md memory.md recollect.toml settings.toml sitecustomize.py usercustomize.py"
)
_SECRET_NAMES = word_set(
    ".aws .azure .docker .env .gnupg .kube .netrc .password-store .pgpass .ssh credentials.json"
    " id_ed25519 id_rsa shadow"
)
_SECRET_DEVICES = r"/proc/[^/]+/(environ|mem|fd|cwd|root)|/dev/(tcp|udp)/"
_PATH_SEPARATORS = r"[/=:,@]+"


def _names_any(word: str, known: frozenset[str]) -> bool:
    lowered = word.lower()
    if any(part in known for part in re.split(_PATH_SEPARATORS, lowered)):
        return True
    # `-o.bashrc`: the value stands in the option's own word
    return lowered.startswith("-") and any(
        name in lowered for name in known if name.startswith(".")
    )


def names_secret(word: str) -> bool:
    return _names_any(word, _SECRET_NAMES) or re.search(_SECRET_DEVICES, word) is not None


def names_config(word: str) -> bool:
    """Does the word name settings, memory, hooks or a start-up file, or a folder of them?"""
    return _names_any(word, _CONFIG_NAMES) or word.lower().endswith(".pth")


def leaves_folder(word: str, root: str = "") -> bool:
    """Does the word, as a path, begin or lead outside of the working folder?"""
    path = word.rpartition("=")[2] if word.startswith("-") else word
    if root and (path == root or path.startswith(root.rstrip("/") + "/")):
        path = path[len(root.rstrip("/")) + 1 :]
    # an option's value can be glued to its letter: `-t/etc`, `-t../x`
    glued = word.startswith("-") and ("/" in word.partition("=")[0])
    return path.startswith(("/", "~")) or ".." in path.split("/") or glued


_FILE_WRITERS = word_set("chgrp chmod chown cp ln mkdir mv rm rmdir tar tee touch")
# `cp -r x/. .` and `cp -rT x .` pour a folder out, with whatever hidden files it has
_COPIES_HIDDEN = r".*/\.\Z|-[A-Za-z]*T|--no-t"
_PRINTERS = frozenset({"echo", "printf", "true", "false"})


def _path_objection(words: tuple[str, ...], root: str) -> str | None:
    program = program_name(words[0])
    if words[0] in _PRINTERS:
        return None
    for word in words[1:]:
        if names_secret(word):
            return f"{word[:80]!r} may hold secrets"
        if not only_reads(words) and names_config(word):
            return f"{word[:80]!r} decides what runs later"
        if program == "cp" and re.match(_COPIES_HIDDEN, word):
            return "it copies over what is there, hidden files too"
        if program in _FILE_WRITERS and leaves_folder(word, root):
            return f"{word[:80]!r} is outside of the working folder"
    return None


# --- what no rule alone allows ----------------------------------------------------------------


# In programs that nobody listed here these usually carry code, a command or another configuration.
_SUSPICIOUS_WORD = (
    r"-[cefxCDEFIPSX]\Z|-?-(?:c|conf|config|eval|expression|file|filter|import|init|interpreter|load"
    r"|log-?file|o|out|output|pre|program|rc|require|run"
    r"|[\w-]*(?:cmd|command|exec|hook|plugin|script|shell))(?:[-_][\w-]*)?(?:=.*)?\Z"
    r"|-[CDEFIPSX].|alias\Z|dlx\Z|e(?:val|xec|xtension)\Z|plugin\Z|run\Z|s(?:cript|hell)\Z"
)


def only_reads(words: CommandWords) -> bool:
    """Nothing is written, whatever paths are named (and whatever `find_objection` then says)."""
    from recollect.permissions.dangerous_programs import FINDERS, READ_ONLY_PROGRAMS

    git = words[0] == "git" and not {"checkout", "mv", "reset", "restore", "rm"} & set(words[1:4])
    return git or words[0] in READ_ONLY_PROGRAMS | FINDERS | {
        "rg",
        "fd",
        "sed",
        "sort",
        "test",
        "file",
        "awk",
    }


def find_objection(words: CommandWords, *, globs: bool = False, named: int = 1) -> str | None:
    """Why a rule alone does not allow these words. `named` is how many of them the rule names
    itself: of a program that nobody listed, those need no second look."""
    from recollect.permissions.dangerous_programs import (
        PROGRAM_RUNNERS,
        READ_ONLY_PROGRAMS,
        SHELL_BUILTINS,
        object_to_program,
    )

    program, given = program_name(words[0]), words[1:]
    if program in SHELL_BUILTINS or program.startswith(("ld-linux", "ld.so")):
        return f"{program} changes what the shell does next"
    if given == ("--version",):
        return None
    if program in PROGRAM_RUNNERS:
        return f"{program} can run or write anything that it is told"
    if words[0] in READ_ONLY_PROGRAMS:
        return None
    if globs:
        return "names of files stand in place of a pattern, and a name can be an option"
    known, objected = object_to_program(program, given)
    if known or program in _FILE_WRITERS:
        return objected
    suspect = next((word for word in words[named:] if re.match(_SUSPICIOUS_WORD, word)), None)
    return f"{program[:40]} {suspect[:40]} may carry a command" if suspect else None
