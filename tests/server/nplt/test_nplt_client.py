"""The client for programs: typed replies, events, approvals, cancelling, uploads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from recollect.entries import InlineData, Message, Text
from recollect.server.access import AccessToken, AccessTokens, Identity, hash_token
from recollect.server.downloads import DownloadOffers
from recollect.server.nplt import AnswerEvent, AnswerPiece, Client, ConnectionLost, ServerRefused
from recollect.server.nplt.nplt_limits import NpltLimits
from recollect.server.nplt.nplt_server import NpltServer
from recollect.server.session_hub import HubLimits
from recollect.server.token_files import ServerTokens, add_token, remove_token
from recollect.testing import ProviderLine, call, faulty, says
from tests.server.hubs import opened_hub, scripted_provider

Story = Callable[[NpltServer], Awaitable[None]]
TOKEN = "a-token-of-more-than-thirty-two-characters"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 100


class World:
    """A folder and its environment, for servers that tests start."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self._patch = folder, patch

    def play(
        self,
        script: Sequence[ProviderLine],
        story: Story,
        *,
        limits: NpltLimits | None = None,
        hub_limits: HubLimits | None = None,
        tokens: Sequence[AccessToken] = (),
        require_token: bool = False,
        downloads: DownloadOffers | None = None,
        mode: str = "",
        files: bool = False,  # tokens are those in the data directory
    ) -> None:
        """Run the story beside the server, in one loop; nothing may be left over."""

        async def run() -> None:
            async with opened_hub(self.folder, hub_limits, mode=mode) as hub:
                server = NpltServer(
                    hub,
                    ServerTokens(TOKEN, self.folder / "home") if files else AccessTokens(tokens),
                    limits or NpltLimits(),
                    require_token=require_token,
                    downloads=downloads,
                )
                await server.start("127.0.0.1", 0)
                await story(server)
                await hub.close()
                await server.close()
            assert asyncio.all_tasks() == {asyncio.current_task()}

        with scripted_provider(self.folder / "home", self._patch, script):
            asyncio.run(run())


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


async def collect(client: Client, text: str) -> tuple[str, list[AnswerEvent]]:
    answer, events = "", list[AnswerEvent]()
    async for event in client.chat(text):
        if isinstance(event, AnswerPiece):
            answer += event.text
        else:
            events.append(event)
    return answer, events


def test_an_answer_streams_and_requests_are_answered_as_fields(world: World) -> None:
    async def story(server: NpltServer) -> None:
        async with await Client.connect("127.0.0.1", server.port) as client:
            first = client.session_id
            answer, events = await collect(client, "Hi.")
            assert answer == "Hello."
            assert events[-1].type == "stream_end"
            assert events[-1].fields["reason"] == "answered"
            assert events[-1].fields["session_id"] == first
            page = await client.history()
            assert [each["content"] for each in page["messages"]] == ["Hi.", "Hello."]
            made = await client.new("plans")
            assert client.session_id == made["session_id"] != first
            await client.rename("better plans")
            names = {row["name"]: row for row in (await client.sessions())["sessions"]}
            assert set(names) == {"Hi.", "better plans"}
            assert names["better plans"]["current"]
            await client.switch(first[-8:])
            assert client.session_id == first
            await client.delete(made["session_id"])
            assert len((await client.sessions())["sessions"]) == 1
            assert (await client.model("mine"))["model"] == "mine"
            with pytest.raises(ServerRefused, match="unknown model"):
                await client.model("nothing-like-it")
            await client.clear()
            assert (await client.history())["messages"] == []

    world.play(["Hello."], story)


def test_the_text_heartbeat_is_a_message_of_a_client_that_said_hello(world: World) -> None:
    async def story(server: NpltServer) -> None:
        async with await Client.connect("127.0.0.1", server.port) as client:
            assert await client.ask("HEARTBEAT") == "HEARTBEAT"
            page = await client.history()
            assert page["messages"][0]["content"] == "HEARTBEAT"

    world.play(["HEARTBEAT"], story)


def test_a_cancelled_answer_ends_and_what_came_is_stored(world: World) -> None:
    async def story(server: NpltServer) -> None:
        async with await Client.connect("127.0.0.1", server.port) as client:
            events = []
            async for event in client.chat("Tell me everything."):
                events.append(event)
                if isinstance(event, AnswerPiece):
                    client.cancel()
            end = events[-1]
            assert isinstance(end, AnswerEvent)
            assert end.fields["reason"] == "cancelled"
            shown = "".join(e.text for e in events if isinstance(e, AnswerPiece))
            stored = (await client.history())["messages"][-1]
            assert stored["metadata"]["finish"] == "interrupted"
            assert stored["content"] == shown
            assert await client.ask("And now?") == "Quick."

    world.play([faulty("half an answer", end="none", close="silence"), "Quick."], story)


