"""Whatever a client sends, it gets a clear answer or is hung up on; nothing else suffers."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from pathlib import Path
from typing import Any

import pytest

from recollect.server.access import AccessToken, AccessTokens, Identity, hash_token
from recollect.server.nplt.nplt_limits import NpltLimits
from recollect.testing import ProviderLine, faulty
from tests.server.hubs import scripted_provider
from tests.server.nplt.nplt_servers import RunningServer, running_server
from tests.server.nplt.seed_client import (
    CHAT_TEXT,
    FILE_DATA,
    FILE_METADATA,
    HISTORY_REQUEST,
    MODEL_SWITCH,
    SESSION_DELETE,
    SESSION_LIST,
    SESSION_NEW,
    SESSION_SWITCH,
    SeedClient,
)

DEEP = b'{"offset":' + b"[" * 20_000 + b"]" * 20_000 + b"}"
BAD: list[tuple[str, int, bytes | dict[str, Any], str]] = [
    ("an unknown type", 0x7F, b"abc", "unknown message type 0x7f"),
    ("a type that only servers send", 0x0A, b"{}", "unknown message type 0x0a"),
    ("a type that needs HELLO", 0x1B, b"", "HELLO"),
    ("text that is not UTF-8", CHAT_TEXT, b"\xff\xfe", "not UTF-8"),
    ("an empty text", CHAT_TEXT, b"", "empty"),
    ("a blank text", CHAT_TEXT, b" \n", "empty"),
    ("JSON that is none", HISTORY_REQUEST, b"{offset", "not JSON"),
    ("JSON that is not UTF-8", SESSION_LIST, b'{"offset": "\xff"}', "not UTF-8"),
    ("JSON that is no object", HISTORY_REQUEST, b"[1]", "object"),
    ("absurd nesting", HISTORY_REQUEST, DEEP, ""),
    ("NaN", HISTORY_REQUEST, b'{"offset": NaN}', "NaN"),
    ("a key twice", SESSION_SWITCH, b'{"session_id":"a","session_id":"b"}', "twice"),
    ("a wrong type", HISTORY_REQUEST, {"offset": "many"}, "offset"),
    ("a huge number", HISTORY_REQUEST, b'{"limit": 1' + b"0" * 5_000 + b"}", ""),
    ("an unknown format", HISTORY_REQUEST, {"format": "xml"}, "unknown"),
    ("no session", SESSION_SWITCH, b"", "session_id"),
    ("a session that is not there", SESSION_SWITCH, {"session_id": "f" * 32}, "no session"),
    ("an empty id", SESSION_DELETE, {"session_id": ""}, "too short"),
    ("too short an id", SESSION_DELETE, {"session_id": "0"}, "too short"),
    ("no model", MODEL_SWITCH, {"model": ""}, "model"),
    ("a model that is not there", MODEL_SWITCH, {"model": "x" * 150}, "unknown model"),
    ("data of no file", FILE_DATA, b"abc", "FILE_METADATA"),
    ("a negative size", FILE_METADATA, {"filename": "a", "size": -1}, "bytes"),
    ("a huge size", FILE_METADATA, {"filename": "a", "size": 10**12}, "bytes"),
    ("a file without a name", FILE_METADATA, {"size": 1}, "filename"),
]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    script: list[ProviderLine] = ["Hello."] * 50
    with (
        scripted_provider(tmp_path / "home", monkeypatch, script),
        running_server(tmp_path, NpltLimits(header_seconds=0.3, payload_seconds=0.3)) as running,
    ):
        yield running


@pytest.mark.parametrize(
    ("type_", "payload", "said"), [row[1:] for row in BAD], ids=[r[0] for r in BAD]
)
def test_a_bad_request_is_answered_and_the_connection_lives(
    server: RunningServer, type_: int, payload: bytes | dict[str, Any], said: str
) -> None:
    with SeedClient(server.port) as client:
        answer = client.request(type_, payload)
        assert answer.startswith("error: ")
        assert said in answer
        assert len(answer) < 1_000
        assert client.chat("Still there?") == "Hello."


def test_a_frame_that_does_not_end_is_closed_in_time_and_says_why(server: RunningServer) -> None:
    for begun in (b"\x01", b"\x01\x00\x00\x00", b"\x01\x00\x00\x00\x09four"):
        with SeedClient(server.port) as client:
            client.socket.sendall(begun)
            assert "not complete" in client.receive().text
            assert client.is_closed()


def test_a_byte_at_a_time_is_not_time_enough(server: RunningServer) -> None:
    with SeedClient(server.port) as client:
        client.socket.sendall(struct.pack(">BHH", CHAT_TEXT, 0, 60_000))
        client.socket.settimeout(0.05)
        for _ in range(200):
            try:
                client.socket.sendall(b"x")
                client.socket.recv(1)
            except TimeoutError:
                continue
            except OSError:
                return
            return  # it said why
    raise AssertionError("the server waits for ever")


@pytest.mark.parametrize(
    "spoken",
    [b"GET / HTTP/1.1\r\n\r\n", b"P", b"OPTIONS * HTTP/1.1\r\n", b"\x16\x03\x01\x02\x00\x01"],
)
def test_other_protocols_are_hung_up_on_at_their_first_byte(
    server: RunningServer, spoken: bytes
) -> None:
    with SeedClient(server.port) as client:
        client.socket.sendall(spoken)
        with contextlib.suppress(ConnectionResetError):
            assert client.socket.recv(1) == b""  # not a word


def test_an_upload_of_a_wrong_size_is_answered(server: RunningServer) -> None:
    with SeedClient(server.port) as client:
        client.send(FILE_METADATA, {"filename": "a.txt", "size": 5})
        assert "was dropped" in client.request(FILE_DATA, b"more than five")
        client.send(FILE_METADATA, {"filename": "a.txt", "size": 5})
        assert "3 of 5 bytes" in upload_then(client, b"abc", CHAT_TEXT, b"Look.")
        client.send(FILE_METADATA, {"filename": "a.txt", "size": 5})
        assert "a.txt was dropped" in upload_then(
            client, b"abc", FILE_METADATA, b'{"filename":"b.txt","size":0}'
        )
        assert "b.txt" in client.receive().text
        assert client.chat("Look.") == "Hello."


def upload_then(client: SeedClient, data: bytes, type_: int, payload: bytes) -> str:
    client.send(FILE_DATA, data)
    return client.request(type_, payload)


def test_a_path_in_a_files_name_is_only_a_name(server: RunningServer) -> None:
    with SeedClient(server.port) as client:
        for given, name in (
            ("../../etc/passwd", "passwd"),
            ("C:\\Users\\me\\a.txt", "a.txt"),
            ("a\x1b[31m\n.txt", "a .txt"),
            ("..", "file"),
            ("/", "file"),
        ):
            answer = client.request(FILE_METADATA, {"filename": given, "size": 0})
            assert f"Received {name} (" in answer


def test_an_empty_prefix_never_deletes(server: RunningServer) -> None:
    with SeedClient(server.port) as client:
        client.chat("keep this")
        for given in ("", " ", "-", "--", "0"):
            assert "error" in client.request(SESSION_DELETE, {"session_id": given})
        assert "keep this" in client.request(SESSION_LIST)


def test_a_flood_is_read_more_slowly_and_others_notice_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = NpltLimits(frames_per_second=200, frame_burst=50)
    with (
        scripted_provider(tmp_path / "home", monkeypatch, ["Hello."]),
        running_server(tmp_path, limits) as server,
        SeedClient(server.port) as flooding,
        SeedClient(server.port) as client,
    ):
        beats = (struct.pack(">BHH", CHAT_TEXT, n, 9) + b"HEARTBEAT" for n in range(200))
        flooding.socket.sendall(b"".join(beats))
        assert client.chat("Hi.") == "Hello."
        got = [flooding.receive().text for _ in range(201)]
        assert got.count("HEARTBEAT") == 200
        assert "too many frames" in "".join(got)


def test_too_many_sessions_of_one_connection_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        scripted_provider(tmp_path / "home", monkeypatch, ["Hello."]),
        running_server(tmp_path, NpltLimits(new_sessions=3)) as server,
        SeedClient(server.port) as client,
    ):
        for number in range(3):
            assert "New session" in client.request(SESSION_NEW, {"name": f"number {number}"})
        assert "limit" in client.request(SESSION_NEW, {"name": "one more"})


def test_a_connection_too_many_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        scripted_provider(tmp_path / "home", monkeypatch, ["Hello."]),
        running_server(tmp_path, NpltLimits(connections=2)) as server,
        SeedClient(server.port) as one,
        SeedClient(server.port),
    ):
        with SeedClient(server.port) as third:
            assert "2 connections" in third.welcome
            assert third.is_closed()
        assert one.chat("Hi.") == "Hello."


def test_silence_before_hello_is_ended_where_a_token_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = AccessTokens([AccessToken(Identity("a", "chat"), hash_token("t" * 40))])
    limits = NpltLimits(hello_seconds=0.3)
    with (
        scripted_provider(tmp_path / "home", monkeypatch, ["Hello."]),
        running_server(tmp_path, limits, tokens=tokens, require_token=True) as server,
    ):
        with SeedClient(server.port) as silent:
            assert "token" in silent.welcome
            assert silent.is_closed()
        with SeedClient(server.port) as talking:
            assert "token" in talking.request(SESSION_LIST)
            assert talking.is_closed()


def test_an_idle_connection_is_ended_but_a_heartbeat_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = NpltLimits(silent_seconds=0.3, idle_seconds=2.0)
    with (
        scripted_provider(tmp_path / "home", monkeypatch, ["Hello."]),
        running_server(tmp_path, limits) as server,
        SeedClient(server.port) as silent,
        SeedClient(server.port) as beating,
    ):
        beating.send(CHAT_TEXT, "HEARTBEAT")
        assert silent.is_closed()
        assert beating.receive().payload == b"HEARTBEAT"
        assert beating.chat("Hi.") == "Hello."


def test_a_client_that_does_not_read_is_closed_and_its_answer_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = NpltLimits(write_seconds=0.3, write_buffer=1_024, frame_burst=10_000)
    long = faulty(" ".join(map(str, range(300_000))), piece=100_000)
    with (
        scripted_provider(tmp_path / "home", monkeypatch, [long, "Hello."]),
        running_server(tmp_path, limits) as server,
    ):
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(struct.pack(">BHH", CHAT_TEXT, 0, 5) + b"Talk.")
        with SeedClient(server.port) as other:
            while server.nplt.open_connections > 1:
                other.send(CHAT_TEXT, "HEARTBEAT")
                assert other.receive().payload == b"HEARTBEAT"
                time.sleep(0.01)
            while server.hub.counts.running:
                time.sleep(0.01)
            assert other.chat("Hi.") == "Hello."
            assert "Talk." in other.request(SESSION_LIST)
        slow.close()


def test_a_half_closed_client_still_gets_its_answer(server: RunningServer) -> None:
    with SeedClient(server.port) as client:
        client.send(CHAT_TEXT, "Hi.")
        client.socket.shutdown(socket.SHUT_WR)
        assert client.answer() == "Hello."
        assert client.is_closed()
