"""The child process that runs the embedded model: `python -m recollect.models.llama_server`.

It reads one line of JSON (`ServerConfig`) from standard input, loads the weights, serves the OpenAI
format on a free port of 127.0.0.1 to clients that have the key, and writes one line, `{"port": …}`,
when it is ready. The key comes through the pipe, since others can read arguments and environments.
The child exits when its input ends or its parent changes, so it never outlives its parent.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any, NamedTuple

if sys.platform != "win32":
    import resource

HOST = "127.0.0.1"
PARENT_CHECK = 1.0  # seconds
ERRORS_ONLY = 1  # llama.cpp's verbosity: its information lines may quote prompts


class ServerConfig(NamedTuple):
    weights: str
    key: str
    alias: str  # the model's name in replies; the default would be the weights' path
    window: int  # tokens, of each slot
    slots: int  # concurrent requests
    output: int  # tokens, where a request sets no limit: a small model may never stop by itself
    threads: int


def main() -> None:
    parent = os.getppid()
    announcement = os.dup(1)  # for us alone: what a library prints goes to standard error
    os.dup2(2, 1)
    if sys.platform != "win32":
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump would hold prompts
    config = ServerConfig(**json.loads(sys.stdin.buffer.readline()))
    threading.Thread(target=_exit_on_eof, daemon=True).start()
    try:
        server = start_server(config)
    except (ImportError, RuntimeError) as error:
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
        os._exit(1)
    port = int(str(server.listening_address).rsplit(":", 1)[1])
    os.write(announcement, json.dumps({"port": port}).encode() + b"\n")
    os.close(announcement)
    # PR_SET_PDEATHSIG fires when the thread that started us ends, not its process (prctl(2)), and
    # that thread may belong to a pool. Watching the parent's id works everywhere.
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK)
    os._exit(0)


def start_server(config: ServerConfig) -> Any:
    """A llama.cpp server that listens; returns when the weights are loaded."""
    # the parent process imports this module for `ServerConfig` and never needs the engine
    import xllamacpp  # type: ignore[import-untyped]

    params = xllamacpp.CommonParams()
    params.model.path = config.weights
    params.model_alias = {config.alias}
    params.hostnames, params.port = [HOST], 0
    params.api_keys = [config.key]
    params.n_parallel, params.n_ctx = config.slots, config.window * config.slots
    params.n_predict = config.output
    params.fit_params = False  # it would shrink the window to the memory that is free now
    params.ctx_shift = False  # too long is an error that names the limit, not a silent cut
    params.cache_ram_mib = 0  # its default keeps up to 8 GiB of old prompts
    params.ui = False
    params.warmup = False
    params.verbosity = ERRORS_ONLY
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = config.threads
    params.n_threads_http = config.slots + 2  # more, for requests that wait or are refused
    return xllamacpp.Server(params)


def _exit_on_eof() -> None:
    while os.read(0, 4_096):  # not `sys.stdin`, whose lock an exiting interpreter wants
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
