"""What the status line shows of a session, read from its runtime. Its cost does not grow with the
session: what is counted over the whole history is counted once and then followed."""

from __future__ import annotations

from recollect.agent.exchange import count_tools
from recollect.agent.fit_context import reserve_for_tools
from recollect.display.session_cost import SessionCost
from recollect.entries import Message, Usage
from recollect.errors import RecollectError
from recollect.models.resolve import ResolvedModel
from recollect.runtime.model_choice import next_model
from recollect.runtime.runtime import Runtime
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.status_line import SessionStatus, WindowUse
from recollect.view.provider_counts import count_as_provider
from recollect.view.view import View

_RECENT = 200  # entries in which the last model and usage are looked for


async def read_status(runner: SessionRunner, cost: SessionCost | None = None) -> SessionStatus:
    """Nothing is sent or stored for it. `cost` is what is known of the session's so far."""
    runtime = await runner.opened()
    session = runner.session
    view = session.view() if session is not None else View.fold()
    recent = view.log.entries[max(0, view.n - _RECENT) : view.n]
    model = next_model(runtime.settings, recent, runner.run_options.model)
    last = next(
        (
            entry.body.usage
            for entry in reversed(recent)
            if isinstance(entry.body, Message) and entry.body.usage is not None
        ),
        Usage(),
    )
    known = cost.cost(runtime.settings) if cost is not None else None
    title = (await session.info()).title if session is not None else ""
    return SessionStatus(
        mode=runtime.settings.permissions.mode,
        model=model.name,
        title=title,
        use=read_window_use(runtime, model, view),
        cost=known.dollars if known is not None else None,
        cost_complete=known is None or known.complete,
        cached=last.cached,
        input=last.input,
    )


def read_window_use(runtime: Runtime, model: ResolvedModel, view: View) -> WindowUse:
    """What the next request to this model would fill of its window."""
    budget = runtime.budget(model)
    try:
        tools = count_tools(runtime.declared_tools(model), view.log.counter)
    except RecollectError:
        tools = 0
    counted = count_as_provider(view, tools, model.name, 2 * budget.window)
    threshold = reserve_for_tools(budget, tools).threshold + tools
    return WindowUse(counted.tokens, budget.window, threshold)
