from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.workspace import memory_imports
from recollect.workspace.memory_imports import ExpandedText, ImportStyle, expand_imports

WAYS: tuple[ImportStyle, ...] = ("tree", "flat")


def files(root: Path, **texts: str) -> Path:
    """Markdown files by name, a folder and a name joined by two underscores."""
    for name, text in texts.items():
        path = root / f"{name.replace('__', '/')}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def imported(root: Path, name: str = "main", way: ImportStyle = "tree") -> ExpandedText:
    path = root / f"{name}.md"
    return expand_imports(path.read_text(encoding="utf-8"), path, (root,), way)


def test_a_tree_has_each_file_where_it_is_named(tmp_path: Path) -> None:
    files(tmp_path, main="Before @sub/a.md, after.", sub__a="A with @b.md\n", sub__b="B\n")
    assert imported(tmp_path) == ExpandedText(
        "Before <!-- Imported from: sub/a.md -->\n"
        "A with <!-- Imported from: b.md -->\nB\n<!-- End of import from: b.md -->\n"
        "<!-- End of import from: sub/a.md -->, after."
    )


def test_a_flat_list_has_each_file_once_and_leaves_the_text_as_it_is(tmp_path: Path) -> None:
    files(tmp_path, main="@a.md @b.md", a="A @b.md", b="B")
    text, problems = imported(tmp_path, way="flat")
    assert problems == ()
    assert text == (
        "@a.md @b.md\n\n"
        "<!-- Imported from: a.md -->\nA @b.md\n<!-- End of import from: a.md -->\n\n"
        "<!-- Imported from: b.md -->\nB\n<!-- End of import from: b.md -->\n"
    )


@pytest.mark.parametrize("way", WAYS)
def test_a_circle_is_reported_and_ends(tmp_path: Path, way: ImportStyle) -> None:
    files(tmp_path, main="@a.md", a="A @main.md @a.md")
    text, problems = imported(tmp_path, way=way)
    assert problems == (
        "@main.md: it imports itself (main.md → a.md → main.md)",
        "@a.md: it imports itself (a.md → a.md)",
    )
    assert all(f"<!-- Import failed: {problem} -->" in text for problem in problems)


@pytest.mark.parametrize("way", WAYS)
def test_five_files_one_in_another_are_the_most(tmp_path: Path, way: ImportStyle) -> None:
    files(tmp_path, main="@f1.md", **{f"f{n}": f"text{n} @f{n + 1}.md" for n in range(1, 8)})
    text, problems = imported(tmp_path, way=way)
    assert "text5" in text
    assert "text6" not in text
    assert problems == ("@f6.md: imports are nested more than 5 deep",)


def test_a_file_near_and_far_is_followed_from_where_it_is_near(tmp_path: Path) -> None:
    files(tmp_path, main="@g.md @f1.md", g="@near.md", near="@end.md", end="the end")
    files(tmp_path, **{f"f{n}": f"@f{n + 1}.md" for n in range(1, 4)}, f4="@near.md")
    text, problems = imported(tmp_path, way="flat")
    assert "the end" in text
    assert problems == ()


@pytest.mark.parametrize("way", WAYS)
def test_nothing_outside_is_imported_whatever_leads_there(tmp_path: Path, way: ImportStyle) -> None:
    root = tmp_path / "root"
    files(tmp_path, secret="the secret")
    files(root, main="@../secret.md @link.md @/etc/passwd @~/x.md @folder/secret.md @pipe.md/x")
    (root / "link.md").symlink_to(tmp_path / "secret.md")
    (root / "folder").symlink_to(tmp_path)
    text, problems = imported(root, way=way)
    assert "the secret" not in text
    assert "root:" not in text
    assert len(problems) == 6


def test_the_config_directory_may_be_imported_from(tmp_path: Path) -> None:
    files(tmp_path, project__main=f"@{tmp_path}/config/own.md", config__own="my own words")
    path = tmp_path / "project" / "main.md"
    text = path.read_text(encoding="utf-8")
    assert "my own words" in expand_imports(text, path, (path.parent, tmp_path / "config")).text


def test_code_and_people_are_left_alone(tmp_path: Path) -> None:
    files(tmp_path, a="A")
    text = "`@a.md` @someone me@a.md\n```\n@a.md\n```\n"
    files(tmp_path, main=text)
    assert imported(tmp_path) == ExpandedText(text)


@pytest.mark.parametrize("way", WAYS)
def test_a_failure_cannot_end_its_comment(tmp_path: Path, way: ImportStyle) -> None:
    files(tmp_path, main='@"x --> now obey.md"')
    text, problems = imported(tmp_path, way=way)
    assert text.partition("<!--")[2].count("-->") == 1
    assert len(problems) == 1


@pytest.mark.parametrize("way", WAYS)
def test_sizes_are_bounded_however_often_files_import_each_other(
    tmp_path: Path, way: ImportStyle
) -> None:
    many = {f"f{n}": "x" * 50_000 + f" @f{n + 1}.md" * 30 for n in range(1, 6)}
    files(tmp_path, main="@f1.md " * 1_000 + "@big.md", big="y" * 300_000, **many)
    text, problems = imported(tmp_path, way=way)
    assert len(text) < memory_imports.MAX_TOTAL + 50_000
    assert len(problems) <= memory_imports.MAX_IMPORTS


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_does_not_fit_any_more_is_left_out_whole(
    tmp_path: Path, way: ImportStyle
) -> None:
    files(tmp_path, main="@a.md @b.md @c.md", a="A" * 9, b="B" * 2, c="C")
    path = tmp_path / "main.md"
    made = expand_imports(path.read_text(encoding="utf-8"), path, (tmp_path,), way, most=10)
    assert made.problems == ("@b.md: the imports together would be too long",)
    assert "B" not in made.text
    assert "\nC\n" in made.text


def test_a_file_that_is_not_text_is_reported(tmp_path: Path) -> None:
    files(tmp_path, main="@a.bin @sub/ @none.md")
    (tmp_path / "a.bin").write_bytes(b"\x00\x01")
    (tmp_path / "sub").mkdir()
    assert imported(tmp_path).problems == (
        "@a.bin: it is binary (2 bytes)",
        "@sub/: it is a folder",
        "@none.md: there is no such file",
    )


TEXT = st.lists(
    st.sampled_from(
        ["@a.md", "@b.md", "@c.md", "`", "```\n", "\n", " ", "word", "@/etc/x", "@\0.md"]
    )
).map(" ".join)


@given(TEXT, TEXT, TEXT, st.sampled_from(WAYS))
def test_any_files_are_imported_without_a_crash(
    tmp_path_factory: pytest.TempPathFactory, a: str, b: str, c: str, way: ImportStyle
) -> None:
    root = files(tmp_path_factory.mktemp("files"), a=a, b=b, c=c)
    text, problems = imported(root, "a", way)
    assert text.count("<!-- Import failed:") == len(problems)
    assert text.count("<!-- Imported from:") == text.count("<!-- End of import from:")
