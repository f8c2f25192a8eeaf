"""What a provider reports decides when `recollect -p` sends less."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple

import pytest

from recollect.codecs.anthropic import AnthropicWire
from recollect.codecs.gemini import GeminiWire
from recollect.codecs.wire_protocol import Wire
from recollect.entries import Compaction, Elide, Entry, Message, Part, Request, Text, Usage
from recollect.testing import call
from tests.cli.model_server import ENV, WIRE, hook, path, recorded, recording_hook, reply, server
from tests.cli.runner import Cli
from tests.models.server import Server, http, refused

WINDOW = 200_000
LINES = 250  # of a file that the model reads: about 6,000 tokens


class Run(NamedTuple):
    sizes: list[int]  # bytes of each request
    entries: tuple[Entry, ...]
    out: str
    err: str

    @property
    def counts(self) -> list[int]:
        """Our count of each request."""
        return [entry.body.tokens for entry in self.entries if isinstance(entry.body, Request)]

    @property
    def edits(self) -> list[Elide | Compaction]:
        bodies = (entry.body for entry in self.entries)
        return [body for body in bodies if isinstance(body, Elide | Compaction)]


def run(
    cli: Cli, *reported: int | Usage, window: int = WINDOW, more: str = "", wire: Wire = WIRE
) -> Run:
    """One prompt; each request is answered by reading another file, with one of these reports."""

    def answer(part: Part, usage: int | Usage) -> bytes:
        usage = Usage(input=usage, output=10) if isinstance(usage, int) else usage
        message = Message(role="model", parts=(part,), finish="stop", usage=usage)
        return http(b"".join(wire.encode_stream(message)))

    for number in range(len(reported)):
        lines = (f"{number}-{line}: " + "some words of a file " * 4 for line in range(LINES))
        (cli.project / f"f{number}.txt").write_text("\n".join(lines))
    replies = [
        answer(call("read_file", id=f"c{n}", absolute_path=f"f{n}.txt"), usage)
        for n, usage in enumerate(reported[:-1])
    ]
    last = answer(Text(text="done"), reported[-1])
    with server(cli, *replies, last, window=window, more=more) as on:
        done = cli.ok("-p", "Read the files.", env=ENV)
    assert done.out == "done\n"
    # a compaction has no tools in its request, and what it is answered is no snapshot
    sizes = [len(asked.body) for asked in on.asked if b'"tools"' in asked.body]
    return Run(sizes, path(cli), done.out, done.err)


def test_a_provider_that_reports_a_full_window_is_sent_less(cli: Cli) -> None:
    full = run(cli, 12_000, 40_000, 80_000, 120_000, 195_000, 90_000)
    assert max(full.counts) < 0.5 * WINDOW  # an estimate alone would see no reason
    assert full.sizes[4] > full.sizes[3] > full.sizes[2]
    assert full.sizes[5] < 0.7 * full.sizes[4]
    assert full.edits


@pytest.mark.parametrize("wire", [WIRE, AnthropicWire(model="m"), GeminiWire(model="m")])
def test_what_the_provider_read_from_its_cache_and_wrote_to_it_fills_the_window_too(
    cli: Cli, wire: Wire
) -> None:
    more = f'wire = "{wire.name}"\n'
    sizes = 12_000, 40_000, 80_000, 120_000, 195_000, 90_000
    counts = [Usage(input=size, cached=size // 2, written=size // 3, output=9) for size in sizes]
    full = run(cli, *counts, more=more, wire=wire)
    assert full.sizes[5] < 0.7 * full.sizes[4]
    assert full.edits
    bodies = [entry.body for entry in full.entries]
    used = [body.usage for body in bodies if isinstance(body, Message) and body.usage]
    assert [(usage.input, usage.cached) for usage in used[:5]] == [
        (size, size // 2) for size in sizes[:5]
    ]


def test_the_same_run_with_honest_reports_sends_everything(cli: Cli) -> None:
    plain = run(cli, 3_000, 9_000, 15_000, 21_000, 27_000, 33_000)
    assert plain.sizes == sorted(plain.sizes)
    assert not plain.edits


def test_a_provider_that_counts_far_less_than_we_do_causes_no_early_compaction(cli: Cli) -> None:
    less = run(cli, *(1_500 + 3_000 * n for n in range(6)), window=40_000)
    assert max(less.counts) > 28_000  # where compaction begins, in our tokens
    assert less.sizes == sorted(less.sizes)
    assert not less.edits


def test_however_little_is_reported_no_more_than_twice_the_window_is_sent(cli: Cli) -> None:
    less = run(cli, *[1] * 9, window=20_000)
    assert max(less.counts) <= 2 * 20_000
    assert less.edits


@pytest.mark.parametrize("lie", [-5, 0, 10**9, 10**18, 10**30])
def test_a_report_that_cannot_be_true_changes_nothing(cli: Cli, lie: int) -> None:
    lied = run(cli, *[lie] * 5)
    assert lied.sizes == sorted(lied.sizes)
    assert not lied.edits


def test_reports_that_do_not_fall_with_the_requests_are_no_dead_end(cli: Cli) -> None:
    lied = run(cli, 12_000, 40_000, 80_000, 120_000, *[195_000] * 5)
    assert lied.sizes[5] < 0.7 * lied.sizes[4]
    assert lied.sizes[5:] == sorted(lied.sizes[5:])
    assert len(lied.edits) == 1
    assert "its report is not used" in " ".join(cli("context").out.split())


def test_a_provider_that_reports_too_little_and_refuses_what_is_too_long_is_no_dead_end(
    cli: Cli,
) -> None:
    limit, sent = 60_000, list[Server]()  # bytes that the provider takes

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tried = [asked.body for asked in sent[0].asked if b'"tools"' in asked.body]
        taken = [body for body in tried if len(body) <= limit]
        part: Part = call("read_file", id=f"c{len(taken)}", absolute_path=f"f{len(taken)}.txt")
        if len(tried[-1]) > limit:
            writer.write(refused("400 Bad Request", f"maximum context length: {limit // 4} tokens"))
        else:
            writer.write(reply(part if len(taken) < 6 else Text(text="done"), usage=Usage(input=9)))
        await writer.drain()

    for number in range(6):
        (cli.project / f"f{number}.txt").write_text(f"some words of file {number}\n" * 700)
    with server(cli, answer, window=40_000) as on:
        sent.append(on)
        assert cli.ok("-p", "Read it.", env=ENV).out == "done\n"
    assert max(len(asked.body) for asked in on.asked) > limit


def test_reports_of_an_earlier_command_count_in_the_next_one(cli: Cli) -> None:
    run(cli, 12_000, 40_000, 80_000, 120_000, 195_000)
    with server(cli, reply(Text(text="yes"), usage=Usage(input=90_000)), window=WINDOW) as on:
        cli.ok("-c", "-p", "And?", env=ENV)
    assert len(on.asked[0].body) < 80_000


def test_a_compaction_by_hand_reaches_its_target_as_the_provider_counts(cli: Cli) -> None:
    run(cli, 12_000, 40_000, 80_000, 120_000, 139_000)
    with server(cli, window=WINDOW):
        told = cli.ok("compact", "--no-model", "--json", env=ENV).json
    assert told["tokens_before"] > 20_000
    assert told["tokens_after"] < 0.8 * told["tokens_before"]


def test_the_event_before_a_request_counts_the_tools_too(cli: Cli, tmp_path: Path) -> None:
    told, heard = recording_hook(tmp_path)
    found = run(cli, 3_000, 9_000, more=hook("BeforeModel", told))
    assert [data["tokens"] for _, data in recorded(heard)] == found.counts
