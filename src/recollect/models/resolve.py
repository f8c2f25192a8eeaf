"""From a model's name to everything needed to call it: its profile, endpoint, wire name and key.

A name is one of the settings' own models, or `endpoint/model` for any model of a known endpoint, or
a bare name whose endpoint is known. Without a name: the settings' default, else the first endpoint
that has a key, else an embedded model: the coder if its weights are there. Generation options come
from the profile, the settings and the call; the later wins. Nothing is sent here, and no key leaves
its `ApiKey`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TypeAlias

import msgspec

from recollect.codecs.tool_names import with_tool_names
from recollect.codecs.wire_protocol import Declaration, Generation, RequestOptions, Wire
from recollect.codecs.wires import WIRES
from recollect.errors import NoApiKey, UnknownModel
from recollect.models.api_keys import ApiKey, find_api_key
from recollect.models.embedded_weights import CODER, has_weights
from recollect.models.endpoint_address import endpoint_url
from recollect.profiles import (
    CODER_MODEL,
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
_DEFAULTS = (
    *(f"{e.name}/{e.default}" for e in ENDPOINTS if e.default),
    *(f"{e.name}/{short}" for e in ENDPOINTS for short, _ in e.short_names),
)


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
        found_in = self.key.variable if self.key is not None else ""
        return found_in or next(iter(self.endpoint.keys), "")


def resolve_model(name: str, settings: Settings, find_key: FindKey = find_api_key) -> ResolvedModel:
    """The model of this name, ready to be called; an empty name means the default one."""
    chosen = look_up_model(name, settings, find_key)
    if chosen.endpoint.keys and chosen.key is None:
        raise NoApiKey(chosen.name, " or ".join(chosen.endpoint.keys))
    return chosen


def look_up_model(name: str, settings: Settings, find_key: FindKey = find_api_key) -> ResolvedModel:
    """The model of this name, also if its key is missing."""
    name = name.strip() or default_model_name(settings, find_key)
    chosen = _from_settings(name, settings) or _from_endpoints(name)
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
    return f"embedded/{CODER_MODEL if has_weights(CODER.weights) else EMBEDDED_MODEL}"


def known_models(settings: Settings, find_key: FindKey = find_api_key) -> Iterable[ResolvedModel]:
    """The settings' own models, each endpoint's default, then every model with a known price."""
    find_once, models = cache(find_key), dict[str, ResolvedModel]()
    for name in (*settings.models, *_DEFAULTS, *PRICES):
        model = look_up_model(name, settings, find_once)
        models.setdefault(model.name, model)
    return models.values()


def similar_names(name: str, settings: Settings) -> tuple[str, ...]:
    """What the user may have meant."""
    profile, bare = find_profile(name), name.rsplit("/", 1)[-1]
    if not profile.endpoint and "/" not in name and profile.prefix:
        return (f"ollama/{name[:60]}", f"openrouter/{name[:60]}")
    known = [*settings.models, *PRICES, *_DEFAULTS]
    known += [endpoint.default for endpoint in ENDPOINTS if endpoint.default]
    found = difflib.get_close_matches(name[:100], known)
    return tuple(found or difflib.get_close_matches(bare[:100], known))


def _from_settings(name: str, settings: Settings) -> ResolvedModel | None:
    own = settings.models.get(name)
    if own is None:
        return None
    wire_name = own.model or name
    shared = set(Profile.__struct_fields__).intersection(CustomModel.__struct_fields__)
    given = {field: value for field in shared if (value := getattr(own, field)) is not None}
    # those that every server of this format needs
    usual_headers = next((dict(e.headers) for e in ENDPOINTS if e.name == e.wire == own.wire), {})
    return ResolvedModel(
        name=name,
        wire_name=wire_name,
        profile=msgspec.structs.replace(find_profile(wire_name), **given),
        endpoint=Endpoint(
            name=name,
            wire=own.wire,
            url=own.url.rstrip("/"),
            keys=(own.key,) if own.key else (),
            headers=tuple({**usual_headers, **own.headers}.items()),
        ),
    )


def _from_endpoints(name: str) -> ResolvedModel | None:
    first, _, rest = name.partition("/")
    endpoint = find_endpoint(first)
    if endpoint is not None and (model := rest or endpoint.default):
        if endpoint.short_names:
            names = dict(endpoint.short_names)
            model = names.get(model.lower(), model)
            return _at_endpoint(endpoint, model) if model in names.values() else None
        return _at_endpoint(endpoint, model)
    bare = name.removeprefix("models/")
    endpoint = find_endpoint(find_profile(bare).endpoint) if "/" not in bare else None
    return _at_endpoint(endpoint, bare) if endpoint is not None else None


def _at_endpoint(endpoint: Endpoint, model: str) -> ResolvedModel:
    profile = find_profile(model)
    endpoint = msgspec.structs.replace(endpoint, url=endpoint_url(endpoint))
    if profile.think_switch and endpoint.think_switch:
        profile = msgspec.structs.replace(profile, think_switch=endpoint.think_switch)
    # One model has one name, however it was spelt: its thoughts are sent back to it by name.
    at_home = "/" not in model and profile.endpoint == endpoint.name
    name = model if at_home else f"{endpoint.name}/{model}"
    return ResolvedModel(name=name, wire_name=model, profile=profile, endpoint=endpoint)


def merge(lower: GenerationDefaults, upper: GenerationDefaults | Generation) -> GenerationDefaults:
    """The upper values; the lower ones where they are not set."""
    values = {field: getattr(upper, field) for field in GenerationDefaults.__struct_fields__}
    given = {field: value for field, value in values.items() if value not in (None, "", ())}
    return msgspec.structs.replace(lower, **given)


def fill_generation(chosen: ResolvedModel, called: Generation) -> Generation:
    """The call's options, with this model's defaults where they are not set."""
    merged = msgspec.structs.asdict(merge(chosen.generation, called))
    if merged["max_output"] is None and chosen.endpoint.wire == "anthropic":
        merged["max_output"] = chosen.profile.output  # this format requires it
    return msgspec.structs.replace(called, **merged)


def fill_options(chosen: ResolvedModel, options: RequestOptions) -> RequestOptions:
    """The options with this model's name and defaults."""
    generation = fill_generation(chosen, options.generation)
    return msgspec.structs.replace(options, model=chosen.wire_name, generation=generation)


def build_wire(
    chosen: ResolvedModel,
    tools: Sequence[Declaration] = (),
    *,
    text_tools: bool = False,
    thinking_off: bool = False,
) -> Wire:
    """The wire format of this model; `text_tools` if it refused native ones.

    Whatever its profile says, the text of a model with text tools is searched for thoughts before
    it is searched for calls: a call that the model only thinks about must not run."""
    profile = chosen.profile
    text_tools = text_tools or profile.tools == "text"
    wire = WIRES[chosen.endpoint.wire].build(chosen.name, profile)
    given = profile.think_switch
    switch = given if given == "no_think_tag" or given == "slash_no_think" else ""
    if text_tools or profile.thinks == "text" or (switch and thinking_off):
        # late, as the next one: few models need these, and they load a dozen modules
        from recollect.codecs.think_tags import ThinkTagsWire

        wire = ThinkTagsWire(wire=wire, switch=switch, off=thinking_off)
    if text_tools:  # even without tools, for the sake of earlier calls
        # late, as the one before
        from recollect.codecs.text_tools import TextToolsWire

        wire = TextToolsWire(
            wire=wire, tools=tuple(tools), preserve_context=profile.preserve_context
        )
    else:
        wire = with_tool_names(wire, chosen.endpoint.wire, tools)
    return wire
