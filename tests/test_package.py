from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import recollect
from recollect import api

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "recollect"


def test_the_package_hands_on_the_names_that_the_api_lists() -> None:
    assert len(api.__all__) <= 40
    assert all(getattr(recollect, name) is getattr(api, name) for name in api.__all__)
    assert set(api.__all__) < set(dir(recollect))
    bound = {name for name in vars(api) if not name.startswith("_")} - {"annotations"}
    assert bound == set(api.__all__)


def test_importing_has_no_side_effects_and_loads_nothing_heavy(tmp_path: Path) -> None:
    code = "import sys, recollect; print(sorted(m for m in sys.modules if '.' not in m))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    loaded = set(ast.literal_eval(done.stdout))
    assert not loaded & {"apsw", "asyncio", "click", "msgspec", "zstandard", "platformdirs"}
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_the_version_is_the_same_everywhere() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{recollect.__version__}"' in project
    assert f"## {recollect.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_files_and_functions_stay_small() -> None:
    lengths = []
    for file in sorted((ROOT / "src").rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        assert source.count("\n") <= 400, f"{file} is too long"
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                lengths.append(length)
                assert length <= 80, f"{file}: {node.name} has {length} lines"
    assert sum(length < 40 for length in lengths) >= 0.95 * len(lengths)


def test_the_core_reads_no_clock_and_touches_no_file() -> None:
    """Levels 0 to 2 are pure: what they need of the world is passed in."""
    single = ("entries", "errors", "schema", "text", "tokens", "toolkinds")
    pure = [PACKAGE / f"{name}.py" for name in single]
    for name in ("snapshot", "view", "codecs", "compaction"):
        pure += sorted((PACKAGE / name).rglob("*.py"))
    assert len(pure) > 30
    for file in pure:
        source = file.read_text(encoding="utf-8")
        assert not re.search(
            r"^\s*(import|from) (os|time|random|pathlib|asyncio|logging)\b", source, re.M
        ), file
