"""Errors name what can be typed into the prompt of the terminal program."""

from __future__ import annotations

import pytest

from recollect.errors import UnknownEntry, UnknownModel, UnknownSession
from recollect.terminal.command_words import say_here
from tests.cli.provider import provider
from tests.cli.runner import Cli
from tests.terminal.plain_process import plain


@pytest.mark.parametrize(
    ("text", "here"),
    [
        (str(UnknownModel("gpt-9")), "`/model`"),
        (str(UnknownSession("abc")), "`/resume`"),
        (str(UnknownEntry("e9", "s1")), "`/context`"),
        ("all: `recollect show 12ab34cd --full` shows it", "`/recall 12ab34cd`"),
        ("`recollect trust --memory '/a b'` asks", "`/trust memory`"),
        ("`recollect trust` trusts it", "`/trust`"),
    ],
)
def test_a_remedy_is_a_command_of_the_prompt(text: str, here: str) -> None:
    assert here in say_here(text)
    assert "`recollect" not in say_here(text)


@pytest.mark.parametrize(
    "text", ["`recollect doctor --repair` saves it", "`recollect -r 12` continues", "plain"]
)
def test_what_only_the_command_line_has_stays_what_it_is(text: str) -> None:
    assert say_here(text) == text


def test_a_wrong_model_is_answered_with_what_can_be_typed_here(cli: Cli) -> None:
    with provider(cli, "openai", ["one"]):
        done = plain(cli, "/model gpt-9")
    assert done.code == 1
    assert "or use another model (`/model` shows which have a key)" in done.out
    assert "`recollect" not in done.out
