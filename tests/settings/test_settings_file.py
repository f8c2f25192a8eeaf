from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import BadSettings
from recollect.settings import CustomModel, HookCommand, Settings, load_settings, parse_settings
from recollect.settings.setting_definitions import SETTINGS_SECTIONS

TABLES: dict[str, type[msgspec.Struct]] = {
    "": Settings,
    **SETTINGS_SECTIONS,
    "models.a": CustomModel,
    "hooks": HookCommand,
}


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "settings.toml") == Settings()


def test_the_file_is_in_the_data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_HOME", str(tmp_path))
    (tmp_path / "settings.toml").write_text('\ufeffmodel = "gpt-5"', encoding="utf-8")
    assert load_settings().model == "gpt-5"


def test_five_lines_add_a_model() -> None:
    settings = parse_settings("""
        [models.workstation]
        url = "http://workstation:8000/v1"
        model = "qwen3-coder"
        key = "WORKSTATION_KEY"
        window = 65536
    """).settings
    own = settings.models["workstation"]
    assert (own.wire, own.model, own.key) == ("openai", "qwen3-coder", "WORKSTATION_KEY")
    assert (own.window, own.tools, own.price) == (65_536, None, None)


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        parse_settings("").settings.model = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("modle = 'x'", "line 1, `modle` is not a setting (did you mean `model`?)"),
        ("[transport]\nretrys = 3", "line 2, `transport.retrys` is not a setting (did you mean"),
        (
            "[models.a]\nurl='http://a'\nwindwo=1",
            "`models.a.windwo` is not a setting (did you mean",
        ),
        ("[transport]\nzzz = 3", "known: connect_timeout, read_timeout"),
        ("[transport]\nretries = 'many'", "line 2, `transport.retries`: expected `int`, got `str`"),
        ("[transport]\nretries = -1", "`transport.retries`: expected `int` >= 0"),
        ("[generation]\ntemperature = 3", "`generation.temperature`: expected `float` <= 2"),
        ("language = 'tlh'", '`language` must be one of "en", "zh", not \'tlh\''),
        ("[models.a]\nwindow = 5", "lacks `url`"),
        ("[models.a]\nurl = 'ftp://a'", "`models.a.url` must be a URL"),
        ("[models.a]\nurl = 'http://'", "`models.a.url` must be a URL"),
        ("[models.a]\nurl = 'http://a:99999'", "`models.a.url` must be a URL"),
        ("[transport]\nproxy = 'a:1'", "`transport.proxy` must be a URL"),
        ("[transport.headers]\n'a b' = 'c'", "`transport.headers` has a header"),
        ("[transport.headers]\na = 'c\\n'\nb = \"c\\nd\"", "`transport.headers` has a header"),
        ("model = ", "it is not TOML"),
        ("models = 3", "`models`: expected `object`"),
        ("transport = [1]", "`transport`: expected `object`"),
        (
            "mirror = 'xml'",
            'line 1, `mirror` must be one of "", "gemini", "history-server", not \'xml\'',
        ),
        ("autosave_seconds = -1", "`autosave_seconds`: expected `float` >= 0"),
        ("autosave_seconds = nan", "`autosave_seconds`: expected `float` >= 0"),
        ("[agent]\nmax_turns = 0", "line 2, `agent.max_turns`: expected `int` >= 1"),
        ("[agent]\nmax_turn = 5", "`agent.max_turn` is not a setting (did you mean `max_turns`?)"),
        ("[agent]\nmemory_files = ['../x.md']", "takes file names without folders"),
        ("[agent]\nmemory_files = ['..']", "takes file names without folders"),
        ("[agent]\nmemory_files = ['a\\b.md']", "takes file names without folders"),
        ("[agent]\nmemory_files = ['']", "`agent.memory_files`: expected `str` of length >= 1"),
        ("[agent]\nmemory_files = 'A.md'", "`agent.memory_files`: expected `array`"),
        ("[context]\nkeep_reads = 0", "`context.keep_reads`: expected `int` >= 1"),
        ("[context]\nkeep_reads = 2.5", "`context.keep_reads`: expected `int`, got `float`"),
        ("[context]\nmax_lines = 1", "`context.max_lines`: expected `int` >= 10"),
        ("[context]\nthreshold = 5000\ntarget = 6000", "line 3, `context.target` must not be"),
        ("[context]\nthreshold = 999", "line 2, `context.threshold` must be 0 or at least 1,000"),
        ("[context]\ntarget = 1", "line 2, `context.target` must be 0 or at least 1,000"),
        (
            "[routing]\nclassifier = 'a'",
            "`routing.classifier` needs at least two `routing.choices`",
        ),
        ("[routing.choices]\na = ''", "`routing.choices`: expected `str` of length >= 1"),
        ("[routing.choices]\n'' = 'a'", "`routing.choices`: expected `str` of length >= 1"),
        ("[[hooks]]\nevent = 'BeforeTool'", "`hooks` lacks `command`"),
        (
            "[[hooks]]\nevent = 'BeforTool'\ncommand = 'a'",
            "line 2, `hooks.event` does not know 'BeforTool' (did you mean `BeforeTool`?)",
        ),
        ("[[hooks]]\nevent = 'x'\ncommand = 'a'", "'x' (known: SessionStart, BeforeAgent,"),
        ("[[hooks]]\nevent = 'AfterTool'\ncommand = \"a 'b\"", "has an unclosed quote"),
        ("[[hooks]]\nevent = 'AfterTool'\ncommand = ' '", "`hooks.command` must name a program"),
        ("[[hooks]]\nevent = 'AfterTool'\ncommand = 'a'\ntimeout = 61", "`float` <= 60"),
        ("[[hooks]]\nevnt = 'AfterTool'", "`hooks.evnt` is not a setting (did you mean `event`?)"),
        ("[hooks]\nevent = 'AfterTool'", "`hooks`: expected `array`, got `object`"),
    ],
)
def test_an_error_names_the_key_and_the_remedy(text: str, message: str) -> None:
    with pytest.raises(BadSettings) as caught:
        parse_settings(text, "settings.toml")
    assert message in str(caught.value)
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
        parse_settings(f"[models.a]\nurl = 'http://a'\nkey = '{key}'")
    assert key not in str(caught.value)


