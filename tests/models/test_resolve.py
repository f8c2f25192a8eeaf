from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.call_problems import call_problem_feedback
from recollect.codecs.openai import OpenAIWire
from recollect.codecs.text_tools import TextToolsWire
from recollect.codecs.think_tags import ThinkTagsWire
from recollect.codecs.wire_protocol import Declaration, Generation, RequestOptions
from recollect.codecs.wires import WIRES
from recollect.entries import Message, Text, Thought, ToolCall
from recollect.errors import NoApiKey, UnknownModel
from recollect.models.api_keys import ApiKey, find_api_key
from recollect.models.open_model import open_model
from recollect.models.resolve import (
    FindKey,
    build_wire,
    default_model_name,
    fill_generation,
    known_models,
    look_up_model,
    merge,
    resolve_model,
)
from recollect.profiles import ENDPOINTS
from recollect.settings import GenerationDefaults, ModelPrice, Settings, parse_settings

SECRET = "sk-fake-0123456789"


def keys(*variables: str) -> FindKey:
    """Somebody who has these keys."""

    def look(wanted: Sequence[str]) -> ApiKey | None:
        return find_api_key(wanted, dict.fromkeys(variables, SECRET), lambda _: None)

    return look


EVERY = keys(*(variable for endpoint in ENDPOINTS for variable in endpoint.keys), "MY_KEY")
OWN = parse_settings("""
    [models.work]
    url = "https://models.work.example/v1/"
    model = "qwen3-32b"
    key = "MY_KEY"
    window = 50000
    tools = "text"
    thinks = ""
    price = { input = 1.0, output = 2.0 }
    headers = { X-Team = "history" }
""").settings


@pytest.mark.parametrize(
    ("name", "endpoint", "wire_name", "canonical"),
    [
        ("gpt-4o", "openai", "gpt-4o", "gpt-4o"),
        ("openai/gpt-4o", "openai", "gpt-4o", "gpt-4o"),
        ("openai/something-new", "openai", "something-new", "openai/something-new"),
        ("models/gemini-2.5-pro", "gemini", "gemini-2.5-pro", "gemini-2.5-pro"),
        ("google/gemini-2.5-pro", "gemini", "gemini-2.5-pro", "gemini-2.5-pro"),
        ("ollama/qwen3:8b", "ollama", "qwen3:8b", "ollama/qwen3:8b"),
        ("openrouter/anthropic/claude-opus-5", "openrouter", "anthropic/claude-opus-5",
         "openrouter/anthropic/claude-opus-5"),
        ("openrouter/whatever", "openrouter", "whatever", "openrouter/whatever"),
        ("anthropic", "anthropic", "claude-sonnet-5", "claude-sonnet-5"),
        ("embedded", "embedded", "smollm2-135m", "smollm2-135m"),
        ("zai/glm-4.6", "zai", "glm-4.6", "zai/glm-4.6"),
        (" deepseek-chat ", "deepseek", "deepseek-chat", "deepseek-chat"),
    ],
)  # fmt: skip
def test_a_name_gives_the_endpoint_and_the_wire_name(
    name: str, endpoint: str, wire_name: str, canonical: str
) -> None:
    chosen = resolve_model(name, Settings(), EVERY)
    assert (chosen.endpoint.name, chosen.wire_name, chosen.name) == (endpoint, wire_name, canonical)


def test_a_model_of_the_settings_is_what_they_say_and_otherwise_what_is_known() -> None:
    chosen = resolve_model("work", OWN, EVERY)
    assert (chosen.name, chosen.wire_name) == ("work", "qwen3-32b")
    assert chosen.endpoint.url == "https://models.work.example/v1"
    assert chosen.endpoint.headers == (("X-Team", "history"),)
    profile = chosen.profile
    assert (profile.window, profile.tools, profile.thinks) == (50_000, "text", "")
    assert profile.price == ModelPrice(1.0, 2.0)
    assert (profile.vocabulary, profile.think_switch) == ("qwen3", "slash_no_think")
    assert chosen.key is not None
    assert chosen.variable == "MY_KEY"


def test_a_model_of_the_settings_wins_over_a_known_name() -> None:
    settings = parse_settings('[models."gpt-4o"]\nurl = "http://localhost:9/v1"').settings
    chosen = resolve_model("gpt-4o", settings, keys())
    assert (chosen.endpoint.url, chosen.key) == ("http://localhost:9/v1", None)


