from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import BadInput, CannotWrite
from recollect.workspace.memory_imports import expand_imports
from recollect.workspace.memory_writer import (
    HEADING,
    MAX_FILE,
    plan_fact,
    save_fact,
    with_fact,
    write_fact,
)

BYTES = st.one_of(
    st.binary(max_size=100),
    st.lists(
        st.sampled_from([HEADING.encode(), b"\n", b"\r\n", b"- old", b"# other", b"```", b"\xff"])
    ).map(b"".join),
    st.lists(st.sampled_from([HEADING.encode(), b"", b"- old", b"## other", b"```", b"text"])).map(
        b"\n".join
    ),
)


def test_a_new_file_has_the_heading_and_the_fact(tmp_path: Path) -> None:
    path = tmp_path / "home" / "AGENTS.md"
    shown = save_fact(path, "tests run with pytest").difference
    assert path.read_text(encoding="utf-8") == f"{HEADING}\n\n- tests run with pytest\n"
    assert shown.split("\n")[-1] == "+- tests run with pytest"
    assert path.stat().st_mode & 0o777 == 0o600


def test_facts_gather_under_one_heading_and_the_rest_stays(tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_text("# Mine\r\ntext\r\n", newline="", encoding="utf-8")
    save_fact(path, "one")
    after_one = path.read_bytes()
    assert after_one == f"# Mine\r\ntext\r\n\r\n{HEADING}\r\n\r\n- one\r\n".encode()
    path.write_bytes(after_one + b"\r\n## More\r\nwords")
    shown = save_fact(path, "two").difference
    assert path.read_bytes() == after_one + b"- two\r\n\r\n## More\r\nwords"
    assert [line for line in shown.split("\n") if line[:2] in ("+-", "--")][-1] == "+- two"


def test_a_heading_inside_a_fence_is_not_the_heading() -> None:
    data = f"```\n{HEADING}\n```\n".encode()
    assert with_fact(data, "x") == data + f"\n{HEADING}\n\n- x\n".encode()


@given(BYTES, st.sampled_from(["one fact", "ümläut 事实"]))
def test_whatever_the_file_holds_stays_byte_for_byte(data: bytes, line: str) -> None:
    after = with_fact(data, line)
    added = f"- {line}".encode()
    assert any(
        after.startswith(data[:place])
        and after.endswith(data[place:])
        and is_the_addition(after[place : len(after) - len(data) + place], added)
        for place in range(len(data) + 1)
    )


def is_the_addition(between: bytes, added: bytes) -> bool:
    """A fact, maybe with the heading before it, and line ends."""
    left = between.replace(added, b"", 1).replace(HEADING.encode(), b"", 1)
    return added in between and left.strip(b"\r\n") == b""


def test_a_letter_with_the_byte_of_another_line_end_is_not_a_line_end() -> None:
    data = f"Å{HEADING}\nÅ \n".encode()  # Å ends with the byte 0x85
    assert with_fact(data, "x") == data + f"\n{HEADING}\n\n- x\n".encode()
    there = f"{HEADING}\n\n- Å  \n".encode()
    assert with_fact(there, "x") == there + b"- x\n"


@given(BYTES)
def test_a_second_fact_stands_right_behind_the_first(data: bytes) -> None:
    twice = with_fact(with_fact(data, "the first"), "the second")
    after = twice.partition(b"- the first")[2].lstrip(b"\r\n")
    assert after.startswith(b"- the second")


@pytest.mark.parametrize("fact", ["", " \n\t", "- ", "\u202e", "x" * 2_001])
def test_a_text_that_is_not_a_fact_is_refused(tmp_path: Path, fact: str) -> None:
    with pytest.raises(BadInput):
        save_fact(tmp_path / "AGENTS.md", fact)
    assert list(tmp_path.iterdir()) == []


def test_a_fact_is_one_line_whatever_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    save_fact(path, "- a\n## Heading\r\n```\u2028b\x1b\u202e")
    assert path.read_text(encoding="utf-8").split("\n")[2:] == ["- a ## Heading ''' b", ""]


@pytest.mark.parametrize(
    ("fact", "line"),
    [
        ("# Heading", "Heading"),
        ("- > ## Heading", "Heading"),
        ("```sh", "sh"),
        ("* - item", "item"),
        ("*important* words", "*important* words"),
        ("#1 is speed", "#1 is speed"),
        ("lines > 80 are long", "lines > 80 are long"),
        ("`make test` runs all", "`make test` runs all"),
        ("` @settings.toml", "' \\@settings.toml"),
        ("see @settings.toml and a@b.c", "see \\@settings.toml and a@b.c"),
        ("use `@dataclass`", "use `@dataclass`"),
    ],
)
def test_a_fact_cannot_pass_for_a_heading_a_fence_or_an_import(
    tmp_path: Path, fact: str, line: str
) -> None:
    path = tmp_path / "AGENTS.md"
    (tmp_path / "settings.toml").write_text("a secret", encoding="utf-8")
    save_fact(path, "before")
    saved = save_fact(path, fact)
    assert saved.line == line
    text = path.read_text(encoding="utf-8")
    assert text.split("\n")[2:] == ["- before", f"- {line}", ""]
    assert expand_imports(text, path, (tmp_path,)).text == text


@given(st.lists(st.text(alphabet="ab`@#-*> ./~\n", max_size=12), max_size=5))
def test_facts_are_stored_once_and_import_nothing(facts: list[str]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "AGENTS.md")
        Path(folder, "a.b").write_text("a secret", encoding="utf-8")
        for fact in facts * 2:
            with suppress(BadInput):
                save_fact(path, fact)
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        lines = [line for line in text.split("\n") if line]
        assert len(lines) == len(set(lines))
        assert all(line.startswith("- ") for line in lines[1:])
        assert "a secret" not in expand_imports(text, path, (Path(folder),)).text


def test_a_fact_that_is_there_is_not_stored_again(tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_text("# Mine\n* We use  tabs.\n", encoding="utf-8")
    assert save_fact(path, "We use tabs.").difference == ""
    assert path.read_text(encoding="utf-8") == "# Mine\n* We use  tabs.\n"
    assert save_fact(path, "We use spaces.").difference
    assert not save_fact(path, "- We\nuse spaces.").difference
    assert path.read_text(encoding="utf-8").count("spaces") == 1


def test_a_file_never_grows_beyond_what_sessions_read(tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_text("x" * (MAX_FILE - 10), encoding="utf-8")
    with pytest.raises(BadInput, match="sessions read at most"):
        save_fact(path, "one more")
    assert path.stat().st_size == MAX_FILE - 10


def test_a_plan_writes_nothing_and_is_void_when_the_file_changed(tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    planned = plan_fact(path, "one")
    assert not path.exists()
    path.write_text("another program was faster", encoding="utf-8")
    with pytest.raises(CannotWrite, match="another program"):
        write_fact(planned)
    assert path.read_text(encoding="utf-8") == "another program was faster"


def test_a_link_is_followed_in_its_own_folder_only(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "AGENTS.md").write_text("text\n", encoding="utf-8")
    (project / "CLAUDE.md").symlink_to("AGENTS.md")
    save_fact(project / "CLAUDE.md", "one")
    assert (project / "CLAUDE.md").is_symlink()
    assert "- one" in (project / "AGENTS.md").read_text(encoding="utf-8")
    (tmp_path / "profile").write_text("own", encoding="utf-8")
    (project / "GEMINI.md").symlink_to(tmp_path / "profile")
    (project / "OTHER.md").symlink_to(tmp_path / "nothing")
    for name in ("GEMINI.md", "OTHER.md"):
        with pytest.raises(CannotWrite):
            save_fact(project / name, "x")
    assert (tmp_path / "profile").read_text(encoding="utf-8") == "own"
    assert not (tmp_path / "nothing").exists()
