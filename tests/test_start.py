"""From the command to the first byte of its first question: what is loaded on the way.

Nine tenths of that way is loading modules. What only a tool's work, a hook, a compaction, a
project's settings, an editor or a failure needs is loaded when there is one.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

LATE = {
    "with the first call of a tool": """
        recollect.tools.reading recollect.tools.editing recollect.tools.listing
        recollect.tools.searching recollect.tools.shell recollect.tools.recalling
        recollect.tools.noting recollect.tools.measuring recollect.tools.keeping
        recollect.tools.opening recollect.tools.walking recollect.tools.matching
        recollect.tools.differing recollect.tools.output recollect.tools.sandbox
        recollect.tools.landlock recollect.tools.rules recollect.tools.commands
        recollect.tools.dangerous recollect.workspace.facts recollect.agent.delegating
        recollect.transcripts secrets tempfile shutil""",
    "with a hook, a mirror, a trace": """
        recollect.agent.hooking recollect.agent.mirroring recollect.agent.tracing""",
    "when the conversation is over its budget": """
        recollect.agent.compacting recollect.agent.summarising recollect.compaction.proposing
        recollect.compaction.splitting recollect.compaction.fitting recollect.snapshot.building""",
    "when the folder has such a file": """
        recollect.workspace.tightening recollect.workspace.imports recollect.workspace.editor
        recollect.workspace.mentions""",
    "when an answer comes": """
        recollect.codecs.openai.replies recollect.codecs.openai.chunks recollect.store.words
        recollect.redacting""",
    "with another format, or on its other side": """
        recollect.codecs.openai.asked recollect.codecs.openai.answers recollect.codecs.gemini
        recollect.codecs.anthropic recollect.codecs.text_tools recollect.codecs.thinking""",
    "with another model, or another command": """
        recollect.models.weights recollect.models.embedded recollect.models.serving
        recollect.models.routing recollect.cli.ask recollect.cli.asking recollect.store.doctor
        recollect.workspace.origins""",
}
# the audit hook is Python's own way to hear that a connection is about to be made
UNTIL_IT_CONNECTS = """
import os, sys

def hear(event, arguments):
    if event == "socket.connect":
        os.write(1, "\\n".join(sys.modules).encode())
        os._exit(0)

sys.addaudithook(hear)
sys.argv = ["recollect", "-p", "hi"]
from recollect.__main__ import main
main()
"""
SETTINGS = """model = "nobody"

[models.nobody]
url = "http://127.0.0.1:9/v1"
window = 100_000
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """The modules that `recollect -p hi` has loaded when it connects, in a fresh process."""
    place = tmp_path_factory.mktemp("start")
    home, folder = place / "home", place / "folder"
    home.mkdir()
    folder.mkdir()
    (home / "settings.toml").write_text(SETTINGS)
    done = subprocess.run(
        [sys.executable, "-c", UNTIL_IT_CONNECTS],
        cwd=folder,
        env={**os.environ, "RECOLLECT_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return frozenset(done.stdout.split("\n"))


@pytest.mark.parametrize("when", LATE)
def test_what_the_first_question_does_not_need_is_loaded_later(
    when: str, loaded: frozenset[str]
) -> None:
    assert {"recollect.agent.loop", "recollect.tools.offered", "recollect.store.sqlite"} <= loaded
    late = LATE[when].split()
    assert [name for name in late if name in loaded] == []
    assert [name for name in late if find_spec(name) is None] == []  # none of them was renamed


def test_no_module_on_the_way_compiles_a_pattern_or_makes_a_dataclass_when_it_is_loaded(
    loaded: frozenset[str],
) -> None:
    """A pattern takes as long to compile as a small module to load; a dataclass, twenty times as
    long to make as a struct."""
    slow: list[str] = []
    for name in sorted(loaded):
        found = find_spec(name) if name.startswith("recollect") else None
        if found is not None and found.origin is not None:
            slow += [f"{name}: {what}" for what in _made_at_once(Path(found.origin))]
    assert slow == []


def _made_at_once(file: Path) -> list[str]:
    """What a module does outside of its functions."""
    found: list[str] = []
    waiting: list[ast.AST] = [ast.parse(file.read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile":
            found.append(f"line {node.lineno} compiles a pattern")
        if isinstance(node, ast.ImportFrom) and node.module == "dataclasses":
            found.append(f"line {node.lineno} imports dataclasses")
        waiting += ast.iter_child_nodes(node)
    return found
