from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import BadSettings
from recollect.permissions.command_judge import judge_line
from recollect.permissions.command_rules import parse_rules as command_rules
from recollect.permissions.command_rules import tighten
from recollect.settings import ContextSettings, HookCommand, Settings, parse_settings
from recollect.settings.setting_definitions import SETTINGS_SECTIONS, CustomModel
from recollect.workspace.effective_settings import (
    PROJECT_FOLDER,
    project_root,
    resolve_settings,
)
from recollect.workspace.hook_approval import digest_hooks
from recollect.workspace.setting_sources import SettingSource, list_effective_settings
from recollect.workspace.trusted_folders import approve_hooks, distrust_folder, trust_folder
from tests.workspace.project_folder import ProjectFolder

HOOK = '[[hooks]]\nevent = "BeforeTool"\ncommand = "./check --all"\n'


@pytest.fixture
def place(tmp_path: Path) -> ProjectFolder:
    return ProjectFolder(tmp_path)


def test_without_files_everything_is_the_default(tmp_path: Path) -> None:
    found = resolve_settings(tmp_path, tmp_path / "home")
    assert found.settings == Settings()
    assert not any(row.sources for row in list_effective_settings(found))
    assert found.warnings == ()


def test_a_projects_file_is_found_from_any_folder_of_the_project(place: ProjectFolder) -> None:
    place.found("[agent]\nmax_turns = 3")
    (place.project / "a" / "b").mkdir(parents=True)
    assert resolve_settings(place.project / "a" / "b", place.home).settings.agent.max_turns == 3
    assert project_root(place.project / "a" / "b") == place.project


def test_in_an_untrusted_folder_the_file_is_ignored_with_a_warning(tmp_path: Path) -> None:
    place = ProjectFolder(tmp_path, trusted=False)
    found = place.found("this is [ no TOML, and nobody reads it")
    assert found.settings == Settings()
    assert (found.project, found.project_hooks, found.project_ask) == (None, (), ())
    [warning] = found.warnings
    assert found.project_ignored
    assert str(place.file) in warning
    assert "not trusted" in warning


def test_one_folder_below_a_trusted_one_can_be_excepted(place: ProjectFolder) -> None:
    assert place.found("[agent]\nmax_turns = 3").settings.agent.max_turns == 3
    distrust_folder(place.project / PROJECT_FOLDER, place.home)
    assert place.found().settings.agent.max_turns == 100
    trust_folder(place.project / PROJECT_FOLDER, place.home)
    distrust_folder(place.project, place.home)
    assert place.found().settings.agent.max_turns == 100


WIDENING = [
    ('[permissions]\nallow = ["rm *"]', "", "a project cannot allow anything"),
    ('[permissions]\nmode = "free"', "", 'only be stricter than "ask"'),
    ('[permissions]\nmode = "edit"', "", 'only be stricter than "ask"'),
    ('[permissions]\nmode = "ask"', '[permissions]\nmode = "plan"', 'only be stricter than "plan"'),
    ("[permissions]\nnetwork = true", "", "only be switched off"),
    ("[agent]\nmax_turns = 101", "", "only be lowered from 100"),
    ("[agent]\nmax_turns = 5", "[agent]\nmax_turns = 4", "only be lowered from 4"),
    ("[agent]\ndetect_loops = false", "", "only be switched on"),
    ("[agent]\nloop_check_after = 0", "[agent]\nloop_check_after = 30", "only come sooner than 30"),
    (
        "[agent]\nloop_check_after = 31",
        "[agent]\nloop_check_after = 30",
        "only come sooner than 30",
    ),
    ('[agent]\nmemory_files = ["settings.toml"]', "", "only bare names that end in .md or .txt"),
    ('[agent]\nmemory_files = [".env"]', "", "only bare names that end in .md or .txt"),
]


