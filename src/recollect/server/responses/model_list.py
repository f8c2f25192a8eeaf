"""`/v1/models`: the models that a request can name and this server can call."""

from __future__ import annotations

from recollect.models.resolve import known_models
from recollect.runtime.runtime import Runtime
from recollect.server.responses.api_error import ApiError
from recollect.server.responses.output_items import Item
from recollect.server.responses.respond import OWN_AGENT, OWN_MODEL


def list_models(runtime: Runtime) -> list[Item]:
    """Ours first: the settings' model as it is, and the coding agent with it."""
    found = {name: _describe(name, "recollect") for name in (OWN_MODEL, OWN_AGENT)}
    for model in known_models(runtime.settings):
        if not model.endpoint.keys or model.key is not None:
            found.setdefault(model.name, _describe(model.name, model.endpoint.name))
    return list(found.values())


def find_model(runtime: Runtime, name: str) -> Item:
    found = next((one for one in list_models(runtime) if one["id"] == name), None)
    if found is None:
        message = f"the model {name[:80]!r} does not exist, or has no key on this server"
        raise ApiError(message, status=404, param="model", code="model_not_found")
    return found


def _describe(name: str, owner: str) -> Item:
    return {"id": name, "object": "model", "created": 0, "owned_by": owner}
