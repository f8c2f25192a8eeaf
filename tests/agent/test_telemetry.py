"""Spans of an agent's work, taken by OpenTelemetry's own SDK."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from recollect import Session, View
from recollect.agent.loop import Agent
from recollect.agent.telemetry import telemetry_hook
from recollect.engine import Hooks, open_store
from recollect.testing import ScriptedModel, call, model
from recollect.tools.tool import ToolFailed, tool


@tool("read")
async def look(where: str) -> str:
    """Looks."""
    if where == "nowhere":
        raise ToolFailed("a secret place")
    return "a secret"


def spans_of(tmp_path: Path, *replies: object) -> list[ReadableSpan]:
    taken = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(taken))
    hook = telemetry_hook(provider.get_tracer("test"))

    async def story() -> None:
        async with open_store(tmp_path / "s.db") as store:
            agent = Agent(
                model=ScriptedModel(list(replies)),  # type: ignore[arg-type]
                tools=(look,),
                hooks=Hooks([hook]),
            )
            session = Session(store, (await store.create()).id, View.fold())
            async for _ in agent.stream("a secret question", session):
                pass

    asyncio.run(story())
    return list(taken.get_finished_spans())


def test_a_prompt_is_a_span_with_its_requests_and_tools_inside(tmp_path: Path) -> None:
    good, bad = call("look", id="a", where="here"), call("look", id="b", where="nowhere")
    found = spans_of(tmp_path, model("I look.", good, bad), "a secret answer")
    assert [span.name for span in found] == [
        "chat scripted",
        "execute_tool look",
        "execute_tool look",
        "chat scripted",
        "invoke_agent recollect",
    ]
    *inner, prompt = found
    assert prompt.context is not None
    for span in inner:
        assert span.parent is not None
        assert span.parent.span_id == prompt.context.span_id
        assert span.attributes is not None
        assert prompt.attributes is not None
        for key in ("gen_ai.conversation.id",):
            assert span.attributes[key] == prompt.attributes[key]
        assert span.start_time is not None
        assert span.end_time is not None
        assert span.start_time <= span.end_time
    assert {span.kind for span in inner if span.name.startswith("chat")} == {SpanKind.CLIENT}
    failed = [span for span in inner if span.status.status_code is StatusCode.ERROR]
    assert [dict(span.attributes or {})["gen_ai.tool.call.id"] for span in failed] == ["b"]


def test_no_message_is_in_a_span(tmp_path: Path) -> None:
    asks = model("a secret thought", call("look", id="a", where="secret"))
    for span in spans_of(tmp_path, asks, "a secret answer"):
        assert "secret" not in span.to_json()


def test_without_the_package_the_setting_is_refused_with_the_remedy() -> None:
    program = """
import sys
sys.modules["opentelemetry"] = None  # how Python says that a module cannot be imported
from recollect.agent.telemetry import telemetry_hook
from recollect.errors import BadSettings
try:
    telemetry_hook()
except BadSettings as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "pip install 'recollect[telemetry]'" in done.stdout
    assert done.stderr == ""
