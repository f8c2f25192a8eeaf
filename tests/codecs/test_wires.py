"""A wire is registered in one table, and this names everything that a new one lacks."""

from __future__ import annotations

from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from recollect import codecs
from recollect.codecs.wires import WIRES
from recollect.profiles import ENDPOINTS, WireName, find_profile
from recollect.settings import CustomModel

ROOT = Path(__file__).parents[2]
SOURCE = Path(codecs.__file__).parent
SETTING = get_args(get_type_hints(CustomModel)["wire"])
MODULES = (
    "encode_options",
    "encode_message",
    "decode_request",
    "decode_parts",
    "encode_reply",
    "decode_reply",
    "wire",
)


def missing(name: str) -> list[str]:
    """What a wire of this name lacks, each with the place to write it."""
    formats = (ROOT / "docs/formats.md").read_text()
    settings = (ROOT / "docs/settings.md").read_text()
    setting = next(line for line in settings.splitlines() if "`models.NAME.wire`" in line)
    columns = next(line for line in formats.splitlines() if line.startswith("| |")).lower()
    recorded = list((ROOT / "tests/codecs/wire").glob(f"{name}-*.txt"))
    needed = {
        "a row in codecs/wires.py": name in WIRES,
        "its name in `WireName`, profiles.py": name in get_args(WireName),
        "its name in the setting `models.NAME.wire`": name in SETTING,
        "an endpoint of its name in profiles.py": any(
            endpoint.name == endpoint.wire == name for endpoint in ENDPOINTS
        ),
        "a test against the official SDK, test_sdk.py": (
            ROOT / f"tests/codecs/{name}/test_sdk.py"
        ).is_file(),
        "recorded replies in tests/codecs/wire": bool(recorded),
        "a column in docs/formats.md": f"| {name} |" in columns,
        "its name in docs/settings.md": f"`{name}`" in setting,
    }
    modules = {
        f"the module codecs/{name}/{module}.py": (SOURCE / name / f"{module}.py").is_file()
        for module in MODULES
    }
    return [what for what, there in (needed | modules).items() if not there]


def names() -> set[str]:
    """Every name that occurs anywhere, so that a half registered wire is found."""
    folders = {path.parent.name for path in SOURCE.glob("*/wire.py")}
    return folders | set(WIRES) | set(get_args(WireName)) | set(SETTING)


@pytest.mark.parametrize("name", sorted(names()))
def test_a_wire_lacks_nothing(name: str) -> None:
    assert missing(name) == []


@pytest.mark.parametrize("name", WIRES)
def test_a_wire_is_built_from_a_model_and_its_profile(name: WireName) -> None:
    wire = WIRES[name].build("some-model", find_profile("some-model"))
    assert (wire.name, wire.rules.provider, wire.rules.model) == (name, name, "some-model")


def test_everything_that_a_new_wire_needs_is_named() -> None:
    lacks = missing("morse")
    assert len(lacks) == 8 + len(MODULES)
    assert "a row in codecs/wires.py" in lacks
    assert "the module codecs/morse/encode_message.py" in lacks
