"""`recollect doctor`: looking without touching, repairing without deleting."""

from __future__ import annotations

from recollect.execution.sandbox import find_isolation
from recollect.testing import model, user
from tests.cli.runner import Cli
from tests.cli.test_show import damage


def test_a_healthy_store_is_reported_healthy_with_its_figures(cli: Cli) -> None:
    cli.session([user("hi"), model("hello")])
    result = cli.ok("doctor")
    assert str(cli.store) in result.out
    assert "healthy" in result.out
    assert "bytes on disk" in result.out
    report = cli.ok("doctor", "--json").json
    assert report["healthy"] is True
    assert report["facts"]["sessions"] == 1
    assert report["facts"]["entries"] == 2
    assert report["facts"]["permissions"] == "0600"


def test_the_sandbox_in_force_is_named_with_what_it_cannot_do(cli: Cli) -> None:
    cli.home.mkdir(exist_ok=True)
    (cli.home / "settings.toml").write_text('[permissions]\nsandbox = "none"\n')
    assert "sandbox  unsandboxed (as you chose)" in cli.ok("doctor").out
    assert cli.ok("doctor", "--json").json["sandbox"]["kind"] == "none"
    assert cli.ok("config", "--json").json["sandbox"]["kind"] == "none"
    (cli.home / "settings.toml").write_text('[permissions]\nsandbox = "landlock"\n')
    found = find_isolation("landlock")
    for said in (cli.ok("doctor").out, cli.ok("config").out):
        assert found.description in said
        assert all(item in said for item in (*found.limitations, found.refusal, found.remedy))


def test_damage_is_found_without_being_touched_then_quarantined(cli: Cli) -> None:
    session, entries = cli.session([user("before"), model("spoilt"), user("after")])
    damage(cli, entries[1].id)
    for _ in range(2):
        found = cli("doctor")
        assert found.code == 1
        assert "recollect doctor --repair" in found.out
        assert entries[1].id in found.out
    repaired = cli.ok("doctor", "--repair")
    assert "repaired" in repaired.out
    assert cli("show", session.id).code == 1
    assert "after" in cli("show", session.id).out


def test_where_there_is_no_store_yet_none_is_created(cli: Cli) -> None:
    assert "there is none yet" in cli.ok("doctor").out
    assert not cli.store.exists()


def test_a_file_that_is_not_a_store_is_reported_and_left_unchanged(cli: Cli) -> None:
    cli.home.mkdir()
    cli.store.write_bytes(b"not a database, but 1000 bytes of my thesis" * 25)
    before = cli.store.read_bytes()
    assert cli("doctor").code == 1
    listed = cli("sessions")
    assert listed.code == 1
    assert listed.err.startswith("recollect: ")
    assert len(listed.err.splitlines()) == 1
    assert cli.store.read_bytes() == before


def test_a_read_only_home_is_one_clear_sentence(cli: Cli) -> None:
    cli.home.write_text("a file where the directory should be")
    result = cli("sessions")
    assert result.code == 1
    assert result.err.startswith(f"recollect: cannot open {cli.store}: ")
    assert len(result.err.splitlines()) == 1
