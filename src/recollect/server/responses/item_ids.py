"""Ids of the API and what they name: a prefix and an entry or a session of the store.

`resp_` + entry, `conv_` + session; of an item, `msg_`, `fc_`, `fco_`, `rs_` … + the message's entry
+ the item's position in it. A call's `call_id` is the entry of its message and its position among
the calls of it, so that it is unique for ever, whatever the model wrote.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from recollect.server.responses.api_error import not_found

RESPONSE, CONVERSATION, CALL, TOOL_CALL = "resp_", "conv_", "call_", "tc_"
_PREFIXES = {
    "message": "msg_",
    "function_call": "fc_",
    "function_call_output": "fco_",
    "reasoning": "rs_",
    "compaction": "cmp_",
    "recollect:tool_call": TOOL_CALL,
}
_PLAIN = re.compile(r"[0-9a-f]{32}")
_ITEM = re.compile(r"[a-z]{1,10}_([0-9a-f]{32})_([0-9]{1,6})")
_CALL = re.compile(r"call_([0-9a-f]{32})_([0-9]{1,6})")


class ItemPlace(NamedTuple):
    """Which item of a message, or which call."""

    entry: str
    position: int


def item_id(type_: str, entry: str, position: int) -> str:
    return f"{_PREFIXES.get(type_, 'item_')}{entry}_{position}"


def call_id(entry: str, position: int) -> str:
    return f"{CALL}{entry}_{position}"


def read_item_id(given: str) -> ItemPlace | None:
    found = _ITEM.fullmatch(given)
    return ItemPlace(found[1], int(found[2])) if found else None


def read_call_id(given: str) -> ItemPlace | None:
    found = _CALL.fullmatch(given)
    return ItemPlace(found[1], int(found[2])) if found else None


def read_id(given: str, prefix: str, what: str, param: str | None = None) -> str:
    """The entry or session that an id of ours names."""
    name = given.removeprefix(prefix)
    if name == given or not _PLAIN.fullmatch(name):
        raise not_found(what, given, param)
    return name
