"""What the context screen opens: the text of a row, the difference to the last request, the next
request as a provider would be sent it."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import ClassVar

import msgspec
from textual import work
from textual.binding import BindingType

from recollect.display.context_diff import difference_lines, since_last_request
from recollect.display.context_report import ContextReport
from recollect.display.context_rows import ContextRow
from recollect.display.display_text import one_line
from recollect.display.entry_text import message_text
from recollect.entries import Message
from recollect.errors import RecollectError
from recollect.profiles import WireName
from recollect.runtime.model_choice import model_for_wire, next_model
from recollect.runtime.prompt_run import RunOptions
from recollect.runtime.request_replay import encode_next
from recollect.runtime.runtime import Runtime
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.text_screen import TextScreen
from recollect.text import format_size


async def row_text(runner: SessionRunner, row: ContextRow) -> str:
    """What the model sees of it, and below that what is left out."""
    if row.kind == "tools":
        return await tools_text(runner)
    shown = message_text(row.message) if row.message is not None else ""
    stored = row.entry.body if row.entry is not None else None
    if isinstance(stored, Message) and row.rule and row.kind == "shown":
        whole = await asyncio.to_thread(message_text, stored)
        return f"{shown}\n\n--- all of it, which the model does not see ---\n\n{whole}"
    return shown


async def tools_text(runner: SessionRunner) -> str:
    runtime = runner.runtime
    entries = runner.session.view().entries if runner.session is not None else ()
    model = next_model(runtime.settings, entries, runner.run_options.model)
    tools = runtime.declared_tools(model)
    return "\n\n".join(
        f"{tool.name}\n{tool.description}\n{_indented(tool.parameters)}" for tool in tools
    )


def _indented(json: str) -> str:
    return msgspec.json.format(json, indent=2)


async def difference_text(runtime: Runtime, report: ContextReport) -> str:
    """What appeared, went or changed since the last request, and what broke its cache."""
    found = await since_last_request(runtime, report)
    if found is None:
        return "no request was sent yet; everything is new to the next one"
    return "\n".join(difference_lines(found))


class ExactRequestScreen(TextScreen):
    """The bytes that `recollect encode` prints, for the model's own provider or another."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("g", "encode('gemini')", "Gemini"),
        ("o", "encode('openai')", "OpenAI"),
        ("a", "encode('anthropic')", "Anthropic"),
    ]
    KEYS = ("g Gemini", "o OpenAI", "a Anthropic", *TextScreen.KEYS)

    def __init__(self, runner: SessionRunner, report: ContextReport) -> None:
        super().__init__("the next request: encoding …")
        self.runner, self.report = runner, report
        self.body = b""

    def on_mount(self) -> None:
        self.view.focus()
        self.action_encode(self.report.model.endpoint.wire)

    @work(exclusive=True, group="encode")
    async def action_encode(self, to: WireName) -> None:
        own = to == self.report.model.endpoint.wire
        options = RunOptions(model=self.runner.run_options.model)
        try:
            body = await encode_next(
                self.runner.runtime, self.report.session, None if own else to, options
            )
        except RecollectError as error:
            self.say(str(error))
            return
        self.body = body
        title = f"the next request for {await self._model_name(to)}: {format_size(len(body))}"
        shown = await asyncio.to_thread(msgspec.json.format, body, indent=2)
        self.show_text(f"{title}, indented to be read", shown.decode("utf-8", "replace"))

    async def _model_name(self, to: WireName) -> str:
        """Another format is that of another model, whose window may be larger."""
        runtime = self.runner.runtime
        model = self.report.model
        if to != model.endpoint.wire:
            find = partial(model_for_wire, model, to, runtime.settings, named=False)
            model = await asyncio.to_thread(find)
        return f"{to}, {one_line(model.name)}"

    @property
    def to_copy(self) -> str:
        """As it is sent."""
        return self.body.decode("utf-8", "replace")
