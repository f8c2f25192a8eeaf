"""The argument ID of commands: a session, and `last` where none is given."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from recollect.cli.options import complete_session, looks_like_id
from recollect.store.ids import LAST

F = TypeVar("F", bound=Callable[..., Any])


def session_argument(name: str = "session", *, required: bool = False) -> Callable[[F], F]:
    """The argument ID; unless it is required, no ID means `last`."""
    default: dict[str, Any] = {"required": True} if required else {"default": LAST}
    metavar = "ID" if required else "[ID]"
    return click.argument(name, metavar=metavar, shell_complete=complete_session, **default)


def session_before(name: str, *, is_id: bool) -> Callable[[F], F]:
    """The arguments `[ID] NAME`: with one word, it is the second, and the session is `last`.

    Unless the second is an id itself, an id alone means that the second was forgotten.
    """

    def decorate(command: F) -> F:
        @wraps(command)
        def run(*, session: str | None, **given: Any) -> Any:
            if given[name] is None:
                if session is None or (looks_like_id(session) and not is_id):
                    raise click.UsageError(f"Missing argument '{name.upper()}'.")
                session, given[name] = LAST, session
            return command(session=session, **given)

        second = click.argument(name, metavar=name.upper(), required=False)
        first = click.argument(
            "session", metavar="[ID]", required=False, shell_complete=complete_session
        )
        return cast(F, first(second(run)))

    return decorate
