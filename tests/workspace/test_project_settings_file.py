"""Files in the place of a project's settings that are none: nothing is loosened, nobody waits."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from recollect.errors import BadSettings
from recollect.settings import Settings
from recollect.workspace.effective_settings import resolve_settings
from recollect.workspace.project_overrides import MAX_PROJECT_FILE
from recollect.workspace.trusted_folders import distrust_folder, trust_folder
from tests.workspace.project_folder import ProjectFolder


@pytest.fixture
def place(tmp_path: Path) -> ProjectFolder:
    return ProjectFolder(tmp_path)


def _link(place: ProjectFolder) -> None:
    (place.project / "other.toml").write_text("[agent]\nmax_turns = 3")
    place.file.symlink_to(place.project / "other.toml")


def _link_outside(place: ProjectFolder) -> None:
    outside = place.project.parent / "outside.toml"
    outside.write_text("[agent]\nmax_turns = 3")
    place.file.symlink_to(outside)


def _linked_folder(place: ProjectFolder) -> None:
    place.file.parent.rmdir()
    (place.project / "other").mkdir()
    (place.project / "other" / "settings.toml").write_text("[agent]\nmax_turns = 3")
    place.file.parent.symlink_to("other")


def _folder_linked_outside(place: ProjectFolder) -> None:
    place.file.parent.rmdir()
    outside = place.project.parent / "outside"
    outside.mkdir()
    (outside / "settings.toml").write_text("[agent]\nmax_turns = 3")
    place.file.parent.symlink_to(outside)


def _dangling(place: ProjectFolder) -> None:
    place.file.symlink_to("nowhere")


def _loop(place: ProjectFolder) -> None:
    place.file.symlink_to("settings.toml")


def _pipe(place: ProjectFolder) -> None:
    os.mkfifo(place.file)


def _device(place: ProjectFolder) -> None:
    place.file.symlink_to("/dev/zero")


def _folder(place: ProjectFolder) -> None:
    place.file.mkdir()


def _large(place: ProjectFolder) -> None:
    place.file.write_bytes(b"#" * (MAX_PROJECT_FILE + 1))


def _no_text(place: ProjectFolder) -> None:
    place.file.write_bytes(b"\xff\xfe\x00")


def _deep(place: ProjectFolder) -> None:
    place.file.write_text("a = " + "[" * 90_000)


def _unclosed(place: ProjectFolder) -> None:
    place.file.write_text('[permissions]\ndeny = ["rm *"')


def _unknown(place: ProjectFolder) -> None:
    place.file.write_text('[permissions]\ndney = ["rm *"]')


def _wrong_type(place: ProjectFolder) -> None:
    place.file.write_text('[permissions]\ndeny = "rm *"')


BROKEN = [
    *(_link, _link_outside, _linked_folder, _folder_linked_outside, _dangling, _loop, _pipe),
    *(_device, _folder, _large, _no_text, _deep, _unclosed, _unknown, _wrong_type),
]


@pytest.mark.parametrize("make", BROKEN, ids=lambda make: make.__name__[1:])
def test_a_file_that_cannot_be_used_stops_the_work_in_a_trusted_folder_only(
    tmp_path: Path, make: object
) -> None:
    assert callable(make)
    place = ProjectFolder(tmp_path)
    make(place)
    with pytest.raises(BadSettings) as caught:
        place.found()
    assert caught.value.path == str(place.file)
    distrust_folder(place.project, place.home)
    found = place.found()
    assert found.settings == Settings()
    assert len(found.warnings) == 1


@pytest.mark.skipif(
    not shutil.which("setpriv"), reason="setpriv is not installed; `apt-get install util-linux`"
)
@pytest.mark.parametrize("which", ["file", "folder"])
def test_a_file_that_cannot_be_accessed_does_not_count_as_missing(
    place: ProjectFolder, which: str
) -> None:
    place.found('[permissions]\ndeny = ["rm *"]')
    shut = place.file if which == "file" else place.file.parent
    # root may read everything, unless it gives that right up
    rights = "-dac_override,-dac_read_search"
    weak = ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}"]
    shut.chmod(0)
    done = subprocess.run(
        [*(weak if os.geteuid() == 0 else []), sys.executable, "-m", "recollect", "config"],
        cwd=place.project,
        env={**os.environ, "RECOLLECT_HOME": str(place.home)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    shut.chmod(0o700)
    assert done.returncode == 52
    assert str(place.file) in done.stderr
    assert "permission denied" in done.stderr.lower()


def test_a_file_in_place_of_the_folder_is_ignored(place: ProjectFolder) -> None:
    place.file.parent.rmdir()
    place.file.parent.write_text("x")
    assert place.found().settings == Settings()


def test_the_users_file_is_never_read_as_a_projects(place: ProjectFolder) -> None:
    place.file.write_text('model = "gpt-5"')
    trust_folder(place.project, place.file.parent)
    found = resolve_settings(place.project, place.file.parent)
    assert found.settings.model == "gpt-5"
    assert found.warnings == ()


def test_the_users_file_is_strict_whatever_the_projects_file_has(place: ProjectFolder) -> None:
    with pytest.raises(BadSettings, match="did you mean `model`"):
        place.found(own="modle = 1")
