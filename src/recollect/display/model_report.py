"""The known models and what is known of each: its window, its price, and whether it can be called.

Keys are never shown, only whether there is one and in which variable.
"""

from __future__ import annotations

import msgspec

from recollect.models.local_servers import find_local_servers
from recollect.models.readiness import can_start, is_ready
from recollect.models.resolve import ResolvedModel, known_models, look_up_model
from recollect.settings import Settings


def listed_models(settings: Settings, *, local: bool) -> list[ResolvedModel]:
    """The known models after those of the servers on this machine."""
    running = [name for server in find_local_servers() for name in server.models]
    models = {name: look_up_model(name, settings) for name in running}
    if not local:
        models |= {model.name: model for model in known_models(settings)}
    return list(models.values())


def model_document(model: ResolvedModel, default: ResolvedModel) -> dict[str, object]:
    profile, endpoint = model.profile, model.endpoint
    generation = msgspec.to_builtins(model.generation)
    return {
        "name": model.name,
        "asked_as": model.wire_name,
        "endpoint": endpoint.name,
        "format": endpoint.wire,
        "url": endpoint.url or "started on this machine on first use",
        "window": profile.window,
        "output": profile.output,
        "tools": profile.tools,
        "thinks": thinking_label(model),
        "media": list(profile.media),
        "price": None if profile.price is None else msgspec.to_builtins(profile.price),
        "generation": {k: v for k, v in generation.items() if v not in (None, "", [])},
        "key": key_label(model),
        "ready": is_ready(model),
        "default": model.name == default.name,
    }


def thinking_label(model: ResolvedModel) -> str:
    return {"": "no", "field": "yes", "text": "in text"}[model.profile.thinks]


def key_label(model: ResolvedModel) -> str:
    if not can_start(model):
        return "not downloaded"
    if not model.endpoint.keys:
        return "none needed"
    if model.key is not None:
        return f"in {model.variable}"
    return f"not set: {' or '.join(model.endpoint.keys)}"
