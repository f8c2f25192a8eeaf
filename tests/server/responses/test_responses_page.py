"""The examples of docs/responses.md run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from recollect.testing import ProviderLine, call, says
from tests.server.responses.harness import stage

PAGE = Path(__file__).parents[3] / "docs" / "responses.md"


def test_the_examples_of_the_page_print_what_the_model_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    script: list[ProviderLine] = [
        "Paris",
        "Rome",
        "1 2 3",
        says(call("get_weather", place="Paris")),
        "20 degrees.",
        "Madrid",
        "Lima",
    ]
    with stage(tmp_path, monkeypatch, script) as of:
        url = of.serve().url
        program = "\n".join(blocks).replace("http://127.0.0.1:8080/v1", url)
        names: dict[str, object] = {}
        exec(program.replace('"TOKEN"', '"token-of-ann"'), names)
        names["client"].close()  # type: ignore[attr-defined]
        assert capsys.readouterr().out.splitlines() == [
            "Paris",
            "Rome",
            "1 2 3",
            "20 degrees.",
            "Madrid",
            "user The capital of Peru?",
            "assistant Lima",
        ]
