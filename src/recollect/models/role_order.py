"""What servers say when the roles of a request are not in the order that they want.

The chat templates of many models insist on user and assistant by turns after one system message,
and the server passes the template's error on. OpenAI's own format has no such rule, so a request is
only sent in that order once a server has asked for it, or a profile or setting says so.
"""

from __future__ import annotations

import re

# 500: llama.cpp; 0: an error inside a stream
_STATUSES = frozenset({0, 400, 422, 500})
_WORDS = (
    # Gemma, Llama 2, Mistral and others, in their chat templates; Anthropic
    "roles must alternate",
    # Mistral and Devstral, in their chat templates: "After the optional system message, …"
    "after the optional system message",
    # Perplexity: "After the (optional) system message(s), user and assistant roles should be
    # alternating"; later "user or tool message(s) should alternate with assistant message(s)"
    "roles should be alternating",
    "should alternate with assistant",
    "roles in a row",
    # Llama 2 and Mistral 7B, in their chat templates
    "only user and assistant roles are supported",
    # Qwen 3.5, in its chat template
    "system message must be at the beginning",
    "invalid_request_message_order",
)
_AFTER = re.compile(r"unexpected role \W?\w{1,20}\W? after role")  # Mistral's own service
ROLES_ALTERNATE = (
    "the server wants roles to alternate: neighbours of one role are merged from now on"
)
CALLS_IN_TEXT = (
    "the server refuses the role of tool results: tools are described in text from now on"
)


def is_about_role_order(message: str, status: int) -> bool:
    """Whether the server refuses the roles of the messages, or their order."""
    if status not in _STATUSES:
        return False
    low = message[:10_000].lower()
    return any(words in low for words in _WORDS) or _AFTER.search(low) is not None
