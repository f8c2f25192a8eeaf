from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import BadSettings
from recollect.settings import (
    CustomModel,
    HookCommand,
    Settings,
    load_settings,
    parse,
    parse_settings,
)
from recollect.settings.setting_definitions import SETTINGS_SECTIONS as TABLES
from recollect.settings.settings_listing import list_settings

PAGE = Path(__file__).parent.parent / "docs" / "settings.md"
SECTIONS: dict[str, type[msgspec.Struct]] = {
    "": Settings,
    **{f"{name}.": section for name, section in TABLES.items()},
    "models.NAME.": CustomModel,
    "hooks.": HookCommand,
}


def test_a_file_that_is_not_there_means_the_defaults(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "settings.toml") == Settings()


def test_the_file_is_looked_for_in_the_home_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_HOME", str(tmp_path))
    (tmp_path / "settings.toml").write_text('\ufeffmodel = "gpt-5"', encoding="utf-8")
    assert load_settings().model == "gpt-5"


def test_five_lines_add_a_model() -> None:
    settings = parse("""
        [models.workstation]
        url = "http://workstation:8000/v1"
        model = "qwen3-coder"
        key = "WORKSTATION_KEY"
        window = 65536
    """)
    own = settings.models["workstation"]
    assert (own.wire, own.model, own.key) == ("openai", "qwen3-coder", "WORKSTATION_KEY")
    assert (own.window, own.tools, own.price) == (65_536, None, None)


