"""Sessions in which files are read in all the ways that agents read them, and changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from hypothesis import strategies as st

from recollect.entries import (
    Compaction,
    Message,
    Part,
    Pin,
    Request,
    Restore,
    Text,
    ToolCall,
    ToolResult,
    handle_of,
    json_text,
)
from recollect.view.elision_rules import ElisionRules, drop_message, plan_elisions
from recollect.view.view import View
from tests.view.growing_log import GrowingLog, shown_file
from tests.view.logs import name

RULES = ElisionRules(keep_reads=1, max_lines=30, min_saving=1, payback_requests=5)
LIMIT = 45  # lines that one read shows
_LINE = re.compile(r"<(\w+\.py) (\d+) v(\d+)>")
_CLAIM = re.compile(r"\[recall (\w{8}): earlier read of ([^;\n]+), shown by ([\w, ]+); [\d,]+ tok")
_SUBJECT = re.compile(r"(\w+\.py)(?: lines ((?:\d+-\d+(?:, )?)+)(…)?)?")


class Line(NamedTuple):
    path: str
    number: int
    version: int


def find_lines(text: str) -> set[Line]:
    return {Line(path, int(n), int(v)) for path, n, v in _LINE.findall(text)}


def part_text(part: Part) -> str:
    if isinstance(part, ToolResult):
        return "\n".join(item.text for item in part.content if isinstance(item, Text))
    return part.text if isinstance(part, Text) else ""


def message_text(message: Message) -> str:
    return "\n".join(map(part_text, message.parts))


_PATHS = st.sampled_from(["a.py", "a.py", "b.py"])
_SPANS = st.tuples(st.integers(1, 60), st.integers(0, 60))
_FORMS = st.sampled_from(["ours", "ours", "arrow", "tab", "raw", "notice", "view", "unclear"])
_WHERE = st.integers(0, 40)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), _PATHS, _FORMS, _SPANS),
        st.tuples(st.just("read"), _PATHS, _FORMS, st.just((1, 0))),
        st.tuples(st.just("batch"), st.sampled_from(["blocks", "one text", "failed"]), _SPANS),
        st.tuples(st.just("at once"), _PATHS, _SPANS),
        st.tuples(st.just("apply"), st.booleans()),
        st.tuples(st.just("apply"), st.just(False)),
        st.tuples(st.sampled_from(["change", "change unseen"]), _PATHS),
        st.tuples(st.sampled_from(["drop", "pin", "restore", "compact", "print"]), _WHERE),
        st.tuples(st.just("request")),
        st.tuples(st.just("fail"), _PATHS),
    ),
    min_size=20,
    max_size=60,
)


class FileSession(GrowingLog):
    """Files of 80 lines, each of which names itself and the version of its file."""

    def __init__(self, rules: ElisionRules = RULES) -> None:
        super().__init__(rules, pace=1_000)
        self.versions = {"a.py": 0, "b.py": 0}

    def lines(self, path: str, first: int, last: int) -> list[str]:
        version = self.versions[path]
        return [f"<{path} {n} v{version}> some code of this line" for n in range(first, last + 1)]

    def show(self, path: str, form: str, first: int, last: int, *, whole: bool) -> str:
        body = self.lines(path, first, last)
        numbered = list(enumerate(body, first))
        match form:
            case "ours":
                made = shown_file(path, first, last, 80)
                return re.sub(r"→line (\d+) of \S+", lambda m: f"→{body[int(m[1]) - first]}", made)
            case "arrow":
                return "\n".join(f"{n:>6}→{line}" for n, line in numbered)
            case "tab" | "view":
                return "\n".join(["Here it is:", *(f"{n:>6}\t{line}" for n, line in numbered)])
            case "notice":
                notice = (
                    f"[File content truncated: showing lines {first}-{last} of 80 total lines.]"
                )
                return "\n".join([notice, *body])
            case "raw" if not whole:
                return "\n".join([*body, "... [truncated]"])
        return "\n".join(body)

    def step(self, kind: str, *given: Any) -> None:
        match kind, *given:
            case "read", path, form, (first, more):
                self._read(path, form, first, more)
            case "batch", form, (first, more):
                self._batch(form, first, min(80, first + more))
            case "at once", path, (first, more):
                self._read_twice(path, first, min(80, first + more))
            case (("drop" | "pin" | "restore" | "compact"), number):
                self._edit(kind, name(number % max(1, self.view.n)))
            case _:
                self._go_on(kind, *given)

    def _go_on(self, kind: str, *given: Any) -> None:
        match kind, *given:
            case "apply", over_budget:
                now = self.view.n * 1_000
                plan = plan_elisions(self.view, now, self.rules, over_budget=over_budget)
                self.add(*plan.edits)
            case "change", path:
                self.versions[path] += 1
                self.use("replace", {"file_path": path, "old": "x", "new": "y"}, "done")
            case "change unseen", path:
                self.versions[path] += 1
            case "fail", path:
                self.use("read_file", {"path": path}, f"Error: {path} is locked", is_error=True)
            case "request", *_:
                self.add(Request(head=self.view.head, as_of=0))
            case "print", number:
                self.use("other", {}, "\n".join(f"{number} {n}" for n in range(number * 2)))

    def _read(self, path: str, form: str, first: int, more: int) -> None:
        whole = more == 0 and form != "unclear"
        first = 1 if whole else first
        last = min(80, first + (LIMIT if whole else min(more, LIMIT)) - (1 if whole else 0))
        if form == "raw" and whole:
            last = 80  # without a notice, all of it
        text = self.show(path, form, first, last, whole=whole)
        asked: dict[str, object] = {} if whole else {"startLine": first, "endLine": last}
        if form == "view":
            tool, arguments = "str_replace_based_edit_tool", {"command": "view", "path": path}
            self.use(tool, {**arguments, "view_range": [1, 80]}, text)
        else:
            self.use("read_file", {"path": path, **asked}, text)

    def _read_twice(self, path: str, first: int, last: int) -> None:
        """With two calls in one message, answered in one."""
        spans = ((first, last), (1, LIMIT))
        calls = [
            ToolCall(
                id=f"p{self.view.n}-{n}", name="read_file", arguments=json_text({"path": path})
            )
            for n in range(2)
        ]
        texts = [self.show(path, "ours", *span, whole=False) for span in spans]
        results = [
            ToolResult(call_id=call.id, name="read_file", content=(Text(text=text),))
            for call, text in zip(calls, texts, strict=True)
        ]
        self.add(
            Message(role="model", parts=tuple(calls)), Message(role="user", parts=tuple(results))
        )

    def _batch(self, form: str, first: int, last: int) -> None:
        texts = [self.show(path, "ours", first, last, whole=False) for path in self.versions]
        if form == "failed":
            texts[1] = "'b.py' was not read: it is locked"
        if form == "one text":
            texts = ["\n".join(texts)]
        arguments = {"path": [*self.versions], "startLine": first, "endLine": last}
        self.use("read_file", arguments, *texts)

    def _edit(self, kind: str, entry: str) -> None:
        is_message = self.view.log.find_message(entry, self.view.n) is not None
        match kind:
            case "drop" if is_message:
                self.add(drop_message(self.view, entry))
            case "pin" if is_message:
                self.add(Pin(entries=(entry,)))
            case "restore" if self.view.n:
                self.add(Restore(entries=(entry,)))
            case "compact" if is_message:
                self.add(Compaction(status="COMPRESSED", snapshot="so far", first_kept=entry))

    def visible(self, view: View) -> dict[str, set[Line]]:
        """By entry, the lines that the view shows."""
        return {item.entry.id: find_lines(message_text(item.message)) for item in view.items}

    def superfluous_reads(self, keep: int) -> Iterator[str]:
        """Results that the view shows although so many newer ones show their file, one of them
        every line of them."""
        shown = [
            (item.entry.id, lines)
            for item in self.view.items
            if item.message.role == "user" and (lines := find_lines(message_text(item.message)))
        ]
        for number, (entry, lines) in enumerate(shown):
            for path in {line.path for line in lines}:
                own = {line for line in lines if line.path == path}
                newer = [o for _, o in shown[number + 1 :] if any(x.path == path for x in o)]
                if len(newer) >= keep and any(own <= other for other in newer[-keep:]):
                    yield f"{entry}: {path}"

    def lost_lines(self) -> set[Line]:
        """Current lines that were shown, and to which nothing in the view leads."""
        view = self.view
        shown = set[Line]().union(*self.visible(view).values())
        by_handle = {handle_of(entry.id): entry for entry in view.entries}
        text = "\n".join(message_text(item.message) for item in view.items)
        led: set[Line] = set()
        for handle in re.findall(r"\[recall (\w{8})", text):
            body = by_handle[handle].body
            assert isinstance(body, Message)
            led |= find_lines(message_text(body))
        stored = [e.body for e in view.entries[view.state.base :] if isinstance(e.body, Message)]
        every = set[Line]().union(*(find_lines(message_text(body)) for body in stored))
        return {one for one in every - shown - led if one.version == self.versions[one.path]}

    def false_claims(self) -> Iterator[str]:
        """What placeholders say is shown, and is not, in this very view."""
        view = self.view
        by_handle = {handle_of(entry.id): entry.id for entry in view.entries}
        visible = self.visible(view)
        for item in view.items:
            for handle, subject, names in _CLAIM.findall(message_text(item.message)):
                entry = view.log.entries[view.log.at[by_handle[handle]]].body
                assert isinstance(entry, Message)
                stored = find_lines(message_text(entry))
                there = set[Line]().union(
                    *(visible.get(by_handle[one], set()) for one in names.split(", "))
                )
                for line in claimed_lines(subject, stored) - there:
                    yield f"{handle}: {line} is not shown by {names}"


def claimed_lines(subject: str, stored: set[Line]) -> set[Line]:
    """The lines of a result that a placeholder's subject names."""
    found: set[Line] = set()
    for path, spans, _ in _SUBJECT.findall(subject):
        numbers = set[int]()
        for first, last in re.findall(r"(\d+)-(\d+)", spans):
            numbers |= set(range(int(first), int(last) + 1))
        found |= {
            one for one in stored if one.path == path and (not spans or one.number in numbers)
        }
    return found