def test_what_a_retry_voids_is_said(world: World) -> None:
    async def story(server: NpltServer) -> None:
        async with await Client.connect("127.0.0.1", server.port) as client:
            answer, events = await collect(client, "Hi.")
            (void,) = [event for event in events if event.type == "void"]
            assert answer.endswith("The whole answer.")
            assert void.fields["characters"] == len(answer) - len("The whole answer.")
            assert (await client.history())["messages"][-1]["content"] == "The whole answer."

    world.play([faulty("half an ans", end="none", close="early"), "The whole answer."], story)


def test_a_client_that_can_approve_is_asked(world: World) -> None:
    write = call("write_file", path="a.txt", content="words")

    async def story(server: NpltServer) -> None:
        async with await Client.connect("127.0.0.1", server.port, token=TOKEN) as client:
            for allowed in (False, True):
                async for event in client.chat("Write it."):
                    if isinstance(event, AnswerEvent) and event.type == "approval":
                        assert event.fields["name"] == "write_file"
                        assert "words" in event.fields["arguments"]
                        client.approve(event.fields["approval"], allowed=allowed)
                assert (world.folder / "project" / "a.txt").exists() is allowed

    world.play([says(write), "Not done.", says(write), "Done."], story, files=True)


def test_a_client_without_a_token_cannot_approve(world: World) -> None:
    write = call("write_file", path="a.txt", content="words")

    async def story(server: NpltServer) -> None:
        async with await Client.connect("127.0.0.1", server.port) as client:
            answer, events = await collect(client, "Write it.")
            assert answer == "Not done."
            assert not any(event.type == "approval" for event in events)
            assert not (world.folder / "project" / "a.txt").exists()

    world.play([says(write), "Not done."], story, files=True)


def test_a_client_that_cannot_approve_is_denied_at_once(world: World) -> None:
    write = call("write_file", path="a.txt", content="words")

    async def story(server: NpltServer) -> None:
        features = ("replies", "events")
        async with await Client.connect("127.0.0.1", server.port, features=features) as client:
            assert await client.ask("Write it.") == "Not done."
        assert not (world.folder / "project" / "a.txt").exists()

    world.play([says(write), "Not done."], story)


def test_an_upload_goes_with_the_next_message_under_its_name_alone(world: World) -> None:
    async def story(server: NpltServer) -> None:
        seen: list[tuple[int, int]] = []
        async with await Client.connect("127.0.0.1", server.port) as client:
            text = b"line one\nline two\n" * 5_000
            await client.upload("notes.txt", text, lambda *at: seen.append(at))
            reply = await client.upload("picture.png", PNG)
            assert reply == {"filename": "picture.png", "size": len(PNG)}
            assert seen[-1] == (len(text), len(text))
            assert await client.ask("What is this?") == "Two files."
            assert await client.ask("And now?") == "None."
            path = await server._hub.store.path(client.session_id)
        prompts = [e.body for e in path if isinstance(e.body, Message) and e.body.role == "user"]
        first, second = [body for body in prompts if not body.context]
        assert "notes.txt" in str(first.parts[1])
        assert InlineData(mime="image/png", data=PNG) in first.parts
        assert second.parts == (Text(text="And now?"),)
        assert server._shared is not None
        assert server._shared.uploads.used == 0

    world.play(["Two files.", "None."], story)


def test_uploads_that_are_too_large_are_refused_and_the_connection_lives(world: World) -> None:
    async def story(server: NpltServer) -> None:
        async with await Client.connect("127.0.0.1", server.port) as client:
            with pytest.raises(ServerRefused, match="a file has"):
                await client.upload("big.txt", b"x" * 2_000)
            await client.upload("a.txt", b"x" * 900)
            with pytest.raises(ServerRefused, match="files of one message"):
                await client.upload("b.txt", b"x" * 900)
            assert await client.ask("What is this?") == "One."

    limits = NpltLimits(upload_bytes=1_000, uploads_bytes=1_500)
    world.play(["One."], story, limits=limits)


