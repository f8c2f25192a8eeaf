"""docs/testing.md: its programs run, and it leaves no field and no outcome out."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import get_args

from recollect import testing
from recollect.testing import FAULT_CASES, FAULTS, WireReply, error_replies
from recollect.testing.fault import Expected

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.S)


def test_the_first_program_prints_what_its_comments_say() -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(PROGRAMS[0], {})
    assert out.getvalue().splitlines() == re.findall(r"print\(.*\)  # (.*)", PROGRAMS[0])


def test_the_second_program_runs_over_every_case() -> None:
    seen: list[str] = []

    def ask_my_client(url: str, format_: str) -> str:
        seen.append(url)
        return FAULTS[name].expected

    found: dict[str, object] = {"ask_my_client": ask_my_client}
    exec(PROGRAMS[1], found)
    test = found["test_my_client"]
    assert callable(test)
    for name, format_ in FAULT_CASES[:5]:
        test(name, format_)
    assert len(seen) == 5


def test_every_field_outcome_and_error_is_on_the_page() -> None:
    fields = {field for field in WireReply.__struct_fields__ if field not in ("turn", "echo_key")}
    assert [field for field in fields if not re.search(rf"`{field}\b", PAGE)] == []
    assert [word for word in get_args(Expected) if f"| `{word}` |" not in PAGE] == []
    errors = set(error_replies.__all__) - {"error_json"}
    assert [name for name in errors if f"`{name}" not in PAGE] == []


def test_every_name_of_the_modules_is_handed_on() -> None:
    assert all(getattr(testing, name) is not None for name in testing.__all__)
    assert set(error_replies.__all__) <= set(testing.__all__)
