"""The list of names that only the user writes, and every spelling that reaches them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.permissions.protected_paths import names_config
from recollect.workspace.protected_names import PROTECTED_NAMES, find_protected

LITERAL = tuple(name.path for name in PROTECTED_NAMES if "*" not in name.path)

PROTECTED = [
    ".recollect/settings.toml",
    "AGENTS.md",
    "packages/web/CLAUDE.local.md",
    ".github/workflows/ci.yml",
    ".github/actions/setup/action.yml",
    ".github/copilot-instructions.md",
    ".gitlab-ci.yml",
    ".cursor/rules/a.mdc",
    ".cursorrules",
    ".cursor-anything",
    ".windsurfrules",
    ".windsurf/x",
    ".mcp.json",
    ".devcontainer/devcontainer.json",
    ".devcontainer.json",
    ".cargo/config.toml",
    ".codex/config.toml",
    ".zed/tasks.json",
    ".vscode/tasks.json",
    "app.code-workspace",
    ".idea/workspace.xml",
    "mise.toml",
    "mise.local.toml",
    ".mise.toml",
    ".tool-versions",
    "lefthook.yml",
    "lefthook-local.yaml",
    ".lefthook.toml",
    ".husky/pre-commit",
    ".pre-commit-config.yaml",
    ".bazelrc",
    "tools/bazel",
    ".envrc",
    ".gitattributes",
    ".gitmodules",
    ".git/hooks/pre-commit",
    "sub/.git/config",
    ".npmrc",
    ".yarnrc.yml",
    ".yarn/releases/yarn-4.cjs",
    ".pnpmfile.cjs",
    "pip.conf",
    ".ssh/config",
    ".aws/config",
    "lib/python3.12/site-packages/evil.pth",
]
ORDINARY = [
    "src/app.py",
    "README.md",
    "docs/agents-overview.md",
    "Makefile",
    "package.json",
    "pyproject.toml",
    "conftest.py",
    "eslint.config.js",
    ".gitignore",
    ".editorconfig",
    ".env.example",
    ".github/CODEOWNERS",
    ".github/ISSUE_TEMPLATE/bug.md",
    ".docker/Dockerfile",
    ".python-version",
    "tools/build.py",
    "config.toml",
    "head/index.tsx",
    "mise/notes.md",
    "workflows/ci.yml",
    "github/workflows.py",
    "vscode.md",
    "a~1.txt",
]


@pytest.mark.parametrize("path", PROTECTED)
def test_what_starts_something_or_speaks_for_the_user_is_protected(path: str) -> None:
    assert find_protected(path) is not None
    assert names_config(path)


@pytest.mark.parametrize("path", ORDINARY)
def test_ordinary_files_are_not(path: str) -> None:
    assert find_protected(path) is None


@pytest.mark.parametrize(
    "spelling",
    [
        "./.github/./workflows//ci.yml",
        "a/../.github/b/../workflows/ci.yml",
        "/abs/.GitHub/WORKFLOWS/ci.yml",
        ".github./workflows /ci.yml",
        ".g\u200cithub/work\u00adflows/ci.yml",
        ".GIT\u200bHUB/workflows/x",
        "GITHUB~1/workflows/x",
        "GIT~1/config",
        ".git::$INDEX_ALLOCATION/config",
        "ＡGENTS.md",
        "\u212aILO/../clau\u0064e.md.",
        "VSCODE~2/tasks.json",
    ],
)
def test_no_spelling_that_a_filesystem_could_accept_gets_around_it(spelling: str) -> None:
    assert find_protected(spelling) is not None


@pytest.mark.parametrize(
    "word",
    [
        ".github",  # who replaces the folder writes what is in it
        "x/.cargo/",
        ".github/.",
        "-o.bashrc",
        "-oAGENTS.md",
        "-t.github/workflows",
        "--target=.github/workflows",
        "of=.mcp.json",
        "host:.envrc",
    ],
)
def test_a_word_of_a_command_that_names_one_is_recognized(word: str) -> None:
    assert names_config(word)


@pytest.mark.parametrize(
    "word", ["HEAD", "--crontab", "a.vsix", "--url=https://x.github.io", "-Dserver.pid", "tools"]
)
def test_a_word_that_only_looks_like_one_is_not(word: str) -> None:
    assert not names_config(word)


@given(
    name=st.sampled_from(LITERAL),
    before=st.lists(st.sampled_from(["a", ".", "", "b/..", "Src"]), max_size=3),
    upper=st.booleans(),
    tail=st.sampled_from(["", "/x", "//x", "/./x/y"]),
)
def test_every_name_is_found_in_any_folder_and_in_any_case(
    name: str, before: list[str], upper: bool, tail: str
) -> None:
    path = "/".join([*before, name.upper() if upper else name]) + tail
    assert find_protected(path) is not None


def test_the_list_says_each_name_once() -> None:
    paths = [name.path for name in PROTECTED_NAMES]
    assert len(paths) == len(set(paths))
    assert all(path == path.lower() and len(path.split("/")) <= 2 for path in paths)
