from __future__ import annotations

import msgspec
from hypothesis import given

from recollect.entries import Elide, Entry, Message, Pin, Restore, Text, ToolResult, handle_of
from recollect.settings import ContextSettings, Settings, parse_settings
from recollect.view.elision_rules import ElisionRules, drop_message, head_and_tail, plan_elisions
from recollect.view.placeholders import write_placeholder
from recollect.view.view import View
from tests.view.growing_log import EAGER, NOW, GrowingLog, shown_file
from tests.view.logs import logs, name


def test_the_newest_five_reads_of_a_file_stay_and_older_ones_go() -> None:
    session = GrowingLog()
    reads = [session.use("read_file", {"path": "a.py"}) for _ in range(8)]
    session.use("read_file", {"path": "b.py"})
    assert sorted(session.elided()) == reads[:3]


def test_all_forms_of_a_path_are_one_file() -> None:
    session = GrowingLog()
    forms = ["a.py", "./a.py", "src/../a.py", "/work/a.py", "a.py", "./x/../a.py"]
    reads = [session.use("Read", {"file_path": path}) for path in forms]
    assert session.elided(rules=ElisionRules(min_saving=1, root="/work")) == reads[:1]


def test_both_spellings_of_a_windows_drive_are_one_file() -> None:
    session = GrowingLog()
    forms = ["C:\\w\\a.py", "c:\\w\\a.py", "c:/w/a.py", "C:/w/a.py", "a.py", "C:\\w\\.\\a.py"]
    reads = [session.use("Read", {"file_path": path}) for path in forms]
    assert session.elided(rules=ElisionRules(min_saving=1, root="C:\\w")) == reads[:1]


def test_a_failed_read_survives_however_old_and_is_not_counted() -> None:
    session = GrowingLog()
    failures = [
        session.use("read_file", {"path": "a.py"}, is_error=True),
        session.use("read_file", {"path": "a.py"}, "Error: " + "x" * 400),
    ]
    reads = [session.use("read_file", {"path": "a.py"}) for _ in range(6)]
    assert session.elided() == reads[:1]
    assert not set(session.elided()) & set(failures)


def test_a_batch_goes_as_a_whole_only_when_every_file_in_it_is_superseded() -> None:
    session = GrowingLog()
    blocks = [shown_file("a.py", 1, 40), shown_file("b.py", 1, 40)]
    both = session.use("read_file", {"path": ["a.py", "b.py"]}, *blocks)
    for _ in range(5):
        session.read("a.py", 1, 40)
    for _ in range(5):
        session.read("b.py", 1, 40)
    (saving,) = session.plan().savings
    assert (saving.elided.entry, saving.elided.blocks) == (both, ())
    assert "a.py lines 1-40, b.py lines 1-40, shown by " in saving.elided.placeholder


def test_a_batch_in_one_text_stays_until_all_its_files_have_changed() -> None:
    """What it showed of which file cannot be told."""
    session = GrowingLog()
    both = session.use("read_file", {"path": ["a.py", "b.py"]})
    for _ in range(5):
        session.use("read_file", {"path": "a.py"})
        session.use("read_file", {"path": "b.py"})
    session.use("replace", {"file_path": "a.py"}, "done")
    assert session.elided() == []
    session.use("replace", {"file_path": "b.py"}, "done")
    assert session.elided() == [both]


def test_of_a_structured_batch_the_superseded_files_blocks_go() -> None:
    session = GrowingLog()
    paths = [{"path": "a.py"}, {"path": "b.py"}]
    both = session.use("filesystem-read", {"files": paths}, shown_file("a.py", 1, 50), "B " * 300)
    for _ in range(5):
        session.read("a.py", 1, 50)
    (saving,) = session.plan().savings
    assert (saving.elided.entry, saving.elided.blocks) == (both, (0,))
    session.add(Elide(rule="r", items=(saving.elided,)))
    result = session.view.items[1].message.parts[0]
    assert isinstance(result, ToolResult)
    first, second = result.content
    assert isinstance(first, Text)
    assert "recall" in first.text
    assert second == Text(text="B " * 300)
    assert session.plan().savings == ()  # decided once