@pytest.mark.parametrize(("project", "own", "why"), WIDENING)
def test_a_value_that_would_loosen_is_ignored_with_a_warning(
    place: ProjectFolder, project: str, own: str, why: str
) -> None:
    found = place.found(project, own)
    assert found.settings == parse_settings(own).settings
    [warning] = found.warnings
    assert why in warning
    assert f"{place.file}, line 2: " in warning
    assert not any(
        place.file == Path(at.file) for row in list_effective_settings(found) for at in row.sources
    )


@pytest.mark.parametrize(
    ("project", "own", "key", "value"),
    [
        (
            '[permissions]\nmode = "plan"',
            '[permissions]\nmode = "free"',
            "permissions.mode",
            "plan",
        ),
        ("[permissions]\nnetwork = false", "[permissions]\nnetwork = true", None, False),
        ("[agent]\nmax_turns = 5", "", "agent.max_turns", 5),
        (
            "[agent]\ndetect_loops = true",
            "[agent]\ndetect_loops = false",
            "agent.detect_loops",
            True,
        ),
        ("[agent]\nloop_check_after = 30", "", "agent.loop_check_after", 30),
        (
            "[agent]\nloop_check_after = 9",
            "[agent]\nloop_check_after = 30",
            "agent.loop_check_after",
            9,
        ),
        ('language = "zh"', "", "language", "zh"),
        ("[context]\nkeep_reads = 9", "[context]\nkeep_reads = 3", "context.keep_reads", 9),
        ('[context]\nsummarize_tools = ["run_shell_command"]', "", None, ["run_shell_command"]),
    ],
)
def test_a_value_that_tightens_or_permits_nothing_more_takes_effect(
    place: ProjectFolder, project: str, own: str, key: str | None, value: object
) -> None:
    found = place.found(project, own)
    [row] = [
        row
        for row in list_effective_settings(found)
        if (str(place.file),) == tuple(at.file for at in row.sources)
    ]
    assert row.value == value
    assert key in (None, row.key)
    assert found.warnings == ()


def test_rules_that_deny_and_names_of_memory_files_are_added(place: ProjectFolder) -> None:
    found = place.found(
        '[permissions]\ndeny = ["git push *"]\n[agent]\nmemory_files = ["TEAM.md", "AGENTS.md"]',
        '\n[permissions]\ndeny = ["rm *"]',
    )
    assert found.settings.permissions.deny == ("rm *", "git push *")
    names = ("AGENTS.md", "GEMINI.md", "CLAUDE.md", "TEAM.md")
    assert found.settings.agent.memory_files == names
    by_key = {row.key: row for row in list_effective_settings(found)}
    assert by_key["permissions.deny"].sources == (
        SettingSource(str(place.own), 3),
        SettingSource(str(place.file), 2),
    )


def test_a_project_cannot_remove_the_users_memory_files(place: ProjectFolder) -> None:
    found = place.found("[agent]\nmemory_files = []\n[permissions]\ndeny = []", "")
    assert found.settings == Settings()


def test_an_ask_rule_of_a_project_never_turns_a_no_into_a_question(
    place: ProjectFolder,
) -> None:
    found = place.found(
        '[permissions]\nask = ["ls *", "rm *"]',
        '[permissions]\nmode = "plan"\nask = ["cat *"]\nallow = ["ls *"]',
    )
    own = found.settings.permissions
    assert (own.ask, found.project_ask) == (("cat *",), ("ls *", "rm *"))
    both = tighten(
        command_rules(own.deny, own.ask, own.allow, own.mode), command_rules(ask=found.project_ask)
    )
    assert judge_line("rm x", both).decision == "deny"
    assert judge_line("ls x", both).decision == "ask"
    [row] = [row for row in list_effective_settings(found) if row.key == "permissions.ask"]
    assert row.value == ["cat *", "ls *", "rm *"]
    assert [at.file for at in row.sources] == [str(place.own), str(place.file)]


def approve(place: ProjectFolder) -> None:
    found = place.found()
    approve_hooks(found.root, digest_hooks(found.unapproved_hooks, found.root), place.home)


