"""Builders of messages, a scripted model and a local provider, for tests without mocks, ours and
yours.

>>> await store.append(session.id, [user("hi"), model("hello")], parent=None)
>>> scripted = ScriptedModel(["hello", says("let me look", call("grep", pattern="x")), "found it"])
>>> with ProviderServer("openai", ["hello", faulty("half an ans", end="none")]) as server: ...

A `ScriptedModel` takes the place of a model in a program that uses recollect. A `ProviderServer`
takes the place of Gemini, OpenAI or Anthropic, for any client of their formats.
"""

from __future__ import annotations

from recollect.builders import assistant as model
from recollect.builders import tool_result as result
from recollect.builders import user
from recollect.testing.error_replies import (
    anthropic_credit,
    anthropic_overloaded,
    anthropic_rate_limit,
    context_too_long,
    error_json,
    google_quota,
    html_page,
    key_refused,
    openai_quota,
    openai_rate_limit,
    provider_error,
    redirect,
    roles_must_alternate,
    tools_not_supported,
)
from recollect.testing.fault import Fault
from recollect.testing.fault_catalogue import FAULT_CASES, FAULTS
from recollect.testing.provider_server import ProviderLine, ProviderRequest, ProviderServer
from recollect.testing.scripted_model import (
    ScriptedModel,
    ScriptExhausted,
    ScriptLine,
    ScriptStep,
    Turn,
    breaks_after,
    call,
    fails,
    says,
)
from recollect.testing.wire_reply import WireReply, faulty

__all__ = [
    "FAULTS",
    "FAULT_CASES",
    "Fault",
    "ProviderLine",
    "ProviderRequest",
    "ProviderServer",
    "ScriptExhausted",
    "ScriptLine",
    "ScriptStep",
    "ScriptedModel",
    "Turn",
    "WireReply",
    "anthropic_credit",
    "anthropic_overloaded",
    "anthropic_rate_limit",
    "breaks_after",
    "call",
    "context_too_long",
    "error_json",
    "fails",
    "faulty",
    "google_quota",
    "html_page",
    "key_refused",
    "model",
    "openai_quota",
    "openai_rate_limit",
    "provider_error",
    "redirect",
    "result",
    "roles_must_alternate",
    "says",
    "tools_not_supported",
    "user",
]