def test_a_token_is_required_where_the_server_wants_one(world: World) -> None:
    alice = AccessToken(Identity("alice", "chat"), hash_token(TOKEN))
    reader = AccessToken(Identity("reader", "read"), hash_token(TOKEN + "2"))

    async def story(server: NpltServer) -> None:
        for wrong in ("", "nonsense"):
            with pytest.raises((ServerRefused, ConnectionLost), match="token"):
                await Client.connect("127.0.0.1", server.port, token=wrong)
        async with await Client.connect("127.0.0.1", server.port, token=TOKEN) as client:
            assert client.welcome["name"] == "alice"
            assert await client.ask("Hi.") == "Hello."
            mine = client.session_id
        async with await Client.connect("127.0.0.1", server.port, token=TOKEN + "2") as other:
            assert (await other.sessions())["sessions"] == []
            with pytest.raises(ServerRefused) as refused:
                await other.switch(mine)
            assert refused.value.code in ("UnknownSession", "AccessDenied")
            with pytest.raises(ServerRefused, match="right"):
                await other.ask("Hi.")

    world.play(["Hello."], story, tokens=(alice, reader), require_token=True)


def test_a_token_on_loopback_changes_whose_sessions_are_seen(world: World) -> None:
    alice = AccessToken(Identity("alice", "chat"), hash_token(TOKEN))

    async def story(server: NpltServer) -> None:
        async with await Client.connect("127.0.0.1", server.port) as local:
            await local.ask("Hi.")
            async with await Client.connect("127.0.0.1", server.port, token=TOKEN) as client:
                rows = (await client.sessions())["sessions"]
                assert [row["session_id"] for row in rows] == [client.session_id]
                with pytest.raises(ServerRefused, match="no session"):
                    await client.switch(local.session_id)
        with pytest.raises(ServerRefused, match="token"):
            await Client.connect("127.0.0.1", server.port, token="wrong")

    world.play(["Hello."], story, tokens=(alice,))


def test_a_token_that_only_reads_switches_to_its_sessions_and_reads_them(world: World) -> None:
    home = world.folder / "home"

    async def story(server: NpltServer) -> None:
        reads = add_token("dashboard", "read", all_sessions=True, home=home)
        async with await Client.connect("127.0.0.1", server.port) as client:
            assert await client.ask("Hi.") == "Hello."
            session = client.session_id
        async with await Client.connect("127.0.0.1", server.port, token=reads) as reader:
            await reader.switch(session)
            assert (await reader.history())["messages"][-1]["content"] == "Hello."
            with pytest.raises(ServerRefused, match="chat"):
                await reader.ask("Hi.")
            with pytest.raises(ServerRefused, match="chat"):
                await reader.delete(session)

    world.play(["Hello."], story, files=True)


def test_a_token_that_was_removed_ends_its_connections(world: World) -> None:
    home = world.folder / "home"

    async def story(server: NpltServer) -> None:
        token = add_token("alice", "chat", home=home)
        async with await Client.connect("127.0.0.1", server.port, token=token) as client:
            assert await client.ask("Hi.") == "Hello."
            remove_token("alice", home=home)
            with pytest.raises(ConnectionLost, match="removed"):
                await client.history()

    world.play(["Hello."], story, files=True)


def test_a_history_is_offered_as_a_download_that_is_taken_once(world: World) -> None:
    offers = DownloadOffers("http://127.0.0.1:8080")

    async def story(server: NpltServer) -> None:
        async with await Client.connect("127.0.0.1", server.port) as client:
            await client.ask("Hi.")
            offer = await client.history(format="file")
            token = offer["url"].removeprefix("http://127.0.0.1:8080/downloads/")
            found = offers.take(token)
            assert found.size == offer["size"] == len(found.data)
            assert found.checksum == offer["checksum"]
            assert b"Hello." in found.data

    world.play(["Hello."], story, downloads=offers)


def test_clients_hear_of_the_end_of_the_server_and_lose_nothing(world: World) -> None:
    async def story(server: NpltServer) -> None:
        client = await Client.connect("127.0.0.1", server.port)
        events = []
        async for event in client.chat("Tell me everything."):
            events.append(event)
            if isinstance(event, AnswerPiece):
                break
        await server._hub.close()
        await server.close()
        with pytest.raises(ConnectionLost, match="the server stops"):
            await client.history()
        stored = await server._hub.store.path(client.session_id)
        last = [each.body for each in stored if isinstance(each.body, Message)][-1]
        assert last.finish == "interrupted"
        await client.close()

    world.play([faulty("half an answer", end="none", close="silence")], story)
