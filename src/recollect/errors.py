"""Every exception recollect raises on purpose, in one tree.

    RecollectError
    ├── BadInput                a value that cannot be stored as it is
    │   ├── BadRole             a role other than user, model or system
    │   └── TooLarge            a value beyond a store's limit
    ├── BadTool                 a function that cannot become a tool
    ├── NotFound
    │   ├── UnknownSession
    │   ├── UnknownEntry
    │   └── UnknownBlob
    ├── AmbiguousId             a part of an id that matches several ids
    ├── HeadMoved               another writer appended first
    ├── SessionTrashed          a session in the trash is read, not continued
    ├── CannotEdit              an edit of what the model sees that would have no effect
    ├── AlreadyExists           an id that is taken
    ├── RefusedByHook           a hook refused a session, a prompt or a request
    ├── InsideEventLoop         `run_sync` where an event loop runs already
    ├── StoreError              the store's file
    │   ├── CannotWrite         full disk, read-only directory, I/O error
    │   ├── CannotOpen          not a store, or on a filesystem that no store may be on
    │   ├── StoreReplaced       its file was deleted, moved or replaced while it was open
    │   ├── CannotReach         the database of a shared store does not answer
    │   ├── StoreClosed         used after it was closed
    │   ├── NewerStore          written by a later version
    │   └── Damaged             the bytes read are not the bytes written
    ├── CannotImport            a file that cannot be read as a session
    │   └── UnknownFormat       one in no transcript format we know
    ├── BadSettings             a settings file that cannot be used
    ├── AccessDenied            a client without the token or the right for this
    ├── ServerBusy              a server at one of its limits
    ├── CannotListen            an address that a server cannot have
    ├── MissingExtra            a command whose packages are not installed
    └── ModelError              a model could not be called, or did not reply
        ├── UnknownModel        no profile has this name
        ├── NoApiKey            the provider requires a key and none was found
        ├── Unreachable         no connection: DNS, network, timeout
        ├── ProviderFailed      the provider refused the request, and why
        │   ├── ApiKeyRefused   the key is wrong, or lacks the permission
        │   ├── ContextOverflow more tokens than the model's context window
        │   └── ProviderBusy    rate limit or outage, also after retries
        │       └── QuotaExhausted   no retry helps: no credit, a quota of a day, a long wait
        └── BadReply            the response is not a reply: a web page, half a JSON, nothing

A message states the fact with its values, then the remedy. Attributes carry the same data.
"""

from __future__ import annotations

from collections.abc import Sequence

_MAX_ID = 60  # characters of what somebody gave as an id: it may be a whole file


def _brief(given: object) -> str:
    text = repr(given if not isinstance(given, str) else given[: _MAX_ID + 1])
    return text if len(text) <= _MAX_ID + 2 else f"{text[:_MAX_ID]}…{text[-1]}"


class RecollectError(Exception):
    """The root: catch this to catch everything below."""


class BadInput(RecollectError, ValueError):
    """The value cannot be stored as it is."""


class BadRole(BadInput):
    def __init__(self, role: object, position: int) -> None:
        super().__init__(
            f"Role must be user or model, but got {role}. "
            f"(message {position} of this call; system is accepted for instructions)"
        )
        self.role, self.position = role, position


class TooLarge(BadInput):
    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(f"{what} has {size:,} bytes, the limit is {limit:,}; split it into parts")
        self.size, self.limit = size, limit


class BadTool(RecollectError, TypeError):
    """A function cannot become a tool; raised where it is decorated."""

    def __init__(self, tool: str, why: str) -> None:
        super().__init__(f"{tool} cannot become a tool: {why}")
        self.tool, self.why = tool, why


class NotFound(RecollectError, LookupError):
    """No session, entry or content has this name."""


class UnknownSession(NotFound):
    def __init__(self, session: str) -> None:
        super().__init__(f"no session {_brief(session)}; `recollect sessions --all` lists them")
        self.session = session


class UnknownEntry(NotFound):
    def __init__(self, entry: str | None, session: str | None = None) -> None:
        where = f"is not in session {session!r}" if session else "is in no session"
        found_by = f"show {session}` lists its" if session else "search WORDS` finds"
        super().__init__(f"entry {_brief(entry)} {where}; `recollect {found_by} entries")
        self.entry, self.session = entry, session


class UnknownBlob(NotFound):
    def __init__(self, digest: str) -> None:
        super().__init__(f"content {digest!r} is not in the store; `recollect doctor` checks it")
        self.digest = digest


