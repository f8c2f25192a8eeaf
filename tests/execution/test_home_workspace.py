"""The workspace is the home itself: start files stay as they are, and secrets stay hidden."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from recollect.execution.sandbox import Isolation
from recollect.workspace.protected_names import PROTECTED_NAMES
from tests.execution.workbench import BARE, Bench, isolation_of, on_bench, words

EVIL = "evil"
AT_HOME = tuple(name for name in PROTECTED_NAMES if name.place == "home")
# Names that only the user writes, and that are secrets as well.
MOVED = (".gem/credentials", ".cache/huggingface/token", ".ssh/id_rsa", "a/b/data/recollect.db")
SECRETS = (".npmrc", ".pypirc", ".claude.json", ".codex/auth.json", ".kube/config", ".ssh/id_rsa")


@pytest.fixture(params=["bubblewrap", "landlock"])
def isolation(request: pytest.FixtureRequest) -> Isolation:
    return isolation_of(request.param)


def plant() -> str:
    files = [f"{n.path}/planted" if n.kind == "folder" else n.path for n in AT_HOME]
    return "\n".join(f"mkdir -p $(dirname {path}); echo {EVIL} >> {path}" for path in files)


def planted(home: Path) -> list[str]:
    return [str(p) for p in home.rglob("*") if p.is_file() and EVIL in p.read_text()]


def run_at_home(home: Path, isolation: Isolation, line: str) -> str:
    results = []

    async def steps(bench: Bench) -> None:
        results.append(words(await bench.run(line)))

    on_bench(home.parent, isolation, steps, home=home)
    return results[0]


@pytest.mark.parametrize("there", [False, True], ids=["missing", "there"])
def test_no_command_writes_what_a_shell_or_a_desktop_starts(
    tmp_path: Path, isolation: Isolation, there: bool
) -> None:
    home = tmp_path / "work"
    home.mkdir()
    if there:
        for name in AT_HOME:
            path = home / (f"{name.path}/mine" if name.kind == "folder" else name.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("mine\n")
    before = {p: p.read_text() for p in home.rglob("*") if p.is_file()}
    run_at_home(home, isolation, plant())
    assert planted(home) == []
    assert {p: p.read_text() for p in home.rglob("*") if p.is_file()} == before


def test_without_a_sandbox_they_are_written(tmp_path: Path) -> None:
    home = tmp_path / "work"
    run_at_home(home, BARE, plant())
    assert len(planted(home)) == len(AT_HOME)


def test_a_secret_that_is_a_protected_name_too_stays_hidden(
    tmp_path: Path, isolation: Isolation
) -> None:
    home = tmp_path / "work"
    for name in SECRETS:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("CANARY")
    said = run_at_home(home, isolation, "cat " + " ".join(SECRETS))
    assert "CANARY" not in said
    assert "PROTECTED" not in said  # what cannot be read was not changed
    assert "CANARY" in run_at_home(home, BARE, "cat " + " ".join(SECRETS))


def _make(home: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("CANARY")
        (home / name).chmod(0o600)


def test_the_folders_above_a_secret_cannot_be_moved_to_where_it_is_read(
    tmp_path: Path, isolation: Isolation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the first command moves, the second one would find under a name that nobody hides."""
    monkeypatch.setenv("RECOLLECT_HOME", str(tmp_path / "work/a/b/data"))
    folders = " ".join(f"{Path(name).parent} {Path(name).parts[0]}" for name in MOVED)
    lines = (
        f"for d in {folders}; do mv $d x-${{d//[^a-z]/-}}; done",
        "find . -type f -exec cat {} +",
    )
    for kind, found in ((BARE, True), (isolation, False)):
        home = tmp_path / "work"
        shutil.rmtree(home, ignore_errors=True)
        _make(home, MOVED)
        shown: list[str] = []

        async def steps(bench: Bench, shown: list[str] = shown) -> None:
            shown += [words(await bench.run(line)) for line in lines]

        on_bench(tmp_path, kind, steps, home=home)
        assert ("CANARY" in shown[1]) == found
        assert all((home / name).exists() for name in MOVED) != found


def test_modes_and_times_of_secrets_in_the_workspace_cannot_be_changed(
    tmp_path: Path, isolation: Isolation
) -> None:
    home = tmp_path / "work"
    _make(home, SECRETS)
    before = {name: (home / name).stat() for name in SECRETS}
    line = f"chmod 777 {' '.join(SECRETS)}; touch -d 2001-01-01 {' '.join(SECRETS)}"
    run_at_home(home, isolation, line)
    for name, old in before.items():
        new = (home / name).stat()
        assert (new.st_mode, new.st_mtime_ns) == (old.st_mode, old.st_mtime_ns), name
    run_at_home(home, BARE, line)
    assert {(home / name).stat().st_mode & 0o777 for name in SECRETS} == {0o777}
