"""What the judge is told about folders, for tests that need no real one."""

from __future__ import annotations

import posixpath

from recollect.permissions.folder_contents import FindSecrets, FolderSecrets, SecretFile


def no_secrets(_folder: str) -> FolderSecrets:
    """A workspace in which no file has a secret name."""
    return FolderSecrets()


def secrets_at(*paths: str, tracked: bool = False) -> FindSecrets:
    """A workspace with these secrets, named from its top folder."""

    def find_secrets(folder: str) -> FolderSecrets:
        top = f"{posixpath.normpath(folder)}/".removeprefix("./")
        below = (path[len(top) :] for path in paths if path.startswith(top))
        return FolderSecrets(tuple(SecretFile(path, tracked) for path in below))

    return find_secrets
