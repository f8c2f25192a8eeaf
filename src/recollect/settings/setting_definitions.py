"""Every setting: its key, bounds, meaning and default, as one field of a frozen struct.

This is the only place where a setting is written down. `docs/settings.md` repeats meaning and
default, and a test compares the two. Rules that a type cannot express are in `settings_validation`.
"""

# Without `from __future__ import annotations`: msgspec reads the annotations for every settings
# file, and would have to compile them one by one if they were strings.

import shlex
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from recollect.stale_rules import STALE_RULES, StaleRule

Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=86_400)]
Tokens: TypeAlias = Annotated[int, Meta(ge=1, le=100_000_000)]
TokensOrZero: TypeAlias = Annotated[int, Meta(ge=0, le=100_000_000)]
Dollars: TypeAlias = Annotated[float, Meta(ge=0, le=1_000_000)]
KeepCount: TypeAlias = Annotated[int, Meta(ge=1, le=10_000)]
ShortName: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200)]
ThemeName: TypeAlias = Literal["auto", "light", "dark"]
ShortNames: TypeAlias = Annotated[tuple[ShortName, ...], Meta(max_length=20)]


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class ModelPrice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars per million tokens."""

    input: Dollars
    output: Dollars
    cached: Dollars | None = None


class AgentSettings(_Section, frozen=True):
    """`[agent]`: how the agent works."""

    max_turns: Annotated[int, Meta(ge=1, le=100_000)] = 100
    """the most replies of the model to one prompt"""
    detect_loops: bool = True
    """warn a model that repeats itself, then stop the run"""
    loop_check_after: Annotated[int, Meta(ge=0, le=100_000)] = 0
    """after this many turns, such as `30`, ask a model whether the run is looping; `0`: never"""
    memory_files: ShortNames = ("AGENTS.md", "GEMINI.md", "CLAUDE.md")
    """names of memory files, which are looked for in the data directory and in the project's
    folders; also files of yours with their paths, such as `~/.claude/CLAUDE.md`"""
    memory_imports: Literal["tree", "flat"] = "tree"
    """`@path` in a memory file: `tree` inserts that file in place, `flat` appends each one once"""
    directories: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=4_000)], ...], Meta(max_length=20)
    ] = ()
    """further folders to work in, absolute or from `~`; tools may use them like the project"""
    editor: Annotated[str, Meta(max_length=4_000)] = ""
    """a JSON file in which your editor describes its open files; `""`: none"""
    telemetry: bool = False
    """emit OpenTelemetry spans, if the extra is installed"""


class _ContextBase(_Section, frozen=True):
    """`[context]` without the settings that `STALE_RULES` adds."""

    keep_reads: KeepCount = 5
    """keep this many of the newest reads of each file"""
    keep_read_tokens: TokensOrZero = 0
    """of these, keep only as many as fit into this many tokens; `0`: all"""
    # with smaller limits, the part that is left would be useless
    max_characters: Annotated[int, Meta(ge=1_000, le=100_000_000)] = 4_000_000
    """the middle of a result with more characters is left out"""
    max_lines: Annotated[int, Meta(ge=10, le=10_000_000)] = 1_000
    """the middle of a result with more lines is left out; a read of at most 2,000 lines of a file
    stays whole while the context is within its budget"""
    min_saving: TokensOrZero = 2_000
    """leave nothing out until it saves this many tokens in all"""
    payback_requests: Annotated[int, Meta(ge=0, le=100_000)] = 20
    """leave something out that was sent before only if what breaking the provider's prompt cache
    costs is earned back within this many further requests; `0`: only where it costs nothing"""
    cache_lifetime: Seconds = 300.0
    """seconds after a request for which the provider keeps its prompt cache"""
    threshold: TokensOrZero = 0
    """compact at this many tokens, at least 1,000 and at most nine tenths of the model's context
    window; `0`: depends on the model"""
    curation: Literal["keep_user", "drop_pair"] = "keep_user"
    """when a reply is invalid and left out: `keep_user` still sends the prompt it answers,
    `drop_pair` leaves that out too"""
    validity: Literal["strict", "any_part"] = "strict"
    """a reply is valid if none of its parts is empty, except for a text beside a call or another
    text (`strict`), or if one has content (`any_part`)"""
    target: TokensOrZero = 0
    """tokens that a compaction must get down to; `0`: four fifths of the threshold"""
    summarize_tools: Annotated[tuple[ShortName, ...], Meta(max_length=100)] = ()
    """names of tools whose long output a model summarizes"""
    summary_tokens: Annotated[int, Meta(ge=100, le=1_000_000)] = 2_000
    """output of these tools is long above this many tokens"""

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
        namespace={"__doc__": "`[context]`: what the model sees of a long session."},
        module=__name__,
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


class PermissionSettings(_Section, frozen=True):
    """`[permissions]`: what the agent may do without asking. A rule is a line of words."""

    mode: Literal["plan", "ask", "edit", "free", "unrestricted"] = "ask"
    """`plan`, `ask`, `edit` (may change files of the folder), `free` (may run commands too, in a
    sandbox) or `unrestricted` (anything, without a sandbox); if nobody can be asked, ask means
    no"""
    allow: tuple[str, ...] = ()
    """rules for commands that may run, such as `"git diff *"`"""
    ask: tuple[str, ...] = ()
    """rules for commands that always ask"""
    deny: tuple[str, ...] = ()
    """rules for commands that never run"""
    network: bool = False
    """give commands in the sandbox network access"""
    sandbox: Literal["auto", "bubblewrap", "landlock", "none"] = "auto"
    """what commands run in: `bubblewrap`, `landlock`, `none`, or the best there is (`auto`); where
    the one you name cannot be had, no command runs"""
    show_secrets: tuple[str, ...] = ()
    """secrets in the workspace that commands and tools may read: names (`".env.test"`), or paths
    from the workspace, from `/` or from `~/`; `"."` stands for all of them"""


class GenerationDefaults(_Section, frozen=True):
    """`[generation]`: how models write. The provider decides what is not set."""

    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    """0 to 2; not sent to models that refuse it"""
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    """0 to 1; not sent to models that refuse it"""
    max_output: Tokens | None = None
    """the most tokens of a reply"""
    stop: Annotated[tuple[str, ...], Meta(max_length=16)] = ()
    """texts that end a reply"""
    seed: int | None = None
    """for repeatable replies, if the provider supports it"""
    effort: Literal["", "none", "low", "medium", "high"] = ""
    """how much to think: `none`, `low`, `medium`, `high`"""


class RoutingSettings(_Section, frozen=True):
    """`[routing]`: which model answers."""

    classifier: Annotated[str, Meta(max_length=200)] = ""
    """the model that chooses; it needs at least two choices"""
    choices: Annotated[
        dict[ShortName, Annotated[str, Meta(min_length=1, max_length=500)]], Meta(max_length=20)
    ] = {}
    """names of models, each with what it is good for"""
    fallback: ShortNames = ()
    """models to try, in this order, when the first one is down"""


class TransportSettings(_Section, frozen=True):
    """`[transport]`: how requests reach a provider."""

    connect_timeout: Seconds = 10.0
    """seconds to wait for a connection"""
    read_timeout: Seconds = 300.0
    """seconds of silence after which the connection counts as broken"""
    total_timeout: Seconds = 1_800.0
    """seconds for one request with all its retries"""
    retries: Annotated[int, Meta(ge=0, le=20)] = 3
    """how often to retry when the provider is busy or the connection breaks"""
    longest_wait: Seconds = 300.0
    """the most seconds between two attempts; where a provider asks for more, the run ends and says
    so"""
    proxy: str = ""
    """`http://host:port`, or `socks5://host:port` with `pip install 'recollect[socks]'`; not used
    for this machine itself. Empty: from the environment (`HTTPS_PROXY`, `NO_PROXY` …)"""
    headers: dict[str, str] = {}
    """sent with every request"""


class CustomModel(_Section, frozen=True):
    """`[models.NAME]`: a model of your own. Known models of that name give what is not set."""

    url: str
    """the address before `/chat/completions` (`openai`), `/v1/messages` (`anthropic`) or
    `/v1beta/models` (`gemini`)"""
    wire: Literal["openai", "anthropic", "gemini"] = "openai"
    """the wire format: `openai`, `anthropic` or `gemini`"""
    model: str = ""
    """its name in requests"""
    key: str = ""
    """the environment variable with its API key, never the key itself; empty: no key"""
    window: Tokens | None = None
    """the context window in tokens"""
    output: Tokens | None = None
    """the most tokens of a reply"""
    tools: Literal["native", "text"] | None = None
    """`native`, or `text` for models without tool calls"""
    preserve_context: bool | None = None
    """with `tools = "text"`: keep the text that the model writes beside its calls"""
    thinks: Literal["", "field", "text"] | None = None
    """where its thoughts are: `field`, `text` (`<think>`), or `""`"""
    think_switch: (
        Literal["", "enable_thinking", "reasoning_effort", "no_think_tag", "slash_no_think"] | None
    ) = None
    """how to turn thinking off: `enable_thinking`, `reasoning_effort`, `no_think_tag`,
    `slash_no_think`, or `""`"""
    reasoning: str | None = None
    """the field in which its thoughts are sent back, such as `reasoning_content`; `""`: they are
    not"""
    system_role: Literal["system", "developer"] | None = None
    """`system` or `developer`"""
    alternating_roles: bool | None = None
    """with `wire = "openai"`: whether the server wants user and assistant messages by turns; it is
    found out from its error otherwise"""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    """`max_tokens` or `max_completion_tokens`"""
    media: tuple[str, ...] | None = None
    """prefixes of the MIME types that it accepts; `[]`: text only"""
    agentic: bool | None = None
    """whether it may run as an agent (`-p`); `true` also lets a model that is too small for it"""
    price: ModelPrice | None = None
    """`{ input = 1.0, output = 2.0, cached = 0.1 }`: US dollars per million tokens"""
    headers: dict[str, str] = {}
    """sent with every request to it"""


class HookCommand(_Section, frozen=True):
    """`[[hooks]]`: a command that is run at an event."""

    event: str
    """one of the events of [hooks.md](hooks.md), such as `BeforeTool`"""
    command: Annotated[str, Meta(min_length=1, max_length=4_000)]
    """the program and its arguments, at most 4,000 characters; quotes as in a shell"""
    timeout: Annotated[float, Meta(gt=0, le=60)] = 60.0
    """seconds after which it is killed, at most 60"""
    env: ShortNames = ()
    """names of environment variables that it gets besides the usual ones, such as `GITHUB_TOKEN`"""

    @property
    def words(self) -> tuple[str, ...]:
        """The program and its arguments: split as a shell does, but nothing is expanded."""
        return tuple(shlex.split(self.command))


class TerminalSettings(_Section, frozen=True):
    """`[terminal]`: the terminal program."""

    theme: ThemeName = "auto"
    """`light`, `dark`, or what the terminal's background asks for (`auto`)"""
    notify: Literal["auto", "bell", "off"] = "auto"
    """when it waits for you, or has finished after more than 10 seconds, and another window has the
    focus: the terminal's bell and a notification (`auto`), only the `bell`, or nothing (`off`)"""


