"""The rules of the house that no linter knows: names, imports, callers."""

from __future__ import annotations

import ast
import importlib
import io
import pkgutil
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import recollect
from recollect import api

SOURCE = Path(__file__).parent.parent / "src"
TREES = {
    file.relative_to(SOURCE): ast.parse(file.read_text(encoding="utf-8"))
    for file in sorted((SOURCE / "recollect").rglob("*.py"))
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
WIRES = {Path("recollect/codecs") / name for name in ("anthropic", "gemini", "openai")}

# In what `re.DEBUG` prints: a choice that stands deeper than a possessive group.
_POSSESSIVE_CHOICE = re.compile(
    r"^( *)POSSESSIVE_REPEAT\b.*\n(?:\1 .*\n)*?\1 +(?:BRANCH|M(?:AX|IN)_REPEAT|ASSERT)",
    re.MULTILINE,
)

# Defined, and used by nothing in the package yet; each with the reason why it stays.
WITHOUT_CALLER = {
    "recollect/adapters/openai_agents.py:RecollectSession": "public, for openai-agents to call",
}
# Called by a library that we subclass, or whose protocol we follow.
OVERRIDES = {"list_commands", "get_command", "format_commands", "format_completion"} | {
    "do_POST",
    "log_message",
    "process_request",
    "get_items",
    "add_items",
    "pop_item",
    "clear_session",
    "capture_signals",
}

# Called by Textual, in src/recollect/terminal.
TEXTUAL = {"compose", "render", "render_line", "render_lines", "get_selection", "check_action"} | {
    "allow_select",
    "get_content_height",
    "get_driver_class",
    "run_input_thread",
    "selection_updated",
}


def test_a_class_name_has_one_home() -> None:
    homes: defaultdict[str, set[Path]] = defaultdict(set)
    for file, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].add(file)
    shared = {name: files for name, files in homes.items() if len(files) > 1}
    strays = {name for name, files in shared.items() if not {f.parent for f in files} <= WIRES}
    assert strays == set()
    assert len(shared) <= 8


def test_a_file_name_has_one_home() -> None:
    homes: defaultdict[str, set[Path]] = defaultdict(set)
    for file in TREES:
        if not file.name.startswith("__"):
            homes[file.name].add(file.parent)
    assert {n: at for n, at in homes.items() if len(at) > 1 and not at <= WIRES} == {}


def _late_imports() -> Iterator[tuple[str, bool]]:
    """Imports inside functions, and whether a comment beside or above them gives the reason."""
    for file, tree in TREES.items():
        lines = (SOURCE / file).read_text(encoding="utf-8").splitlines()
        functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
        for node in (inner for function in functions for inner in ast.walk(function)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                above = node.lineno - 2
                while lines[above].strip().startswith(("from ", "import ")):
                    above -= 1
                explained = "#" in lines[node.lineno - 1] or lines[above].strip().startswith("#")
                yield f"{file}:{node.lineno}", explained


def test_imports_stand_at_the_top_but_for_a_few_seams_with_a_reason() -> None:
    late = dict(_late_imports())
    # the servers, PostgreSQL and Textual are seams; the terminal's first screen needs no tool
    assert len(late) <= 51, sorted(late)
    assert [place for place, explained in late.items() if not explained] == []


def _names_used(tree: ast.AST, skip: ast.AST) -> set[str]:
    found: set[str] = set()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if node is skip:
            continue
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # a table may name what it loads
        waiting += ast.iter_child_nodes(node)
    return found


def _imported() -> set[tuple[str | None, str]]:
    """What modules import by name; handing a name on in an `__init__` is no use of it."""
    return {
        (node.module, alias.name)
        for file, tree in TREES.items()
        if file.name != "__init__.py"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def _is_called_by_textual(file: Path, method: str, constants: Collection[object]) -> bool:
    """Event handlers, watchers and parts of rendering; an action only if something names it."""
    if "terminal" not in file.parts:
        return False
    if method.startswith("action_"):
        name = method.removeprefix("action_")
        named = (str(constant).split("(")[0] for constant in constants)
        return name in {each.rpartition(".")[2] for each in named}
    return method.startswith(("on_", "watch_", "validate_", "compute_")) or method in TEXTUAL


def _is_handler(decorator: ast.expr) -> bool:
    """Textual's `@on(…)`."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Name) and called.id == "on"


def _uncalled() -> Iterator[str]:
    """Top-level names that no module of the package uses, methods that nothing reads."""
    nodes = [node for tree in TREES.values() for node in ast.walk(tree)]
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    constants = {node.value for node in nodes if isinstance(node, ast.Constant)}
    imported = _imported()
    for file, tree in TREES.items():
        package = ".".join(file.parent.parts)
        module = f"{package}.{file.stem}".removesuffix(".__init__")
        for node in tree.body:
            if not isinstance(node, (*FUNCTIONS, ast.ClassDef)) or node.decorator_list:
                continue
            name = node.name
            used = name in _names_used(tree, node) | set(api.__all__) or name.startswith("__")
            by_name = {(module, name), (package, name)} & imported
            by_module = name in read and (package, file.stem) in imported
            by_table = f"{file.stem}:{name}" in constants  # as `tools/builtin.py` names them
            if not (used or by_name or by_module or by_table):
                yield f"{file}:{name}"
        for owner in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
            for method in (node for node in owner.body if isinstance(node, FUNCTIONS)):
                public = owner.name in api.__all__ and not method.name.startswith("_")
                known = public or _is_called_by_textual(file, method.name, constants)
                known = known or any(_is_handler(each) for each in method.decorator_list)
                if not (known or method.name in read | OVERRIDES or method.name[:2] == "__"):
                    yield f"{file}:{owner.name}.{method.name}"


def test_a_feature_without_a_caller_is_not_a_feature() -> None:
    found = set(_uncalled())
    assert found - set(WITHOUT_CALLER) == set(), "call it, export it, or delete it"
    assert set(WITHOUT_CALLER) - found == set(), "called now, or gone: take it off the list"


@pytest.mark.parametrize("key", WITHOUT_CALLER)
def test_what_is_left_without_a_caller_says_why(key: str) -> None:
    assert WITHOUT_CALLER[key]


def test_possessive_groups_hold_no_choice() -> None:
    """Python before 3.11.5, as in Debian 12, matches them wrongly (gh-106052), and says nothing."""
    for module in pkgutil.walk_packages(recollect.__path__, "recollect."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    patterns = {
        value.pattern: f"{name}.{key}"
        for name, module in sys.modules.items()
        if name.startswith("recollect.")
        for key, value in vars(module).items()
        if isinstance(value, re.Pattern)
    }
    assert len(patterns) > 100
    wrong = {where: text for text, where in patterns.items() if has_possessive_choice(text)}
    assert wrong == {}


def has_possessive_choice(pattern: str | bytes) -> bool:
    shown = io.StringIO()
    with redirect_stdout(shown):
        re.compile(pattern, re.DEBUG)
    return bool(_POSSESSIVE_CHOICE.search(shown.getvalue()))


def test_a_possessive_choice_is_seen() -> None:
    assert has_possessive_choice(r'a"(?:[^"\\]++|\\.)*+"')
    assert has_possessive_choice(r"(?:x(?!y)z*+)++|(a|b)")
    assert not has_possessive_choice(r'(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|b)*')