def test_hooks_of_a_project_are_kept_apart_from_the_users(place: ProjectFolder) -> None:
    place.found(HOOK, '[[hooks]]\nevent = "SessionEnd"\ncommand = "mine"\n')
    approve(place)
    found = place.found()
    assert found.settings.hooks == (HookCommand(event="SessionEnd", command="mine"),)
    assert found.project_hooks == (HookCommand(event="BeforeTool", command="./check --all"),)
    [row] = [row for row in list_effective_settings(found) if row.key == "hooks"]
    assert [hook["command"] for hook in row.value] == ["mine", "./check --all"]


def test_unapproved_hooks_do_not_run_even_in_a_trusted_folder(
    place: ProjectFolder,
) -> None:
    found = place.found(HOOK)
    assert (found.project_hooks, len(found.unapproved_hooks)) == ((), 1)
    assert "`recollect trust --hooks` shows them" in found.warnings[0]
    approve(place)
    assert len(place.found().project_hooks) == 1
    assert not place.found().warnings
    for changed in (HOOK.replace("--all", "--none"), HOOK + HOOK, HOOK + "timeout = 1\n"):
        assert place.found(changed).project_hooks == ()
    assert len(place.found(HOOK).project_hooks) == 1


def test_distrusting_a_project_withdraws_the_approval_of_its_hooks(place: ProjectFolder) -> None:
    place.found(HOOK)
    approve(place)
    distrust_folder(place.project, place.home)
    trust_folder(place.project, place.home)
    assert place.found().project_hooks == ()


def test_old_names_of_settings_are_accepted_with_a_hint(place: ProjectFolder) -> None:
    found = place.found("[agent]\njudge_after = 9", '[context]\nsummarise = ["a"]')
    assert found.settings.agent.loop_check_after == 9
    assert found.settings.context.summarize_tools == ("a",)
    in_own, in_project = found.warnings
    assert in_own.startswith(f"{place.own}: rename `context.summarise` to ")
    assert in_project.startswith(f"{place.file}: rename `agent.judge_after` to ")
    lines = {row.key: row.sources[0].line for row in list_effective_settings(found) if row.sources}
    assert lines == {"agent.loop_check_after": 2, "context.summarize_tools": 2}


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_hooks_that_other_users_can_write_are_refused(place: ProjectFolder) -> None:
    place.found(HOOK)
    place.file.chmod(0o666)
    with pytest.raises(BadSettings, match="other users can write to it"):
        place.found()
    place.file.write_text("[agent]\nmax_turns = 3")
    assert place.found().settings.agent.max_turns == 3


MAY = {
    "language",
    "hooks",
    *(f"permissions.{name}" for name in ("mode", "allow", "ask", "deny", "network", "sandbox")),
    *(
        f"agent.{name}"
        for name in (
            "max_turns",
            "detect_loops",
            "loop_check_after",
            "memory_files",
            "memory_imports",
        )
    ),
    *(f"context.{name}" for name in ContextSettings.__struct_fields__),
}
_TABLES: dict[str, type[msgspec.Struct]] = {
    "": Settings,
    **{f"{name}.": section for name, section in SETTINGS_SECTIONS.items()},
}
MAY_NOT = sorted(
    {
        before + name
        for before, section in _TABLES.items()
        for name in section.__struct_fields__
        if name not in SETTINGS_SECTIONS and before + name not in (MAY | {"models"})
    }
)


def _line(key: str) -> str:
    """A line that sets a key to its default: harmless, and refused all the same."""
    section, _, name = key.rpartition(".")
    table = _TABLES[f"{section}." if section else ""]
    value = getattr(table(), name)
    value = {"temperature": 1.0, "top_p": 1.0, "max_output": 5, "seed": 1}.get(name, value)
    text = "{}" if value == {} else msgspec.json.encode(value).decode()
    return f"{key} = {text}"


@pytest.mark.parametrize("key", MAY_NOT)
def test_a_key_that_decides_where_the_conversation_goes_is_refused(
    place: ProjectFolder, key: str
) -> None:
    with pytest.raises(BadSettings) as caught:
        place.found("# ours\n" + _line(key))
    message = str(caught.value)
    assert f"line 2, a project may not set `{key}`; put it into {place.own}" in message
    assert str(place.file) in message


