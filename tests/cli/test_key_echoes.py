"""`recollect -p` and a provider that echoes the key, or a part of it: it is shown nowhere."""

from __future__ import annotations

import base64

import pytest

from recollect.entries import Entry
from recollect.store.sqlite import SqliteStore
from tests.cli.model_server import ENV, server
from tests.cli.runner import Cli
from tests.models.server import DONE, HELLO, KEY, Answer, event, http, refused

BODY = KEY.removeprefix("sk-fake-")
ENCODED = base64.b64encode(f"Bearer {KEY}".encode()).decode()
ECHOES = {
    "whole": KEY,
    "masked": f"{KEY[:12]}****{KEY[-4:]}",
    "ellipsis": f"{KEY[:8]}…{KEY[-4:]}",
    "beginning": f"{BODY[:5]} is wrong",
    "end": f"ends with {KEY[-8:]}",
    "blanks": " ".join(KEY),
    "base64": ENCODED,
    "quoted": KEY.replace("/", "%2F").replace("+", "%2B"),
}


def answers(echo: str) -> dict[str, tuple[Answer, ...]]:
    header = f"Location: https://x.invalid/?q={echo.replace(chr(0x2026), '')}"
    finish = event("hi") + event(finish=f"odd {echo}") + DONE
    return {
        "refusal": (refused("401 No", f"Incorrect API key provided: {echo}"),),
        "failure": (refused("500 No", f"upstream said {echo}"), http(HELLO)),
        "redirect": (http(b"", "302 Found", headers=[header]),),
        "in a stream": (http(f'data: {{"error":{{"message":"no {echo}"}}}}\n\n'.encode()),),
        "finish reason": (http(finish),),
        "a page": (http(f"<html>{echo}".encode(), kind="text/html"),),
        "not a reply": (http(f'{{"{echo}": 1}}'.encode(), kind="application/json"),),
    }


def parts(text: str, size: int) -> set[str]:
    return {text[at : at + size] for at in range(len(text) - size + 1)}


SECRET = parts(BODY, 6) | parts(ENCODED[12:-4], 8) | parts(ECHOES["quoted"], 8)


@pytest.mark.parametrize("where", answers(""))
@pytest.mark.parametrize("echo", ECHOES)
def test_no_part_of_a_key_is_shown_or_stored(cli: Cli, echo: str, where: str) -> None:
    with server(cli, *answers(ECHOES[echo])[where]):
        done = cli("-p", "hi", "--output-format", "stream-json", env=ENV)
        told = cli("-p", "hi", env=ENV)
    stored = "".join(repr(entry.body) for entry in path_of_all(cli))
    for text in (done.out, done.err, told.out, told.err, stored):
        squeezed = "".join(text.split())
        assert not [part for part in SECRET if part in text or part in squeezed]
    if where == "refusal":
        assert "Incorrect API key provided: " in told.err
        assert "[key]" in told.err


def path_of_all(cli: Cli) -> list[Entry]:
    async def work(store: SqliteStore) -> list[Entry]:
        return [e for found in await store.sessions() for e in await store.path(found.id)]

    return cli.write(work)
