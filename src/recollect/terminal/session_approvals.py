"""What the user has approved beyond one call: for this session, or always.

`always` adds rules to the user's own settings; `session` ends with the program. Only the exact
rules that were shown are kept. A call without rules is covered only by an answer to the same
question: the same command line, or the same reason to ask about a tool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TypeAlias

from recollect.runtime.permission_policy import SHELL_TOOL, ApprovalAnswer, ApprovalRequest
from recollect.terminal.terminal_events import ApprovalAsked, NoticeGiven, TerminalEvent
from recollect.workspace.effective_settings import EffectiveSettings
from recollect.workspace.settings_writer import add_to_setting

_Question: TypeAlias = tuple[str, ...]


def _question(request: ApprovalRequest) -> _Question:
    call = request.call
    exact = call.arguments if call.name == SHELL_TOOL else ""
    return (call.name, request.reason, exact)


class SessionApprovals:
    def __init__(self) -> None:
        self._rules: set[str] = set()
        self._questions: set[_Question] = set()  # about calls that no rule allows

    @property
    def approved(self) -> tuple[str, ...]:
        """The rules and tools that need no question in this program."""
        return (*sorted(self._rules), *sorted({question[0] for question in self._questions}))

    async def ask(
        self,
        request: ApprovalRequest,
        effective: Callable[[], EffectiveSettings],
        notify: Callable[[TerminalEvent], None],
    ) -> ApprovalAnswer:
        """What the user says to a call now, or has said to others like it."""
        if self.covers(request):
            return ApprovalAnswer(allowed=True, lasts="session", shown=False)
        answer: asyncio.Future[ApprovalAnswer] = asyncio.get_running_loop().create_future()
        notify(ApprovalAsked(request, answer))
        given = await answer
        if given.allowed:
            for notice in self.keep(effective(), request, given):
                notify(NoticeGiven(notice, "info"))
        return given

    def covers(self, request: ApprovalRequest) -> bool:
        """Whether an earlier answer holds for this call."""
        if request.rules:
            return self._rules.issuperset(request.rules)
        return _question(request) in self._questions

    def keep(
        self, effective: EffectiveSettings, request: ApprovalRequest, answer: ApprovalAnswer
    ) -> Iterator[str]:
        """Remember an answer as long as it lasts; lines that say what was stored."""
        if answer.lasts == "once":
            return
        if request.rules:
            self._rules.update(request.rules)
        elif answer.lasts == "session":
            self._questions.add(_question(request))
        if answer.lasts == "always" and request.rules:
            yield from store_rules(effective, request.rules)


def store_rules(effective: EffectiveSettings, rules: tuple[str, ...]) -> Iterator[str]:
    """Add rules to those that the user's settings allow."""
    for rule in rules:
        add_to_setting(effective, "permissions.allow", rule, project=False)
        yield f"`{rule}` is always allowed now; /permissions lists the rules"
