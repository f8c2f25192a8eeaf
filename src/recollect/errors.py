"""Everything that can go wrong, as one tree.

    RecollectError
    ├── BadInput                what was handed in cannot be stored as it is
    │   ├── BadRole             a role other than user, model or system
    │   └── TooLarge            a value beyond what a store takes
    ├── NotFound
    │   ├── UnknownSession
    │   ├── UnknownEntry
    │   └── UnknownBlob
    ├── AmbiguousId             an id prefix that fits several
    ├── HeadMoved               somebody else appended first
    ├── AlreadyExists           an id that is taken
    ├── StoreError              the place where things are kept
    │   ├── CannotWrite         full disk, read-only directory, input/output error
    │   ├── CannotOpen          not a store, or a place no store may be
    │   ├── NewerStore          written by a later version
    │   └── Damaged             what was read is not what was written
    ├── CannotImport            a file that is no transcript we know
    ├── BadSettings             the settings cannot be read as they are
    └── ModelError              a model that could not be asked, or did not answer
        ├── UnknownModel        no profile of this name
        ├── NoApiKey            the provider wants a key, and none was found
        ├── Unreachable         no connection: the name, the network, the time
        ├── ProviderFailed      the provider said no, and why
        │   ├── ApiKeyRefused   the key is wrong, or may not do this
        │   ├── ContextOverflow more tokens than the model's window
        │   └── ProviderBusy    too many requests, or the provider is down, also after retries
        └── BadReply            what came is no reply: a page, half a JSON, nothing at all

A message says the fact with its values, then the remedy. The data is on attributes as well.
"""

from __future__ import annotations

from collections.abc import Sequence


class RecollectError(Exception):
    """The root: catch this to catch everything recollect raises on purpose."""


class BadInput(RecollectError, ValueError):
    """A value that cannot be stored as it is."""


class BadRole(BadInput):
    def __init__(self, role: object, position: int) -> None:
        super().__init__(
            f"Role must be user or model, but got {role}. "
            f"(message {position} of those handed in; system is accepted for instructions)"
        )
        self.role, self.position = role, position


class TooLarge(BadInput):
    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(f"{what} has {size:,} bytes, the limit is {limit:,}; split it into parts")
        self.size, self.limit = size, limit


class NotFound(RecollectError, LookupError):
    """Something was named that is not there."""


class UnknownSession(NotFound):
    def __init__(self, session: str) -> None:
        super().__init__(f"no session {session!r}; `recollect sessions --all` lists them")
        self.session = session


class UnknownEntry(NotFound):
    def __init__(self, entry: str | None, session: str | None = None) -> None:
        why = "is in no session; `recollect search WORDS` finds entries by their text"
        if session:
            why = f"is not in session {session!r}; `recollect show {session}` lists its entries"
        super().__init__(f"entry {entry!r} {why}")
        self.entry, self.session = entry, session


class UnknownBlob(NotFound):
    def __init__(self, digest: str) -> None:
        super().__init__(f"content {digest!r} is not in the store; `recollect doctor` checks it")
        self.digest = digest


class AmbiguousId(RecollectError, LookupError):
    def __init__(self, prefix: str, candidates: Sequence[str]) -> None:
        shown = ", ".join(candidates[:8]) + (" …" if len(candidates) > 8 else "")
        super().__init__(f"{prefix!r} fits {shown}; give more characters of the id")
        self.prefix, self.candidates = prefix, tuple(candidates)


class HeadMoved(RecollectError):
    """The session's head is not the one the writer expected; nothing was written."""

    def __init__(self, session: str, expected: str | None, actual: str | None) -> None:
        super().__init__(
            f"session {session!r} is at {actual or 'its start'}, not at {expected or 'its start'}: "
            "somebody else wrote first; read what is new and append after it, or fork"
        )
        self.session, self.expected, self.actual = session, expected, actual


class AlreadyExists(RecollectError):
    def __init__(self, what: str, name: str) -> None:
        super().__init__(f"there is already {what} {name!r}; nothing was written")
        self.name = name


class StoreError(RecollectError):
    """The place where things are kept."""


class CannotWrite(StoreError):
    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"cannot write to {path}: {why}; nothing of this write was kept, "
            "everything acknowledged before is safe. Make room or grant access and try again"
        )
        self.path, self.why = path, why


class CannotOpen(StoreError):
    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"cannot open {path}: {why}")
        self.path, self.why = path, why


class NewerStore(StoreError):
    def __init__(self, path: str, found: int, known: int) -> None:
        super().__init__(
            f"{path} was written by a newer recollect (format {found}, this one knows {known}); "
            "it was left alone. Upgrade recollect to open it"
        )
        self.path, self.found, self.known = path, found, known


class Damaged(StoreError):
    """What was read is not what was written. `check_entries` names the ones concerned, if known."""

    def __init__(self, what: str, entries: Sequence[str] = ()) -> None:
        super().__init__(f"{what}; `recollect doctor` shows the extent and what can be repaired")
        self.what, self.entries = what, tuple(entries)


class CannotImport(RecollectError, ValueError):
    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"cannot import {name}: {why}")
        self.name, self.why = name, why


class BadSettings(RecollectError, ValueError):
    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"cannot use the settings in {path}: {why}; correct the file")
        self.path, self.why = path, why


class ModelError(RecollectError):
    """A model that could not be asked, or did not answer. The session is as it was."""


class UnknownModel(ModelError, LookupError):
    def __init__(self, model: str, near: Sequence[str] = ()) -> None:
        hint = f" (did you mean {' or '.join(near)}?)" if near else ""
        super().__init__(
            f"no model {model!r} is known{hint}; `recollect models` lists them, "
            "and five lines in the settings add one"
        )
        self.model, self.near = model, tuple(near)


class NoApiKey(ModelError):
    def __init__(self, model: str, variable: str) -> None:
        super().__init__(
            f"{model} wants a key and none was found: set {variable}, "
            "or ask another model (`recollect models` shows which have theirs)"
        )
        self.model, self.variable = model, variable


class Unreachable(ModelError):
    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"cannot reach {where}: {why}; check the address and the network")
        self.where, self.why = where, why


class ProviderFailed(ModelError):
    """The provider told of an error, in its own words (shortened)."""

    def __init__(self, said: str, status: int = 0, remedy: str = "") -> None:
        number, then = f" ({status})" if status else "", f"; {remedy}" if remedy else ""
        super().__init__(f"the provider refused{number}: {said}{then}")
        self.said, self.status = said, status


class ApiKeyRefused(ProviderFailed):
    def __init__(self, said: str, status: int, variable: str) -> None:
        super().__init__(said, status, f"check the key in {variable}")
        self.variable = variable


class ContextOverflow(ProviderFailed):
    """`limit` is the window that the provider named, when it named one, and `asked` how many tokens
    the request had by its count."""

    def __init__(
        self, said: str, status: int = 0, limit: int | None = None, asked: int | None = None
    ) -> None:
        super().__init__(said, status, "compact the session (`recollect compact ID`) and ask again")
        self.limit, self.asked = limit, asked


class ProviderBusy(ProviderFailed):
    def __init__(self, said: str, status: int = 0, attempts: int = 1) -> None:
        times = "once" if attempts == 1 else f"{attempts} times"
        super().__init__(said, status, f"asked {times}; try again later")
        self.attempts = attempts


class BadReply(ModelError):
    def __init__(self, what: str) -> None:
        super().__init__(
            f"what came is no reply but {what}; check the model's address and wire format "
            "(`recollect models`), or try again"
        )
        self.what = what
