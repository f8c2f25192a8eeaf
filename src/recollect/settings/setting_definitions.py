"""The tables of a settings file as frozen values, each setting with its bounds and its default.

A default here is the only place where it stands; `docs/settings.md` repeats it, and a test compares
the two. What cannot be said by a type alone is checked in `recollect.settings.settings_validation`.
"""

# Without `from __future__ import annotations`: msgspec reads them for every settings file, and
# texts it would have to compile one by one.

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from recollect.stale_rules import STALE_RULES, StaleRule

Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=86_400)]
Tokens: TypeAlias = Annotated[int, Meta(ge=1, le=100_000_000)]
TokensOrZero: TypeAlias = Annotated[int, Meta(ge=0, le=100_000_000)]  # 0 for none
Dollars: TypeAlias = Annotated[float, Meta(ge=0, le=1_000_000)]
KeepCount: TypeAlias = Annotated[int, Meta(ge=1, le=10_000)]
ShortName: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200)]
HookEventName: TypeAlias = Literal[
    "SessionStart",
    "BeforeAgent",
    "BeforeModel",
    "AfterModel",
    "BeforeTool",
    "AfterTool",
    "PreCompress",
    "ChatCompressed",
    "ContextWindowWillOverflow",
    "LoopDetected",
    "AfterAgent",
    "SessionEnd",
]


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class ModelPrice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars for a million tokens."""

    input: Dollars
    output: Dollars
    cached: Dollars | None = None


class GenerationDefaults(_Section, frozen=True):
    """How models shall write, `[generation]`; what is not set is left to the provider."""

    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    max_output: Tokens | None = None
    stop: Annotated[tuple[str, ...], Meta(max_length=16)] = ()
    seed: int | None = None
    effort: Literal["", "none", "low", "medium", "high"] = ""


class TransportSettings(_Section, frozen=True):
    """How models are reached."""

    connect_timeout: Seconds = 10.0
    read_timeout: Seconds = 300.0  # of silence; a model may think for minutes before it speaks
    total_timeout: Seconds = 1_800.0  # one question with all its retries
    retries: Annotated[int, Meta(ge=0, le=20)] = 3
    longest_wait: Seconds = 60.0  # between two attempts, whatever the provider asks for
    proxy: str = ""
    headers: dict[str, str] = {}


class CustomModel(_Section, frozen=True):
    """A model of one's own, `[models.NAME]`. What is not set is taken from what is known of it."""

    url: str
    wire: Literal["openai", "anthropic", "gemini"] = "openai"
    model: str = ""  # its name on the wire; NAME when empty
    key: str = ""  # the variable that holds the key
    window: Tokens | None = None
    output: Tokens | None = None
    tools: Literal["native", "text"] | None = None
    thinks: Literal["", "field", "text"] | None = None
    think_switch: (
        Literal["", "enable_thinking", "reasoning_effort", "no_think_tag", "slash_no_think"] | None
    ) = None
    reasoning: str | None = None
    system_role: Literal["system", "developer"] | None = None
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    media: tuple[str, ...] | None = None
    price: ModelPrice | None = None
    headers: dict[str, str] = {}


class PermissionSettings(_Section, frozen=True):
    """What the agent may do without asking; a rule is a line of words, `docs/permissions.md`."""

    mode: Literal["plan", "ask", "edit", "free"] = "ask"
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    network: bool = False  # whether commands in the sandbox have the network


class AgentSettings(_Section, frozen=True):
    """How the agent works, `[agent]`."""

    max_turns: Annotated[int, Meta(ge=1, le=100_000)] = 100
    watch_loops: bool = True
    judge_after: Annotated[int, Meta(ge=0, le=100_000)] = 0  # turns; 0: no model judges
    memory_files: Annotated[tuple[ShortName, ...], Meta(max_length=20)] = (
        "AGENTS.md",
        "GEMINI.md",
        "CLAUDE.md",
    )
    editor: Annotated[str, Meta(max_length=4_000)] = ""  # a JSON file with what the editor shows
    telemetry: bool = False


