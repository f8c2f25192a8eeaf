from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from recollect.errors import CannotWrite
from recollect.workspace.safe_files import (
    FileContent,
    ReadRefused,
    decode_content,
    read_inside,
    replace_file,
)


def outside(tmp_path: Path) -> tuple[Path, Path]:
    """A folder to stay in, and a secret beside it."""
    root = tmp_path / "root"
    root.mkdir()
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    return root, secret


def test_a_file_beyond_the_limit_is_refused_or_read_in_part(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"0123456789")
    refused = read_inside(tmp_path / "a", (tmp_path,), 4)
    assert refused == ReadRefused("it has 10 bytes, the limit is 4", "large")
    found = read_inside(tmp_path / "a", (tmp_path,), 4, partial=True)
    assert isinstance(found, FileContent)
    assert (found.data, found.size) == (b"0123", 10)


def test_a_link_is_followed_inside_and_refused_outside(tmp_path: Path) -> None:
    root, secret = outside(tmp_path)
    (root / "a").write_text("a", encoding="utf-8")
    (root / "in").symlink_to("a")
    (root / "out").symlink_to(secret)
    (root / "folder").symlink_to(tmp_path)
    inside = read_inside(root / "in", (root,), 9)
    assert isinstance(inside, FileContent)
    assert inside.path == (root / "a").resolve()
    for name in ("out", "folder/secret", "../secret", "folder/root/../secret"):
        assert isinstance(read_inside(root / name, (root,), 9), ReadRefused), name


def test_only_regular_files_are_read_and_nothing_blocks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nothing")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "loop", "dangling", "zero", ".", "none", "a\0b", "x" * 5_000, "\udcff"):
        assert isinstance(read_inside(tmp_path / name, (tmp_path,), 9), ReadRefused), name
    assert read_inside(Path("/dev/zero"), (Path("/dev"),), 9) == ReadRefused(
        "it is not a regular file", "special"
    )


def test_a_folder_swapped_for_a_link_never_gives_what_is_outside(tmp_path: Path) -> None:
    root, _ = outside(tmp_path)
    (root / "folder").mkdir()
    (root / "folder" / "secret").write_text("harmless", encoding="utf-8")
    (root / "link").symlink_to(tmp_path)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            (root / "folder").rename(root / "aside")
            (root / "link").rename(root / "folder")
            (root / "folder").rename(root / "link")
            (root / "aside").rename(root / "folder")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        seen = [read_inside(root / "folder" / "secret", (root,), 99) for _ in range(2_000)]
    finally:
        stop.set()
        thread.join()
    assert {found.data for found in seen if isinstance(found, FileContent)} <= {b"harmless"}


def test_text_is_distinguished_from_other_bytes() -> None:
    def decode(data: bytes) -> str | ReadRefused:
        return decode_content(FileContent(Path("a"), data, len(data)))

    assert decode(b"\xef\xbb\xbfa\r\nb\xff") == "a\nb\ufffd"
    assert decode("a\rb".encode("utf-16")) == "a\nb"
    assert decode(b"\x7fELF\x00\x01") == ReadRefused("it is binary (6 bytes)", "binary")


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a"
    replace_file(path, b"one")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    replace_file(path, b"two")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"two", 0o644)
    assert [entry.name for entry in path.parent.iterdir()] == ["a"]


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(CannotWrite):
        replace_file(tmp_path / "folder", b"x")
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]
