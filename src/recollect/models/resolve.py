"""From a model's name to everything needed to call it: its profile, endpoint, wire name and key.

A name is one of the settings' own models, or `endpoint/model` for any model of a known endpoint, or
a bare name whose endpoint is known. Without a name: the settings' default, else the first endpoint
that has a key, else the embedded model. Generation options come from the profile, the settings and
the call; the later wins. Nothing is sent here, and no key leaves its `ApiKey`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from recollect.codecs.text_tools import TextToolsWire
from recollect.codecs.think_tags import ThinkTagsWire
from recollect.codecs.wire_protocol import Declaration, Generation, RequestOptions, Wire
from recollect.codecs.wires import WIRES
from recollect.errors import NoApiKey, UnknownModel
from recollect.models.api_keys import ApiKey, find_api_key
from recollect.profiles import (
    EMBEDDED_MODEL,
    ENDPOINTS,
    PRICES,
    Endpoint,
    Profile,
    find_endpoint,
    find_profile,
)
from recollect.settings import CustomModel, GenerationDefaults, Settings

FindKey: TypeAlias = Callable[[Sequence[str]], ApiKey | None]
_MAX_SIMILAR = 3


class ResolvedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that can be called."""

    name: str  # as in `Message.model`
    wire_name: str  # as the endpoint calls it
    profile: Profile
    endpoint: Endpoint
    key: ApiKey | None = None
    generation: GenerationDefaults = GenerationDefaults()  # of the profile and the settings

    @property
    def variable(self) -> str:
        """The environment variable of its key."""
        if self.key is not None and self.key.variable:
            return self.key.variable
        return self.endpoint.keys[0] if self.endpoint.keys else ""


def resolve_model(name: str, settings: Settings, find_key: FindKey = find_api_key) -> ResolvedModel:
    """The model of this name, ready to be called; an empty name means the default one."""
    chosen = look_up_model(name, settings, find_key)
    if chosen.endpoint.keys and chosen.key is None:
        raise NoApiKey(chosen.name, " or ".join(chosen.endpoint.keys))
    return chosen


def look_up_model(name: str, settings: Settings, find_key: FindKey = find_api_key) -> ResolvedModel:
    """The model of this name, also if its key is missing."""
    name = name.strip() or default_model_name(settings, find_key)
    chosen = _from_settings(name, settings) or _from_endpoint(name) or _from_profile(name)
    if chosen is None:
        raise UnknownModel(name[:100], similar_names(name, settings))
    endpoint = chosen.endpoint
    key = find_key(endpoint.keys) if endpoint.keys else None
    generation = merge(chosen.profile.generation, settings.generation)
    return msgspec.structs.replace(chosen, key=key, generation=generation)


def default_model_name(settings: Settings, find_key: FindKey = find_api_key) -> str:
    if settings.model:
        return settings.model
    for endpoint in ENDPOINTS:
        if endpoint.keys and endpoint.default and find_key(endpoint.keys):
            return f"{endpoint.name}/{endpoint.default}"
    return f"embedded/{EMBEDDED_MODEL}"


def known_models(settings: Settings, find_key: FindKey = find_api_key) -> Iterator[ResolvedModel]:
    """The settings' own models, each endpoint's default, then every model with a known price."""
    found: dict[Sequence[str], ApiKey | None] = {}

    def once(variables: Sequence[str]) -> ApiKey | None:
        if variables not in found:
            found[variables] = find_key(variables)
        return found[variables]

    defaults = (f"{endpoint.name}/{endpoint.default}" for endpoint in ENDPOINTS if endpoint.default)
    listed = set()
    for name in (*settings.models, *defaults, *PRICES):
        chosen = look_up_model(name, settings, once)
        if chosen.name not in listed:
            listed.add(chosen.name)
            yield chosen


def similar_names(name: str, settings: Settings) -> tuple[str, ...]:
    """What the user may have meant."""
    known = [*settings.models, *PRICES]
    known += [f"{endpoint.name}/{endpoint.default}" for endpoint in ENDPOINTS if endpoint.default]
    known += [endpoint.default for endpoint in ENDPOINTS if endpoint.default]
    bare = name.rsplit("/", 1)[-1]
    if not find_profile(name).endpoint and "/" not in name and find_profile(name).prefix:
        return (f"ollama/{name[:60]}", f"openrouter/{name[:60]}")
    found = difflib.get_close_matches(name[:100], known, _MAX_SIMILAR, 0.6)
    return tuple(found or difflib.get_close_matches(bare[:100], known, _MAX_SIMILAR, 0.6))


