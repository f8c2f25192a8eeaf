"""Flipped bits and truncated files: damage is detected, no entry reads wrong, the rest stays."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from recollect.entries import Entry
from recollect.store.recovery import store_doctor
from recollect.store.sql_schema import MARK_BYTES
from tests.reliability.children import copy_store, note_figures
from tests.reliability.images import IMAGES, LEAF, PAGE, Ownership, Sight, extents, look

IN_CI = {"closed": (40, 8), "unindexed": (20, 5), "killed": (6, 4)}  # flips and cuts


class Image(NamedTuple):
    name: str
    path: Path
    truth: Sight
    owners: Ownership


class Wound(NamedTuple):
    """A change to one file of an image: a bit flipped at an offset, or everything after it gone."""

    suffix: str
    offset: int
    bit: int | None  # None: cut

    def inflict(self, path: Path) -> None:
        file = path.with_name(path.name + self.suffix)
        data = bytearray(file.read_bytes())
        if self.bit is None:
            del data[self.offset :]
        else:
            data[self.offset] ^= 1 << self.bit
        file.write_bytes(data)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Image]:
    made = {}
    for name, make in IMAGES.items():
        path = make(tmp_path_factory.mktemp(name) / "s.db")
        truth = look(copy_store(path, path.parent / "seen" / "s.db"))
        assert truth.errors == ()
        whole = copy_store(path, path.parent / "whole" / "s.db")
        look(whole)  # the journal goes into the file
        made[name] = Image(name, path, truth, Ownership(whole, truth.entries))
    return made


def wounds(image: Image, noise: random.Random) -> Iterator[Wound]:
    suffixes = [s for s in ("", "-wal") if image.path.with_name(image.path.name + s).exists()]
    while True:
        suffix = noise.choice(suffixes)
        size = image.path.with_name(image.path.name + suffix).stat().st_size
        # the first bytes of a page steer how the rest of it is read: hit them more often
        page = noise.randrange(0, size, PAGE)
        inside = noise.choice([noise.randrange(100), noise.randrange(PAGE), noise.randrange(PAGE)])
        yield Wound(suffix, min(page + inside, size - 1), noise.randrange(8))


def cuts(image: Image, noise: random.Random) -> Iterator[Wound]:
    for wound in wounds(image, noise):
        whole_pages = noise.random() < 0.5
        yield wound._replace(
            offset=wound.offset // PAGE * PAGE if whole_pages else wound.offset, bit=None
        )


class Outcome(NamedTuple):
    noticed: str  # harmless, told, doctor
    lost: int  # entries that were not readable after the repair
    collateral: int  # of those, the ones none of whose bytes were hit


def wrong_entries(truth: Sight, seen: Sight) -> list[Entry]:
    """Entries that are not what was written. The parent of one that follows a damaged entry may be
    the damaged one's id as it reads now, or its place in the quarantine: never another entry."""
    wrong = []
    for entry in seen.entries.values():
        right = truth.entries.get(entry.id)
        same = right is not None and (entry.time, entry.body) == (right.time, right.body)
        if (
            not same
            or right is None
            or (entry.parent != right.parent and entry.parent in truth.entries)
        ):
            wrong.append(entry)
    return wrong


def suffer(image: Image, wound: Wound, room: Path) -> Outcome:
    """One trial. Fails when an entry reads wrong, or one is missing and nobody says so."""
    shutil.rmtree(room, ignore_errors=True)
    path = copy_store(image.path, room / "s.db")
    wound.inflict(path)
    seen = look(path)
    wrong = wrong_entries(image.truth, seen)
    assert not wrong, f"{image.name} {wound}: read without a word: {wrong[:1]}"
    if not seen.errors and seen.answers == image.truth.answers:
        return Outcome("harmless", 0, 0)
    if wound.suffix == "-wal" and wound.bit is None and not seen.errors:
        return Outcome("shorter", 0, 0)  # a journal that was cut looks like an earlier crash
    noticed = "told" if seen.errors else "doctor"
    shutil.rmtree(room)
    path = copy_store(image.path, room / "s.db")
    wound.inflict(path)
    if not seen.errors:
        missing = [k for k, v in image.truth.answers.items() if seen.answers.get(k) != v]
        findings = store_doctor.examine_store(path).findings
        assert findings, f"{image.name} {wound}: nobody noticed that these differ: {missing}"
    return repaired(image, wound, path, noticed)


def repaired(image: Image, wound: Wound, path: Path, noticed: str) -> Outcome:
    store_doctor.repair_store(path)
    seen = look(path)
    wrong = wrong_entries(image.truth, seen)
    assert not wrong, f"{image.name} {wound}: wrong after the repair: {wrong[:1]}"
    lost = image.truth.entries.keys() - seen.entries.keys()
    if wound.suffix == "-wal":
        return Outcome(noticed, len(lost), 0)
    size = image.path.stat().st_size
    end = size if wound.bit is None else wound.offset + 1
    collateral = lost - image.owners.at(wound.offset, end)
    return Outcome(noticed, len(lost), len(collateral))


def trials(
    image: Image, chosen: Iterator[Wound], count: int, room: Path
) -> list[tuple[Wound, Outcome]]:
    return [
        (wound, suffer(image, wound, room)) for wound, _ in zip(chosen, range(count), strict=False)
    ]


