"""The child process in which the embedded model runs: `python -m recollect.models.llama_server`.

It reads one line of JSON (`ServerConfig`) from standard input, loads the weights, serves the OpenAI format
on a free port of 127.0.0.1 to whoever has the key, and writes one line, `{"port": …}`, when it is
ready. The key comes through the pipe: arguments and environments can be read by others. The child
ends when its input ends or its parent is another, so it never outlives who started it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any, NamedTuple

HOST = "127.0.0.1"
PARENT_CHECK = 1.0  # seconds
ERRORS_ONLY = 1  # llama.cpp's verbosity: its information lines may quote what was asked


class ServerConfig(NamedTuple):
    weights: str
    key: str
    alias: str  # the model's name in replies; without one the weights' path is told
    window: int  # tokens, of each slot
    slots: int  # requests that are answered side by side
    output: int  # tokens, where a request sets no limit: a small model may never stop by itself
    threads: int


def main() -> None:
    parent = os.getppid()
    announcement = _reserve_stdout()
    _disable_core_dumps()
    order = ServerConfig(**json.loads(sys.stdin.buffer.readline()))
    threading.Thread(target=_exit_on_eof, daemon=True).start()
    try:
        server = start_server(order)
    except (ImportError, RuntimeError) as error:
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
        os._exit(1)
    port = int(str(server.listening_address).rsplit(":", 1)[1])
    os.write(announcement, json.dumps({"port": port}).encode() + b"\n")
    os.close(announcement)
    # PR_SET_PDEATHSIG would fire when the thread that started us ends, not the process (prctl(2)),
    # and a pool's thread may have: so the parent's id is watched, which works everywhere.
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK)
    os._exit(0)


def start_server(order: ServerConfig) -> Any:
    """A llama.cpp server that listens; the call returns when the weights are loaded."""
    import xllamacpp  # type: ignore[import-untyped]

    params = xllamacpp.CommonParams()
    params.model.path = order.weights
    params.model_alias = {order.alias}
    params.hostnames, params.port = [HOST], 0
    params.api_keys = [order.key]
    params.n_parallel, params.n_ctx = order.slots, order.window * order.slots
    params.n_predict = order.output
    params.fit_params = False  # it would shrink the window to the memory that is free just now
    params.ctx_shift = False  # too long is an error that names the limit, never a silent cut
    params.cache_ram_mib = 0  # its default keeps up to 8 GiB of old prompts
    params.ui = False
    params.warmup = False
    params.verbosity = ERRORS_ONLY
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = order.threads
    params.n_threads_http = order.slots + 2  # one each, one for those who wait, one for questions
    return xllamacpp.Server(params)


def _reserve_stdout() -> int:
    """Standard output for us alone: what a library prints there goes to standard error."""
    own = os.dup(1)
    os.dup2(2, 1)
    return own


def _disable_core_dumps() -> None:
    """A dump of this process would hold what people asked."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _exit_on_eof() -> None:
    while os.read(0, 4_096):  # not through `sys.stdin`, whose lock an ending interpreter wants
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
