"""From a name to everything needed to ask that model: what is known of it, where, under which name.

A name is one of the settings' own models, or `endpoint/model` for any model of a known endpoint,
or a bare name whose home is known. No name: the settings' default, else the first endpoint whose
key is there, else the embedded model. How to write comes from the profile, then the settings, then
the call, the later winning. Nothing is asked here, and no key leaves its `ApiKey`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from recollect.codecs.wire_protocol import Declaration, Generation, RequestOptions, Wire
from recollect.errors import NoApiKey, UnknownModel
from recollect.models.api_keys import ApiKey, find_api_key
from recollect.profiles import (
    EMBEDDED_MODEL,
    ENDPOINTS,
    PRICES,
    Endpoint,
    Profile,
    WireName,
    find_endpoint,
    find_profile,
)
from recollect.settings import CustomModel, GenerationDefaults, Settings

FindKey: TypeAlias = Callable[[Sequence[str]], ApiKey | None]
_MAX_SIMILAR = 3


class ResolvedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that can be asked."""

    name: str  # as in `Message.model`
    wire_name: str  # its name on the wire
    profile: Profile
    endpoint: Endpoint
    key: ApiKey | None = None
    wishes: GenerationDefaults = GenerationDefaults()  # the profile's with the settings' over them

    @property
    def variable(self) -> str:
        """Where its key is, or would be."""
        if self.key is not None and self.key.variable:
            return self.key.variable
        return self.endpoint.keys[0] if self.endpoint.keys else ""


def resolve_model(name: str, settings: Settings, find_key: FindKey = find_api_key) -> ResolvedModel:
    """The model of this name, ready to be asked; an empty name means the default one."""
    chosen = look_up_model(name, settings, find_key)
    if chosen.endpoint.keys and chosen.key is None:
        raise NoApiKey(chosen.name, " or ".join(chosen.endpoint.keys))
    return chosen


def look_up_model(name: str, settings: Settings, find_key: FindKey = find_api_key) -> ResolvedModel:
    """What is known of the model of this name, also when its key is not there."""
    name = name.strip() or default_model_name(settings, find_key)
    chosen = _from_settings(name, settings) or _from_endpoint(name) or _from_profile(name)
    if chosen is None:
        raise UnknownModel(name[:100], similar_names(name, settings))
    endpoint = chosen.endpoint
    key = find_key(endpoint.keys) if endpoint.keys else None
    wishes = merge(chosen.profile.wishes, settings.generation)
    return msgspec.structs.replace(chosen, key=key, wishes=wishes)


def default_model_name(settings: Settings, find_key: FindKey = find_api_key) -> str:
    if settings.model:
        return settings.model
    for endpoint in ENDPOINTS:
        if endpoint.keys and endpoint.default and find_key(endpoint.keys):
            return f"{endpoint.name}/{endpoint.default}"
    return f"embedded/{EMBEDDED_MODEL}"


def known_models(settings: Settings, find_key: FindKey = find_api_key) -> Iterator[ResolvedModel]:
    """The settings' own, each endpoint's default, then every model with a known price."""
    found: dict[Sequence[str], ApiKey | None] = {}

    def once(variables: Sequence[str]) -> ApiKey | None:
        if variables not in found:
            found[variables] = find_key(variables)
        return found[variables]

    defaults = (f"{endpoint.name}/{endpoint.default}" for endpoint in ENDPOINTS if endpoint.default)
    told = set()
    for name in (*settings.models, *defaults, *PRICES):
        chosen = look_up_model(name, settings, once)
        if chosen.name not in told:
            told.add(chosen.name)
            yield chosen


def similar_names(name: str, settings: Settings) -> tuple[str, ...]:
    """What the person may have meant."""
    known = [*settings.models, *PRICES]
    known += [f"{endpoint.name}/{endpoint.default}" for endpoint in ENDPOINTS if endpoint.default]
    known += [endpoint.default for endpoint in ENDPOINTS if endpoint.default]
    bare = name.rsplit("/", 1)[-1]
    if not find_profile(name).endpoint and "/" not in name and find_profile(name).prefix:
        return (f"ollama/{name[:60]}", f"openrouter/{name[:60]}")
    import difflib

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
    """What every server of this format wants, whoever runs it."""
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
    # One model has one name, however it was asked for: its thoughts find their way back by it.
    at_home = "/" not in model and profile.endpoint == endpoint.name
    name = model if at_home else f"{endpoint.name}/{model}"
    return ResolvedModel(name=name, wire_name=model, profile=profile, endpoint=endpoint)