def test_lines_that_no_newer_read_shows_stay() -> None:
    session = GrowingLog()
    only = session.read("a.py", 1, 50, 900)
    for start in range(100, 700, 100):
        session.read("a.py", start, start + 9, 900)
    assert session.elided() == []
    newest = session.read("a.py", 1, 80, 900)
    (saving,) = session.plan().savings
    assert saving.elided.entry == only
    assert saving.elided.shown_by == (newest,)


def test_a_read_of_a_file_that_changed_since_is_superseded_whatever_its_lines() -> None:
    session = GrowingLog()
    old = session.read("a.py", 1, 50, 900)
    session.use("replace", {"file_path": "a.py", "old": "x", "new": "y"})
    for start in range(100, 700, 100):
        session.read("a.py", start, start + 9, 900)
    (saving,) = session.plan().savings
    assert saving.elided.entry == old
    handle, tokens = handle_of(old), session.view.log.block_tokens(1, 0)[0]
    assert saving.elided.placeholder == (
        f"[recall {handle}: read of a.py lines 1-50 before it was changed; only in the log, "
        f"{tokens} tokens]"
    )


def test_reads_that_name_no_file_are_left_alone_and_counted() -> None:
    session = GrowingLog()
    shapes: list[object] = [{"path": ""}, {"path": None}, {"paths": []}, "nonsense"]
    for arguments in shapes * 3:
        session.use("read_file", arguments)
    found = session.plan()
    assert [s for s in found.savings if s.rule == "superseded-read"] == []
    assert found.unidentified >= 12


def test_a_list_written_as_text_is_a_list() -> None:
    session = GrowingLog()
    first = session.use("read_file", {"path": '["a.py"]'})
    for _ in range(5):
        session.use("read_file", {"path": "a.py"})
    assert session.elided() == [first]


def test_terminal_and_search_output_goes_stale_with_time_but_the_newest_five_stay() -> None:
    session = GrowingLog()
    shell = [session.use("run_shell_command", {"command": f"make {i}"}) for i in range(7)]
    search = [session.use("grep", {"pattern": f"p{i}"}) for i in range(6)]
    assert session.elided(now=9 * 60_000) == []
    assert session.elided(now=11 * 60_000) == search[:1]
    assert sorted(session.elided(now=16 * 60_000)) == sorted([*shell[:2], *search[:1]])


def test_old_listings_of_files_go_whichever_tool_made_them() -> None:
    session = GrowingLog()
    tools = ["list_directory", "ls", "glob", "LS", "Glob", "mcp__files__list_directory"]
    listings = [session.use(tool, {"path": "src"}) for tool in tools]
    assert session.elided(now=9 * 60_000) == []
    assert session.elided(now=11 * 60_000) == listings[:1]
    (saving,) = session.plan().savings
    assert saving.rule == "stale-listing"
    assert saving.elided.placeholder.startswith(
        f"[recall {handle_of(listings[0])}: earlier listing of files (list_directory)"
    )


def test_a_command_that_failed_stays() -> None:
    session = GrowingLog()
    session.use("bash", {"command": "make"}, "Exit code: 2\n" + "x " * 200)
    session.use("bash", {"command": "make"}, "x " * 200 + "\nexit code: 1")
    shell = [
        session.use("bash", {"command": "make"}, "exit code: 0\n" + "x " * 200) for _ in range(6)
    ]
    assert session.elided() == shell[:1]


def test_oversized_output_keeps_a_fifth_at_its_head_and_four_fifths_at_its_tail() -> None:
    session = GrowingLog()
    key = session.use("other_tool", {}, "".join(f"line {i}\n" for i in range(3_000)))
    session.add(*session.plan().edits)
    text = session.view.items[1].message.parts[0].content[0].text  # type: ignore[union-attr]
    assert text.startswith("line 0\n")
    assert "line 199\n" in text
    assert "line 200\n" not in text
    assert "line 2200\n" in text
    assert "line 2199\n" not in text
    assert "... [CONTENT TRUNCATED] ..." in text
    assert f"\n[recall {handle_of(key)}: ... [CONTENT TRUNCATED] ..., " in text


