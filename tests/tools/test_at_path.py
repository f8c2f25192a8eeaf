"""An `@` before a path, copied from a prompt, is dropped unless something has that name."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from recollect.entries import Text, json_text
from recollect.tools.builtin import (
    glob,
    list_directory,
    note,
    read_file,
    replace,
    search_file_content,
    write_file,
)
from recollect.tools.tool import Tool, ToolContext


def use(tool: Tool, root: Path, cwd: Path | None = None, **arguments: object) -> str:
    output = asyncio.run(tool(json_text(arguments), ToolContext((root,), cwd=cwd)))
    block = output.content[0]
    assert isinstance(block, Text)
    return block.text


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/app.py").write_text("one = 1\n")
    return tmp_path


@pytest.mark.parametrize("sign", ["@", "@/", "@./"])
def test_every_tool_drops_the_sign(root: Path, sign: str) -> None:
    assert "1→one = 1" in use(read_file, root, absolute_path=f"{sign}src/app.py")
    assert "Replaced" in use(
        replace, root, file_path=f"{sign}src/app.py", old_string="1", new_string="2"
    )
    assert "app.py" in use(list_directory, root, path=f"{sign}src")
    assert "app.py" in use(glob, root, pattern="*.py", path=f"{sign}src")
    assert "one = 2" in use(search_file_content, root, pattern="one", path=f"{sign}src")
    assert use(note, root, path=f"{sign}src/app.py", text="x").startswith("Note on src/app.py")
    said = use(write_file, root, file_path=f"{sign}new/sub/file.txt", content="x\n")
    assert said.startswith(f"Created {root}/new/sub/file.txt")
    assert "The @ before the path was left out" in said
    assert sorted(each.name for each in root.iterdir()) == ["new", "src"]


def test_a_whole_path_with_the_sign_is_that_path(root: Path) -> None:
    assert "1→one" in use(read_file, root, absolute_path=f"@{root}/src/app.py")


def test_windows_separators_after_the_sign_are_dropped_with_it(root: Path) -> None:
    use(write_file, root, file_path="@\\a\\b.txt", content="x\n")
    assert (root / "a\\b.txt").exists()


@pytest.mark.parametrize("name", ["@components/new.ts", "@components/deep/new.ts"])
def test_a_name_that_really_begins_with_the_sign_is_meant(root: Path, name: str) -> None:
    (root / "@components").mkdir()
    (root / "components").mkdir()
    said = use(write_file, root, file_path=name, content="x\n")
    assert said == f"Created {root}/{name} (1 lines, 2 bytes)."
    assert "1→x" in use(read_file, root, absolute_path=name)


def test_a_file_of_that_name_is_meant_and_so_is_a_link(root: Path) -> None:
    (root / "@notes").write_text("literal\n")
    (root / "@link").symlink_to("src")
    assert "literal" in use(read_file, root, absolute_path="@notes")
    assert "one = 1" in use(read_file, root, absolute_path="@link/app.py")


def test_a_dot_in_front_means_the_name_with_the_sign(root: Path) -> None:
    use(write_file, root, file_path="./@scope/pkg.json", content="{}\n")
    assert (root / "@scope/pkg.json").exists()
    assert "1→{}" in use(read_file, root, absolute_path="@scope/pkg.json")


def test_the_sign_counts_from_the_working_directory(root: Path) -> None:
    (root / "src/@types").mkdir()
    use(write_file, root, root / "src", file_path="@types/a.d.ts", content="x\n")
    use(write_file, root, root / "src", file_path="@other/a.d.ts", content="x\n")
    assert (root / "src/@types/a.d.ts").exists()
    assert (root / "src/other/a.d.ts").exists()


@pytest.mark.parametrize(
    "path", ["@../out", "@/../out", "@", "@/", "@//", "@\0", "@" + "x" * 5_000]
)
def test_the_sign_opens_no_way_out(root: Path, path: str) -> None:
    said = use(write_file, root, file_path=path, content="bad")
    assert said.startswith("Error: ") or path == "@"
    assert not (root.parent / "out").exists()


@pytest.mark.parametrize("sign", ["@", "@/", "@./"])
def test_patterns_lose_the_sign_too(root: Path, sign: str) -> None:
    for pattern in (f"{sign}src/*.py", f"{sign}src/**", f"{sign}src/app.py"):
        found = use(glob, root, pattern=pattern)
        assert found.startswith(f"1 file fit {sign.strip('@/')}")
        assert "one = 1" in use(search_file_content, root, pattern="one", include=pattern)
    assert f"{root}/src/app.py" in use(glob, root, pattern=f"{sign}app.py", path="src")
    assert "one = 1" in use(
        search_file_content, root, root / "src", pattern="one", include=f"{sign}app.py"
    )


def test_a_pattern_keeps_the_sign_where_a_name_has_it(root: Path) -> None:
    for name in ("@src/a.py", "@scope/b.py", "deep/@app.py"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("one\n")
    for pattern, name in (("@src/*.py", "@src/a.py"), ("@*/b.py", "@scope/b.py")):
        assert use(glob, root, pattern=pattern).splitlines()[1:] == [f"{root}/{name}"]
        found = use(search_file_content, root, pattern="one", include=pattern)
        assert found.splitlines()[1:] == [f"{root}/{name}", "1→one"]
    found = use(search_file_content, root, pattern="one", include="@*.py")
    assert found.splitlines()[1:] == [f"{root}/deep/@app.py", "1→one"]


@pytest.mark.parametrize("pattern", ["@../*.py", "@/../*", "@", "@/", "@//", "@\0/*", "@/etc/*"])
def test_a_pattern_with_the_sign_opens_no_way_out(root: Path, pattern: str) -> None:
    (root.parent / "out.py").write_text("secret\n")
    for found in (
        use(glob, root, pattern=pattern),
        use(search_file_content, root, pattern="secret", include=pattern),
    ):
        assert found.startswith(("Error: ", "No file fits", "No match"))


def test_a_whole_path_as_a_pattern_is_refused_with_the_sign_as_without(root: Path) -> None:
    assert "name the folder in `path`" in use(glob, root, pattern=f"@{root}/src/*.py")
