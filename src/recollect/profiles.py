"""What is known of models and of the endpoints that serve them: data, and nothing else.

A `Profile` applies to every model whose name begins with its prefix; the longest prefix wins, and
unknown models get a stated default. A family's bare prefix is its newest known version, and older
versions have rows of their own: so a version that nobody knew here is taken for the newest. An
`Endpoint` has an address, a wire format and the environment variables that may hold its key. A
price applies to exactly one name, with or without a date at its end: a newer sibling with a similar
name may cost anything.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from typing import Literal, TypeAlias

import msgspec

from recollect.entries import Usage
from recollect.settings import GenerationDefaults, ModelPrice

OTHER_WEIGHT = 1.5  # tokens per character beyond ASCII, when nothing better is known
IMAGE_TOKENS = 3_000
CACHE_WRITE_PRICE = 1.25  # of the price of input, where a provider reports what it wrote
LARGE_WINDOW = 1_000_000
UNKNOWN_WINDOW = 32_768  # safe for models that people run at home; a setting overrides it
# How to switch thinking off: with a field of the request, or with words in the user's messages.
ThinkSwitch: TypeAlias = Literal[
    "", "enable_thinking", "reasoning_effort", "no_think_tag", "slash_no_think"
]
WireName: TypeAlias = Literal["gemini", "openai", "anthropic"]

_IMAGES = ("image/",)
_GEMINI = ("image/", "audio/", "video/", "application/pdf", "text/")
EMBEDDED_MODEL = "smollm2-135m"
CODER_MODEL = "qwen2.5-coder-1.5b-q4"


class Profile(msgspec.Struct, frozen=True):
    """What is known of the models whose names begin with `prefix`."""

    prefix: str
    window: int
    vocabulary: str = ""  # splintr's name for it; empty when it is not public
    other: float = OTHER_WEIGHT  # tokens per character beyond ASCII, when estimated
    image: int = IMAGE_TOKENS
    endpoint: str = ""  # for a bare model name; empty: needs `endpoint/name`
    output: int = 8_192  # tokens of a reply at most
    tools: Literal["native", "text"] = "native"
    preserve_context: bool = True  # with text tools: whether the text beside calls is kept
    thinks: Literal["", "field", "text"] = ""  # where its thoughts are
    reasoning: str = ""  # the OpenAI format's field for sending its thoughts back
    think_switch: ThinkSwitch = ""
    system_role: str = "system"
    alternating_roles: bool = False  # the OpenAI format: user and assistant by turns, nothing else
    max_tokens_field: str = "max_tokens"
    sampling: bool = True  # whether temperature and top_p are accepted
    media: tuple[str, ...] = ()  # prefixes of the MIME types it accepts
    effort: Literal["budget", "level"] = "budget"  # in tokens, or in words
    signed_calls: bool = False  # Gemini 3: calls are signed, and results may hold media
    summarises: bool = True  # whether its snapshots are worth a request
    agentic: bool = True  # whether it can work with tools at all
    few_tools: bool = False  # whether more tools than those for files and commands confuse it
    price: ModelPrice | None = None
    generation: GenerationDefaults = GenerationDefaults()

    @property
    def threshold(self) -> int:
        """Where compaction begins: a fifth of a large window, seven tenths of a small one."""
        return int(self.window * (0.2 if self.window >= LARGE_WINDOW else 0.7))


class Endpoint(msgspec.Struct, frozen=True):
    """A server that models are called at."""

    name: str
    url: str  # empty: known only once it runs, like the embedded model's
    keys: tuple[str, ...] = ()  # variables, the first that is set wins; empty: needs no key
    default: str = ""  # the model to call when none is named
    wire: WireName = "openai"
    headers: tuple[tuple[str, str], ...] = ()
    think_switch: ThinkSwitch = ""  # instead of the profile's, for models that have one
    aliases: tuple[str, ...] = ()  # other names for it
    short_names: tuple[tuple[str, str], ...] = ()  # of its models, if it has no others
    host_variable: str = ""  # the program's own variable for where it listens

    @property
    def is_local(self) -> bool:
        """Whether it is a server that users run on their own machine."""
        return self.url.startswith("http://localhost:")


_gemini = partial(
    Profile, other=1.1, image=258, endpoint="gemini", output=65_536, thinks="field", media=_GEMINI
)
_gpt = partial(
    Profile,
    vocabulary="o200k_base",
    endpoint="openai",
    output=16_384,
    max_tokens_field="max_completion_tokens",
    media=("image/", "application/pdf"),
)
# Wants instructions in the developer role, and rejects temperature and top_p.
_thinking_gpt = partial(
    _gpt, system_role="developer", think_switch="reasoning_effort", sampling=False
)
_claude = partial(
    Profile,
    other=1.2,
    image=1_600,
    endpoint="anthropic",
    output=64_000,
    thinks="field",
    media=("image/", "application/pdf", "text/plain"),
)
# From Claude Opus 4.7 on, a token budget for thinking is rejected, and so is a temperature other
# than the default (platform.claude.com, models/sonnet-5/overview).
_claude_5 = partial(_claude, output=128_000, sampling=False, effort="level")
_qwen = partial(Profile, endpoint="dashscope")
# Some servers move the thoughts from the text to a field, others leave them there. Reading both
# costs nothing, so the profile says "text".
_thinking_qwen = partial(_qwen, thinks="text", think_switch="slash_no_think")
# Wants the thoughts of an exchange with tools sent back (api-docs.deepseek.com, thinking mode).
_thoughts_back = partial(Profile, thinks="field", reasoning="reasoning_content")

_old_gemma = partial(Profile, tools="text", alternating_roles=True)
_glm = partial(Profile, vocabulary="glm4", endpoint="zhipu", thinks="field")
# A user's message right after results is refused, by its service and by its chat templates.
_mistral = partial(Profile, vocabulary="mistral_v3", endpoint="mistral", alternating_roles=True)

UNKNOWN_PROFILE = Profile("", UNKNOWN_WINDOW, media=_IMAGES)
PROFILES = (
    _gemini("gemini-1.5-pro", 2_097_152, output=8_192),
    _gemini("gemini-1.5", 1_048_576, output=8_192),
    _gemini("gemini-2.0", 1_048_576, output=8_192),
    _gemini("gemini-2", 1_048_576),
    _gemini("gemini", 1_048_576, effort="level", signed_calls=True),
    # 1 and 2, whose first sizes are names too: gemma-2b, gemma-7b, gemma:7b
    *(_old_gemma(f"gemma{name}", 8_192, "gemma2") for name in ("-1", "-2", "2", "-7b", ":")),
    *(_old_gemma(f"gemma{name}", 131_072, "gemma3", media=_IMAGES) for name in ("-3", "3")),
    *(
        _old_gemma(f"gemma{name}", 32_768, "gemma3")
        for name in ("-3-1b", "3:1b", "-3-270m", "3:270m")
    ),
    *(_old_gemma(f"gemma{name}", 32_768, "gemma3", media=_IMAGES) for name in ("-3n", "3n")),
    # From 4 on it has native tools and system messages (ai.google.dev/gemma/docs/core); E2B and
    # E4B have the smaller window.
    *(Profile(f"gemma{name}", 131_072, "gemma4", media=_IMAGES) for name in ("-4-e", "4:e")),
    Profile("gemma", 262_144, "gemma4", media=_IMAGES),
    *(_thinking_gpt(f"gpt-{n}", 400_000, output=128_000) for n in range(5, 10)),
    _gpt("gpt-4.1", 1_047_576, output=32_768),
    _gpt("gpt-4o", 128_000),
    _gpt("gpt-4.", 128_000),
    *(
        _gpt(f"gpt-4-{name}", 128_000, vocabulary="cl100k_base", output=4_096)
        for name in ("turbo", "1106", "0125", "vision")
    ),
    _gpt("gpt-4-32k", 32_768, vocabulary="cl100k_base", output=8_192),
    _gpt("gpt-4", 8_192, vocabulary="cl100k_base", output=8_192),
    _gpt("gpt-3.5", 16_385, vocabulary="cl100k_base", output=4_096),
    Profile("gpt-oss", 131_072, "o200k_base", thinks="field", think_switch="reasoning_effort"),
    _gpt("chatgpt-4o", 128_000),
    *(_thinking_gpt(prefix, 200_000, output=100_000) for prefix in ("o1", "o3", "o4", "o5", "o6")),
    _claude("claude-3-haiku", 200_000, output=4_096),
    _claude("claude-3-opus", 200_000, output=4_096),
    _claude("claude-3-5", 200_000, output=8_192),
    _claude("claude-3", 200_000),
    *(_claude(f"claude-{name}", 100_000, output=4_096) for name in ("1", "2", "v", "instant")),
    *(_claude(f"claude-{name}-4", 200_000) for name in ("sonnet", "haiku")),
    _claude("claude-opus-4-5", 200_000),
    _claude_5("claude-opus-4-7", 200_000, output=64_000),
    _claude_5("claude-opus-4-8", 200_000, output=64_000),
    _claude("claude-opus-4", 200_000, output=32_000),
    _claude_5("claude", 1_000_000),
    _qwen("qwen3-coder", 262_144, "qwen3"),
    _thinking_qwen("qwen3", 131_072, "qwen3"),
    # 3.5 has a native window of 262,144, and so have its successors as far as they are known
    *(_thinking_qwen(f"qwen{n}", 262_144, "qwen3") for n in ("3.5", "3.6", *range(4, 10))),
    _qwen("qwen2.5", 131_072, "qwen2.5"),
    # the embedded one: it can read 32,768 tokens, but two cores need minutes for that
    Profile(
        CODER_MODEL,
        16_384,
        "qwen2.5",
        endpoint="embedded",
        output=2_048,
        tools="text",
        few_tools=True,
        summarises=False,
        generation=GenerationDefaults(temperature=0.0),
    ),
    _qwen("qwen", 32_768, "qwen2.5"),
    _thinking_qwen("qwen-plus", 131_072, "qwen3"),
    _thinking_qwen("qwq", 131_072, "qwen2.5"),
    _thoughts_back("deepseek", 131_072, "deepseek_v3", endpoint="deepseek"),
    # R1 and its distilled versions, as people run them locally
    Profile("deepseek-r1", 131_072, "deepseek_v3", tools="text", thinks="text"),
    *(_glm(f"glm-{name}", 131_072) for name in ("3", "4", "z")),
    *(_glm(f"glm{name}", 200_000, output=131_072) for name in ("-4.6", "-4.7", "")),
    _thoughts_back("kimi-k", 262_144, "kimi_k2", endpoint="moonshot"),
    Profile("kimi-k1", 131_072, "kimi_k2", endpoint="moonshot"),
    Profile("kimi", 131_072, "kimi_k2", endpoint="moonshot"),
    # each as Meta and as Ollama spells it; the sizes of the first version are names too
    *(Profile(f"llama{dash}{n}", 1_048_576, "llama3") for dash in ("-", "") for n in range(4, 10)),
    *(Profile(f"llama{dash}3.", 131_072, "llama3") for dash in ("-", "")),
    *(Profile(f"llama{dash}3", 8_192, "llama3") for dash in ("-", "")),
    *(Profile(f"llama{dash}2", 4_096, "llama2", output=4_096) for dash in ("-", "")),
    *(Profile(f"llama-{n}b", 2_048, "llama2", output=2_048) for n in (7, 13, 30, 33, 65)),
    Profile("llama", 131_072, "llama3"),
    _mistral("mistral", 131_072),
    *(_mistral(f"mistral{name}", 32_768) for name in ("-7b", ":7b")),
    # at temperature 0 it repeats itself
    Profile(
        "smollm2",
        8_192,
        endpoint="embedded",
        output=2_048,
        tools="text",
        summarises=False,
        agentic=False,
        generation=GenerationDefaults(temperature=0.2),
    ),
)

# When no model is named, the first one with a key is used.
ENDPOINTS = (
    Endpoint(
        "gemini",
        "https://generativelanguage.googleapis.com",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "gemini-flash-latest",
        wire="gemini",
        aliases=("google",),
    ),
    Endpoint("openai", "https://api.openai.com/v1", ("OPENAI_API_KEY",), "gpt-5-mini"),
    Endpoint(
        "anthropic",
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY",),
        "claude-sonnet-5",
        wire="anthropic",
        headers=(("anthropic-version", "2023-06-01"),),
    ),
    Endpoint("deepseek", "https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",), "deepseek-chat"),
    Endpoint(
        "dashscope",
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        ("DASHSCOPE_API_KEY",),
        "qwen-plus",
        think_switch="enable_thinking",
        aliases=("qwen", "alibaba"),
    ),
    Endpoint(
        "zhipu",
        "https://open.bigmodel.cn/api/paas/v4",
        ("ZHIPUAI_API_KEY", "ZHIPU_API_KEY"),
        "glm-4.6",
    ),
    Endpoint("zai", "https://api.z.ai/api/paas/v4", ("ZAI_API_KEY",), "glm-4.6", aliases=("z-ai",)),
    Endpoint(
        "moonshot", "https://api.moonshot.ai/v1", ("MOONSHOT_API_KEY",), "kimi-k2-turbo-preview"
    ),
    Endpoint("mistral", "https://api.mistral.ai/v1", ("MISTRAL_API_KEY",), "mistral-medium-latest"),
    Endpoint(
        "openrouter",
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_API_KEY",),
        "openrouter/auto",
        headers=(("X-Title", "recollect"),),
    ),
    Endpoint("ollama", "http://localhost:11434/v1", host_variable="OLLAMA_HOST"),
    Endpoint("lmstudio", "http://localhost:1234/v1"),
    Endpoint("vllm", "http://localhost:8000/v1", think_switch="enable_thinking"),
    # llama.cpp's server promises to keep connections after a streamed reply and often does not
    Endpoint("llamacpp", "http://localhost:8080/v1", headers=(("connection", "close"),)),
    Endpoint(
        "embedded",
        "",
        default=EMBEDDED_MODEL,
        headers=(("connection", "close"),),
        short_names=(("small", EMBEDDED_MODEL), ("coder", CODER_MODEL)),
    ),
)

# US dollars per million tokens: input, output, cached input. Claude: the provider's list as of
# November 2026. GPT and Gemini: their lists as of late 2025. Models with peak hours or with a
# higher price for long prompts are not listed.
PRICES = {
    "claude-opus-5": ModelPrice(5.0, 25.0, 0.5),
    "claude-opus-4-8": ModelPrice(5.0, 25.0, 0.5),
    "claude-opus-4-7": ModelPrice(5.0, 25.0, 0.5),
    "claude-opus-4-6": ModelPrice(5.0, 25.0, 0.5),
    "claude-opus-4-5": ModelPrice(5.0, 25.0, 0.5),
    "claude-opus-4-1": ModelPrice(15.0, 75.0, 1.5),
    "claude-sonnet-5-5": ModelPrice(2.0, 10.0, 0.2),
    "claude-sonnet-5": ModelPrice(2.0, 10.0, 0.2),
    "claude-haiku-4-5": ModelPrice(1.0, 5.0, 0.1),
    "gpt-5": ModelPrice(1.25, 10.0, 0.125),
    "gpt-5-mini": ModelPrice(0.25, 2.0, 0.025),
    "gpt-5-nano": ModelPrice(0.05, 0.4, 0.005),
    "gpt-4.1": ModelPrice(2.0, 8.0, 0.5),
    "gpt-4.1-mini": ModelPrice(0.4, 1.6, 0.1),
    "gpt-4.1-nano": ModelPrice(0.1, 0.4, 0.025),
    "gpt-4o": ModelPrice(2.5, 10.0, 1.25),
    "gpt-4o-mini": ModelPrice(0.15, 0.6, 0.075),
    "o3": ModelPrice(2.0, 8.0, 0.5),
    "o4-mini": ModelPrice(1.1, 4.4, 0.275),
    "gemini-2.5-flash": ModelPrice(0.3, 2.5, 0.03),
    "gemini-2.5-flash-lite": ModelPrice(0.1, 0.4, 0.01),
}
_DATE = re.compile(r"-20\d\d-?\d\d-?\d\d$")


@lru_cache(256)
def find_profile(model: str) -> Profile:
    """By the longest prefix; `openai/` and `models/` in front of a name are ignored."""
    name = model.lower().rsplit("/", 1)[-1].strip()
    fitting = [profile for profile in PROFILES if name.startswith(profile.prefix)]
    profile = max(fitting, key=lambda profile: len(profile.prefix), default=UNKNOWN_PROFILE)
    price = PRICES.get(_DATE.sub("", name))
    return msgspec.structs.replace(profile, price=price) if price else profile


def is_known_model(model: str) -> bool:
    return find_profile(model) is not UNKNOWN_PROFILE


def compute_cost(usage: Usage, price: ModelPrice | None) -> float | None:
    """US dollars for the usage that a reply reports."""
    if price is None:
        return None
    cached = min(usage.cached or 0, usage.input) if price.cached is not None else 0
    # Gemini counts thoughts apart from the output, the others within it; all bill them as output
    output = max(usage.output, usage.total - usage.input - usage.tool)
    written = min(usage.written, usage.input - cached)
    fresh = usage.input - cached + usage.tool + written * (CACHE_WRITE_PRICE - 1)
    dollars = fresh * price.input + cached * (price.cached or 0.0) + output * price.output
    return dollars / 1_000_000


def find_endpoint(name: str) -> Endpoint | None:
    """The endpoint of this name or alias, in any case."""
    low = name.lower()
    return next((e for e in ENDPOINTS if low == e.name or low in e.aliases), None)
