"""Ways out of the roots, and files that hang: none works. What is inside is read and written."""

from __future__ import annotations

import ctypes
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.tools.resolve_path import resolve_path
from recollect.tools.safe_open import (
    open_folder,
    open_resolved,
    read_content,
    remove_file,
    write_content,
)
from recollect.tools.tool import ToolFailed
from tests.tools.escape_paths import REACHING, SECRET, WAYS, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@contextmanager
def without_waiting() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < 60


def test_there_are_more_than_forty_ways() -> None:
    assert len(WAYS) >= 40


@pytest.mark.parametrize("way", REACHING)
def test_each_way_out_works_for_a_plain_open(way: str, world: World) -> None:
    # `os.path.join`, not `/`: that is what a careless tool does with a model's path
    path = os.path.join(world.root, WAYS[way](world))  # noqa: PTH118
    assert Path(path).read_bytes() == SECRET


@pytest.mark.parametrize("way", WAYS)
def test_no_way_out_is_read(way: str, world: World) -> None:
    path = WAYS[way](world)
    with without_waiting(), pytest.raises(ToolFailed) as failed:
        read_content((world.root,), path)
    assert SECRET.decode() not in str(failed.value)
    assert str(failed.value).isprintable()


@pytest.mark.parametrize("way", WAYS)
def test_no_way_out_is_written(way: str, world: World) -> None:
    path = WAYS[way](world)
    before = world.foreign()
    inside = (world.root / "inside.txt").read_bytes()
    with without_waiting(), suppress(ToolFailed):
        written = write_content((world.root,), path, b"overwritten")
        assert written.is_relative_to(world.root.resolve())
        assert written.read_bytes() == b"overwritten"
    assert world.foreign() == before
    assert (world.root / "inside.txt").read_bytes() == inside


@pytest.mark.parametrize("way", WAYS)
def test_no_way_out_is_removed_or_listed(way: str, world: World) -> None:
    path = WAYS[way](world)
    before = world.foreign()
    with without_waiting(), suppress(ToolFailed):
        remove_file((world.root,), path)
    with without_waiting(), suppress(ToolFailed), open_folder((world.root,), path) as folder:
        assert folder.path.is_relative_to(world.root.resolve())
    assert world.foreign() == before


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc here")
def test_the_systems_own_files_are_refused_even_under_the_root_of_everything() -> None:
    for path in ("/proc/self/environ", "/proc/1/cmdline", "proc/self/status", "/dev/zero"):
        with without_waiting(), pytest.raises(ToolFailed):
            read_content((Path("/"),), path)


