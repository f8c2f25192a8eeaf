"""Replies that cannot be used as they are: the model is told what was wrong, and asked again.

Guarantees: every such round is reported as a `CorrectionRequested` and stands in the log: as the
error results of the calls, or as a message that says what was wrong. Rounds in a row are bounded,
and a run that reaches the bound ends as an error, never as an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from recollect.codecs.call_problems import call_problem_feedback, call_problems
from recollect.codecs.endings import Ending
from recollect.entries import Message, Text, ToolResult
from recollect.text import one_line
from recollect.tools.tool import BAD_CALL_STATUS

MAX_ROUNDS = 3  # in a row, for calls that could not be run
MAX_EMPTY = 2  # in a row, for replies that say nothing
_MAX_PROBLEM = 500  # characters

# answered     the only success
# turns        the limit of turns, or simply not the end yet
# loop         the model repeated itself and was stopped
# cut_off, blocked, interrupted: how the last reply ended, see `codecs/endings.py`
# empty        the model said nothing, however often it was asked
# bad_calls    no call could be run, however often the model was told what was wrong
# client_calls the model called tools of the client, which runs them and continues with the results
StopReason: TypeAlias = Literal[
    "answered",
    "turns",
    "loop",
    "cut_off",
    "blocked",
    "interrupted",
    "empty",
    "bad_calls",
    "client_calls",
]


class CorrectionRequested(msgspec.Struct, frozen=True):
    """The reply could not be used as it is; the model is told why and asked again."""

    problems: tuple[str, ...]
    attempt: int  # in a row, from 1
    most: int  # attempts before the run ends


class Problems(msgspec.Struct, frozen=True):
    """What was wrong with a reply."""

    texts: tuple[str, ...]
    feedback: str = ""  # for the model; empty if the results of its calls say it
    is_empty: bool = False

    @property
    def most(self) -> int:
        return MAX_EMPTY if self.is_empty else MAX_ROUNDS

    @property
    def reason(self) -> StopReason:
        return "empty" if self.is_empty else "bad_calls"


def find_problems(reply: Message, ending: Ending, results: Sequence[ToolResult]) -> Problems | None:
    """What the model has to correct in a reply whose calls have these results."""
    refused = [one_line(_text(each), _MAX_PROBLEM) for each in results if _is_bad_call(each)]
    in_text = tuple(one_line(text, _MAX_PROBLEM) for text in call_problems(reply))
    if refused or in_text:
        return Problems((*refused, *in_text), call_problem_feedback(reply))
    if ending.outcome != "ask_again":
        return None
    what = _describe(ending)
    remedy = "Call the tool again" if ending.finish == "malformed_call" else "Answer now"
    feedback = f"Your last reply cannot be used: it had {what}. {remedy}, {_ADVICE[ending.finish]}."
    is_empty = ending.finish != "malformed_call"
    return Problems((f"the reply had {what}",), feedback, is_empty=is_empty)


_ADVICE = {
    "length": "with less thinking and in fewer words",
    "malformed_call": "by its declared name, with all arguments as one JSON object",
    **dict.fromkeys(("", "stop", "calls", "safety", "other"), "in text or with a tool call"),
}


def _describe(ending: Ending) -> str:
    said = ": ".join(filter(None, (ending.word, one_line(ending.message, _MAX_PROBLEM))))
    if ending.finish == "malformed_call":
        return f"a tool call that could not be read ({said or 'malformed call'})"
    what = "only thoughts" if ending.content == "thoughts" else "nothing that can be read"
    limit = ", and reached the output limit" if ending.finish == "length" else ""
    return f"{what}{limit}" + (f" ({said})" if said else "")


def describe_stop(ending: Ending) -> str:
    """Why a reply that was kept is no answer: a sentence for the user, with the remedy."""
    said = ": ".join(filter(None, (ending.word, one_line(ending.message, _MAX_PROBLEM))))
    if ending.outcome == "cut_off":
        return (
            "the reply was cut off at the output limit; continue the session, or raise "
            "`generation.max_output`"
        )
    if ending.outcome == "blocked":
        return f"the provider blocked the reply ({said or ending.finish}); change the prompt"
    return f"the reply ended for an unknown reason ({said}); it is kept as far as it came"


def describe_failure(problems: Problems, rounds: int) -> str:
    """Why the run ends although the model was asked again."""
    last = problems.texts[-1].partition("; ")[0]  # the rest is advice for the model
    if problems.is_empty:
        return f"the model gave no answer in {rounds} replies in a row: {last}; try another model"
    return f"the calls of {rounds} replies in a row could not be run: {last}; try another model"


def _is_bad_call(result: ToolResult) -> bool:
    return result.status == BAD_CALL_STATUS


def _text(result: ToolResult) -> str:
    texts = (part.text for part in result.content if isinstance(part, Text))
    return "".join(texts).removeprefix("Error: ")
