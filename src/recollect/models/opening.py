"""Opens a model by its name: the only place that knows which model needs what started first."""

from __future__ import annotations

from recollect.models.choosing import choose
from recollect.models.client import HttpModel
from recollect.settings import Settings, load


def open_model(name: str = "", settings: Settings | None = None) -> HttpModel:
    """The model of this name, or the default one. Nothing is asked yet, and nothing started."""
    settings = load() if settings is None else settings
    chosen = choose(name, settings)
    if chosen.endpoint.url:
        return HttpModel(chosen, settings.transport)
    from recollect.models.embedded import endpoint

    return HttpModel(chosen, settings.transport, locate=endpoint)
