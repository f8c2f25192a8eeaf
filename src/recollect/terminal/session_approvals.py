"""What the user has approved beyond one call: for this session, or always.

`always` adds rules to the user's own settings; `session` ends with the program. Only the exact
rules that were shown are kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from recollect.runtime.permission_policy import ApprovalRequest
from recollect.terminal.terminal_events import ApprovalAnswer
from recollect.workspace.effective_settings import EffectiveSettings
from recollect.workspace.settings_writer import add_to_setting


class SessionApprovals:
    def __init__(self) -> None:
        self._rules: set[str] = set()
        self._tools: set[str] = set()  # those whose calls have no rules, such as write_file

    @property
    def approved(self) -> tuple[str, ...]:
        """The rules and tools that need no question in this program."""
        return (*sorted(self._rules), *sorted(self._tools))

    def covers(self, request: ApprovalRequest) -> bool:
        """Whether an earlier answer holds for this call."""
        if request.rules:
            return self._rules.issuperset(request.rules)
        return request.call.name in self._tools

    def keep(
        self, effective: EffectiveSettings, request: ApprovalRequest, answer: ApprovalAnswer
    ) -> Iterator[str]:
        """Remember an answer as long as it lasts; lines that say what was stored."""
        if answer.lasts == "once":
            return
        if request.rules:
            self._rules.update(request.rules)
        elif answer.lasts == "session":
            self._tools.add(request.call.name)
        if answer.lasts == "always" and request.rules:
            yield from store_rules(effective, request.rules)


def store_rules(effective: EffectiveSettings, rules: tuple[str, ...]) -> Iterator[str]:
    """Add rules to those that the user's settings allow."""
    for rule in rules:
        add_to_setting(effective, "permissions.allow", rule, project=False)
        yield f"`{rule}` is always allowed now; /permissions lists the rules"
