"""Where an endpoint is, for users who moved their own server."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from recollect.profiles import Endpoint

_EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104 - where a server listens, not where we do


def endpoint_url(endpoint: Endpoint, environment: Mapping[str, str] = os.environ) -> str:
    """Its address, or the one that the program's own variable gives (`OLLAMA_HOST`)."""
    given = environment.get(endpoint.host_variable, "").strip() if endpoint.host_variable else ""
    if not given:
        return endpoint.url
    default = urlsplit(endpoint.url)
    try:
        parts = urlsplit(given if "://" in given else f"http://{given}")
        host, port = parts.hostname or "", parts.port or default.port
    except ValueError:  # a port that is none
        return endpoint.url
    host = default.hostname or "" if host in _EVERYWHERE else host
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}:{port}{default.path}"