@pytest.mark.parametrize("key", ["OPENAI_API_KEY", "KEY_2", "_X", "MY_SERVER_V3_KEY"])
def test_the_name_of_a_variable_is_accepted(key: str) -> None:
    assert (
        parse_settings(f"[models.a]\nurl = 'http://a'\nkey = '{key}'").settings.models["a"].key
        == key
    )


def test_an_old_name_beside_the_new_one_is_refused() -> None:
    with pytest.raises(BadSettings, match="is the old name of `agent"):
        parse_settings("[agent]\nwatch_loops = true\ndetect_loops = true")


def test_files_that_are_too_large_or_not_text_are_refused(tmp_path: Path) -> None:
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
        parse_settings("a = " + "[" * (sys.getrecursionlimit() + 100))


def test_a_pipe_or_a_device_in_its_place_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(BadSettings, match="not a regular file"):
            load_settings(path)
    with pytest.raises(BadSettings):
        load_settings(tmp_path / "a\0b")


def test_the_users_file_may_be_a_link(tmp_path: Path) -> None:
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
def test_text_made_to_be_slow_is_refused_quickly(text: str) -> None:
    started = time.process_time()
    assert 0 < len(_error_for(text)) < 1_000
    assert time.process_time() - started < 5  # of our own CPU time: other programs may be running


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


@given(st.text(max_size=60))
def test_any_text_is_settings_or_raises_bad_settings(text: str) -> None:
    assert len(_error_for(text)) < 1_000


@given(st.recursive(st.text(max_size=8) | st.integers() | st.booleans(), st.lists, max_leaves=5))
def test_any_value_of_any_setting_is_accepted_or_raises_bad_settings(value: object) -> None:
    for table, section in TABLES.items():
        for name in section.__struct_fields__:
            text = f"[{table}]\n" if table else ""
            assert len(_error_for(f"{text}{name} = {_toml(value)}")) < 1_000


def _error_for(text: str) -> str:
    try:
        parse_settings(text)
    except BadSettings as error:
        return str(error)
    return ""


def _toml(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return msgspec.json.encode(value).decode()