def test_the_examples_of_the_page_are_accepted() -> None:
    found = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    first, project, routing = map(parse, found)
    assert first.generation.temperature == 0.3
    assert project.hooks[0].words == ("./scripts/check-call.py", "--strict")
    assert len(routing.routing.choices) == 2


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        parse("").model = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("modle = 'x'", "line 1, `modle` is no setting (did you mean `model`?)"),
        ("[transport]\nretrys = 3", "line 2, `transport.retrys` is no setting (did you mean"),
        ("[models.a]\nurl='http://a'\nwindwo=1", "`models.a.windwo` is no setting (did you mean"),
        ("[transport]\nzzz = 3", "known are connect_timeout, read_timeout"),
        ("[transport]\nretries = 'many'", "line 2, `transport.retries`: expected `int`, got `str`"),
        ("[transport]\nretries = -1", "`transport.retries`: expected `int` >= 0"),
        ("[generation]\ntemperature = 3", "`generation.temperature`: expected `float` <= 2"),
        ("language = 'tlh'", "`language`: invalid enum value 'tlh'"),
        ("[models.a]\nwindow = 5", "lacks `url`"),
        ("[models.a]\nurl = 'ftp://a'", "`models.a.url` must be an address"),
        ("[models.a]\nurl = 'http://'", "`models.a.url` must be an address"),
        ("[models.a]\nurl = 'http://a:99999'", "`models.a.url` must be an address"),
        ("[transport]\nproxy = 'a:1'", "`transport.proxy` must be an address"),
        ("[transport.headers]\n'a b' = 'c'", "`transport.headers` has a header"),
        ("[transport.headers]\na = 'c\\n'\nb = \"c\\nd\"", "`transport.headers` has a header"),
        ("model = ", "it is not TOML"),
        ("models = 3", "`models`: expected `object`"),
        ("transport = [1]", "`transport`: expected `object`"),
        ("mirror = 'xml'", "line 1, `mirror`: invalid enum value 'xml'"),
        ("autosave_seconds = -1", "`autosave_seconds`: expected `float` >= 0"),
        ("autosave_seconds = nan", "`autosave_seconds`: expected `float` >= 0"),
        ("[agent]\nmax_turns = 0", "line 2, `agent.max_turns`: expected `int` >= 1"),
        ("[agent]\nmax_turn = 5", "`agent.max_turn` is no setting (did you mean `max_turns`?)"),
        ("[agent]\nmemory_files = ['../x.md']", "takes names of files without folders"),
        ("[agent]\nmemory_files = ['..']", "takes names of files without folders"),
        ("[agent]\nmemory_files = ['a\\b.md']", "takes names of files without folders"),
        ("[agent]\nmemory_files = ['']", "`agent.memory_files`: expected `str` of length >= 1"),
        ("[agent]\nmemory_files = 'A.md'", "`agent.memory_files`: expected `array`"),
        ("[context]\nkeep_reads = 0", "`context.keep_reads`: expected `int` >= 1"),
        ("[context]\nkeep_reads = 2.5", "`context.keep_reads`: expected `int`, got `float`"),
        ("[context]\nmax_lines = 1", "`context.max_lines`: expected `int` >= 10"),
        ("[context]\nthreshold = 5000\ntarget = 6000", "line 3, `context.target` must not be"),
        ("[context]\nthreshold = 999", "line 2, `context.threshold` must be 0 or at least 1,000"),
        ("[context]\ntarget = 1", "line 2, `context.target` must be 0 or at least 1,000"),
        ("[routing]\nclassifier = 'a'", "`routing.classifier` needs two `routing.choices`"),
        ("[routing.choices]\na = ''", "`routing.choices`: expected `str` of length >= 1"),
        ("[routing.choices]\n'' = 'a'", "`routing.choices`: expected `str` of length >= 1"),
        ("[[hooks]]\nevent = 'BeforeTool'", "`hooks` lacks `command`"),
        (
            "[[hooks]]\nevent = 'BeforTool'\ncommand = 'a'",
            "line 2, `hooks.event`: invalid enum value 'BeforTool' (did you mean `BeforeTool`?)",
        ),
        (
            "[[hooks]]\nevent = 'x'\ncommand = 'a'",
            "'x' (known are SessionStart, BeforeAgent,",
        ),
        ("[[hooks]]\nevent = 'AfterTool'\ncommand = \"a 'b\"", "has a quote that is not closed"),
        ("[[hooks]]\nevent = 'AfterTool'\ncommand = ' '", "`hooks.command` must name a program"),
        ("[[hooks]]\nevent = 'AfterTool'\ncommand = 'a'\ntimeout = 61", "`float` <= 60"),
        ("[[hooks]]\nevnt = 'AfterTool'", "`hooks.evnt` is no setting (did you mean `event`?)"),
        ("[hooks]\nevent = 'AfterTool'", "`hooks`: expected `array`, got `object`"),
    ],
)
def test_what_is_wrong_is_named_with_its_remedy(text: str, said: str) -> None:
    with pytest.raises(BadSettings) as caught:
        parse(text, "settings.toml")
    assert said in str(caught.value)
    assert str(caught.value).startswith("cannot use the settings in settings.toml: ")


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-0123456789abcdef",
        "AIzaSyD0123456789abcdef",
        "gsk_0123456789",
        "0123456789ABCDEF0123456789ABCDEF",
        "ABCDEF0123456789ABCDEF0123456789",
        "two words",
    ],
)
def test_a_key_in_the_file_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(BadSettings, match="name of an environment variable") as caught:
        parse(f"[models.a]\nurl = 'http://a'\nkey = '{key}'")
    assert key not in str(caught.value)


@pytest.mark.parametrize("key", ["OPENAI_API_KEY", "KEY_2", "_X", "MY_SERVER_V3_KEY"])
def test_the_name_of_a_variable_is_accepted(key: str) -> None:
    assert parse(f"[models.a]\nurl = 'http://a'\nkey = '{key}'").models["a"].key == key


def test_files_that_are_too_large_or_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(b"#" * 1_000_001)
    with pytest.raises(BadSettings, match="more than 1,000,000 bytes"):
        load_settings(path)
    path.write_bytes(b"model = '\xff'")
    with pytest.raises(BadSettings, match="not UTF-8 at byte 9"):
        load_settings(path)
    with pytest.raises(BadSettings):
        load_settings(tmp_path)
    with pytest.raises(BadSettings, match="nested"):
        parse("a = " + "[" * (sys.getrecursionlimit() + 100))


