"""No door can send a request by another way: every caller of a model, found in the source.

A new line in one of these tables is a second road. Take the first: `Runtime.activate(…).stream`
for a prompt, `Runtime.prepare` and `Runtime.encode` to look at a request.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "recollect"
TREES = {
    file.relative_to(SOURCE).as_posix(): ast.parse(file.read_text(encoding="utf-8"))
    for file in sorted(SOURCE.rglob("*.py"))
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def calls_of(name: str, *, method: bool = False) -> set[tuple[str, str]]:
    """File and function of every call of this name; of a method, file and receiver."""
    found = set()
    for file, tree in TREES.items():
        for where, call in _calls(tree, ""):
            called = call.func
            if method and isinstance(called, ast.Attribute) and called.attr == name:
                found.add((file, ast.unparse(called.value)))
            elif not method and isinstance(called, ast.Name) and called.id == name:
                found.add((file, where))
    return found


def _calls(node: ast.AST, where: str) -> Iterator[tuple[str, ast.Call]]:
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.Call):
            yield where, inner
        yield from _calls(inner, inner.name if isinstance(inner, FUNCTIONS) else where)


def importers_of(*modules: str) -> set[str]:
    """The files that import one of these modules, or something from it."""
    found = set()
    for file, tree in TREES.items():
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            if any(name == one or name.startswith(f"{one}.") for name in names for one in modules):
                found.add(file)
    return found


def test_a_model_is_called_in_one_place() -> None:
    assert calls_of("stream", method=True) == {
        ("models/model_calls.py", "model"),
        # the streams of an agent and of an active session, which lead there
        ("agent/loop.py", "self"),
        ("agent/subagents.py", "subagent"),
        ("cli/ask.py", "active"),
        ("cli/headless.py", "active"),
        ("runtime/library_agent.py", "active"),
        ("runtime/library_agent.py", "self"),
        ("runtime/prompt_run.py", "run.agent"),
        ("runtime/prompt_run.py", "self"),
        ("server/session_worker.py", "active"),
        ("terminal/session_runner.py", "active"),
        # a request's body, and event streams, which lead to no model
        ("server/http/api_call.py", "self.state.slots"),
        ("server/http/entry_routes.py", "call"),
        ("server/http/run_routes.py", "call"),
        ("server/http/transcript_routes.py", "call.request"),
    }
    streams = [
        (where, ast.unparse(call.func))
        for where, call in _calls(TREES["models/model_calls.py"], "")
        if isinstance(call.func, ast.Attribute) and call.func.attr == "stream"
    ]
    assert streams == [("send", "model.stream")]
    # ASGI calls a function of that name to answer
    sending = {one for one in calls_of("send") if not one[0].startswith("server/http/")}
    assert sending == {
        ("agent/exchange.py", "exchange"),
        ("models/model_calls.py", "__call__"),
    }


def test_only_the_agent_exchanges_and_only_the_runtime_gives_it_a_model_to_summarize() -> None:
    assert calls_of("exchange") == {("agent/agent_run.py", "reply")}
    assert calls_of("of", method=True) & {
        (file, "ModelCaller") for file in importers_of("recollect.models.model_calls.ModelCaller")
    } == {
        ("agent/fit_context.py", "ModelCaller"),  # both write snapshots
        ("session_compaction.py", "ModelCaller"),
    }
    assert {file.split("/")[0] for file, _ in calls_of("summarizer_from")} == {"runtime"}


def test_only_the_runtime_and_the_agent_open_models() -> None:
    for opening in ("HttpModel", "open_model"):
        callers = {file for file, _ in calls_of(opening)}
        allowed = {"models/open_model.py", "agent/loop.py", "session_compaction.py"}
        allowed |= _package("runtime")
        assert callers <= allowed, opening
    opened = {
        file
        for file, receiver in calls_of("open_model", method=True)
        if not receiver.startswith("self")
    }
    assert opened == set()


def test_only_models_speak_http_to_a_provider() -> None:
    transport = importers_of("recollect.models.transport", "httpx2", "httpx")
    keeper = {"runtime/runtime.py"}  # of idle connections, for the next prompt; it sends nothing
    assert transport <= _package("models") | _package("tools") | keeper
    assert importers_of("recollect.models.transport") <= _package("models") | keeper
    callers = importers_of("recollect.models.model_calls")
    assert not any(file.startswith(("server/", "cli/")) for file in callers)


def test_only_models_and_the_library_encode_requests() -> None:
    encoders = importers_of("recollect.codecs.encoder.Encoder", "recollect.codecs.encoder.encode")
    outside = encoders - _package("codecs") - _package("models")
    assert outside == {"provider_messages.py"}  # messages that a program sends itself


def test_a_command_builds_no_agent_and_no_hooks() -> None:
    for builder in ("build_agent", "build_hooks", "Agent", "ContextFitter", "plan_initial_context"):
        callers = {file for file, _ in calls_of(builder)}
        assert not callers & _package("cli"), builder


def _package(name: str) -> set[str]:
    return {file for file in TREES if file.startswith(f"{name}/")}