def test_one_endless_line_is_cut_too() -> None:
    head, tail = head_and_tail("x" * 10_000, 1_000, 100)
    assert (head, tail) == (200, 800)


def test_a_plan_that_saves_too_little_waits() -> None:
    session = GrowingLog()
    for _ in range(6):
        session.use("read_file", {"path": "a.py"}, "short text of a file\n" * 20)
    view = session.view
    assert plan_elisions(view, NOW).savings == ()
    assert len(plan_elisions(view, NOW, over_budget=True).savings) == 1


def test_rules_leave_pinned_and_restored_messages_alone() -> None:
    session = GrowingLog()
    reads = [session.use("read_file", {"path": "a.py"}) for _ in range(8)]
    session.add(Pin(entries=(reads[0],)))
    (edit,) = session.plan().edits
    elide = session.add(edit)
    assert [what.entry for what in edit.items] == [reads[1], reads[2]]
    session.add(Restore(entries=(reads[1],)))
    assert session.elided() == []
    view = session.view
    assert [item.entry.id for item in view.items if item.cuts] == [reads[2]]
    session.add(Restore(entries=(elide,)))
    assert not any(item.cuts for item in session.view.items)


def test_the_seeds_wording_is_there_in_chinese() -> None:
    session = GrowingLog()
    reads = [session.use("read_file", {"path": "a.py"}) for _ in range(6)]
    (saving,) = session.plan(rules=ElisionRules(min_saving=1, language="zh")).savings
    first, newest = handle_of(reads[0]), handle_of(reads[-1])
    seed = "[该文件的历史读取内容已压缩,请参看最新读取结果]"
    assert saving.elided.placeholder == f"[recall {first}] {seed} {newest} (163 token)"
    for rule, text in (
        ("stale-shell", "此命令返回内容已过时"),
        ("stale-search", "本次搜索结果已过时,故精简为占位符"),
    ):
        assert write_placeholder(rule, "", 1, "x", "zh") == f"[recall x] {text} (1 token)"


def test_a_dropped_message_is_gone_and_a_dropped_result_still_answers() -> None:
    session = GrowingLog()
    said = session.add(Message(role="user", parts=(Text(text="secret"),)))
    result = session.use("read_file", {"path": "a.py"})
    view = session.view
    session.add(drop_message(view, said))
    session.add(drop_message(view, result))
    shown = session.view
    assert [item.entry.id for item in shown.items] == [name(1), result]
    assert shown.tokens < view.tokens


@given(logs())
def test_a_plan_saves_what_it_says_and_is_made_once(log: tuple[Entry, ...]) -> None:
    view = View.fold(log)
    before, made = view.entries, plan_elisions(view, NOW, EAGER)
    assert made == plan_elisions(View.fold(log), NOW, EAGER)
    edits = [Entry(name(500 + i), None, NOW, edit) for i, edit in enumerate(made.edits)]
    smaller = view.append(*edits)
    assert view.tokens - smaller.tokens == made.tokens
    assert smaller.problems == view.problems
    assert plan_elisions(smaller, NOW, EAGER).savings == ()
    assert view.entries == before


def test_the_default_settings_give_the_default_rules() -> None:
    assert ElisionRules.from_settings(Settings()) == ElisionRules()


def test_every_number_of_the_rules_is_a_setting_and_takes_effect() -> None:
    numbers = [f.name for f in msgspec.structs.fields(ElisionRules) if isinstance(f.default, int)]
    assert set(numbers) <= set(ContextSettings.__struct_fields__)
    for number in numbers:
        rules = ElisionRules.from_settings(parse_settings(f"[context]\n{number} = 1234").settings)
        assert getattr(rules, number) == 1_234
    chinese = ElisionRules.from_settings(parse_settings("language = 'zh'").settings, "/root")
    assert (chinese.language, chinese.root) == ("zh", "/root")
