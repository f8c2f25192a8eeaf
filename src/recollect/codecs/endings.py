"""How a reply ended, and what follows from it: one table for every provider.

`FINISH_WORDS` maps each provider's own words to one vocabulary (`Finish`). `OUTCOMES` says what
happens to a reply with such an end and such content; the run's result and exit code follow from it.
docs/formats.md shows both tables, and a test compares them. Streamed and whole replies are judged
alike: a whole one has its end in being complete.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from recollect.codecs.foreign_json import parse_object
from recollect.codecs.wire_protocol import Finish
from recollect.entries import FileRef, InlineData, Message, Text, Thought, ToolCall

# answer       the run ends with this text: the only success
# calls        its complete calls are run, and a call that was cut off is told
# continue     the reply is sent back as it is, and the model goes on
# ask_again    the model is told what was wrong and asked again
# interrupted  kept as far as it came; nothing of it is run
# cut_off      kept; it ended at the output limit
# blocked      kept; the provider's rules ended it
Outcome: TypeAlias = Literal[
    "answer", "calls", "continue", "ask_again", "interrupted", "cut_off", "blocked"
]
ReplyContent: TypeAlias = Literal["calls", "text", "thoughts", "nothing"]

FINISH_WORDS: Mapping[str, Mapping[str, Finish]] = {
    "openai": {  # in lower case
        "stop": "stop",
        "eos": "stop",
        "eos_token": "stop",  # Hugging Face TGI
        "stop_sequence": "stop",
        "stop_token": "stop",
        "end_turn": "stop",
        "complete": "stop",  # Cohere
        "done": "stop",
        "length": "length",
        "max_tokens": "length",
        "model_length": "length",  # Mistral
        "tool_calls": "calls",
        "tool_use": "calls",
        "function_call": "calls",
        "content_filter": "safety",
        "safety": "safety",
        "sensitive": "safety",  # GLM
        "malformed_function_call": "malformed_call",  # Gemini behind an OpenAI-compatible address
        "abort": "",  # vLLM
        "error": "",  # OpenRouter
        "network_error": "",  # GLM
        "insufficient_system_resource": "",  # DeepSeek
    },
    "gemini": {
        "STOP": "stop",
        "MAX_TOKENS": "length",
        "SAFETY": "safety",
        "RECITATION": "safety",
        "BLOCKLIST": "safety",
        "PROHIBITED_CONTENT": "safety",
        "SPII": "safety",
        "IMAGE_SAFETY": "safety",
        "IMAGE_PROHIBITED_CONTENT": "safety",
        "IMAGE_RECITATION": "safety",
        "MALFORMED_FUNCTION_CALL": "malformed_call",
        "UNEXPECTED_TOOL_CALL": "malformed_call",
        "TOO_MANY_TOOL_CALLS": "malformed_call",
        "MALFORMED_RESPONSE": "malformed_call",
        "FINISH_REASON_UNSPECIFIED": "",
    },
    "anthropic": {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "tool_use": "calls",
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "refusal": "safety",
        "pause_turn": "pause",
    },
}
OUTCOMES: Mapping[Finish, Mapping[ReplyContent, Outcome]] = {
    "": dict.fromkeys(("calls", "text", "thoughts", "nothing"), "interrupted"),
    "stop": {"calls": "calls", "text": "answer", "thoughts": "ask_again", "nothing": "ask_again"},
    "calls": {
        "calls": "calls",
        "text": "ask_again",
        "thoughts": "ask_again",
        "nothing": "ask_again",
    },
    "length": {
        "calls": "calls",
        "text": "cut_off",
        "thoughts": "ask_again",
        "nothing": "ask_again",
    },
    # asked again, it would be blocked again
    "safety": dict.fromkeys(("calls", "text", "thoughts", "nothing"), "blocked"),
    "malformed_call": dict.fromkeys(("calls", "text", "thoughts", "nothing"), "ask_again"),
    # the provider stopped a long turn of its own tools for a moment
    "pause": {
        "calls": "calls",
        "text": "continue",
        "thoughts": "continue",
        "nothing": "continue",
    },
    "other": {
        "calls": "calls",
        "text": "interrupted",
        "thoughts": "ask_again",
        "nothing": "ask_again",
    },
}
FINISH_WORD, FINISH_MESSAGE = "finish_reason", "finish_message"  # keys of a reply's `extra`
# Characters that leave a screen as it was: blanks, controls, joiners, fillers, variation selectors,
# tags.
_VISIBLE = re.compile(
    "[^\\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def usual_word(provider: str, finish: str) -> str:
    """The word with which a provider says this usually: the first of them."""
    return next((word for word, means in FINISH_WORDS[provider].items() if means == finish), "")


def finish_word(provider: str, reply: Message) -> str:
    """The word with which a provider would end this reply; empty for one that has no end."""
    finish = _KNOWN.get(reply.finish, "other")
    said = str((parse_object(reply.extra) or {}).get(FINISH_WORD, "")) if reply.extra else ""
    if said and finish and FINISH_WORDS[provider].get(said, "other") == finish:
        return said
    return usual_word(provider, finish) if finish else ""


def read_finish(provider: str, reason: str, *, has_calls: bool) -> tuple[Finish, str]:
    """What a provider's word means, and the word itself where ours says less."""
    means: Finish = FINISH_WORDS[provider].get(reason, "other") if reason else ""
    if means == "stop" and has_calls:
        means = "calls"
    elif means == "calls" and not has_calls:  # announced, and not there
        return "malformed_call", reason
    usual = bool(means) and reason == usual_word(provider, means)
    return means, "" if usual or means in ("stop", "calls", "length") else reason


class Ending(NamedTuple):
    """What a reply comes to."""

    outcome: Outcome
    finish: Finish
    content: ReplyContent
    word: str = ""  # the provider's own word, where ours says less
    message: str = ""  # what the provider said about it


def judge_reply(reply: Message) -> Ending:
    finish: Finish = _KNOWN.get(reply.finish, "other")
    content = content_of(reply)
    extra = parse_object(reply.extra) if reply.extra else None
    word, message = (str((extra or {}).get(key, "")) for key in (FINISH_WORD, FINISH_MESSAGE))
    return Ending(OUTCOMES[finish][content], finish, content, word, message)


_KNOWN: Mapping[str, Finish] = {**{finish: finish for finish in OUTCOMES}, "interrupted": ""}


def content_of(reply: Message) -> ReplyContent:
    """The most that a reply says. Invisible characters are nothing, and so are parts of a kind
    that is not known here; media are as good as text."""
    thoughts = False
    text = False
    for part in reply.parts:
        if isinstance(part, ToolCall):
            return "calls"
        if isinstance(part, Thought):
            thoughts = thoughts or bool(part.text)
        elif isinstance(part, Text):
            text = text or _VISIBLE.search(part.text) is not None
        elif isinstance(part, InlineData | FileRef):
            text = text or bool(part.data if isinstance(part, InlineData) else part.uri)
    return "text" if text else "thoughts" if thoughts else "nothing"


def cut_call(reply: Message) -> ToolCall | None:
    """The call at whose arguments the output limit ended the reply.

    No arguments at all are also what a call looks like of which only the name had come."""
    last = reply.parts[-1] if reply.parts else None
    if reply.finish != "length" or not isinstance(last, ToolCall):
        return None
    return None if parse_object(last.arguments) else last
