"""Which model a session's next request goes to, also where no key for it is there."""

from __future__ import annotations

from collections.abc import Iterable

from recollect.entries import Entry
from recollect.errors import UnknownModel
from recollect.models.resolve import ResolvedModel, default_model_name, look_up_model
from recollect.profiles import WireName, find_endpoint, find_profile
from recollect.provider_messages import latest_model
from recollect.runtime.session_model import session_model
from recollect.settings import Settings


def next_model(settings: Settings, entries: Iterable[Entry], named: str = "") -> ResolvedModel:
    """The model that the user names, for one call or for the session; else the default one, unless
    it is too small for the agent; else the known one that replied last. A model that nobody knows
    has a guessed profile."""
    entries = tuple(entries)
    named = named or session_model(entries)
    default = _find_model(named or default_model_name(settings), settings)
    if named or default.profile.agentic:
        return default
    latest = latest_model(entries)
    return _find_model(latest, settings) if latest else default


def _find_model(name: str, settings: Settings) -> ResolvedModel:
    try:
        return look_up_model(name, settings)
    except UnknownModel:
        return _guess_model(name, "openai", settings)


def model_for_wire(
    model: ResolvedModel, wire: WireName, settings: Settings, *, named: bool
) -> ResolvedModel:
    """The model itself if it speaks this format. Else the format's default model, or what the
    user's named one would be sent."""
    if model.endpoint.wire == wire and (named or model.endpoint.url):
        return model
    if named:
        return _guess_model(model.name, wire, settings)
    usual = find_endpoint(wire)
    assert usual is not None
    return look_up_model(usual.default, settings)


def _guess_model(name: str, wire: WireName, settings: Settings) -> ResolvedModel:
    usual = find_endpoint(wire)
    assert usual is not None
    return ResolvedModel(
        name=name,
        wire_name=name,
        profile=find_profile(name),
        endpoint=usual,
        generation=settings.generation,
    )


def writes_snapshots(model: ResolvedModel, *, named: bool = False) -> bool:
    """Whether a compaction can let this model write: it can be called, and is good enough. A small
    model on the user's own machine, which takes minutes, writes only if the user `named` it."""
    has_key = not model.endpoint.keys or model.key is not None
    return has_key and (model.profile.summarises or (named and model.profile.agentic))
