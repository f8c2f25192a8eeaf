"""`build_ledger`: a session's state from the entries on one path, oldest first.

Messages are folded; snapshots of compactions and a previous snapshot are added as older knowledge,
whether we or another program wrote them. Entries of other kinds add nothing. The same entries give
the same ledger.

`add_model_prose` adds what a model wrote, in its own share of the room. The user's directives come
from the log and from earlier snapshots alone: a model can neither remove nor forge one.
"""

from __future__ import annotations

import re
from collections import Counter as Multiset
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from recollect.entries import Compaction, Entry, Message, Text, ToolCall
from recollect.snapshot.earlier_snapshot import absorb_prose, absorb_snapshot, find_root
from recollect.snapshot.file_section import file_name
from recollect.snapshot.ledger import FileFacts, Ledger
from recollect.snapshot.ledger_fold import LedgerFold
from recollect.snapshot.name_tallies import NameCounter
from recollect.snapshot.snapshot_format import SECTIONS, Snapshot, parse_snapshot
from recollect.text import clean, clip_middle

_ABSOLUTE_PATH = re.compile(
    r'"(?:file_path|filePath|path|absolute_path|cwd|workdir)"\s{0,2}:\s{0,2}"(/[^"\\]{1,500})"'
)
_MAX_FAILURES, _MAX_COMMANDS, _MAX_PASSAGES = 40, 200, 40
_MAX_SECTION = 60_000  # characters of a section that a model wrote


def build_ledger(
    entries: Iterable[Entry], *, root: str = "", previous: Snapshot | None = None
) -> Ledger:
    """`root` is the project's directory; by default the one that holds most files."""
    path = tuple(entries)
    earlier = {e.id: s for e in path if (s := _find_snapshot(e)) is not None}
    roots = [find_root(s) for s in (*([previous] if previous else ()), *earlier.values())]
    fold = LedgerFold(root or next(filter(None, reversed(roots)), "") or _guess_root(path))
    if previous is not None:
        absorb_snapshot(fold, previous)
    for entry in path:
        if isinstance(entry.body, Message):
            fold.add_message(entry.body)
        if entry.id in earlier:
            absorb_snapshot(fold, earlier[entry.id])
        elif isinstance(entry.body, Compaction) and entry.body.status == "COMPRESSED":
            absorb_prose(fold, entry.body.snapshot)
    return _make_ledger(fold)


def _find_snapshot(entry: Entry) -> Snapshot | None:
    """The snapshot of a compaction, or one that a program put into a user message."""
    body, text = entry.body, ""
    match body:
        case Compaction(status="COMPRESSED"):
            text = body.snapshot
        case Message(role="user", parts=(Text(text=first), *_)):
            text = first if first[:100].lstrip().startswith("<state_snapshot>") else ""
    found = parse_snapshot(text)
    if found is None or (isinstance(body, Compaction) and body.trigger != "import"):
        return found
    # other programs have no rule against inventing what the user said
    return msgspec.structs.replace(found, user_directives="")


def _guess_root(entries: Sequence[Entry]) -> str:
    """The deepest directory that holds most of the absolute paths in calls."""
    bodies = (entry.body for entry in entries)
    parts = (part for body in bodies if isinstance(body, Message) for part in body.parts)
    calls = (part.arguments[:100_000] for part in parts if isinstance(part, ToolCall))
    found = {path for arguments in calls for path in _ABSOLUTE_PATH.findall(arguments)}
    within: Multiset[str] = Multiset()
    for path in found:
        pieces = path.split("/")[1:-1]
        within.update("/" + "/".join(pieces[:n]) for n in range(1, len(pieces) + 1))
    # a root must hold two files at least, and not be a directory that every project shares
    most = [d for d, n in within.items() if n >= max(2, 0.6 * len(found)) and d.count("/") > 1]
    return max(most, key=lambda d: (d.count("/"), d)) if most else ""


def _make_ledger(fold: LedgerFold) -> Ledger:
    passages = sorted(fold.passages.values(), key=lambda p: (-p.last, p.files))[:_MAX_PASSAGES]
    failures = sorted(fold.failures.values(), key=lambda f: -f.last)[:_MAX_FAILURES]
    commands = sorted(fold.commands.values(), key=lambda c: -c.last)[:_MAX_COMMANDS]
    one = _resolve_mentions(fold)
    return Ledger(
        root=fold.root,
        now=fold.now,
        goal=fold.goal or next(iter(fold.directives), ""),
        directives=tuple(fold.directives),
        knowledge=tuple(fold.knowledge),
        files=_file_facts(fold, one),
        passages=tuple(
            p._replace(files=tuple(dict.fromkeys(one.get(f, f) for f in p.files))) for p in passages
        ),
        quotations=tuple(reversed(fold.quotations.values())),
        names=fold.tallies.words.tallies(),
        chains=fold.tallies.chains.tallies(),
        commands=tuple(commands),
        failures=tuple(failures),
        actions=tuple(fold.actions),
        steps=fold.steps,
        report=fold.report,
        question=fold.question,
    )


def _file_facts(fold: LedgerFold, one: Mapping[str, str]) -> tuple[FileFacts, ...]:
    names: defaultdict[str, NameCounter] = defaultdict(NameCounter)
    for path, counter in fold.tallies.by_file.items():
        for name, (count, last) in counter.of.items():
            names[one.get(path, path)].add((name,), count, int(last))
    mentions = NameCounter()
    for path, (count, last) in fold.tallies.mentions.of.items():
        mentions.add((one.get(path, path),), count, int(last))
    files = [
        msgspec.structs.replace(
            fold.file(tally.name),
            weight=tally.weight,
            last=tally.last,
            names=names[tally.name].tallies(),
        )
        for tally in mentions.tallies()
    ]
    return tuple(files)


def _resolve_mentions(fold: LedgerFold) -> dict[str, str]:
    """Mentions by a shorter name, or with git's `a/` and `b/`, mapped to the file they mean."""
    by_name: dict[str, list[str]] = {}
    for path in sorted(fold.files):
        by_name.setdefault(file_name(path), []).append(path)
    one: dict[str, str] = {}
    for path in fold.tallies.mentions.of:
        if path in fold.files:
            continue
        bare = path[2:] if path.startswith(("a/", "b/")) else path
        fits = [p for p in by_name.get(file_name(path), ()) if p == bare or p.endswith("/" + bare)]
        if len(fits) == 1:
            one[path] = fits[0]
    return one


def add_model_prose(ledger: Ledger, written: Snapshot | None) -> Ledger:
    """The ledger with a model's prose; the ledger itself when the model gave none."""
    if written is None:
        return ledger
    prose = {
        name: clip_middle(clean(written.section(name)).strip(), _MAX_SECTION)
        for name in SECTIONS
        if name not in ("user_directives", "recent_actions")
    }
    return msgspec.structs.replace(ledger, written=Snapshot(**prose))
