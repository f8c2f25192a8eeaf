"""What rules would leave out of a view, before anything is stored: savings, and what went wrong."""

from __future__ import annotations

import msgspec

from recollect.entries import Elide, Elided


class PlannedElision(msgspec.Struct, frozen=True):
    """One thing a rule would leave out."""

    rule: str
    what: str  # the file, the tool, or a custom rule's reason
    elided: Elided


class ElisionPlan(msgspec.Struct, frozen=True):
    """What the rules would leave out now; `edits` are to be appended to the session."""

    savings: tuple[PlannedElision, ...] = ()
    unidentified: int = 0  # reads left alone because they name no file
    problems: tuple[str, ...] = ()  # of custom rules, which left nothing out because of them
    reason: str = ""  # why now; empty when nothing is left out

    @property
    def tokens(self) -> int:
        """How many tokens the plan saves."""
        return sum(saving.elided.tokens for saving in self.savings)

    @property
    def edits(self) -> tuple[Elide, ...]:
        """One edit for each rule."""
        by_rule: dict[str, list[Elided]] = {}
        for saving in self.savings:
            by_rule.setdefault(saving.rule, []).append(saving.elided)
        return tuple(
            Elide(rule=rule, items=tuple(items), reason=self.reason)
            for rule, items in by_rule.items()
        )