def test_a_device_of_ones_own_is_refused(world: World) -> None:
    try:
        os.mknod(world.root / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root makes devices")
    with pytest.raises(ToolFailed, match="device"):
        read_content((world.root,), "null")


# --- while others swap files -------------------------------------------------------------------


@contextmanager
def swapping(*steps: Callable[[], None]) -> Iterator[None]:
    """Takes the steps in turn, as fast as it can, in a thread of its own."""
    done = threading.Event()

    def run() -> None:
        while not done.is_set():
            for step in steps:
                step()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def put(root: Path, name: str, make: Callable[[Path], None]) -> Callable[[], None]:
    def step() -> None:
        fresh = root / "fresh"
        make(fresh)
        fresh.replace(root / name)

    return step


def exchange(root: Path, first: str, second: str) -> Callable[[], None]:
    """Two names change places at once, so that there is always something to be found."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        pytest.skip("only Linux exchanges two names")
    at_once = 2

    def step() -> None:
        names = (os.fsencode(root / first), os.fsencode(root / second))
        assert call(-100, names[0], -100, names[1], at_once) == 0

    return step


def race(act: Callable[[], bytes], tries: int = 1_000) -> tuple[set[bytes], int]:
    """What it gave, and how often it was refused: so often that both happened."""
    seen: set[bytes] = set()
    refused = 0
    end = time.monotonic() + 60
    while time.monotonic() < end and (tries > 0 or not (seen and refused)):
        tries -= 1
        try:
            seen.add(act())
        except ToolFailed:
            refused += 1
    return seen, refused


def test_a_file_swapped_for_a_link_out_never_gives_the_secret(world: World) -> None:
    file = put(world.root, "f", lambda fresh: void(fresh.write_bytes(b"inside")))
    link = put(world.root, "f", lambda fresh: fresh.symlink_to(world.outside / "secret"))
    file()
    with swapping(link, file):
        seen, refused = race(lambda: read_content((world.root,), "f").data)
    assert seen <= {b"inside"}
    assert refused  # the race was run: the link was met


def void(_: object) -> None:
    return None


def test_a_file_swapped_for_a_fifo_never_hangs(world: World) -> None:
    file = put(world.root, "f", lambda fresh: void(fresh.write_bytes(b"inside")))
    pipe = put(world.root, "f", os.mkfifo)
    file()
    with swapping(pipe, file), without_waiting():
        seen, refused = race(lambda: read_content((world.root,), "f").data)
    assert seen <= {b"inside"}
    assert refused


def test_a_folder_swapped_for_a_link_out_never_gives_the_secret(world: World) -> None:
    (world.root / "sub" / "secret").write_bytes(b"inside")
    world.link("trap", world.outside)
    with swapping(exchange(world.root, "sub", "trap")):
        seen, refused = race(lambda: read_content((world.root,), "sub/secret").data)
    assert seen <= {b"inside"}
    assert refused


def test_a_folder_swapped_for_a_link_out_is_never_written_into(world: World) -> None:
    world.link("trap", world.outside)
    before = world.foreign()
    with swapping(exchange(world.root, "sub", "trap")):
        write = partial(write_content, (world.root,), "sub/secret", b"bad")
        _, refused = race(lambda: os.fsencode(write()), tries=200)
    assert refused
    assert world.foreign() == before


def test_a_folder_that_was_moved_out_meanwhile_is_noticed(world: World) -> None:
    (world.root / "sub" / "f").write_bytes(b"was inside")
    with resolve_path((world.root,), "sub/f") as resolved:
        with open_resolved(resolved, (world.root,), "sub/f") as opened:
            assert os.read(opened.descriptor, 99) == b"was inside"
        (world.root / "sub").rename(world.outside / "sub")
        with (
            pytest.raises(ToolFailed, match="moved out"),
            open_resolved(resolved, (world.root,), "sub/f"),
        ):
            pass


# --- what is allowed ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "inside.txt",
        "./inside.txt",
        "sub/../inside.txt",
        "sub//deep/../../inside.txt",
        "../root/inside.txt",
        "sub/deep/../../../root/inside.txt",
    ],
)
def test_a_file_inside_is_read_however_it_is_spelled(path: str, world: World) -> None:
    assert read_content((world.root,), path).data == b"inside"
    assert read_content((world.root,), f"{world.root}/{path}").data == b"inside"
    with resolve_path((world.root,), path) as resolved:
        assert resolved.path == world.root.resolve() / "inside.txt"


def test_links_that_stay_inside_are_followed_for_reading_and_never_for_writing(
    world: World,
) -> None:
    world.link("file", "inside.txt")
    world.link("sub/up", "..")
    world.link("absolute", world.root / "sub")
    for path in ("file", "sub/up/file", "absolute/up/inside.txt", "absolute/../inside.txt"):
        assert read_content((world.root,), path).data == b"inside"
    for path in ("file", "sub/up/inside.txt", "absolute/new"):
        with pytest.raises(ToolFailed, match="link"):
            write_content((world.root,), path, b"changed")
    assert (world.root / "inside.txt").read_bytes() == b"inside"


def test_a_link_from_one_root_to_another_is_followed(world: World) -> None:
    path = world.link("other", world.outside) + "/secret"
    assert read_content((world.root, world.outside), path).data == SECRET
    assert read_content((world.root, world.outside), str(world.outside / "secret")).data == SECRET


def test_a_root_may_itself_be_a_link(world: World) -> None:
    (world.base / "alias").symlink_to(world.root)
    for path in ("inside.txt", f"{world.base}/alias/inside.txt", f"{world.root}/inside.txt"):
        assert read_content((world.base / "alias",), path).data == b"inside"
    with pytest.raises(ToolFailed):
        read_content((world.base / "alias",), "../outside/secret")


def test_writing_keeps_the_mode_and_leaves_nothing_else_behind(world: World) -> None:
    target = world.root / "inside.txt"
    target.chmod(0o754)
    assert write_content((world.root,), "inside.txt", b"new") == target.resolve()
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o754
    assert {f.name for f in world.root.iterdir()} == {"inside.txt", "sub"}


def test_missing_folders_are_made_for_a_new_file(world: World) -> None:
    write_content((world.root,), "new/er/est.txt", b"here")
    assert (world.root / "new" / "er" / "est.txt").read_bytes() == b"here"


def test_a_file_with_a_second_name_outside_is_replaced_and_the_other_name_keeps_its_bytes(
    world: World,
) -> None:
    (world.root / "twin").hardlink_to(world.outside / "secret")
    write_content((world.root,), "twin", b"new")
    assert (world.outside / "secret").read_bytes() == SECRET


def test_a_write_that_expects_something_else_changes_nothing(world: World) -> None:
    for expected in (b"insid", b"inside and more", None):
        with pytest.raises(ToolFailed, match="changed meanwhile"):
            write_content((world.root,), "inside.txt", b"new", expected=expected)
    with pytest.raises(ToolFailed, match="changed meanwhile"):
        write_content((world.root,), "absent", b"new", expected=b"old")
    assert (world.root / "inside.txt").read_bytes() == b"inside"
    write_content((world.root,), "inside.txt", b"new", expected=b"inside")
    write_content((world.root,), "absent", b"new", expected=None)
    assert (world.root / "absent").read_bytes() == b"new"


def test_a_read_only_file_is_not_overwritten(world: World) -> None:
    (world.root / "inside.txt").chmod(0o444)
    with pytest.raises(ToolFailed, match="read-only"):
        write_content((world.root,), "inside.txt", b"new")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_keeps_its_owner(world: World) -> None:
    os.chown(world.root / "inside.txt", 1234, 1235)
    write_content((world.root,), "inside.txt", b"new")
    info = (world.root / "inside.txt").stat()
    assert (info.st_uid, info.st_gid) == (1234, 1235)


def test_a_write_that_does_not_fit_leaves_the_old_file_and_nothing_else(world: World) -> None:
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from recollect.tools.tool import ToolFailed\n"
        "from recollect.tools.safe_open import write_content\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: write_content((Path(sys.argv[1]),), 'inside.txt', b'x' * 5000)\n"
        "except ToolFailed as failed: print(failed)\n"
    )
    command = [sys.executable, "-c", script, str(world.root)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "File too large" in done.stdout
    assert (world.root / "inside.txt").read_bytes() == b"inside"
    assert {f.name for f in world.root.iterdir()} == {"inside.txt", "sub"}


def test_a_file_that_is_too_large_is_refused_with_its_size(world: World) -> None:
    (world.root / "large").write_bytes(b"x" * 101)
    with pytest.raises(ToolFailed, match="101 bytes"):
        read_content((world.root,), "large", limit=100)
    assert read_content((world.root,), "large", limit=101).data == b"x" * 101


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc here")
def test_no_descriptor_stays_open(world: World) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number, way in enumerate(WAYS.values()):
        other = world.base / str(number)
        other.mkdir()
        path = way(World(other))
        for act in (read_content, remove_file):
            with suppress(ToolFailed):
                act((other / "root",), path)
        with suppress(ToolFailed):
            write_content((other / "root",), path, b"x")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


pieces = st.sampled_from(["..", ".", "", "sub", "deep", "in", "out", "loop", "inside.txt", "x"])


@given(path=st.lists(pieces, max_size=9).map("/".join), rooted=st.booleans())
def test_any_path_leads_inside_or_nowhere(
    path: str, rooted: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = tmp_path_factory.getbasetemp() / "spelled"
    if not base.exists():
        base.mkdir()
        world = World(base)
        world.link("in", "sub/deep")
        world.link("out", "../outside")
        world.link("sub/loop", "../in/../..")
    root = base / "root"
    given_path = f"{root}/{path}" if rooted else path
    try:
        with resolve_path((root,), given_path) as resolved:
            assert resolved.path.is_relative_to(root.resolve())
            # as the system sees it: the same file, unless it goes through what is not there
            assert Path(os.path.realpath(root / given_path)) == resolved.path
    except ToolFailed:
        pass
