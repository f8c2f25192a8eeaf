"""NPLT, a small framed protocol over TCP: docs/nplt.md describes it. `Client` is for programs."""

from __future__ import annotations

from recollect.server.nplt.nplt_client import (
    AnswerEvent,
    AnswerPiece,
    Client,
    ConnectionLost,
    ServerRefused,
)

__all__ = ["AnswerEvent", "AnswerPiece", "Client", "ConnectionLost", "ServerRefused"]
