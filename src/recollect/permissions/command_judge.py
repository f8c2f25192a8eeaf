"""Judges whether a command line may run.

Deny comes first, then ask, then allow, then the mode's default, each applied to what a command
means and to every form on the way there; a line is judged as strictly as the strictest of its
sub-commands. A line that was not understood asks whatever the rules say, unless a rule gives the
very line. Without a sandbox every command asks that no such rule allows. Where no user can be
asked, ask means no. A verdict carries the very bytes that were judged. Judging is linear in the
length of the line, and a limit on the thread's processor time makes sure: what takes longer asks.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Literal, TypeAlias, TypeVar

import msgspec

from recollect.errors import BadInput
from recollect.permissions.command_parser import Redirection, parse_line
from recollect.permissions.command_rules import (
    CommandRule,
    CommandRules,
    PermissionMode,
    first_match,
    may_match,
    parse_rule,
)
from recollect.permissions.computed_words import object_to_computed, writes_somewhere
from recollect.permissions.folder_contents import FindSecrets, FolderSecrets, assume_secrets
from recollect.permissions.folder_judgement import find_hidden_read
from recollect.permissions.normal_command import NormalCommand
from recollect.permissions.normal_form import DISGUISES, NormalLine, normalize_line
from recollect.permissions.objections import find_objections
from recollect.permissions.path_objections import is_outside, writes_files
from recollect.permissions.program_record import Objection
from recollect.permissions.program_table import find_record
from recollect.permissions.protected_paths import (
    code_names_secret,
    matches_config,
    matches_secret,
    names_config,
    names_secret,
)
from recollect.permissions.shell_builtins import CONTROL_WORDS
from recollect.permissions.text_programs import FILE_COMMANDS

PermissionDecision: TypeAlias = Literal["allow", "ask", "deny"]
_STRICTNESS: tuple[PermissionDecision, ...] = ("allow", "ask", "deny")
_SECONDS = 0.03  # of this thread's processor time; with the last step, less than 50 ms
_MAX_COMMANDS = 300
_TOO_SLOW = "it takes too long to judge"
_CODE_WORD = re.compile(r"[A-Za-z0-9_./-]+")
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_]+")
_NO_SANDBOX = (
    "there is no sandbox here, so every command asks"
    " (`recollect doctor` says why; a rule that gives the whole line allows it)"
)
Judged: TypeAlias = tuple[PermissionDecision, str]
FindExposed: TypeAlias = Callable[[], str]
_Found = TypeVar("_Found")


class CommandVerdict(msgspec.Struct, frozen=True, kw_only=True):
    decision: PermissionDecision
    reason: str  # one sentence for the user and the model
    source: bytes  # what was judged, and the only thing that may be run
    normal_form: str = ""  # what the line means, without wrappers and global options
    suggested_rules: tuple[str, ...] = ()  # they would allow it from now on; none: no rule does
    word_for_word: bool = False  # a rule that gives the whole line allows it


class _TooSlow(Exception):
    """Judging a line took longer than a line deserves."""


class _Judge:
    """One line under one set of rules."""

    def __init__(
        self,
        text: str,
        given: CommandRules,
        root: str,
        *,
        sandboxed: bool,
        find_secrets: FindSecrets,
        directory: str,
        find_exposed: FindExposed,
    ) -> None:
        self.text, self.given, self.root, self.sandboxed = text, given, root, sandboxed
        self.find_exposed = cache(find_exposed)
        self.find_secrets, self.directory = cache(find_secrets), directory
        self.until = time.thread_time() + _SECONDS
        self.line = parse_line(text)
        self.normal = NormalLine(commands=(), redirections=(), objections=())
        self.too_slow = len(self.line.commands) > _MAX_COMMANDS
        if not self.too_slow:
            try:
                self.normal = normalize_line(self.line, root, self._check_time)
            except _TooSlow:
                self.too_slow = True

    def decide(self, given: CommandRules) -> Judged:
        try:
            judged = self._decide(given)
            if judged[0] == "allow":
                self._check_time()
        except _TooSlow:
            return "ask", _TOO_SLOW
        return judged

    def _decide(self, given: CommandRules) -> Judged:
        for command in self.normal.commands:
            self._check_time()
            if (found := first_match(given.deny, command)) is not None:
                return "deny", f"the rule {str(found)!r} denies it"
        if not self.line.runnable:
            return "deny", f"it cannot be run: {self.line.problem}"
        if given.mode == "unrestricted":
            return "allow", "the mode allows it"
        decision, reason = self._decide_by_rules(given)
        if decision == "allow":
            for command in self.normal.commands:
                if (found := first_match(given.project_ask, command)) is not None:
                    return "ask", f"the project's rule {str(found)!r} asks"
        return decision, reason

    def _decide_by_rules(self, given: CommandRules) -> Judged:
        judged = self._decide_by_patterns(given)
        if judged[0] != "allow" or self.find_exact(given) is not None:
            return judged
        exposed = self._untimed(self.find_exposed)
        return ("ask", exposed) if exposed and self._may_read_any(given) else judged

    def _may_read_any(self, given: CommandRules) -> bool:
        """Whether the line may read what its words do not name."""
        if any(one.uncertain for one in self.normal.commands):
            return True
        if any(one.uncertain for one in self.normal.redirections):
            return True
        mode: PermissionMode = "edit" if given.mode == "free" else given.mode
        return self._decide_by_patterns(msgspec.structs.replace(given, mode=mode))[0] != "allow"

    def find_exact(self, given: CommandRules) -> CommandRule | None:
        """The rule that gives the whole line, if there is one."""
        return next((one for one in given.allow if one.gives_line(self.text, self.line)), None)

    def _decide_by_patterns(self, given: CommandRules) -> Judged:
        exact = self.find_exact(given)
        if exact is not None:
            asks = filter(None, (self._find_asking(one, given) for one in self.normal.commands))
            return next(asks, ("allow", f"the rule {str(exact)!r} allows it"))
        if self.too_slow:
            return "ask", _TOO_SLOW
        if self.line.problem:
            return "ask", f"it was not understood: {self.line.problem}"
        judged: list[Judged] = [] if self.sandboxed else [("ask", _NO_SANDBOX)]
        judged += [self._judge_command(command, given) for command in self.normal.commands]
        judged.append(self._judge_line(given.mode))
        worst = max(judged, key=lambda one: _STRICTNESS.index(one[0]))
        if worst[0] == "allow" and (hidden := self._find_hidden_read()):
            return "ask", hidden
        return worst

    def _find_hidden_read(self) -> str:
        self._check_time()

        def look(folder: str) -> FolderSecrets:
            return self._untimed(partial(self.find_secrets, folder))

        return find_hidden_read(self.text, self.normal, look, self._check_time)

    def _untimed(self, look: Callable[[], _Found]) -> _Found:
        """Looking into folders is no part of judging a line; its time does not count."""
        begun = time.thread_time()
        found = look()
        self.until += time.thread_time() - begun
        return found

    def _check_time(self) -> None:
        if time.thread_time() > self.until:
            raise _TooSlow

    def _find_asking(self, command: NormalCommand, given: CommandRules) -> Judged | None:
        if (found := first_match(given.ask, command)) is not None:
            return "ask", f"the rule {str(found)!r} asks"
        if (found := may_match(given.deny + given.ask, command)) is not None:
            return "ask", f"the shell decides whether the rule {str(found)!r} matches"
        return None

    def _judge_command(self, command: NormalCommand, given: CommandRules) -> Judged:
        self._check_time()
        if (asked := self._find_asking(command, given)) is not None:
            return asked
        if command.implied:
            return self._judge_implied(command)
        if command.words[0] in CONTROL_WORDS and not command.objections:
            return "allow", "it only steers the line"
        allowing = [one for one in given.allow if any(map(one.matches, command.allowed_forms))]
        named = max((len(one.words) for one in allowing), default=1)
        permitted = [
            *(["outward"] if allowing else []),
            *(["code"] if given.mode == "free" else []),
        ]
        worst = _worst(
            find_objections(command, root=self.root, named=named, check_time=self._check_time),
            permitted,
        )
        if worst is None and (allowing or given.mode == "free"):
            if denied := self._named_in_code(command, given):
                return "ask", denied
            by = f"the rule {str(allowing[0])!r}" if allowing else "the mode"
            return "allow", f"{by} allows it"
        if given.mode == "edit" and worst is None and command.words[0] in FILE_COMMANDS:
            return "allow", "the mode allows it"
        if worst is not None and (allowing or given.mode == "free"):
            return "ask", worst.reason
        refused = f"no rule allows {command.words[0][:80]!r}"
        return ("deny" if given.mode == "plan" else "ask"), refused

    def _judge_implied(self, command: NormalCommand) -> Judged:
        known = command.program in DISGUISES or writes_files(command)
        worst = _worst(find_objections(command, root=self.root, check_time=self._check_time))
        if known and worst is not None and worst.concern == "refused":
            return "ask", worst.reason
        return "allow", "it is part of another command"

    def _named_in_code(self, command: NormalCommand, given: CommandRules) -> str:
        """Code that has every word of a deny rule may be there to walk around it."""
        rules = [rule for rule in given.deny + given.ask if rule.words]
        found = find_record(command.words[0])
        if found is not None and found.nature not in ("builds", "code"):
            return ""  # it runs none of its words: `git commit -m 'describe git push'`
        texts = (*command.words[1:], command.stdin_text or "") if rules else ()
        if rules and command.uncertain and found is None:
            texts = (*texts, self.text)  # `eatmydata $(echo git) push`
        for text in texts:
            named = frozenset((*_CODE_WORD.findall(text), *_PLAIN_WORD.findall(text)))
            for rule in rules:
                if len(named) > 1 and named.issuperset(rule.words):
                    return f"its code has the words of the rule {str(rule)!r}"
        return ""

    def _judge_line(self, mode: PermissionMode) -> Judged:
        """Judge where the line writes, what it names, and in which folder git would run."""
        for redirection in self.normal.redirections:
            if (judged := self._judge_redirection(redirection, mode)) is not None:
                return judged
        worst = _worst(self.normal.objections)
        if worst is not None and (worst.concern != "code" or mode != "free"):
            return "ask", worst.reason
        for word in self.line.other_words:
            if matches_secret(word) or code_names_secret(word):
                return "ask", f"{word[:80]!r} may hold secrets"
        if (judged := self._judge_moves()) is not None:
            return judged
        if computed := object_to_computed(self.line, self.normal, self.root):
            return "ask", computed
        return "allow", "nothing is written"

    def _judge_moves(self) -> Judged | None:
        """In another folder the words of the line mean other files."""
        goals = [
            command.words[1:]
            for command in self.normal.commands
            if command.words[0] in ("cd", "pushd")
            and command.words[1:] not in ((self.root,), (".",))
        ]
        if self.directory:
            goals.append((self.directory,))
            if names_secret(self.directory):
                return "ask", f"{self.directory[:80]!r} may hold secrets"
        if goals and any(command.program == "git" for command in self.normal.commands):
            # a folder can be made to look like a repository, and its settings name programs
            return "ask", "it runs git in another folder"
        outside = any(not goal or is_outside(goal[-1], self.root) for goal in goals)
        if outside and (
            writes_somewhere(self.normal) or any(map(writes_files, self.normal.commands))
        ):
            return "ask", "it writes in a folder that is not in the working folder"
        return None

    def _judge_redirection(self, redirection: Redirection, mode: PermissionMode) -> Judged | None:
        target, uncertain = redirection.target, redirection.uncertain
        if target in ("/dev/null", "/dev/stdout", "/dev/stderr"):
            return None
        secret = matches_secret(target) if uncertain else names_secret(target)
        if secret or target.startswith("/dev/"):
            return "ask", f"it redirects {target[:80]!r}"
        if redirection.operator == "<":
            return None
        if uncertain and mode != "free":
            return "ask", "the shell decides which file it writes"
        config = matches_config(target) if uncertain else names_config(target)
        if config or is_outside(target, self.root):
            return "ask", f"it writes to {target[:80]!r}"
        return ("ask", f"it writes to {target[:80]!r}") if mode in ("plan", "ask") else None

    def suggest(self) -> tuple[str, ...]:
        """Rules for what no rule allows yet, if the line would then run without asking: its
        commands where that is enough, otherwise the line itself."""
        try:
            return self._suggest_commands() or self._suggest_line()
        except _TooSlow:
            return ()

    def _suggest_commands(self) -> tuple[str, ...]:
        if self.line.problem or not self.sandboxed:
            return ()
        new = {CommandRule(one.words): one for one in self.normal.commands}
        if not self._allows_with(map(str, new)):
            return ()
        judged = {str(rule): self._judge_command(one, self.given) for rule, one in new.items()}
        needed = tuple(text for text, (decision, _) in judged.items() if decision != "allow")
        return needed if self._allows_with(needed) else ()

    def _suggest_line(self) -> tuple[str, ...]:
        line, text = self.line, self.text.strip()
        simple = not (line.problem or line.compound or line.redirections)
        if simple and len(line.commands) == 1:
            rule = CommandRule(line.commands[0].words)
        elif text and not text.endswith(" *"):
            rule = CommandRule((), line=text)
        else:  # it would be taken for a pattern
            return ()
        return (str(rule),) if self._allows_with([str(rule)]) else ()

    def _allows_with(self, texts: Iterable[str]) -> bool:
        """Whether the rules, as the settings would be read, allow the line."""
        allow = [*self.given.allow]
        for text in texts:
            self._check_time()
            try:
                allow.append(parse_rule(text))
            except BadInput:
                return False
        return self.decide(msgspec.structs.replace(self.given, allow=tuple(allow)))[0] == "allow"


def _worst(objections: Iterable[Objection], permitted: Sequence[str] = ()) -> Objection | None:
    """The first that is refused, or else the first that is outward, or else the first; those
    whose concern is permitted do not count."""
    worst: Objection | None = None
    for one in objections:
        if one.concern == "refused":
            return one
        if one.concern in permitted:
            continue
        if worst is None or (one.concern, worst.concern) == ("outward", "code"):
            worst = one
    return worst


def judge_line(
    text: str,
    given: CommandRules,
    *,
    interactive: bool = True,
    root: str = "",
    sandboxed: bool = False,
    find_secrets: FindSecrets = assume_secrets,
    directory: str = "",
    find_exposed: FindExposed = lambda: "",
) -> CommandVerdict:
    """Judge a line. `root` is the working folder, if absolute paths into it are to count;
    `sandboxed` says whether a sandbox holds what runs; `find_secrets` looks for files with a
    secret name below a folder, named as the line would; `directory` is where the line is to run,
    if the model chose another folder than the one it works in; `find_exposed` says why commands
    could read secrets of the workspace whatever their words are, if that is so: then mode `free`
    decides like `edit`, and what gets a word that the shell decides asks."""
    judge = _Judge(
        text,
        given,
        root,
        sandboxed=sandboxed,
        find_secrets=find_secrets,
        directory=directory,
        find_exposed=find_exposed,
    )
    decision, reason = judge.decide(given)
    suggested = judge.suggest() if decision != "allow" else ()
    if decision == "ask" and not interactive:
        decision, reason = "deny", f"{reason}, and nobody can be asked"
    return CommandVerdict(
        decision=decision,
        reason=reason,
        source=judge.line.source,
        normal_form=str(judge.normal)[:2_000],
        suggested_rules=suggested,
        word_for_word=decision == "allow" and judge.find_exact(given) is not None,
    )
