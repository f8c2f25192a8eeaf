"""Calls in a model's text that were not run, as its reply records them, and what to tell the model.

Apart from the text tools themselves: most models have none, and every run asks.
"""

from __future__ import annotations

from recollect.codecs.foreign_json import parse_object
from recollect.entries import Message

PROBLEMS = "tool_call_problems"  # key of a reply's `extra`


def call_problems(message: Message) -> list[str]:
    """What was wrong with each call of a reply that could not be parsed."""
    problems = (parse_object(message.extra) or {}).get(PROBLEMS) if message.extra else None
    return [p for p in problems if isinstance(p, str)] if isinstance(problems, list) else []


def call_problem_feedback(message: Message) -> str:
    """Tells the model which calls of its reply could not be parsed; empty if all could."""
    lines = call_problems(message)
    if not lines:
        return ""
    listed = "\n".join(f"- {line}" for line in lines)
    return (
        f"Not everything in your last reply that looked like a call was run:\n{listed}\n"
        "Write what is missing again, each call as one fenced block of valid JSON."
    )
