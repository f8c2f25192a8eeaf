"""Which models this machine could use: by a key, by a server that runs here, by a download.

Keys are never shown, only the names of their variables.
"""

from __future__ import annotations

import msgspec

from recollect.errors import RecollectError
from recollect.models.api_keys import find_api_key
from recollect.models.embedded_weights import CODER, has_weights
from recollect.models.local_servers import LocalServer, find_local_servers
from recollect.models.resolve import look_up_model
from recollect.profiles import EMBEDDED_MODEL, ENDPOINTS
from recollect.settings import Settings
from recollect.text import one_line


class ModelOffers(msgspec.Struct, frozen=True):
    """What answers now, and what else could."""

    model: str = ""  # the settings' choice; empty: none, or only the small embedded one
    problem: str = ""  # why no model can be chosen
    keys: tuple[str, ...] = ()  # variables that hold a key
    servers: tuple[LocalServer, ...] = ()  # looked for only where there is no model
    download: str = ""  # an embedded model that plays the agent and is not here yet
    download_bytes: int = 0

    @property
    def has_agent(self) -> bool:
        return bool(self.model)


def find_model_offers(settings: Settings, named: str = "") -> ModelOffers:
    """Asks servers on this machine only where neither a key nor a name gives a model."""
    try:
        model = look_up_model(named, settings)
        keys = tuple(
            key.variable for one in ENDPOINTS if (key := find_api_key(one.keys)) is not None
        )
    except RecollectError as error:  # a settings file with a mistake, or a malformed key
        return ModelOffers(problem=one_line(str(error), 300))
    if model.name != EMBEDDED_MODEL:
        return ModelOffers(model.name, keys=keys)
    missing = not has_weights(CODER.weights)
    return ModelOffers(
        keys=keys,
        servers=find_local_servers(),
        download=CODER.name if missing else "",
        download_bytes=CODER.weights.size,
    )