def test_an_own_server_of_the_anthropic_format_gets_the_version_header() -> None:
    settings = parse_settings('[models.a]\nurl = "http://localhost:9"\nwire = "anthropic"').settings
    assert ("anthropic-version", "2023-06-01") in resolve_model(
        "a", settings, keys()
    ).endpoint.headers


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("gtp-4o", "gpt-4o"),
        ("wrok", "work"),
        ("llama3.1", "ollama/llama3.1"),
        ("opnai/gpt-4o", "gpt-4o"),
    ],
)
def test_an_unknown_name_is_refused_with_what_may_have_been_meant(name: str, near: str) -> None:
    with pytest.raises(UnknownModel) as caught:
        resolve_model(name, OWN, EVERY)
    assert near in caught.value.near
    assert near in str(caught.value)


@given(st.text(max_size=300))
def test_any_name_is_a_model_or_refused_in_words(name: str) -> None:
    try:
        said = resolve_model(name, Settings(), EVERY).wire_name
    except UnknownModel as error:
        said = str(error)
    assert 0 < len(said) < 2_000


def test_without_its_key_a_model_is_refused_with_the_variables_name() -> None:
    with pytest.raises(NoApiKey, match="set GEMINI_API_KEY or GOOGLE_API_KEY"):
        resolve_model("gemini-2.5-pro", Settings(), keys("OPENAI_API_KEY"))
    with pytest.raises(NoApiKey, match="set MY_KEY"):
        resolve_model("work", OWN, keys())


def test_a_model_can_be_looked_up_without_its_key() -> None:
    assert look_up_model("gemini-2.5-pro", Settings(), keys()).key is None


def test_known_models_are_listed_once_each_and_all_can_be_chosen() -> None:
    names = [chosen.name for chosen in known_models(OWN, EVERY)]
    assert len(names) == len(set(names))
    assert {"work", "gpt-5-mini", "claude-opus-5", "smollm2-135m"} <= set(names)
    assert names == [resolve_model(name, OWN, EVERY).name for name in names]


def test_the_default_is_the_settings_then_the_first_endpoint_with_a_key_then_the_embedded() -> None:
    have = keys("MISTRAL_API_KEY", "ANTHROPIC_API_KEY")
    assert default_model_name(Settings(model="ollama/x"), have) == "ollama/x"
    assert resolve_model("", Settings(), have).name == "claude-sonnet-5"
    assert resolve_model("", Settings(), keys()).endpoint.name == "embedded"


def test_no_key_shows_in_what_was_chosen() -> None:
    assert SECRET not in repr(resolve_model("gpt-4o", Settings(), EVERY))


def test_opening_a_model_of_the_settings_needs_no_network() -> None:
    settings = parse_settings('[models.here]\nurl = "http://localhost:9/v1"').settings
    assert open_model("here", settings).name == "here"


# --- how to write ------------------------------------------------------------------------------

defaults = st.builds(
    GenerationDefaults,
    temperature=st.none() | st.floats(0, 2),
    top_p=st.none() | st.floats(0, 1),
    max_output=st.none() | st.integers(1, 100),
    stop=st.just(()) | st.just(("x",)),
    seed=st.none() | st.integers(),
    effort=st.sampled_from(["", "none", "high"]),
)


@given(defaults, defaults, defaults)
def test_the_later_default_wins_and_merging_is_associative(
    one: GenerationDefaults, two: GenerationDefaults, three: GenerationDefaults
) -> None:
    assert merge(merge(one, two), three) == merge(one, merge(two, three))
    merged = merge(one, two)
    for field in GenerationDefaults.__struct_fields__:
        upper, lower = getattr(two, field), getattr(one, field)
        assert getattr(merged, field) == (lower if upper in (None, "", ()) else upper)


def test_a_temperature_of_zero_counts_as_set() -> None:
    assert (
        merge(GenerationDefaults(temperature=0.2), GenerationDefaults(temperature=0.0)).temperature
        == 0.0
    )


def test_profile_then_settings_then_call() -> None:
    def temperature(settings: Settings, called: float | None) -> float | None:
        chosen = resolve_model("embedded", settings, keys())
        return fill_generation(chosen, Generation(temperature=called)).temperature

    warm = Settings(generation=GenerationDefaults(temperature=0.5))
    assert temperature(Settings(), None) == 0.2
    assert temperature(warm, None) == 0.5
    assert temperature(warm, 0.0) == 0.0


