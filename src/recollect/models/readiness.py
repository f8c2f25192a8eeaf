"""Whether a model can be called now: its key is there, or its weights are."""

from __future__ import annotations

from recollect.models.embedded_weights import find_embedded_model, has_weights
from recollect.models.resolve import ResolvedModel


def is_ready(model: ResolvedModel) -> bool:
    if not can_start(model):
        return False
    return not model.endpoint.keys or model.key is not None


def can_start(model: ResolvedModel) -> bool:
    """Whether an embedded model has its weights, or can get them by itself; others need none."""
    embedded = None if model.endpoint.url else find_embedded_model(model.wire_name)
    return embedded is None or embedded.automatic or has_weights(embedded.weights)
