"""Items as the Responses API and openai-agents write them, one of each kind."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from recollect.store.open_store import open_store
from recollect.store.sqlite import SqliteStore

T = TypeVar("T")
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(60))).decode()


def run(folder: Path, work: Callable[[SqliteStore], Awaitable[T]]) -> T:
    """The work, with a store in this folder."""

    async def main() -> T:
        async with open_store(folder / "recollect.db") as store:
            return await work(store)

    return asyncio.run(main())


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def replied(text: str, id_: str = "msg_1") -> dict[str, Any]:
    """As the SDK stores a model's message."""
    block = {"annotations": [], "text": text, "type": "output_text", "logprobs": []}
    return {
        "id": id_,
        "content": [block],
        "role": "assistant",
        "status": "completed",
        "type": "message",
    }


def called(id_: str, name: str = "read_file", arguments: str = '{"path": "a.py"}') -> Any:
    return {
        "arguments": arguments,
        "call_id": id_,
        "name": name,
        "type": "function_call",
        "id": f"fc_{id_}",
        "status": "completed",
    }


def output(id_: str, text: Any = "x = 1") -> dict[str, Any]:
    return {"call_id": id_, "output": text, "type": "function_call_output"}


def reasoned(text: str = "", id_: str = "rs_1") -> dict[str, Any]:
    summary = [{"text": text, "type": "summary_text"}] if text else []
    return {
        "id": id_,
        "summary": summary,
        "type": "reasoning",
        "encrypted_content": "gAAAAABo==",
        "status": None,
    }


SCREENSHOT = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PIXEL}"}
SHELL_OUTPUT = [
    {"stdout": "a.py\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
    {"stdout": "", "stderr": "no", "outcome": {"type": "timeout"}},
]
ATTACHMENTS = [
    {"type": "input_text", "text": "look"},
    {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "high"},
    {"type": "input_image", "image_url": "https://example.org/a.jpg", "detail": "auto"},
    {"type": "input_image", "file_id": "file-1", "detail": "low"},
    {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a"},
    {"type": "input_file", "file_data": "JVBERi0=", "filename": "a.pdf"},
    {"type": "input_file", "file_url": "https://example.org/a.pdf"},
    {"type": "input_file", "file_id": "file-2"},
    {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
    {"type": "input_hologram", "depth": [1, 1.0, True, None]},
]

# Every call is followed by its output.
EVERY_KIND: list[Any] = [
    {"role": "system", "content": "Be brief."},
    {"role": "developer", "content": [{"type": "input_text", "text": "Answer in German."}]},
    said("What is in a.py? \N{SNOWMAN} \ud83d"),
    {"type": "message", "role": "user", "content": ATTACHMENTS, "status": "completed"},
    {"role": "user", "content": ""},
    {"role": "user", "content": [{"type": "input_text", "text": ""}]},
    reasoned(),
    reasoned("I look at the file.", "rs_2"),
    {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
    called("c1"),
    called("c2", arguments='{"path": broken'),
    output("c1"),
    output("c2", [{"type": "input_text", "text": "one"}, *ATTACHMENTS[1:3]]),
    replied("It sets x."),
    {"role": "assistant", "content": "Shorter."},
    {"role": "assistant", "content": "", "type": "message"},
    {
        "type": "message",
        "role": "assistant",
        "id": "m",
        "status": "completed",
        "content": [
            {"type": "output_text", "text": "a", "annotations": [{"type": "url_citation"}]},
            {"type": "refusal", "refusal": "No."},
        ],
    },
    called("c3", "empty", ""),
    output("c3", ""),
    {"type": "custom_tool_call", "call_id": "c4", "name": "patch", "input": "*** Begin"},
    {"type": "custom_tool_call_output", "call_id": "c4", "output": "done", "id": "ctco_1"},
    {"type": "shell_call", "call_id": "c5", "action": {"commands": ["ls"]}, "id": None},
    {"type": "shell_call_output", "call_id": "c5", "output": SHELL_OUTPUT},
    {
        "type": "apply_patch_call",
        "call_id": "c6",
        "operation": {"type": "delete_file", "path": "a.py"},
        "status": "completed",
    },
    {"type": "apply_patch_call_output", "call_id": "c6", "status": "failed"},
    {"type": "computer_call", "call_id": "c7", "id": "cu", "action": {"type": "click", "x": 1}},
    {"type": "computer_call_output", "call_id": "c7", "output": SCREENSHOT},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "x"}},
    {"type": "file_search_call", "id": "fs_1", "queries": ["x"], "results": None},
    {"type": "code_interpreter_call", "id": "ci_1", "code": "1/0", "outputs": []},
    {"type": "image_generation_call", "id": "ig_1", "result": PIXEL, "status": "completed"},
    {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": [{"name": "t"}]},
    {"type": "mcp_call", "id": "mcp_1", "name": "t", "arguments": "{}", "output": "ok"},
    {"type": "mcp_approval_request", "id": "mcpr_1", "name": "t", "arguments": "{}"},
    {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
    {"type": "item_reference", "id": "msg_0"},
    {"id": "msg_00"},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"},
    {"type": "text", "text": "a type of ours"},
    {"type": "from_the_future", "role": "wizard", "spell": {"text": "x", "$extra": "y"}},
    said("And now?"),
]