# --- how to write ------------------------------------------------------------------------------


def merge(under: GenerationDefaults, upper: GenerationDefaults) -> GenerationDefaults:
    """What the upper one leaves open is the lower one's."""
    given = {
        f: v
        for f in GenerationDefaults.__struct_fields__
        if (v := getattr(upper, f)) not in (None, "", ())
    }
    return msgspec.structs.replace(under, **given)


def fill_generation(chosen: ResolvedModel, called: Generation) -> Generation:
    """How this request is to be written."""
    merged = {f: getattr(called, f) for f in Generation.__struct_fields__}
    for field in GenerationDefaults.__struct_fields__:
        if merged[field] in (None, "", ()):
            merged[field] = getattr(chosen.wishes, field)
    if merged["max_output"] is None and chosen.endpoint.wire == "anthropic":
        merged["max_output"] = chosen.profile.output  # the one format that cannot do without
    return Generation(**merged)


def fill_options(chosen: ResolvedModel, prompt: RequestOptions) -> RequestOptions:
    """The prompt as this model is asked."""
    generation = fill_generation(chosen, prompt.generation)
    return msgspec.structs.replace(prompt, model=chosen.wire_name, generation=generation)


# --- the wire ----------------------------------------------------------------------------------


def build_wire(
    chosen: ResolvedModel,
    tools: Sequence[Declaration] = (),
    *,
    text_tools: bool = False,
    thinking_off: bool = False,
) -> Wire:
    """The format in which this model is asked; `text_tools` when native ones were refused."""
    profile = chosen.profile
    wire = build_plain_wire(chosen.endpoint.wire, chosen.name, profile)
    given = profile.think_switch
    switch = given if given == "no_think_tag" or given == "slash_no_think" else ""
    if profile.thinks == "text" or (switch and thinking_off):
        from recollect.codecs.think_tags import ThinkTagsWire

        wire = ThinkTagsWire(wire=wire, switch=switch, off=thinking_off)
    return wrap_in_text_tools(wire, tools) if text_tools or profile.tools == "text" else wire


def wrap_in_text_tools(wire: Wire, tools: Sequence[Declaration]) -> Wire:
    """The same, with the tools described in text; without tools also for earlier calls."""
    from recollect.codecs.text_tools import TextToolsWire

    return TextToolsWire(wire=wire, tools=tuple(tools))


def build_plain_wire(kind: WireName, model: str, profile: Profile) -> Wire:
    """One of the three formats, set up with what is known of the model."""
    if kind == "gemini":
        from recollect.codecs.gemini.quirks import RESULT_MEDIA
        from recollect.codecs.gemini.wire import GeminiWire

        if not profile.signed_calls:
            return GeminiWire(model=model, media=profile.media, result_media=())
        return GeminiWire(
            model=model,
            media=profile.media,
            result_media=RESULT_MEDIA,
            thinking=profile.effort,
            stand_in_signature="skip_thought_signature_validator",
        )
    if kind == "anthropic":
        from recollect.codecs.anthropic import AnthropicWire
        from recollect.codecs.anthropic.quirks import AnthropicThinking

        thinking: AnthropicThinking = "adaptive" if profile.effort == "level" else "budget"
        return AnthropicWire(
            model=model, media=profile.media, sampling=profile.sampling, thinking=thinking
        )
    from recollect.codecs.openai import OpenAIWire

    switch = profile.think_switch
    return OpenAIWire(
        model=model,
        reasoning=profile.reasoning,
        system_role=profile.system_role,
        max_tokens_field=profile.max_tokens_field,
        sampling=profile.sampling,
        thinking_switch="" if switch == "no_think_tag" or switch == "slash_no_think" else switch,
        media=profile.media,
    )