def told(outcomes: list[tuple[Wound, Outcome]]) -> dict[str, object]:
    """The figures for docs/internals/reliability.md."""
    worst = max(outcomes, key=lambda pair: pair[1].collateral)
    return {
        "noticed": dict(Counter(outcome.noticed for _, outcome in outcomes)),
        "most lost": max(outcome.lost for _, outcome in outcomes),
        "most collateral": worst[1].collateral,
        "where": tuple(worst[0]),
    }


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("kind", ["flips", "cuts"])
def test_damage_is_detected_and_contained(
    images: dict[str, Image],
    tmp_path: Path,
    name: str,
    kind: str,
) -> None:
    image, noise = images[name], random.Random(f"{name} {kind}")
    chosen = (wounds if kind == "flips" else cuts)(image, noise)
    count = IN_CI[name][kind == "cuts"]
    outcomes = trials(image, chosen, count, tmp_path / "room")
    note_figures(f"{name} {kind}", told(outcomes))
    if kind == "flips":
        assert_contained(outcomes)


def assert_contained(outcomes: list[tuple[Wound, Outcome]]) -> None:
    spread = [(wound, outcome) for wound, outcome in outcomes if outcome.collateral]
    assert not spread, f"entries were lost that no flipped bit touched: {spread[:3]}"


def test_a_flip_in_the_key_of_an_entry_is_not_a_gap_of_millions(
    images: dict[str, Image], tmp_path: Path
) -> None:
    """A key is a segment's number and a position in it; one bit more is a position far ahead."""
    image = images["closed"]
    rows = [extent for extent in extents(image.path, "entries") if extent.end - extent.start > 20]
    cell = rows[200]
    payload_bytes = 1 if image.path.read_bytes()[cell.start] < 0x80 else 2
    outcome = suffer(image, Wound("", cell.start + payload_bytes, 0), tmp_path / "room")
    assert outcome.lost <= 1
    assert (tmp_path / "room" / "s.db").stat().st_size < 2 * image.path.stat().st_size


@pytest.mark.parametrize("offset", [47, 60, 63, 70])
def test_a_flip_in_the_header_that_names_the_file_ours_is_reported_and_repaired(
    images: dict[str, Image], tmp_path: Path, offset: int
) -> None:
    outcome = suffer(images["closed"], Wound("", offset, 0), tmp_path / "room")
    assert outcome == Outcome("told", 0, 0)


def test_a_flip_in_what_binds_a_journal_to_its_file_costs_no_entry(
    images: dict[str, Image], tmp_path: Path
) -> None:
    """The journal of a killed writer has entries that are nowhere else. It is set aside only if it
    is another file's, and one flipped bit does not make it that."""
    image = images["killed"]
    data = image.path.read_bytes()
    mark, schema = data.index(b"reco", PAGE), data.index(b"CREATE TABLE journal")
    chosen = [*range(68, 72), *range(mark - 6, mark + MARK_BYTES), *range(schema - 20, schema + 12)]
    journal = image.path.with_name(f"{image.path.name}-wal").read_bytes()
    begun = journal.index(data[mark : mark + 12])  # its first transaction counts on
    places = [("", offset) for offset in chosen]
    places += [("-wal", begun + offset) for offset in range(MARK_BYTES)]
    for number, (suffix, offset) in enumerate(places):
        outcome = suffer(image, Wound(suffix, offset, number % 8), tmp_path / "room")
        assert outcome.lost == 0, (suffix, offset, number % 8, outcome)


@pytest.mark.parametrize("table", ["entries", "blobs", "dictionaries", "sessions", "lines"])
def test_a_flip_in_how_many_rows_a_page_has_hides_none_of_them(
    images: dict[str, Image], tmp_path: Path, table: str
) -> None:
    image = images["closed"]
    data = image.path.read_bytes()
    pages = {extent.start // PAGE * PAGE for extent in extents(image.path, table)}
    fullest = max((page for page in pages if data[page] == LEAF), key=lambda page: data[page + 4])
    wound = Wound("", fullest + 4, data[fullest + 4].bit_length() - 1)
    outcome = suffer(image, wound, tmp_path / "room")
    assert outcome in (Outcome("told", 0, 0), Outcome("doctor", 0, 0))
    assert look(tmp_path / "room" / "s.db").answers == image.truth.answers


def test_a_flip_in_the_list_of_free_pages_costs_nothing_when_it_is_repaired(
    images: dict[str, Image], tmp_path: Path
) -> None:
    """Reading does not look at the list; the repair does, and the flip makes it name live pages."""
    image = images["closed"]
    data = image.path.read_bytes()
    assert data[32:36] == bytes(4)  # there is none: each bit makes a page the first of it
    for bit in range(0, (len(data) // PAGE).bit_length(), 2):
        path = copy_store(image.path, tmp_path / str(bit) / "s.db")
        wound = Wound("", 35, bit)
        wound.inflict(path)
        assert repaired(image, wound, path, "doctor") == Outcome("doctor", 0, 0)


@pytest.mark.long
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("part", range(20))
@pytest.mark.parametrize("name", IMAGES)
def test_ten_thousand_wounds(
    images: dict[str, Image],
    tmp_path: Path,
    name: str,
    part: int,
) -> None:
    image, noise = images[name], random.Random(f"{name} {part}")
    outcomes = trials(image, wounds(image, noise), 140, tmp_path / "room")
    outcomes += trials(image, cuts(image, noise), 28, tmp_path / "room")
    note_figures(f"{name} {part}", told(outcomes))
    assert_contained([pair for pair in outcomes if pair[0].bit is not None])
