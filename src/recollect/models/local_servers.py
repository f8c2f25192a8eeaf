"""Model servers that run on this machine, with the models they offer.

`find_local_servers` looks at the loopback addresses of the endpoints that users run themselves
(Ollama, LM Studio, vLLM, llama.cpp), all at once and for at most `TIMEOUT` seconds. Anything may
listen there: what is not a list of models in the OpenAI format does not count, and of a list only
short printable names are taken, a bounded number of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from recollect.models.endpoint_address import endpoint_url
from recollect.profiles import ENDPOINTS, Endpoint

TIMEOUT = 1.0  # seconds, for all of them together
MAX_MODELS = 100  # of one server
_MAX_BYTES = 1 << 20
_MAX_NAME = 200  # characters
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_NOT_CHAT = ("embed", "rerank", "whisper")  # in the names of models that cannot answer


class LocalServer(NamedTuple):
    name: str  # of its endpoint
    url: str
    models: tuple[str, ...]  # as `-m` takes them: `ollama/qwen3:8b`


class _ListedModel(msgspec.Struct):
    id: str = ""


class _ModelList(msgspec.Struct):
    data: list[_ListedModel]


def find_local_servers(endpoints: Iterable[Endpoint] = ENDPOINTS) -> tuple[LocalServer, ...]:
    """Those that answer now and have a model, in the order of the endpoints."""
    found: dict[str, LocalServer] = {}
    threads = []
    local = [endpoint for endpoint in endpoints if endpoint.is_local]
    for endpoint in local:
        # daemons: a server that never finishes its answer must not keep the program alive
        thread = threading.Thread(target=_look_at, args=(endpoint, found), daemon=True)
        thread.start()
        threads.append(thread)
    end = time.monotonic() + TIMEOUT
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    complete = dict(found)  # a late answer no longer counts
    return tuple(complete[each.name] for each in local if each.name in complete)


def _look_at(endpoint: Endpoint, found: dict[str, LocalServer]) -> None:
    url = endpoint_url(endpoint)
    names = _model_names(_get(f"{url}/models"))
    if names:
        models = tuple(f"{endpoint.name}/{name}" for name in names)
        found[endpoint.name] = LocalServer(endpoint.name, url, models)


def _get(url: str) -> bytes:
    """The answer's body; nothing if there is none, or if the address is not on this machine."""
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname not in _LOOPBACK:
        return b""
    # not the transport of models: no proxy, no retry, no key, and no event loop that may be running
    try:
        with closing(HTTPConnection(parts.hostname, parts.port, timeout=TIMEOUT)) as connection:
            connection.request("GET", parts.path, headers={"Accept": "application/json"})
            answer = connection.getresponse()
            return answer.read(_MAX_BYTES + 1) if answer.status == 200 else b""
    except (OSError, HTTPException, ValueError):
        return b""


def _model_names(body: bytes) -> tuple[str, ...]:
    if not body or len(body) > _MAX_BYTES:
        return ()
    try:
        listed = msgspec.json.decode(body, type=_ModelList)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ()
    names = (model.id for model in listed.data)
    usable = dict.fromkeys(name for name in names if _is_usable(name))
    return tuple(usable)[:MAX_MODELS]


def _is_usable(name: str) -> bool:
    """A name that can be shown and typed, of a model that may answer."""
    shown = 0 < len(name) <= _MAX_NAME and name.isprintable() and not set(name) & set(" `'\"$;&|")
    return shown and not any(word in name.lower() for word in _NOT_CHAT)
