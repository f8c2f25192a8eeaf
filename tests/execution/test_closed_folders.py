"""What a command closes to us, or puts in our way, is checked all the same after it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from recollect.execution.sandbox import Isolation
from tests.execution.workbench import PATIENCE, Bench, isolation_of, on_bench, said, words

_REPOSITORY = (
    "mkdir -p {0}/.git/objects {0}/.git/refs; echo 'ref: refs/heads/main' > {0}/.git/HEAD; "
    "printf '[core]\\n\\tfsmonitor = evil\\n' > {0}/.git/config; "
)


@pytest.fixture(params=["bubblewrap", "landlock"])
def isolation(request: pytest.FixtureRequest) -> Isolation:
    return isolation_of(request.param)


def _settings(root: Path, name: str) -> str:
    file = root / "work" / name / ".git" / "config"
    return file.read_text() if file.exists() else ""


@pytest.mark.parametrize(
    "line",
    [
        "chmod 555 new/.git",  # it cannot be moved away
        "chmod 311 new/.git",  # it cannot be listed
        "chmod 311 new/.git new",
        "chmod 111 new",
    ],
)
def test_a_closed_folder_hides_no_repository(
    tmp_path: Path, isolation: Isolation, line: str
) -> None:
    said(tmp_path, isolation, _REPOSITORY.format("new") + line)
    assert "fsmonitor" not in _settings(tmp_path, "new")


@pytest.mark.parametrize("top", ["proj/info/new", "proj/objects/ab", "proj/lfs/a/new"])
def test_what_looks_like_gits_folder_hides_no_repository(
    tmp_path: Path, isolation: Isolation, top: str
) -> None:
    looks_so = f"mkdir -p proj/objects proj/refs {top}; echo x > proj/HEAD; "
    said(tmp_path, isolation, looks_so + _REPOSITORY.format(top))
    assert "fsmonitor" not in _settings(tmp_path, top)


@pytest.mark.parametrize("line", ["chmod 555 .", "chmod 0 .vscode/x .vscode", "chmod 555 .vscode"])
def test_a_new_protected_name_is_taken_away_whatever_its_mode(
    tmp_path: Path, isolation: Isolation, line: str
) -> None:
    shown = said(tmp_path, isolation, f"mkdir -p .vscode/x; echo evil > .vscode/tasks.json; {line}")
    assert "PROTECTED" in shown
    assert not (tmp_path / "work" / ".vscode").exists()


def test_a_protected_file_is_put_back_in_a_folder_that_was_closed(
    tmp_path: Path, isolation: Isolation
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".envrc").write_text("good")
    said(tmp_path, isolation, "echo evil > .envrc; chmod 555 .")
    assert (tmp_path / "work" / ".envrc").read_text() == "good"


def test_a_folder_of_protected_names_cannot_become_a_link(
    tmp_path: Path, elsewhere: Path, isolation: Isolation
) -> None:
    (elsewhere / "workflows").mkdir()
    (elsewhere / "workflows" / "mine.yml").write_text("mine")
    said(tmp_path / "new", isolation, f"ln -s {elsewhere} .github")
    assert not (tmp_path / "new" / "work" / ".github").is_symlink()
    workflows = tmp_path / "old" / "work" / ".github" / "workflows"
    workflows.mkdir(parents=True)
    (workflows / "ci.yml").write_text("good")
    said(tmp_path / "old", isolation, f"mv .github x; ln -s {elsewhere} .github")
    assert not workflows.parent.is_symlink()
    assert (workflows / "ci.yml").read_text() == "good"
    assert [path.name for path in elsewhere.rglob("*")] == ["workflows", "mine.yml"]


@pytest.mark.parametrize("pipe", ["a/.git", "a/.git/commondir"])
def test_a_pipe_in_the_place_of_gits_files_stops_no_check(
    tmp_path: Path, isolation: Isolation, pipe: str
) -> None:
    """Nobody writes to it, so who opens it to read waits for ever."""
    started = time.monotonic()

    async def steps(bench: Bench) -> None:
        folder = str(Path(pipe).parent)
        made = f"mkdir -p {folder}; [ {folder} = a ] || echo x > {folder}/HEAD; mkfifo {pipe}; "
        await bench.run(made + _REPOSITORY.format("zz"))
        assert words(await bench.run("echo next")).startswith("next")

    on_bench(tmp_path, isolation, steps)
    assert time.monotonic() - started < PATIENCE
    assert "fsmonitor" not in _settings(tmp_path, "zz")