def test_the_refused_keys_are_exactly_these() -> None:
    whole = {"generation", "routing", "transport"}
    apart = {"model", "mirror", "autosave_seconds", "agent.editor", "agent.telemetry"}
    apart |= {"agent.directories", "store", "store_wait", "permissions.show_secrets"}
    apart |= {"terminal.notify", "terminal.theme"}
    assert {key for key in MAY_NOT if key.partition(".")[0] not in whole} == apart
    assert "url" in CustomModel.__struct_fields__


@pytest.mark.parametrize(
    ("user", "project", "in_force"),
    [
        ("auto", "bubblewrap", "bubblewrap"),
        ("none", "landlock", "landlock"),
        ("none", "auto", "auto"),
        ("landlock", "bubblewrap", "bubblewrap"),
        ("auto", "none", "auto"),
        ("auto", "landlock", "auto"),
        ("landlock", "auto", "landlock"),
        ("bubblewrap", "none", "bubblewrap"),
    ],
)
def test_a_project_may_only_tighten_the_sandbox(
    place: ProjectFolder, user: str, project: str, in_force: str
) -> None:
    place.own.parent.mkdir(parents=True, exist_ok=True)
    place.own.write_text(f'[permissions]\nsandbox = "{user}"\n')
    found = place.found(f'[permissions]\nsandbox = "{project}"\n')
    assert found.settings.permissions.sandbox == in_force
    assert bool(found.warnings) == (in_force != project)


def test_a_custom_model_of_a_project_is_refused(place: ProjectFolder) -> None:
    with pytest.raises(BadSettings, match=r"a project may not set `models\.x\.url`"):
        place.found('[models.x]\nurl = "https://collector.example/v1"')


_MODES = ("plan", "ask", "edit", "free")
_texts = st.lists(st.sampled_from(["rm *", "ls *", "git push *"]), max_size=3, unique=True)
_permissions = st.fixed_dictionaries(
    {},
    optional={
        "mode": st.sampled_from(_MODES),
        "allow": _texts,
        "ask": _texts,
        "deny": _texts,
        "network": st.booleans(),
    },
)
_agent = st.fixed_dictionaries(
    {},
    optional={
        "max_turns": st.integers(1, 200),
        "detect_loops": st.booleans(),
        "loop_check_after": st.integers(0, 50),
    },
)
_files = st.tuples(_permissions, _agent)


def _toml(permissions: dict[str, object], agent: dict[str, object]) -> str:
    def table(name: str, values: dict[str, object]) -> str:
        lines = (f"{key} = {msgspec.json.encode(value).decode()}" for key, value in values.items())
        return "\n".join([f"[{name}]", *lines, ""])

    return table("permissions", permissions) + table("agent", agent)


@given(own=_files, project=_files)
def test_no_project_file_loosens_anything(
    tmp_path_factory: pytest.TempPathFactory,
    own: tuple[dict[str, object], dict[str, object]],
    project: tuple[dict[str, object], dict[str, object]],
) -> None:
    place = ProjectFolder(tmp_path_factory.mktemp("tighten"))
    found = place.found(_toml(*project), _toml(*own))
    mine, both = parse_settings(_toml(*own)).settings, found.settings
    assert _MODES.index(both.permissions.mode) <= _MODES.index(mine.permissions.mode)
    assert both.permissions.allow == mine.permissions.allow
    assert both.permissions.ask == mine.permissions.ask
    assert set(both.permissions.deny) >= set(mine.permissions.deny)
    assert both.permissions.network <= mine.permissions.network
    assert both.agent.max_turns <= mine.agent.max_turns
    assert both.agent.detect_loops >= mine.agent.detect_loops
    assert (both.agent.loop_check_after or 1_000) <= (mine.agent.loop_check_after or 1_000)
    rest = {"permissions": mine.permissions, "agent": mine.agent}
    assert msgspec.structs.replace(both, **rest) == mine