def _from_settings(name: str, settings: Settings) -> ResolvedModel | None:
    own = settings.models.get(name)
    if own is None:
        return None
    asked_as = own.model or name
    return ResolvedModel(
        name=name,
        wire_name=asked_as,
        profile=_override_profile(find_profile(asked_as), own),
        endpoint=Endpoint(
            name=name,
            wire=own.wire,
            url=own.url.rstrip("/"),
            keys=(own.key,) if own.key else (),
            headers=tuple({**_usual_headers(own.wire), **own.headers}.items()),
        ),
    )


def _usual_headers(wire: str) -> dict[str, str]:
    """Headers that every server of this format needs."""
    return next((dict(e.headers) for e in ENDPOINTS if e.name == e.wire == wire), {})


_PROFILE_FIELDS = (
    "window",
    "output",
    "tools",
    "thinks",
    "think_switch",
    "reasoning",
    "system_role",
    "max_tokens_field",
    "media",
    "price",
)


def _override_profile(profile: Profile, own: CustomModel) -> Profile:
    set_ = {field: getattr(own, field) for field in _PROFILE_FIELDS}
    given = {field: value for field, value in set_.items() if value is not None}
    return msgspec.structs.replace(profile, **given)


def _from_endpoint(name: str) -> ResolvedModel | None:
    first, _, rest = name.partition("/")
    endpoint = find_endpoint(first)
    if endpoint is None:
        return None
    rest = rest or endpoint.default
    if not rest:
        return None
    return _at_endpoint(endpoint, rest)


def _from_profile(name: str) -> ResolvedModel | None:
    bare = name.removeprefix("models/")
    endpoint = find_endpoint(find_profile(bare).endpoint) if "/" not in bare else None
    return _at_endpoint(endpoint, bare) if endpoint is not None else None


def _at_endpoint(endpoint: Endpoint, model: str) -> ResolvedModel:
    profile = find_profile(model)
    if profile.think_switch and endpoint.think_switch:
        profile = msgspec.structs.replace(profile, think_switch=endpoint.think_switch)
    # One model has one name, however it was spelt: its thoughts are sent back to it by name.
    at_home = "/" not in model and profile.endpoint == endpoint.name
    name = model if at_home else f"{endpoint.name}/{model}"
    return ResolvedModel(name=name, wire_name=model, profile=profile, endpoint=endpoint)


# --- generation --------------------------------------------------------------------------------


def merge(lower: GenerationDefaults, upper: GenerationDefaults) -> GenerationDefaults:
    """The upper values; the lower ones where they are not set."""
    given = {
        f: v
        for f in GenerationDefaults.__struct_fields__
        if (v := getattr(upper, f)) not in (None, "", ())
    }
    return msgspec.structs.replace(lower, **given)


def fill_generation(chosen: ResolvedModel, called: Generation) -> Generation:
    """The call's options, with this model's defaults where they are not set."""
    merged = {f: getattr(called, f) for f in Generation.__struct_fields__}
    for field in GenerationDefaults.__struct_fields__:
        if merged[field] in (None, "", ()):
            merged[field] = getattr(chosen.generation, field)
    if merged["max_output"] is None and chosen.endpoint.wire == "anthropic":
        merged["max_output"] = chosen.profile.output  # this format requires it
    return Generation(**merged)


def fill_options(chosen: ResolvedModel, options: RequestOptions) -> RequestOptions:
    """The options with this model's name and defaults."""
    generation = fill_generation(chosen, options.generation)
    return msgspec.structs.replace(options, model=chosen.wire_name, generation=generation)


# --- the wire ----------------------------------------------------------------------------------


def build_wire(
    chosen: ResolvedModel,
    tools: Sequence[Declaration] = (),
    *,
    text_tools: bool = False,
    thinking_off: bool = False,
) -> Wire:
    """The wire format of this model; `text_tools` if it refused native ones."""
    profile = chosen.profile
    wire = WIRES[chosen.endpoint.wire].build(chosen.name, profile)
    given = profile.think_switch
    switch = given if given == "no_think_tag" or given == "slash_no_think" else ""
    if profile.thinks == "text" or (switch and thinking_off):
        wire = ThinkTagsWire(wire=wire, switch=switch, off=thinking_off)
    return wrap_in_text_tools(wire, tools) if text_tools or profile.tools == "text" else wire


def wrap_in_text_tools(wire: Wire, tools: Sequence[Declaration]) -> Wire:
    """The same, with tools described in text; needed for earlier calls even without tools."""
    return TextToolsWire(wire=wire, tools=tuple(tools))
