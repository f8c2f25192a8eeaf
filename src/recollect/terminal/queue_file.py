"""The prompts of a session that wait in a terminal, on disk: a killed terminal loses none of them.

The terminal that holds the session's claim writes the file, and removes it when nothing waits. It
is read when the session is opened again.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from recollect.errors import RecollectError
from recollect.runtime.session_claims import session_file
from recollect.settings import make_private_folder
from recollect.store.durable_files import sync_directory, write_durably
from recollect.terminal.terminal_events import QueuedPrompt
from recollect.workspace.sent_files import SentFile

FOLDER = "queues"  # below the data directory
_MAX_SIZE = 100_000_000  # bytes


class _Waiting(msgspec.Struct, frozen=True):
    """A prompt as the file has it."""

    text: str
    files: tuple[str | SentFile, ...] = ()  # paths, and files that were sent before
    model: str = ""
    is_command: bool = False


class QueueFile:
    """Of one session. `save` returns when the prompts are on disk."""

    def __init__(self, address: str, session: str) -> None:
        self.address, self.session = address, session
        self._file = session_file(FOLDER, address, session)
        self._saved: tuple[QueuedPrompt, ...] = ()

    def beside(self, session: str) -> QueueFile:
        """That of another session of the same store."""
        return QueueFile(self.address, session)

    def save(self, prompts: tuple[QueuedPrompt, ...]) -> None:
        if prompts == self._saved:
            return
        if prompts:
            make_private_folder(self._file.parent)
            written = self._file.with_name(f"{self._file.name}.new")
            written.unlink(missing_ok=True)  # of a terminal that was killed here
            write_durably(written, msgspec.json.encode([*map(_to_file, prompts)]))
            written.replace(self._file)
            sync_directory(self._file.parent)
        else:
            self._file.unlink(missing_ok=True)
        self._saved = prompts

    def load(self) -> tuple[QueuedPrompt, ...]:
        """What waited when the session was left. A damaged file is put aside."""
        try:
            if self._file.stat().st_size > _MAX_SIZE:
                raise ValueError
            found = msgspec.json.decode(self._file.read_bytes(), type=tuple[_Waiting, ...])
        except FileNotFoundError:
            return ()
        except (OSError, ValueError) as error:
            raise RecollectError(
                f"the prompts that waited here cannot be read; they are in {_put_aside(self._file)}"
            ) from error
        self._saved = tuple(map(_from_file, found))
        return self._saved


def _to_file(prompt: QueuedPrompt) -> _Waiting:
    files = tuple(str(one) if isinstance(one, Path) else one for one in prompt.attachments)
    return _Waiting(prompt.text, files, prompt.model, prompt.is_command)


def _from_file(waiting: _Waiting) -> QueuedPrompt:
    files = tuple(Path(one) if isinstance(one, str) else one for one in waiting.files)
    return QueuedPrompt(waiting.text, files, 0, waiting.model, waiting.is_command)


def _put_aside(file: Path) -> Path:
    aside = file.with_name(f"{file.name}.damaged")
    try:
        file.replace(aside)
    except OSError:
        return file
    return aside
