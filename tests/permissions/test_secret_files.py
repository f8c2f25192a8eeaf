"""The walk that tells the judge which secrets lie below a folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

from recollect.permissions.folder_contents import SecretFile
from recollect.runtime.secret_files import secret_finder


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n")


def paths(root: Path, folder: str = ".") -> set[str]:
    return {file.path for file in secret_finder(root)(folder).files}


def test_secrets_are_found_by_their_names_at_any_depth(tmp_path: Path) -> None:
    write(tmp_path, ".env", "a/b/id_rsa", "a/.aws/config", ".env.example", "src/environment.py")
    assert paths(tmp_path) == {".env", "a/b/id_rsa", "a/.aws/config"}
    assert paths(tmp_path, "a") == {"b/id_rsa", ".aws/config"}
    assert paths(tmp_path, str(tmp_path / "src")) == set()


def test_installed_packages_and_what_git_keeps_are_skipped(tmp_path: Path) -> None:
    write(tmp_path, ".git/id_rsa", "node_modules/a/.npmrc", ".venv/lib/site-packages/c/cacert.pem")
    assert paths(tmp_path) == set()


def test_links_count_by_both_names_and_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path, "outside/.env", "work/a.txt")
    (tmp_path / "work" / "up").symlink_to("..")
    (tmp_path / "work" / "notes.txt").symlink_to("../outside/.env")
    assert paths(tmp_path / "work") == {"notes.txt"}
    assert paths(tmp_path / "work", "up/outside") == {".env"}


def test_what_is_not_there_or_too_large_is_said(tmp_path: Path) -> None:
    write(tmp_path, *(f"a/{number}" for number in range(20)))
    find = secret_finder(tmp_path, most_entries=10)
    assert (find("a").complete, find("b").exists, find("a/1").exists) == (False, False, False)
    assert secret_finder(tmp_path)("a").complete


def test_the_index_of_git_says_what_it_has(tmp_path: Path) -> None:
    write(tmp_path, "app/.env", "app/.env.local")
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "app/.env"], cwd=tmp_path, check=True)
    found = {file.path: file.tracked for file in secret_finder(tmp_path / "app")(".").files}
    assert found == {".env": True, ".env.local": False}


def test_an_ignore_file_that_shows_a_secret_again_is_noted(tmp_path: Path) -> None:
    write(tmp_path, ".env", ".npmrc")
    (tmp_path / ".ignore").write_text("*.log\n!.env\n")
    found = set(secret_finder(tmp_path)(".").files)
    assert found == {SecretFile(".env", tracked=False, shown=True), SecretFile(".npmrc", False)}


def test_a_name_that_could_be_an_option_is_noted(tmp_path: Path) -> None:
    write(tmp_path, "a/b")
    assert not secret_finder(tmp_path)(".").has_option_names
    write(tmp_path, "a/-o")
    assert secret_finder(tmp_path)(".").has_option_names
