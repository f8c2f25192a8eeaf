"""What the status line shows of a session, read from its runtime."""

from __future__ import annotations

from recollect.agent.exchange import count_tools
from recollect.agent.fit_context import reserve_for_tools
from recollect.entries import Message, Usage
from recollect.errors import RecollectError
from recollect.profiles import compute_cost
from recollect.runtime.model_choice import next_model
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.status_line import SessionStatus, WindowUse
from recollect.view.provider_counts import count_as_provider
from recollect.view.view import View


async def read_status(runner: SessionRunner) -> SessionStatus:
    """Nothing is sent or stored for it."""
    runtime = await runner.opened()
    view = runner.session.view() if runner.session is not None else View.fold()
    model = next_model(runtime.settings, view.entries, runner.run_options.model)
    budget = runtime.budget(model)
    try:
        tools = count_tools(runtime.declared_tools(model), view.log.counter)
    except RecollectError:
        tools = 0
    counted = count_as_provider(view, tools, model.name, 2 * budget.window)
    threshold = reserve_for_tools(budget, tools).threshold + tools
    last = next(
        (
            entry.body.usage
            for entry in reversed(view.entries)
            if isinstance(entry.body, Message) and entry.body.usage is not None
        ),
        Usage(),
    )
    title = ""
    if runner.session is not None:
        title = (await runner.session.info()).title
    return SessionStatus(
        mode=runtime.settings.permissions.mode,
        model=model.name,
        title=title,
        use=WindowUse(counted.tokens, budget.window, threshold),
        cost=compute_cost(runner.usage, model.profile.price) if runner.usage.input else None,
        cached=last.cached,
        input=last.input,
    )
