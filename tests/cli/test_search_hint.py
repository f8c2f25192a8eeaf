"""The command that a search prints shows the hit, however long the entry is."""

from __future__ import annotations

import re

import pytest

from recollect.testing import call
from tests.cli.model_server import ENV, reply, server
from tests.cli.runner import Cli
from tests.cli.session_files import gemini_file
from tests.models.server import HELLO, http

LINES = 200_000
ALLOW = '[permissions]\nallow = ["python3 *"]\n'
WORDS = {0: "firstneedle", LINES // 100: "earlyneedle", LINES // 2: "middleneedle"}
WORDS |= {LINES - 9_000: "lateneedle", LINES - 1: "lastneedle"}


def follow_hint(cli: Cli, word: str) -> tuple[str, str]:
    """The hint of a search for the word, and what its command prints."""
    found = cli.ok("search", word).out
    (hint,) = re.findall("`recollect (show [^`]+)` shows the first of them", found)
    return hint, cli.ok(*hint.split()).out


def test_the_hint_shows_a_word_anywhere_in_a_long_output(cli: Cli) -> None:
    script = f"words = {WORDS}\nfor n in range({LINES}):\n    print('line', n, words.get(n, ''))\n"
    (cli.project / "prints.py").write_text(script)
    calls = reply(call("run_shell_command", id="a", command="python3 prints.py"))
    with server(cli, calls, http(HELLO), more=ALLOW, window=60_000):
        assert cli.process("-p", "Print.", env=ENV).code == 0
    for number, word in WORDS.items():
        hint, shown = follow_hint(cli, word)
        assert f"line {number} {word}" in shown, hint
    assert follow_hint(cli, "middleneedle")[0].endswith(" --full")
    assert not follow_hint(cli, "firstneedle")[0].endswith(" --full")


@pytest.mark.parametrize("at", [0, 40, 1_000, 1_990, 1_999])
@pytest.mark.parametrize("by", ["user", "model"])
def test_the_hint_shows_a_word_anywhere_in_a_long_message(cli: Cli, at: int, by: str) -> None:
    text = "\n".join(f"row {n}{' theneedle' if n == at else ''}" for n in range(2_000))
    contents: list[object] = [text] if by == "user" else ["Hi.", {"reply": text}]
    cli.ok("import", str(gemini_file(cli.project / "session-a.json", contents)))
    hint, shown = follow_hint(cli, "theneedle")
    assert f"row {at} theneedle" in shown
    assert hint.endswith(" --full") == (at > 400)


def test_the_hint_for_a_short_entry_is_short(cli: Cli) -> None:
    cli.ok("import", str(gemini_file(cli.project / "session-a.json", ["Find theneedle here."])))
    hint, shown = follow_hint(cli, "theneedle")
    assert "--full" not in hint
    assert "Find theneedle here." in shown
