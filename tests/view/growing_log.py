"""A log that grows by whole exchanges, with the view of it and what the rules plan for it."""

from __future__ import annotations

from recollect.entries import Body, Entry, Message, Text, ToolCall, ToolResult, json_text
from recollect.view.elision_plan import ElisionPlan
from recollect.view.elision_rules import ElisionRules, plan_elisions
from recollect.view.view import View
from tests.view.logs import name

NOW = 100_000_000
EAGER = ElisionRules(min_saving=1)


def shown_file(path: str, first: int, last: int, total: int = 0) -> str:
    """Lines of a file as `read_file` shows them."""
    total = total or last
    whole = (first, last) == (1, total)
    span = f"all lines {total}" if whole else f"lines {first}-{last} of {total}"
    lines = [f"{number}→line {number} of {path}" for number in range(first, last + 1)]
    more = f"[lines {last + 1}-{total} are not shown; read on with offset={last + 1}]"
    return "\n".join([f"'/work/{path}', {span}:", *lines, *([more] if last < total else [])])


class GrowingLog:
    def __init__(self, rules: ElisionRules = EAGER, pace: int = 0) -> None:
        """`pace` is the time from one entry to the next, in milliseconds."""
        self.view, self.rules, self.pace = View.fold(), rules, pace

    def add(self, *bodies: Body) -> str:
        """The id of the last one."""
        for body in bodies:
            n = self.view.n
            entry = Entry(name(n), self.view.head, n * self.pace, body)
            self.view = self.view.append(entry)
        return name(self.view.n - 1)

    def use(self, tool: str, arguments: object, *texts: str, is_error: bool = False) -> str:
        """A call and its result; the id of the message with the result."""
        call = ToolCall(id=f"c{self.view.n}", name=tool, arguments=json_text(arguments))
        content = tuple(Text(text=text) for text in texts or ("line of text\n" * 50,))
        answer = ToolResult(call_id=call.id, name=tool, content=content, is_error=is_error)
        return self.add(Message(role="model", parts=(call,)), Message(role="user", parts=(answer,)))

    def read(self, path: str, first: int, last: int, total: int = 0, **asked: object) -> str:
        """A read of a file by `read_file`, which showed these lines of it."""
        return self.use("read_file", {"path": path, **asked}, shown_file(path, first, last, total))

    def plan(self, now: int = NOW, rules: ElisionRules | None = None) -> ElisionPlan:
        """From scratch, with nothing remembered of earlier plans."""
        return plan_elisions(View.fold(self.view.entries), now, rules or self.rules)

    def elided(self, now: int = NOW, rules: ElisionRules | None = None) -> list[str]:
        return [saving.elided.entry for saving in self.plan(now, rules).savings]
