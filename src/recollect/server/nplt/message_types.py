"""The types of NPLT's messages, as data: who sends them, what they carry, who knows them.

The types up to 0x18 are those that every client knows. Those after it are ours: the server sends
them only to a client that said HELLO, and so may other clients never see them.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Literal, TypeAlias

import msgspec

Sender: TypeAlias = Literal["client", "server", "both"]


class MessageType(IntEnum):
    CHAT_TEXT = 0x01
    AGENT_THOUGHT = 0x0A
    DOWNLOAD_OFFER = 0x0C
    FILE_DATA = 0x0D
    FILE_METADATA = 0x0E
    MODEL_SWITCH = 0x0F
    HISTORY_REQUEST = 0x10
    CLEAR_REQUEST = 0x11
    SESSION_LIST = 0x14
    SESSION_SWITCH = 0x15
    SESSION_NEW = 0x16
    SESSION_DELETE = 0x17
    CLIENT_UDP_PORT = 0x18
    SESSION_RENAME = 0x19
    HELLO = 0x1A
    CANCEL = 0x1B
    APPROVE = 0x1C
    HEARTBEAT = 0x1D


class TypeInfo(msgspec.Struct, frozen=True):
    """A row of the table."""

    type: MessageType
    sender: Sender
    payload: str
    is_ours: bool = False


_Type = MessageType
TYPES: tuple[TypeInfo, ...] = (
    TypeInfo(_Type.CHAT_TEXT, "both", "text; `HEARTBEAT`; empty: the end of an answer"),
    TypeInfo(_Type.AGENT_THOUGHT, "server", '{"type","content"}'),
    TypeInfo(_Type.DOWNLOAD_OFFER, "server", '{"url","filename","size","checksum"}'),
    TypeInfo(_Type.FILE_DATA, "client", "bytes of an upload"),
    TypeInfo(_Type.FILE_METADATA, "client", '{"filename","size"}'),
    TypeInfo(_Type.MODEL_SWITCH, "client", '{"model"}'),
    TypeInfo(_Type.HISTORY_REQUEST, "client", 'empty, or {"offset","limit","format"}'),
    TypeInfo(_Type.CLEAR_REQUEST, "client", "empty"),
    TypeInfo(_Type.SESSION_LIST, "client", 'empty, or {"offset","limit"}'),
    TypeInfo(_Type.SESSION_SWITCH, "client", '{"session_id"}'),
    TypeInfo(_Type.SESSION_NEW, "client", 'empty, or {"name"}'),
    TypeInfo(_Type.SESSION_DELETE, "client", '{"session_id"}'),
    TypeInfo(_Type.CLIENT_UDP_PORT, "client", "JSON, not used"),
    TypeInfo(_Type.SESSION_RENAME, "client", '{"session_id"?,"name"}', is_ours=True),
    TypeInfo(_Type.HELLO, "both", '{"token"?,"version","features"}', is_ours=True),
    TypeInfo(_Type.CANCEL, "client", "empty", is_ours=True),
    TypeInfo(_Type.APPROVE, "client", '{"approval","allowed"}', is_ours=True),
    TypeInfo(_Type.HEARTBEAT, "both", "any; it comes back as it was", is_ours=True),
)
FROM_CLIENT = frozenset(int(info.type) for info in TYPES if info.sender != "server")
AFTER_HELLO = frozenset(  # HELLO itself, and what a client without it may not send
    int(info.type)
    for info in TYPES
    if info.is_ours and info.type not in (_Type.HELLO, _Type.SESSION_RENAME)
)

HEARTBEAT_TEXT = b"HEARTBEAT"
VERSION = 1
REPLIES, EVENTS, APPROVALS = "replies", "events", "approvals"
FEATURES = (REPLIES, EVENTS, APPROVALS)