def test_every_default_is_a_field_of_a_request() -> None:
    of_a_client = {"schema", "parallel_calls"}  # what only a single request says
    fields = set(Generation.__struct_fields__)
    assert set(GenerationDefaults.__struct_fields__) == fields - of_a_client
    assert fill_generation(resolve_model("gpt-4o", Settings(), EVERY), Generation()) == Generation()


def test_models_that_refuse_a_temperature_are_sent_none_and_the_trace_says_so() -> None:
    warm = Settings(generation=GenerationDefaults(temperature=0.5, top_p=0.5))
    for name in ("gpt-5-mini", "claude-sonnet-5"):
        chosen = resolve_model(name, warm, EVERY)
        generation = fill_generation(chosen, Generation(temperature=1.0))
        frame = build_wire(chosen).encode_options(
            RequestOptions(model=name, generation=generation), ()
        )
        assert b"temperature" not in frame.before
        assert b"top_p" not in frame.before
        assert any("temperature" in fix.text for fix in frame.fixes)
        assert any("top_p" in fix.text for fix in frame.fixes)


def test_the_anthropic_format_always_has_an_output_limit() -> None:
    chosen = resolve_model("claude-haiku-4-5", Settings(), EVERY)
    assert fill_generation(chosen, Generation()).max_output == 64_000
    assert fill_generation(chosen, Generation(max_output=9)).max_output == 9


# --- the wire ----------------------------------------------------------------------------------


TOOLS = (Declaration(name="grep"),)


@pytest.mark.parametrize(
    ("name", "wire"),
    [("gpt-4o", "openai"), ("claude-sonnet-4-5", "anthropic"), ("gemini-2.5-pro", "gemini")],
)
def test_each_endpoint_has_its_format(name: str, wire: str) -> None:
    chosen = resolve_model(name, Settings(), EVERY)
    found = build_wire(chosen)
    assert found.name == wire
    assert found.rules.model == chosen.name


def test_a_model_without_native_tools_gets_them_as_text() -> None:
    chosen = resolve_model("embedded", Settings(), keys())
    wire = build_wire(chosen, TOOLS)
    assert isinstance(wire, TextToolsWire)
    assert wire.tools == TOOLS
    assert wire.rules.model == chosen.name


def test_a_model_with_native_tools_gets_them_as_text_when_it_refused_them() -> None:
    chosen = resolve_model("gpt-4o", Settings(), EVERY)
    assert not isinstance(build_wire(chosen, TOOLS), TextToolsWire)
    assert isinstance(build_wire(chosen, TOOLS, text_tools=True), TextToolsWire)


@pytest.mark.parametrize("name", ["embedded", "gpt-4o", "gemini-2.5-pro", "claude-sonnet-4-5"])
def test_a_call_in_thinking_never_runs_whatever_the_profile_says(name: str) -> None:
    chosen = resolve_model(name, Settings(), EVERY)
    wire, inner = build_wire(chosen, TOOLS, text_tools=True), WIRES[chosen.endpoint.wire]
    called = '{"tool_call": {"name": "grep", "arguments": {}}}'
    for text in (
        f"<think>maybe {called}\n",
        f"maybe {called}</think>So.",
        f"<think>{called}</think>",
    ):
        reply = Message(role="model", parts=(Text(text=text),), finish="stop")
        body = b"".join(inner.build(name, chosen.profile).encode_stream(reply))
        decoder = wire.stream_decoder()
        for byte in body:
            decoder.feed(bytes((byte,)))
        decoder.close()
        parts = decoder.message().parts
        assert not any(isinstance(part, ToolCall) for part in parts)
        assert isinstance(parts[0], Thought)
        assert call_problem_feedback(decoder.message()) == ""


def test_a_model_that_thinks_in_its_text_is_read_so_and_switched_off_in_its_own_way() -> None:
    chosen = resolve_model("ollama/qwen3:8b", Settings(), keys())
    wire = build_wire(chosen, thinking_off=True)
    assert isinstance(wire, ThinkTagsWire)
    assert (wire.switch, wire.off) == ("slash_no_think", True)
    hosted = build_wire(resolve_model("dashscope/qwen3-32b", Settings(), EVERY), thinking_off=True)
    assert isinstance(hosted, ThinkTagsWire)
    assert hosted.switch == ""
    assert isinstance(hosted.wire, OpenAIWire)
    assert hosted.wire.thinking_switch == "enable_thinking"
