from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.workspace.hidden_paths import (
    AGENT_IGNORE_FILES,
    IgnoreRules,
    IgnoreSource,
    read_ignore_rules,
)
from recollect.workspace.ignore_files import MAX_PATTERN, MAX_RULES, parse_ignore_file

IGNORE_FILES = (".gitignore", *AGENT_IGNORE_FILES)
NAMES = ["a", "b", "ab", "a.log", "-", "a b"]
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
PATTERN = st.one_of(
    st.text(alphabet="ab*?/!.[]^-\\ #", min_size=1, max_size=8),
    st.lists(
        st.sampled_from(["a", "b", "**", "*", "a*", "?b", "[ab]", "[!a]", "[^a]", ""]),
        min_size=1,
        max_size=4,
    ).map("/".join),
    st.sampled_from(["!a", "!b/", "a/", "*.log", "/a", "a/**", "**/b", "a/**/b", "\\!a", "a\\ "]),
)


def rules_of(text: str) -> IgnoreRules:
    """The rules of one file at the top."""
    source = IgnoreSource(".gitignore", 0, parse_ignore_file(text))
    return IgnoreRules(Path("/"), of_git=(source,))


def ours(text: str, path: str) -> bool:
    """Whether a path is ignored by one file at the top, asked from folder to folder."""
    rules = rules_of(text)
    names = path.split("/")
    return any(
        rules.ignores(names[:depth], folder=depth < len(names))
        for depth in range(1, len(names) + 1)
    )


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    return folder


def gits(repository: Path, text: str, paths: list[str]) -> list[bool]:
    (repository / ".gitignore").write_text(text, encoding="utf-8")
    asked = subprocess.run(
        ["git", "-c", "core.excludesFile=", "check-ignore", "--no-index", "-z", "--stdin"],
        cwd=repository,
        input="\0".join(paths).encode(),
        capture_output=True,
        env=os.environ | {"GIT_CONFIG_NOSYSTEM": "1"},
    )
    assert asked.returncode in (0, 1), asked.stderr
    ignored = set(asked.stdout.decode().split("\0"))
    return [path in ignored for path in paths]


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PATTERN, min_size=1, max_size=4), st.lists(PATHS, min_size=1, max_size=8))
def test_patterns_mean_what_git_says(
    repository: Path, patterns: list[str], paths: list[str]
) -> None:
    text = "\n".join(patterns) + "\n"
    assert [ours(text, path) for path in paths] == gits(repository, text, paths)


def walked(repository: Path, path: str) -> bool:
    """The same, with the ignore files of every folder on the way."""
    names, ignoring = path.split("/"), IgnoreRules(repository)
    for depth in range(len(names)):
        ignoring = ignoring.enter_folder(names[:depth])
        if ignoring.ignores(names[: depth + 1], folder=depth + 1 < len(names)):
            return True
    return False


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PATTERN, max_size=3), st.lists(PATTERN, max_size=3), st.lists(PATHS, min_size=1))
def test_nested_files_mean_what_git_says(
    repository: Path, above: list[str], below: list[str], paths: list[str]
) -> None:
    nested = repository / "a" / ".gitignore"
    nested.parent.mkdir(exist_ok=True)
    nested.write_text("\n".join(below), encoding="utf-8")
    # a is a folder here, and git looks: asking for it as a file is no question
    asked = [path for path in paths if path != "a"] or ["b"]
    try:
        decided = gits(repository, "\n".join(above), asked)
        assert [walked(repository, path) for path in asked] == decided
    finally:
        nested.unlink()
        nested.parent.rmdir()


def test_a_nested_file_decides_over_the_one_above(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "sub").mkdir()
    (tmp_path / ".gitignore").write_text("*.log\n/sub/b\n", encoding="utf-8")
    (tmp_path / "sub" / ".gitignore").write_text("!keep.log\n/a\n", encoding="utf-8")
    ignoring, names = read_ignore_rules(tmp_path / "sub")
    assert names == ["sub"]
    decided = {
        name: ignoring.ignores(("sub", name), folder=False)
        for name in ("x.log", "keep.log", "a", "b", "c")
    }
    assert decided == {"x.log": True, "keep.log": False, "a": True, "b": True, "c": False}