class AmbiguousId(RecollectError, LookupError):
    def __init__(self, given: str, candidates: Sequence[str], titles: Sequence[str] = ()) -> None:
        pairs = zip(candidates, titles, strict=True) if titles else ()
        named = [f"{one} ({title or 'no title'})" for one, title in pairs]
        shown = ", ".join((named or list(candidates))[:8])
        more = " …" if len(candidates) > 8 else ""
        super().__init__(f"{given!r} matches {shown}{more}; give more characters of the id")
        self.given, self.candidates, self.titles = given, tuple(candidates), tuple(titles)


class HeadMoved(RecollectError):
    """The session's head is not the one the writer expected. Nothing was written."""

    def __init__(self, session: str, expected: str | None, actual: str | None) -> None:
        super().__init__(
            f"session {session!r} is at {actual or 'its start'}, not at {expected or 'its start'}: "
            "another writer appended first; read the new entries and append after them, or fork"
        )
        self.session, self.expected, self.actual = session, expected, actual


class SessionTrashed(RecollectError):
    """A session in the trash was to be continued, changed or forked."""

    def __init__(self, session: str, short: str = "") -> None:
        super().__init__(
            f"session {short or session} is in the trash; "
            f"`recollect restore {short or session}` brings it back"
        )
        self.session = session


class CannotEdit(RecollectError):
    """An edit of what the model sees would have no effect, or a wrong one."""

    def __init__(self, verb: str, entry: str, why: str) -> None:
        super().__init__(f"cannot {verb} {entry[-8:]}: {why}")  # as `entries.handle_of` shortens it
        self.entry, self.why = entry, why


class AlreadyExists(RecollectError):
    def __init__(self, what: str, name: str, remedy: str = "") -> None:
        then = f". {remedy}" if remedy else ""
        super().__init__(f"there is already {what} {name!r}; nothing was written{then}")
        self.name = name


class RefusedByHook(RecollectError):
    """A hook refused a session, a prompt or a request."""


class InsideEventLoop(RecollectError):
    def __init__(self) -> None:
        super().__init__(
            "`run_sync` was called inside an event loop, which it would block; use `await run(…)`"
        )


class StoreError(RecollectError):
    """The store's file cannot be used as it is."""


class CannotWrite(StoreError):
    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"cannot write to {path}: {why}; this write left nothing behind, and everything "
            "acknowledged before is safe. Free space or grant access, then try again"
        )
        self.path, self.why = path, why


class CannotOpen(StoreError):
    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"cannot open {path}: {why}")
        self.path, self.why = path, why


class StoreReplaced(StoreError):
    """The file of an open store was deleted, moved or replaced. `saved` is the file with everything
    that the store holds; empty if it could not be written, or if the moved file has it all."""

    def __init__(self, path: str, why: str, remedy: str, saved: str = "") -> None:
        super().__init__(
            f"{path} {why} while it was open: this write was not acknowledged, and nothing more is "
            f"written. {remedy}"
        )
        self.path, self.why, self.saved = path, why, saved


class CannotReach(StoreError):
    """The database does not answer. `in_doubt`: what was being written may be stored or not."""

    def __init__(self, address: str, why: str, *, in_doubt: bool = False) -> None:
        unsure = "a write that was under way may be stored or not: read the session before you"
        fate = f"{unsure} repeat it" if in_doubt else "nothing was written"
        super().__init__(
            f"cannot reach {address}: {why}; {fate}. Everything acknowledged before is safe. "
            "Start the database or mend the network; the connection is made again by itself"
        )
        self.address, self.why, self.in_doubt = address, why, in_doubt


class StoreClosed(StoreError):
    def __init__(self, path: str) -> None:
        super().__init__(f"the store {path} is closed; open it again, and its sessions from there")
        self.path = path


class NewerStore(StoreError):
    def __init__(self, path: str, found: int, known: int) -> None:
        super().__init__(
            f"{path} was written by a newer recollect (format {found}, this one knows {known}); "
            "the file was not changed. Upgrade recollect to open it"
        )
        self.path, self.found, self.known = path, found, known


class Damaged(StoreError):
    """The bytes read are not the bytes written. `entries` lists the affected ids, if known."""

    def __init__(self, what: str, entries: Sequence[str] = ()) -> None:
        super().__init__(f"{what}; `recollect doctor` shows the extent and what can be repaired")
        self.what, self.entries = what, tuple(entries)


class CannotImport(RecollectError, ValueError):
    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"cannot import {name}: {why}")
        self.name, self.why = name, why


class UnknownFormat(CannotImport):
    """The file is empty, or in no format that can be imported."""


class BadSettings(RecollectError, ValueError):
    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"cannot use the settings in {path}: {why}; correct the file")
        self.path, self.why = path, why


