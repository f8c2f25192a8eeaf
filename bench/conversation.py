"""The conversation that everybody stores: user, assistant with a call, tool result, assistant.

Message i is the same in every run and for every length, so that a store of 100,000 begins like one
of 1,000. The words are invented and follow Zipf's law; a body is 0.62 kB of JSON on average.
Some messages carry words to search for: a rare one, a common one, a phrase and a Chinese word.
"""

from __future__ import annotations

import random
from functools import cache
from itertools import accumulate

from recollect.entries import Message, Text, ToolCall, ToolResult, encode, json_text

RARE, COMMON, PHRASE, CHINESE = "xylograph", "config", "connection pool exhausted", "数据库"
_CHINESE_TEXT = "数据库连接超时，请检查配置文件后重试。"
_SOUNDS = "ba co den fi gra hul ist jor kem lin mo nar ost pel qui ran sto tur vel wex yan zu"
_WORDS = 3_000
WARM_UP = (1_000, 4_000_000)  # count and start of another session, for a store that is in use


@cache
def _vocabulary() -> tuple[list[str], list[float]]:
    source, syllables = random.Random(20), _SOUNDS.split()
    words: dict[str, None] = {}
    while len(words) < _WORDS:
        words["".join(source.choices(syllables, k=source.choice((1, 2, 2, 3))))] = None
    weights = (1 / (rank + 3) for rank in range(_WORDS))
    return list(words), list(accumulate(weights))


def _prose(source: random.Random, count: int) -> str:
    words, weights = _vocabulary()
    return " ".join(source.choices(words, cum_weights=weights, k=count))


def _code(source: random.Random, lines: int) -> str:
    words, weights = _vocabulary()
    found = []
    for number in range(1, lines + 1):
        a, b, c, d = source.choices(words, cum_weights=weights, k=4)
        found.append(f"{number:4d}\t    self.{a}_{b} = {c}({d}, {source.randrange(1000)})")
    return "\n".join(found)


def _turn(number: int) -> tuple[Message, Message, Message, Message]:
    source = random.Random(number)
    words, weights = _vocabulary()
    folder, name = source.choices(words, cum_weights=weights, k=2)
    call = ToolCall(
        id=f"call_{source.getrandbits(96):024x}",
        name="read_file",
        arguments=json_text({"path": f"src/{folder}/{name}.py", "limit": source.randrange(200)}),
    )
    question, answer = (
        _prose(source, source.randrange(20, 70)),
        _prose(source, source.randrange(50, 130)),
    )
    output = _code(source, source.randrange(9, 19))
    if number % 2 == 0:
        question += f" {COMMON}"
    if number % 2_500 == 7:
        answer += f" {RARE}"
    if number % 100 == 3:
        output += f"\nERROR {PHRASE}"
    if number % 50 == 5:
        answer += f" {_CHINESE_TEXT}"
    return (
        Message(role="user", parts=(Text(text=question),)),
        Message(
            role="model",
            parts=(Text(text=_prose(source, source.randrange(10, 40))), call),
            model="some-model-1",
            finish="calls",
        ),
        Message(
            role="user",
            parts=(ToolResult(call_id=call.id, name=call.name, content=(Text(text=output),)),),
        ),
        Message(role="model", parts=(Text(text=answer),), model="some-model-1", finish="stop"),
    )


def messages(count: int, start: int = 0) -> list[Message]:
    """The messages from number `start` on; `start` is a multiple of four."""
    found: list[Message] = []
    turn = start // 4
    while len(found) < count:
        found += _turn(turn)
        turn += 1
    return found[:count]


def payloads(count: int, start: int = 0) -> list[str]:
    """The same messages as JSON text, which is all that the raw contender stores."""
    return [encode(message).decode() for message in messages(count, start)]
