"""A home directory and a project whose settings a test writes."""

from __future__ import annotations

from pathlib import Path

from recollect.workspace.effective_settings import (
    PROJECT_FOLDER,
    EffectiveSettings,
    resolve_settings,
)
from recollect.workspace.trusted_folders import trust_folder


class ProjectFolder:
    """A home directory, a project with a folder in it, and settings for both."""

    def __init__(self, base: Path, *, trusted: bool = True) -> None:
        self.home, self.project = base / "home", base / "project"
        self.own, self.file = (
            self.home / "settings.toml",
            self.project / PROJECT_FOLDER / "settings.toml",
        )
        (self.project / PROJECT_FOLDER).mkdir(parents=True)
        (self.project / ".git").mkdir()
        self.home.mkdir()
        if trusted:
            trust_folder(self.project, self.home)

    def found(self, project: str | None = None, own: str | None = None) -> EffectiveSettings:
        for file, text in ((self.file, project), (self.own, own)):
            if text is not None:
                file.write_text(text, encoding="utf-8")
                file.chmod(0o600)
        return resolve_settings(self.project, self.home)
