"""Opens a model by its name: the one place that knows which models need a server started first."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from recollect.models.embedded_weights import find_embedded_model
from recollect.models.http_model import HttpModel
from recollect.models.idle_connections import IdleConnections
from recollect.models.resolve import resolve_model
from recollect.settings import Settings, load_settings


def open_model(
    name: str = "",
    settings: Settings | None = None,
    *,
    for_agent: bool = False,
    progress: Callable[[int, int], None] | None = None,
    connections: IdleConnections | None = None,
) -> HttpModel:
    """The model of this name, or the default one. Nothing is sent or started yet.

    With `for_agent`, a model that cannot work with tools raises `ModelTooSmall`. `progress` is
    called with the bytes so far and in all if weights must be downloaded first. `connections` are
    shared with other models.
    """
    settings = load_settings() if settings is None else settings
    chosen = resolve_model(name, settings)
    if for_agent and not chosen.profile.agentic:
        # late: it looks for local servers, which nobody else needs
        from recollect.models.model_suggestions import ModelTooSmall, ways_to_a_model

        raise ModelTooSmall(chosen.name, ways_to_a_model())
    if chosen.endpoint.url:
        return HttpModel(chosen, settings.transport, connections=connections)
    # most runs call a model elsewhere and never need a server of their own
    from recollect.models.embedded_model import EmbeddedServer, check_ready, server_address

    model = find_embedded_model(chosen.wire_name)
    assert model is not None, chosen.wire_name
    check_ready(model)
    shared = partial(server_address, model)
    locate = shared if progress is None else EmbeddedServer(model, progress=progress).address
    return HttpModel(chosen, settings.transport, locate=locate)
