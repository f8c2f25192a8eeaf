"""Opens a model by its name: the one place that knows which models need a server started first."""

from __future__ import annotations

from collections.abc import Callable

from recollect.models.http_model import HttpModel
from recollect.models.resolve import resolve_model
from recollect.settings import Settings, load_settings


def open_model(
    name: str = "",
    settings: Settings | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> HttpModel:
    """The model of this name, or the default one. Nothing is sent or started yet.

    `progress` is called with the bytes so far and in all if weights have to be downloaded first.
    """
    settings = load_settings() if settings is None else settings
    chosen = resolve_model(name, settings)
    if chosen.endpoint.url:
        return HttpModel(chosen, settings.transport)
    # most runs call a model elsewhere and never need a server of their own
    from recollect.models.embedded_model import EmbeddedServer, server_address

    locate = server_address if progress is None else EmbeddedServer(progress=progress).address
    return HttpModel(chosen, settings.transport, locate=locate)
