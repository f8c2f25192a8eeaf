"""`/model`: which model answers this session, and which could. `/tools`: what it may call."""

from __future__ import annotations

import asyncio

from recollect.display.display_text import GAP, align_table, one_line, truncate
from recollect.display.model_report import key_label, listed_models
from recollect.models.readiness import is_ready
from recollect.models.resolve import ResolvedModel
from recollect.runtime.model_choice import next_model
from recollect.runtime.permission_policy import tool_permission
from recollect.runtime.prompt_run import RunOptions
from recollect.runtime.prompt_size import check_prompt_size
from recollect.runtime.runtime import Runtime
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.slash_commands import ANSWER_WIDTH
from recollect.workspace.sent_files import Attachable

_EFFECTS = {"read": "reads", "write": "changes files", "run": "runs commands"}
_BY_SETTINGS = "default"


async def run_model(runner: SessionRunner, arguments: str) -> str:
    runtime = await runner.opened()
    if not arguments:
        return await _list_models(runner, runtime)
    name = "" if arguments == _BY_SETTINGS else arguments
    if name:
        # a model without a key, or too small, is refused now and not by the next prompt
        await runtime.check_model(RunOptions(name))
    await runner.choose_model(name)
    return f"the next prompt goes to {one_line(current_model(runner, runtime).name)}"


def current_model(runner: SessionRunner, runtime: Runtime) -> ResolvedModel:
    """The model that the next prompt goes to."""
    return _next_model(runner, runtime, runner.run_options.model)


def _next_model(runner: SessionRunner, runtime: Runtime, named: str) -> ResolvedModel:
    entries = runner.session.view().entries if runner.session is not None else ()
    return next_model(runtime.settings, entries, named)


async def check_prompt(
    runner: SessionRunner, text: str, attachments: tuple[Attachable, ...] = (), model: str = ""
) -> None:
    """Raise if a prompt cannot fit into the model's window; nothing is sent or stored."""
    runtime = await runner.opened()
    chosen = _next_model(runner, runtime, model or runner.run_options.model)
    await check_prompt_size(runtime, chosen, text, attachments)


async def _list_models(runner: SessionRunner, runtime: Runtime) -> str:
    current = current_model(runner, runtime)
    known = await asyncio.to_thread(listed_models, runtime.settings, local=False)
    ready = [model for model in known if is_ready(model)]
    if all(model.name != current.name for model in ready):
        ready.insert(0, current)
    rows = [["", "MODEL", "WINDOW", "KEY"]]
    for model in ready:
        mark = "*" if model.name == current.name else ""
        window = f"{model.profile.window:,}"
        rows.append([mark, one_line(model.name), window, one_line(key_label(model))])
    lines = [GAP.join(row).rstrip() for row in align_table(rows, width=ANSWER_WIDTH, stretch=1)]
    variables = dict.fromkeys(v for m in known if not is_ready(m) for v in m.endpoint.keys[:1])
    lines += ["", "* answers the next prompt; /model NAME takes another for this session,"]
    lines += ["  /model default goes back to the setting `model`"]
    if variables:
        more = f"{len(known) - len(ready):,} more need a key in one of: {', '.join(variables)}"
        lines.append(truncate(more, ANSWER_WIDTH))
    return "\n".join(lines)


async def show_tools(runner: SessionRunner, arguments: str) -> str:
    del arguments
    runtime = await runner.opened()
    tools = runtime.tools(current_model(runner, runtime))
    rows = [["TOOL", "EFFECT", "PERMISSION"]]
    for tool in tools:
        permission = tool_permission(runtime.effective, tool)
        rows.append([tool.name, _EFFECTS[tool.effect], permission.answer])
    lines = [GAP.join(row).rstrip() for row in align_table(rows, width=ANSWER_WIDTH, stretch=2)]
    if not tools:
        return "this model gets no tools here"
    mode = runtime.settings.permissions.mode
    return "\n".join([*lines, "", f"in mode {mode}; /permissions shows the rules"])
