"""What the connections of one NPLT server share."""

from __future__ import annotations

import msgspec

from recollect.server.access import AccessTokens, Identity
from recollect.server.downloads import DownloadOffers
from recollect.server.nplt.history_index import HistoryIndex
from recollect.server.nplt.nplt_limits import NpltLimits
from recollect.server.nplt.server_texts import ServerTexts
from recollect.server.nplt.uploads import UploadBudget
from recollect.server.session_hub import SessionHub


class Surroundings(msgspec.Struct, frozen=True):
    hub: SessionHub
    tokens: AccessTokens
    limits: NpltLimits
    texts: ServerTexts
    history: HistoryIndex
    downloads: DownloadOffers
    uploads: UploadBudget
    local: Identity | None  # who a client without a token is; None: it needs one
    cancel_on_disconnect: bool = False
