from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import BadInput
from recollect.runtime.memory_file_draft import BEGIN, END, drafted_text

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).map(str.strip)
LINES = st.lists(TEXT.filter(lambda t: t and BEGIN not in t and END not in t), min_size=1)


@given(
    LINES, st.sampled_from(["", "Here it is:\n", "BEGIN of it\n"]), st.sampled_from(["", "\nDone."])
)
def test_what_stands_between_the_two_lines_is_the_file(
    lines: list[str], before: str, after: str
) -> None:
    text = "# T\n" + "\n".join(lines)
    assert drafted_text(f"{before}{BEGIN}\n{text}\n{END}{after}") == text.strip() + "\n"


@pytest.mark.parametrize(
    "reply",
    [
        f"{BEGIN}\n```markdown\n# T\n\nrun\n```\n{END}",
        "Sure!\n\n```markdown\n# T\n\nrun\n```\n\nTell me more.",
        "# T\n\nrun",
        f"**{BEGIN}**\n# T\n\nrun\n",
    ],
)
def test_other_ways_to_give_it_are_understood(reply: str) -> None:
    assert drafted_text(reply) == "# T\n\nrun\n"


def test_a_reply_without_a_file_is_refused() -> None:
    with pytest.raises(BadInput, match="no text of a memory file"):
        drafted_text("I cannot do that.")
