"""Which errors of servers are about the order of roles."""

from __future__ import annotations

import pytest

from recollect.models.role_order import is_about_role_order

JINJA = (
    "\n------------\nWhile executing CallExpression at line 189, column 32 in source:\n...== 0) %}"
    "{{- raise_exception('After the optional system message, con...\n ^\nError: Jinja Exception: "
    "After the optional system message, conversation roles must alternate user and assistant roles "
    "except for tool calls and results."
)
PERPLEXITY = "After the (optional) system message(s),"


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("Conversation roles must alternate user/assistant/user/assistant/...", 400),
        (JINJA, 500),
        (JINJA, 0),
        ('messages: roles must alternate between "user" and "assistant"', 400),
        (f"{PERPLEXITY} user and assistant roles should be alternating.", 400),
        (f"{PERPLEXITY} user or tool message(s) should alternate with assistant message(s).", 400),
        ("Unexpected role 'user' after role 'tool'", 400),
        ("Only user and assistant roles are supported!", 400),
        ("System message must be at the beginning.", 400),
    ],
)
def test_what_servers_say_of_the_order_is_understood(said: str, status: int) -> None:
    assert is_about_role_order(said, status)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("Conversation roles must alternate user/assistant", 401),
        ("roles must alternate", 429),
        ("the role of this key does not allow it", 400),
        ("does not support tools", 400),
        ("x" * 10_000 + "roles must alternate", 400),
        ("unexpected role " * 10_000, 400),
        ("", 400),
    ],
)
def test_other_errors_are_not_about_the_order(said: str, status: int) -> None:
    assert not is_about_role_order(said, status)