@pytest.mark.parametrize("file", IGNORE_FILES)
def test_every_kind_of_ignore_file_counts(tmp_path: Path, file: str) -> None:
    (tmp_path / file).write_text("secret", encoding="utf-8")
    rules, _ = read_ignore_rules(tmp_path)
    assert rules.ignores(["secret"], folder=False)
    assert not rules.ignores(["public"], folder=False)


def test_an_ignore_file_that_is_a_link_out_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("*", encoding="utf-8")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / ".gitignore").symlink_to(tmp_path / "other")
    ignoring, _ = read_ignore_rules(tmp_path / "root")
    assert not ignoring.ignores(["a"], folder=False)


@pytest.mark.parametrize(
    "pattern",
    ["*a" * 200 + "b", "**/" * 150 + "b", "*?" * 200 + "b", "[a" * 200, "*[a]" * 100 + "b"],
)
def test_no_pattern_takes_long_on_any_name(pattern: str) -> None:
    rules = rules_of(f"{pattern}\n" * 20)
    started = time.process_time()
    for _ in range(20):
        rules.ignores(["a" * 255] * 16, folder=False)
    assert time.process_time() - started < 20  # CPU time: other programs may be running


@given(st.text(max_size=200))
def test_any_text_is_an_ignore_file(text: str) -> None:
    rules = rules_of(text)
    assert rules.ignores(["a", "b"], folder=True) in (True, False)


def test_comments_spaces_and_endings_are_read_as_git_reads_them() -> None:
    rules = rules_of("\ufeff# note\r\n\r\nfoo  \r\n\\#real\nwith\\ \nend\\!\n")
    names = ("foo", "#real", "with ", "end!", "# note")
    assert [rules.ignores([name], folder=False) for name in names] == [True] * 4 + [False]


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("name_{}", "name_{}"),
        ("*.x{}", "a.x{}"),
        ("pre{}_*", "pre{}_z"),
        ("*foo{}_*", "a foo{}_ b"),
        ("a/p{}/index.ts", "index.ts"),
        ("a/**/p{}", "p{}"),
        ("[Nn]ame{}", "Name{}"),
    ],
)
def test_the_last_of_many_rules_counts(pattern: str, name: str) -> None:
    text = "\n".join(pattern.format(number) for number in range(2_000))
    rules = rules_of(text)
    for number, expected in ((0, True), (1_999, True), (2_000, False)):
        folder = f"p{number}" if "p{}/" in pattern else "b"
        assert rules.ignores(["a", folder, name.format(number)], folder=False) == expected
    assert not rules_of(f"{text}\n!*").ignores(["a", "p0", name.format(0)], folder=False)


@pytest.mark.parametrize("pattern", ["name_{}", "*.x{}", "*foo{}*", "a/p{}/index.ts", "d{}/**"])
def test_a_path_is_compared_with_few_of_many_rules(pattern: str) -> None:
    rules = parse_ignore_file("\n".join(pattern.format(n) for n in range(MAX_RULES)))
    assert len(rules) == MAX_RULES
    for path in (("a", "p7", "index.ts"), ("name_7",), ("d7", "x.x7"), ("foo7",)):
        assert len(list(rules._candidates(path))) < 5


def test_a_rule_too_many_and_a_pattern_too_long_are_a_problem() -> None:
    names = "".join(f"n{number}\n" for number in range(MAX_RULES))
    assert parse_ignore_file(f"{names}\n# enough\n").problem == ""
    assert parse_ignore_file(f"{names}late").problem == "has more than 20,000 rules"
    long = parse_ignore_file(f"a\n{'x' * (MAX_PATTERN + 1)}\nb")
    assert long.problem == "has a pattern of more than 4,096 characters (line 2)"
    assert len(long) == 2


def test_bytes_that_are_not_utf_8_mean_names_with_these_bytes_to_git_alone() -> None:
    text = b"# \xff\ncaf\xe9\n".decode("utf-8", "surrogateescape")
    rules = parse_ignore_file(text)
    assert rules.problem == ""
    assert rules.decide([os.fsdecode(b"caf\xe9")], folder=False)
    assert parse_ignore_file(text, of_git=False).problem == "is not UTF-8 text (line 2)"
    assert parse_ignore_file("# \udcff\nok", of_git=False).problem == ""
