"""Whatever a model wrote of a session is in the stored snapshot, in every section."""

from __future__ import annotations

import pytest

from recollect.entries import Body, Compaction, Message
from recollect.snapshot.snapshot_format import SECTIONS, Snapshot, parse_snapshot
from recollect.testing import call, model, result, user
from tests.cli.model_server import ENV, path, server, texts
from tests.cli.road_sessions import says
from tests.cli.runner import Cli

# the example of the program that the format comes from, with a line for each of our own sections
WRITTEN = """<scratchpad>The user wants another JWT library. - not this line</scratchpad>
<state_snapshot>
    <overall_goal>
        Refactor the authentication service to use a new JWT library.
    </overall_goal>

    <user_directives>
        - "Use jose and nothing else."
    </user_directives>

    <key_knowledge>
        - Build Command: `npm run build`
        - Testing: Tests are run with `npm test`. Test files must end in `.test.ts`.
        - API Endpoint: The primary API endpoint is `https://api.example.com/v2`.
    </key_knowledge>

    <file_system_state>
        - CWD: `/home/user/project/src`
        - READ: `package.json` - Confirmed 'axios' is a dependency.
        - MODIFIED: `services/auth.ts` - Replaced 'jsonwebtoken' with 'jose'.
        - CREATED: `tests/new-feature.test.ts` - Initial test structure for the new feature.
    </file_system_state>

    <recent_actions>
        - Ran `grep 'old_function'` which returned 3 results in 2 files.
        - Ran `npm run test`, which failed due to a snapshot mismatch in `UserProfile.test.ts`.
        - Ran `ls -F static/` and discovered image assets are stored as `.webp`.
    </recent_actions>

    <current_plan>
        1. [DONE] Identify all files using the deprecated 'UserAPI'.
        2. [IN PROGRESS] Refactor `src/components/UserProfile.tsx` to use the new 'ProfileAPI'.
        3. [TODO] Refactor the remaining files.
        4. [TODO] Update tests to reflect the API change.
    </current_plan>

    <open_questions>
        - Whether sessions that were signed with the old key must stay valid.
    </open_questions>
</state_snapshot>
"""
SETTINGS = "[context]\nthreshold = 12000\ntarget = 10000\n"
QUOTED = "user_directives"  # the user's own words, which code alone writes


def exchange(number: int) -> list[Body]:
    use = call("read_file", id=f"c{number}", absolute_path=f"src/part_{number}.ts")
    return [
        user(f"Port part {number}. Use jose and nothing else."),
        Message(role="model", parts=(use,)),
        result(use, f"export const part{number} = old_function({number})\n" * 60),
        model(f"Part {number} calls old_function once."),
    ]


def long_session() -> list[Body]:
    return [body for number in range(20) for body in exchange(number)]


def stored(cli: Cli) -> Snapshot:
    """The snapshot in force of the only session."""
    bodies = [entry.body for entry in path(cli) if isinstance(entry.body, Compaction)]
    assert bodies[-1].status == "COMPRESSED", bodies[-1].reason
    assert "built by code" not in bodies[-1].reason
    found = parse_snapshot(bodies[-1].snapshot)
    assert found is not None
    return found


def written_lines(name: str) -> list[str]:
    """The lines of the model's section, without numbers and list marks."""
    made = parse_snapshot(WRITTEN)
    assert made is not None
    lines = [line.strip() for line in made.section(name).split("\n")]
    return [line.lstrip("-0123456789. ") for line in lines if line]


def missing(found: Snapshot, *without: str) -> dict[str, list[str]]:
    """Lines of the model that are not in the section it wrote them in."""
    return {
        name: lost
        for name in SECTIONS
        if name not in without
        if (lost := [line for line in written_lines(name) if line not in found.section(name)])
    }


@pytest.mark.parametrize("budget", [(), ("--budget", "3500")], ids=["large", "small"])
def test_each_line_of_the_model_is_in_its_section_after_compact(
    cli: Cli, budget: tuple[str, ...]
) -> None:
    cli.session(long_session())
    with server(cli, says(WRITTEN), more=SETTINGS) as on:
        set_window(cli)
        out = cli.ok("compact", *budget, env=ENV).out
        assert len(on.asked) == 1
    assert "by mine" in out
    found = stored(cli)
    assert missing(found, QUOTED) == {}
    assert "not this line" not in str(found)


def test_each_line_of_the_model_is_in_its_section_after_a_run_that_had_to_compact(
    cli: Cli,
) -> None:
    session, _ = cli.session(long_session())
    with server(cli, says(WRITTEN), says("Done."), more=SETTINGS) as on:
        set_window(cli)
        cli.ok("-r", session.id, "-p", "Go on.", env=ENV)
        assert len(on.asked) == 2
        sent = "\n".join(texts(on))
    assert missing(stored(cli), QUOTED) == {}
    assert all(line in sent for name in SECTIONS for line in written_lines(name) if name != QUOTED)


def test_code_adds_what_the_model_left_out(cli: Cli) -> None:
    cli.session(long_session())
    bare = "<state_snapshot><overall_goal>Port it.</overall_goal></state_snapshot>"
    with server(cli, says(bare), more=SETTINGS):
        set_window(cli)
        cli.ok("compact", env=ENV)
    found = stored(cli)
    assert "Port it." in found.overall_goal
    assert "Use jose and nothing else." in found.user_directives
    assert "part_0.ts" in found.file_system_state


def test_the_statuses_of_the_plan_are_the_models(cli: Cli) -> None:
    cli.session(long_session())
    with server(cli, says(WRITTEN), more=SETTINGS):
        set_window(cli)
        cli.ok("compact", env=ENV)
    plan = stored(cli).current_plan
    for status, step in (
        ("[DONE]", "Identify all files"),
        ("[IN PROGRESS]", "Refactor `src/components/UserProfile.tsx`"),
        ("[TODO]", "Refactor the remaining files."),
        ("[TODO]", "Update tests to reflect"),
    ):
        assert f"{status} {step}" in plan


def set_window(cli: Cli) -> None:
    file = cli.home / "settings.toml"
    file.write_text(file.read_text().replace("window = 9000", "window = 60000"))
