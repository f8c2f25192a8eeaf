"""Which lines say most depends on the lines alone."""

from __future__ import annotations

import os
import random
import subprocess
import sys

from recollect.telling_lines import Line, choose_lines

CHOOSE = """
from tests.test_telling_lines import make_lines
from recollect.telling_lines import choose_lines
print([sorted(choose_lines(make_lines(seed), 2_000)) for seed in range(20)])
"""


def make_lines(seed: int) -> list[Line]:
    """Lines of words and names, many of which say equally much."""
    source = random.Random(seed)
    words = [*(f"word{n}" for n in range(60)), *(f"parse_row_{n}" for n in range(60))]
    return [Line.of(" ".join(source.sample(words, 9))) for _ in range(80)]


def test_the_same_lines_are_chosen_in_every_process() -> None:
    """In each of them, sets have another order."""
    chosen = set()
    for seed in ("0", "1", "2", "3"):
        env = os.environ | {"PYTHONHASHSEED": seed}
        made = subprocess.run(
            [sys.executable, "-c", CHOOSE], env=env, capture_output=True, text=True, check=True
        )
        chosen.add(made.stdout)
    assert len(chosen) == 1


def test_the_lines_that_say_something_new_come_first_and_fit() -> None:
    lines = [Line.of(text) for text in ("alpha beta gamma", "alpha beta", "delta_epsilon zeta")]
    room = len(lines[0].text) + len(lines[2].text) + 2
    assert choose_lines(lines, room) == {0, 2}
    assert choose_lines(lines, room, said="alpha beta gamma delta_epsilon") == {1, 2}
    assert choose_lines(lines, 5) == set()