class Settings(_Section, frozen=True):
    model: str = ""
    """the model to use when none is named; empty: the first endpoint with a key, else the embedded
    model"""
    store: Annotated[str, Meta(max_length=4_000)] = ""
    """where sessions are stored: the path of a file, or `postgresql://USER@HOST/DATABASE`; empty: a
    file in the data directory. `RECOLLECT_STORE` and `--store` come before it"""
    store_wait: Annotated[float, Meta(ge=0.1, le=600)] = 30.0
    """how many seconds to wait for a database that is away, before what needs it fails"""
    language: Literal["en", "zh"] = "en"
    """of placeholders and server texts: `en` or `zh`"""
    mirror: Literal["", "gemini", "history-server"] = ""
    """`gemini` or `history-server`: also write each session to a file of that format, after each
    turn"""
    autosave_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 30.0
    """seconds after which the mirror is also written during a turn; `0`: only after turns"""
    agent: AgentSettings = AgentSettings()
    context: ContextSettings = ContextSettings()
    permissions: PermissionSettings = PermissionSettings()
    generation: GenerationDefaults = GenerationDefaults()
    routing: RoutingSettings = RoutingSettings()
    transport: TransportSettings = TransportSettings()
    terminal: TerminalSettings = TerminalSettings()
    models: dict[str, CustomModel] = {}
    hooks: Annotated[tuple[HookCommand, ...], Meta(max_length=50)] = ()


SETTINGS_SECTIONS: dict[str, type[msgspec.Struct]] = {
    field.name: field.type
    for field in msgspec.structs.fields(Settings)
    if isinstance(field.type, type) and issubclass(field.type, _Section)
}
