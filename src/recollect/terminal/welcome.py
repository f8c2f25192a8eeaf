"""What a new conversation begins with: where it works, who answers, and how to learn more."""

from __future__ import annotations

from recollect.display.display_text import one_line
from recollect.display.home_paths import abbreviate_home
from recollect.errors import RecollectError
from recollect.runtime.model_choice import next_model
from recollect.terminal.session_runner import SessionRunner


async def welcome_lines(runner: SessionRunner) -> tuple[str, ...]:
    try:
        runtime = await runner.opened()
    except RecollectError:
        return ()  # why there is no store is said elsewhere
    if runner.options.welcome:
        return (runner.options.welcome,)
    model = next_model(runtime.settings, (), runner.run_options.model)
    folder, mode = abbreviate_home(str(runtime.folders.cwd)), runtime.settings.permissions.mode
    return (
        one_line(f"{folder} · {model.name} · mode {mode}"),
        "/help lists the commands, F1 all keys",
    )