def test_a_pipe_or_a_device_in_its_place_makes_nobody_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(BadSettings, match="no regular file"):
            load_settings(path)
    with pytest.raises(BadSettings):
        load_settings(tmp_path / "a\0b")


def test_the_persons_own_file_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "kept.toml").write_text('model = "gpt-5"')
    (tmp_path / "settings.toml").symlink_to(tmp_path / "kept.toml")
    assert load_settings(tmp_path / "settings.toml").model == "gpt-5"


@pytest.mark.parametrize(
    "text",
    [
        "a" + ".a" * 400_000 + " = 1",
        "[a" + ".a" * 400_000 + "]",
        "x = {a" + ".a" * 400_000 + " = 1}",
        "a = " + "{a = " * 100_000,
        "[generation]\nseed = " + "9" * 900_000,
        "[generation]\nseed = 2020-99-99",
        "x = '''" + "''x" * 300_000,
        "k" * 900_000 + " = 1",
        "[[hooks]]\n" * 40_000,
        "[agent]\nmemory_files = [" + "'a', " * 100_000 + "]",
    ],
    ids=["key", "table", "inline", "nested", "digits", "date", "quotes", "name", "hooks", "names"],
)
def test_text_that_is_made_to_be_slow_is_refused_soon(text: str) -> None:
    begun = time.process_time()
    assert 0 < len(_said_of(text)) < 1_000
    assert time.process_time() - begun < 5  # of our own time: other work may run beside


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("model = 'a'\n[agent]\nmax_turns = 3\n", {"model": 1, "agent.max_turns": 3}),
        ("agent.max_turns = 3", {"agent.max_turns": 1}),
        ("\nagent = { max_turns = 3 }", {"agent.max_turns": 2}),
        ("['context']\n\n 'keep_reads'=3", {"context.keep_reads": 3}),
        (
            "[models.a]\nurl='http://a'\n[models.b]\nurl='http://b'",
            {"models.a.url": 2, "models.b.url": 4},
        ),
        ("[[hooks]]\nevent='AfterTool'\ncommand='a'", {"hooks": 1}),
        ("[transport.headers]\na='1'\nb='2'", {"transport.headers": 1}),
        ("model = '''\nlanguage = 1\n'''\nlanguage = 'zh'", {"model": 1, "language": 0}),
    ],
)
def test_a_file_knows_which_keys_it_sets_and_on_which_line(
    text: str, lines: dict[str, int]
) -> None:
    assert parse_settings(text).lines == lines


def test_the_defaults_are_those_of_the_code_that_uses_them() -> None:
    from recollect.agent.hooks import DEFAULT_TIMEOUT
    from recollect.workspace.memory_files import MEMORY_NAMES

    assert Settings().agent.memory_files == MEMORY_NAMES
    assert HookCommand(event="AfterTool", command="a").timeout == DEFAULT_TIMEOUT


SECRET = "Zq81xKw7Lm3vRt9PnBc5Yd2Hs6Gf4Ja0"
HOOK = "[[hooks]]\nevent = 'AfterTool'\n"


@pytest.mark.parametrize(
    "text",
    [
        f"[transport.headers]\nx-anything = '{SECRET}'",
        "[transport.headers]\nx-short = 'hunter-2'",
        f"[models.a]\nurl = 'http://a'\n[models.a.headers]\nAuthorization = 'Basic {SECRET}'",
        "[models.a]\nurl = 'http://me:hunter-2@a/v1'",
        f"[models.a]\nurl = 'http://a/v1?key={SECRET}'",
        "[models.a]\nurl = 'http://a/v1?key=hunter-2'",
        "[transport]\nproxy = 'http://me:hunter-2@a:8080'",
        f"{HOOK}command = 'tell --token {SECRET}'",
        f"{HOOK}command = 'tell --password=hunter-2'",
        f"{HOOK}command = 'curl -H \"Authorization: Bearer hunter-2\" a'",
        f"{HOOK}command = 'env API_KEY=hunter-2 a'",
        f"[permissions]\nallow = ['curl http://a/?x={SECRET}']",
        f"model = '{SECRET}'",
        f"model = 'sk-{SECRET[:12]}'",
        f"[routing]\nfallback = ['AIza{SECRET}']",
        f"[routing.choices]\n'{SECRET}' = 'sk-{SECRET[:16]}'",
    ],
)
def test_nothing_that_looks_like_a_secret_is_listed(text: str) -> None:
    shown = repr(list_settings(parse(text)))
    assert "…" in shown
    assert not any(part in shown for part in (SECRET, SECRET[:12], "hunter-2"))


