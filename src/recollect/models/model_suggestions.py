"""What users can do when no model that could work as an agent is configured."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.errors import ModelError
from recollect.models.embedded_weights import CODER, has_weights
from recollect.models.local_servers import LocalServer, find_local_servers
from recollect.profiles import ENDPOINTS

_MAX_NAMED = 3  # models of one server, and providers


class ModelTooSmall(ModelError):
    """The model cannot work with tools; `ways` are the ways to one that can."""

    def __init__(self, model: str, ways: Sequence[str]) -> None:
        listed = "".join(f"\n  - {way}" for way in ways)
        super().__init__(
            f"{model} is too small to work as an agent; `recollect ask` can use it. "
            f"Ways to a model that can:{listed}"
        )
        self.model, self.ways = model, tuple(ways)


def ways_to_a_model(
    servers: Sequence[LocalServer] | None = None, *, prompt: str = "…"
) -> list[str]:
    """One sentence for each way, the nearest first; looks for local servers if none are given."""
    servers = find_local_servers() if servers is None else servers
    ways = []
    for server in servers:
        first, *rest = server.models
        more = f" (also {', '.join(rest[:_MAX_NAMED])})" if rest else ""
        ways.append(f'{server.name} runs here: `recollect -p "{prompt}" -m {first}`{more}')
    if has_weights(CODER.weights):
        ways.append(f'the coder is here: `recollect -p "{prompt}" -m embedded/{CODER.name}`')
    variables = [endpoint.keys[0] for endpoint in ENDPOINTS if endpoint.keys][:_MAX_NAMED]
    ways.append(
        f"set the API key of a provider: {', '.join(variables)} or another "
        "(`recollect models` lists them)"
    )
    if not has_weights(CODER.weights):
        size = f"{CODER.weights.size / 1e9:.1f} GB"
        ways.append(
            f"`recollect models get {CODER.name}` downloads a model of {size} that runs offline"
        )
    if not servers:
        ways.append("start Ollama, LM Studio, vLLM or llama.cpp: recollect finds it by itself")
    return ways