class AccessDenied(RecollectError):
    """A client has no token, a wrong one, or not the right for this."""

    def __init__(self, fact: str, remedy: str) -> None:
        super().__init__(f"{fact}; {remedy}")


class ServerBusy(RecollectError):
    """A server has reached one of its limits. Nothing was stored."""

    def __init__(self, fact: str, remedy: str) -> None:
        super().__init__(f"{fact}; {remedy}")


class CannotListen(RecollectError):
    def __init__(self, address: str, why: str) -> None:
        fact = f"cannot listen on {address}: {why[:1].lower()}{why[1:]}"
        super().__init__(f"{fact}; choose another address, or stop what uses it")
        self.address = address


class MissingExtra(RecollectError):
    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(
            f"{what} needs {package}, which is not installed; "
            f"`pip install 'recollect[{extra}]'` brings it"
        )
        self.extra = extra


class ModelError(RecollectError):
    """A model could not be called, or did not reply. The session is unchanged."""


class UnknownModel(ModelError, LookupError):
    def __init__(self, model: str, near: Sequence[str] = ()) -> None:
        hint = f" (did you mean {' or '.join(near)}?)" if near else ""
        super().__init__(
            f"unknown model {model!r}{hint}; `recollect models` lists the known ones, "
            "and five lines in the settings add another"
        )
        self.model, self.near = model, tuple(near)


class NoApiKey(ModelError):
    def __init__(self, model: str, variable: str) -> None:
        super().__init__(
            f"no API key for {model}; set {variable}, "
            "or use another model (`recollect models` shows which have a key)"
        )
        self.model, self.variable = model, variable


class Unreachable(ModelError):
    """No connection, or none that lasted: `answered` if a reply had begun."""

    def __init__(self, where: str, why: str, *, answered: bool = False) -> None:
        fact, remedy = f"cannot reach {where}: {why}", "check the address and the network"
        if answered:
            fact, remedy = f"no complete reply from {where}: {why}", "try again"
        super().__init__(f"{fact}; {remedy}")
        self.where, self.why, self.answered = where, why, answered


class ProviderFailed(ModelError):
    """The provider returned an error; `said` is its own text, shortened."""

    def __init__(self, said: str, status: int = 0, remedy: str = "") -> None:
        number, then = f" ({status})" if status else "", f"; {remedy}" if remedy else ""
        super().__init__(f"the provider refused{number}: {said}{then}")
        self.said, self.status = said, status


class ApiKeyRefused(ProviderFailed):
    def __init__(self, said: str, status: int, variable: str) -> None:
        super().__init__(said, status, f"check the key in {variable}")
        self.variable = variable


OVERFLOW_REMEDY = "compact the session (`recollect compact ID`) and try again"  # ends its sentence


class ContextOverflow(ProviderFailed):
    """`limit` is the context window, `asked` the request's tokens; none where the provider did not
    say."""

    def __init__(
        self, said: str, status: int = 0, limit: int | None = None, asked: int | None = None
    ) -> None:
        super().__init__(said, status, OVERFLOW_REMEDY)
        self.limit, self.asked = limit, asked


class ProviderBusy(ProviderFailed):
    """The provider asks to wait `delay` seconds, or `until` a moment in seconds since 1970;
    `guessed_delay` follows from what it says of its limit. None where it did not say."""

    def __init__(
        self,
        said: str,
        status: int = 0,
        attempts: int = 1,
        *,
        delay: float | None = None,
        until: float | None = None,
        guessed_delay: float | None = None,
        remedy: str = "",
    ) -> None:
        times = "once" if attempts == 1 else f"{attempts} times"
        super().__init__(said, status, remedy or f"tried {times}; try again later")
        self.attempts, self.delay, self.until = attempts, delay, until
        self.guessed_delay = guessed_delay


class QuotaExhausted(ProviderBusy):
    """No retry helps: an empty account, a quota of a day, a wait longer than the settings allow."""

    def __init__(self, said: str, status: int, remedy: str, attempts: int = 1) -> None:
        super().__init__(said, status, attempts, remedy=remedy)
        self.remedy = remedy


class BadReply(ModelError):
    """`is_damage`: whether another attempt may get a reply; None where that is not known."""

    def __init__(self, what: str, *, is_damage: bool | None = None) -> None:
        sentence = (
            f"got {what} instead of a reply; check the model's address and wire format "
            "(`recollect models`), or try again"
        )
        if is_damage is not None:
            sentence = f"the reply has {what}; " + (
                "it is damaged: try again" if is_damage else "nothing of it is used: ask for less"
            )
        super().__init__(sentence)
        self.what, self.is_damage = what, is_damage