@pytest.mark.parametrize(
    "value",
    [
        "openrouter/qwen/qwen3-coder-480b-a35b-instruct-2507",
        "claude-sonnet-5-20260101",
        "anthropic.claude-3-7-sonnet-20250219-v1:0",
    ],
)
def test_names_of_models_are_listed_as_they_are(value: str) -> None:
    assert {row.key: row.value for row in list_settings(parse(f"model = '{value}'"))}[
        "model"
    ] == value


def test_every_setting_is_listed() -> None:
    known = {
        before + name
        for before, section in SECTIONS.items()
        for name in section.__struct_fields__
        if before not in ("models.NAME.", "hooks.") and before + name not in TABLES
    }
    assert {row.key for row in list_settings(Settings())} == known
    text = "[models.a]\nurl = 'http://a'\nwindow = 5\nprice = { input = 1, output = 2 }"
    own = {row.key for row in list_settings(parse(text)) if row.key.startswith("models.")}
    assert own == {"models.a.url", "models.a.window", "models.a.price"}


@given(st.text(max_size=200))
def test_listing_never_fails_and_twice_hides_no_more_than_once(text: str) -> None:
    once = {row.key: row.value for row in list_settings(Settings(model=text))}["model"]
    assert {row.key: row.value for row in list_settings(Settings(model=once))}["model"] == once


@given(st.text(max_size=60))
def test_any_text_is_settings_or_refused_in_words(text: str) -> None:
    assert len(_said_of(text)) < 1_000


@given(st.recursive(st.text(max_size=8) | st.integers() | st.booleans(), st.lists, max_leaves=5))
def test_any_value_of_any_setting_is_accepted_or_refused_in_words(value: object) -> None:
    for before, section in SECTIONS.items():
        for name in section.__struct_fields__:
            table = before.rstrip(".").replace("NAME", "a")
            text = f"[{table}]\n" if table else ""
            assert len(_said_of(f"{text}{name} = {_toml(value)}")) < 1_000


def _said_of(text: str) -> str:
    try:
        parse(text)
    except BadSettings as error:
        return str(error)
    return ""


def _toml(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return msgspec.json.encode(value).decode()


def _documented() -> dict[str, str]:
    page = PAGE.read_text(encoding="utf-8").partition("## All settings")[2]
    return dict(re.findall(r"^\| `([\w.]+)` \| (.*?) \|", page, re.M))


def test_every_setting_is_documented_with_its_default_and_nothing_else_is() -> None:
    tables = {*TABLES, "models", "hooks"}
    expected = {
        before + field.name: field.default
        for before, section in SECTIONS.items()
        for field in msgspec.structs.fields(section)
        if before or field.name not in tables
    }
    documented = _documented()
    assert set(documented) == set(expected)
    for name, default in expected.items():
        shown = documented[name]
        if name.startswith("hooks.") and default is msgspec.NODEFAULT:
            assert shown == "required", name
        elif isinstance(default, str | float | int | tuple) and name != "models.NAME.model":
            assert shown.startswith("`"), name
            told = msgspec.json.decode(shown.strip("`"))
            assert (tuple(told) if isinstance(told, list) else told) == default, name
            assert type(told) is (list if isinstance(default, tuple) else type(default)), name
        elif default is None and not name.startswith("models."):
            assert shown == "not set", name
