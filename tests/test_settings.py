from __future__ import annotations

import re
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import BadSettings
from recollect.settings import OwnModel, Permissions, Settings, Transport, Wishes, load, parse

PAGE = Path(__file__).parent.parent / "docs" / "settings.md"
SECTIONS: dict[str, type[msgspec.Struct]] = {
    "": Settings,
    "generation.": Wishes,
    "permissions.": Permissions,
    "transport.": Transport,
    "models.NAME.": OwnModel,
}
TABLES = ("generation", "permissions", "transport", "models")


def test_a_file_that_is_not_there_means_the_defaults(tmp_path: Path) -> None:
    assert load(tmp_path / "settings.toml") == Settings()


def test_the_file_is_looked_for_in_the_home_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_HOME", str(tmp_path))
    (tmp_path / "settings.toml").write_text('\ufeffmodel = "gpt-5"', encoding="utf-8")
    assert load().model == "gpt-5"


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


def test_the_example_of_the_page_is_accepted() -> None:
    [example] = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert parse(example).generation.temperature == 0.3


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
        load(path)
    path.write_bytes(b"model = '\xff'")
    with pytest.raises(BadSettings, match="not UTF-8 at byte 9"):
        load(path)
    with pytest.raises(BadSettings):
        load(tmp_path)
    with pytest.raises(BadSettings, match="nested"):
        parse("a = " + "[" * (sys.getrecursionlimit() + 100))


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
    rows = re.findall(r"^\| `([\w.]+)` \| (.*?) \|", PAGE.read_text(encoding="utf-8"), re.M)
    return dict(rows)


def test_every_setting_is_documented_with_its_default_and_nothing_else_is() -> None:
    expected = {}
    for before, section in SECTIONS.items():
        for field in msgspec.structs.fields(section):
            if before or field.name not in TABLES:
                expected[before + field.name] = field.default
    documented = _documented()
    rows = {name for name in documented if name in expected or "." in name}
    assert rows == set(expected)
    for name, default in expected.items():
        shown = documented[name]
        if isinstance(default, str | float | int) and name not in ("models.NAME.model",):
            assert shown == f"`{msgspec.json.encode(default).decode()}`", name
        elif default is None and not name.startswith("models."):
            assert shown == "not set", name
