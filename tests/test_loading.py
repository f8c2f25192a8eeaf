"""What is loaded on the way to the first question; what is needed later, or never, is not."""

from __future__ import annotations

import ast
import subprocess
import sys

LATE = {
    "h11",  # with the first question
    "certifi",
    "urllib.request",
    "http.client",
    "stamina",  # when one has failed
    "psutil",  # when processes are looked at
    "regex",  # when a model's pattern is searched for
    "tree_sitter",  # when a command is judged
    "recollect.tools.dangerous",
    "recollect.store.words",  # when something is indexed or searched
    "recollect.snapshot.building",  # when a snapshot is made
    "importlib.metadata",  # when the embedded model is looked for
    "zipfile",
    "email.utils",
}


def test_the_tools_and_the_model_load_nothing_that_only_their_use_needs() -> None:
    """`importlib.metadata` and `zipfile` may be there already: an environment's own start hooks."""
    modules = (
        "recollect.agent.compacting, recollect.models.opening, recollect.models.weights, "
        "recollect.store.sqlite, recollect.tools.listing, recollect.tools.monitoring, "
        "recollect.tools.noting, recollect.tools.reading, recollect.tools.recalling, "
        "recollect.tools.rules, recollect.tools.searching, recollect.tools.shell"
    )
    loads = f"had = set(sys.modules); import {modules}; new = set(sys.modules) - had"
    code = f"import sys; {loads}; print(sorted(new))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ast.literal_eval(done.stdout))
    assert "recollect.tools.shell" in loaded
    assert not loaded & LATE