class _ContextBase(_Section, frozen=True):
    """`[context]` without the settings that `STALE_RULES` adds."""

    keep_reads: KeepCount = 5  # newest of each file
    keep_read_tokens: TokensOrZero = 0  # of these only as many as fit; 0 for all of them
    # shorter results than these would no longer say anything
    max_characters: Annotated[int, Meta(ge=1_000, le=100_000_000)] = 4_000_000
    max_lines: Annotated[int, Meta(ge=10, le=10_000_000)] = 1_000
    min_saving: TokensOrZero = 2_000
    threshold: TokensOrZero = 0  # where compaction begins; 0: by the model
    target: TokensOrZero = 0  # what it has to reach; 0: four fifths of the threshold
    summarise: Annotated[tuple[ShortName, ...], Meta(max_length=100)] = ()
    summary_tokens: Annotated[int, Meta(ge=100, le=1_000_000)] = 2_000

    @property
    def stale_rules(self) -> tuple[StaleRule, ...]:
        """The rules with the keep counts and ages that are set here."""
        return tuple(
            replace(
                rule, keep=getattr(self, rule.keep_setting), age=getattr(self, rule.age_setting)
            )
            for rule in STALE_RULES
        )


if TYPE_CHECKING:  # mypy cannot read generated fields; `stale_rules` is their typed access
    ContextSettings: TypeAlias = _ContextBase
else:
    ContextSettings = msgspec.defstruct(
        "ContextSettings",
        [
            field
            for rule in STALE_RULES
            for field in (
                (rule.keep_setting, KeepCount, rule.keep),
                (rule.age_setting, Seconds, rule.age),
            )
        ],
        bases=(_ContextBase,),
        namespace={"__doc__": "What the model sees of a long session, `[context]`."},
        module=__name__,
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


class RoutingSettings(_Section, frozen=True):
    """Which model answers when several could, `[routing]`."""

    classifier: Annotated[str, Meta(max_length=200)] = ""
    choices: Annotated[
        dict[ShortName, Annotated[str, Meta(min_length=1, max_length=500)]], Meta(max_length=20)
    ] = {}
    fallback: Annotated[tuple[ShortName, ...], Meta(max_length=20)] = ()


class HookCommand(_Section, frozen=True):
    """A command that hears of an event, `[[hooks]]`."""

    event: HookEventName
    command: Annotated[str, Meta(min_length=1, max_length=4_000)]
    timeout: Annotated[float, Meta(gt=0, le=60)] = 60.0

    @property
    def words(self) -> tuple[str, ...]:
        """The program and its arguments: quotes and backslashes as in a shell, and nothing else."""
        import shlex

        return tuple(shlex.split(self.command))


class Settings(_Section, frozen=True):
    model: str = ""  # the first endpoint with a key, else the embedded model
    language: Literal["en", "zh"] = "en"
    mirror: Literal["", "gemini", "history-server"] = ""
    autosave_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 30.0  # of the mirror; 0: no timer
    agent: AgentSettings = AgentSettings()
    context: ContextSettings = ContextSettings()
    permissions: PermissionSettings = PermissionSettings()
    generation: GenerationDefaults = GenerationDefaults()
    routing: RoutingSettings = RoutingSettings()
    transport: TransportSettings = TransportSettings()
    models: dict[str, CustomModel] = {}
    hooks: Annotated[tuple[HookCommand, ...], Meta(max_length=50)] = ()


SETTINGS_SECTIONS: dict[str, type[msgspec.Struct]] = {
    "agent": AgentSettings,
    "context": ContextSettings,
    "permissions": PermissionSettings,
    "generation": GenerationDefaults,
    "routing": RoutingSettings,
    "transport": TransportSettings,
}
