"""An agent builds, tests and commits ordinary projects, in each sandbox, without the network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from recollect.entries import json_text
from recollect.testing import call
from tests.cli.model_server import ENV, outputs, reply, server
from tests.cli.runner import Cli
from tests.execution.workbench import isolation_of
from tests.models.server import HELLO, http

KINDS = ("bubblewrap", "landlock", "none")
PYTHON_LINES = (
    "python3 -m venv .venv && .venv/bin/python -m pip --version",
    "touch -d 2020-01-01 src/app.py && chmod 755 src/app.py",
    "PYTHONPATH=src python -m pytest -q",
    "python -m compileall -q src && mkdir -p build",
    "python -m zipapp src -m app:main -o build/app.pyz && .venv/bin/python build/app.pyz",
)
NODE_LINES = (
    "npm pack --silent --pack-destination . && npm install --offline --no-save ./app-1.0.0.tgz",
    "rm app-1.0.0.tgz && npm test",
    "npm run build",
    "node dist/app.js",
)
COMMIT = 'git add -A && git commit -m "Add the app"'
WINDOW = 200_000

PYTHON_FILES = {
    "src/app.py": "def add(a, b):\n    return a + b\n\n\ndef main():\n    print(add(20, 22))\n",
    "tests/test_app.py": (
        "from multiprocessing import Pool\n\nimport app\n\n\ndef test_add(tmp_path):\n"
        "    (tmp_path / 'file').write_text('x')\n    assert app.add(1, 2) == 3\n\n\n"
        "def test_pool():\n    with Pool(2) as pool:\n"
        "        assert sum(pool.map(abs, [-1, 2])) == 3\n"
    ),
    ".gitignore": ".venv/\nbuild/\n__pycache__/\n.pytest_cache/\n",
}
NODE_FILES = {
    "package.json": json.dumps(
        {
            "name": "app",
            "version": "1.0.0",
            "scripts": {"test": "node --test", "build": "node build.js"},
        }
    ),
    "add.js": "exports.add = (a, b) => a + b\n",
    "add.test.js": (
        "const test = require('node:test')\nconst assert = require('node:assert')\n"
        "const { execFileSync } = require('node:child_process')\n"
        "test('adds', () => assert.strictEqual(require('./add').add(1, 2), 3))\n"
        "test('runs', () => assert.ok(`${execFileSync('node', ['-v'])}`.startsWith('v')))\n"
    ),
    "build.js": (
        "const fs = require('fs')\nfs.mkdirSync('dist', { recursive: true })\n"
        "fs.writeFileSync('dist/app.js', fs.readFileSync('add.js') + 'console.log(42)\\n')\n"
        "fs.chmodSync('dist/app.js', 0o755)\n"
    ),
    ".gitignore": "dist/\nnode_modules/\n",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("language", ["python", "node"])
def test_an_agent_builds_tests_and_commits_a_project(cli: Cli, kind: str, language: str) -> None:
    isolation_of(kind)  # skips where it is missing
    for program in ("git", *(("npm", "node") if language == "node" else ())):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing; `apt-get install {program}`")
    files = PYTHON_FILES if language == "python" else NODE_FILES
    lines = (*(PYTHON_LINES if language == "python" else NODE_LINES), COMMIT)
    make_repository(cli.project)
    writes = [
        call("write_file", id=f"w{at}", file_path=name, content=text)
        for at, (name, text) in enumerate(files.items())
    ]
    runs = [reply(call("run_shell_command", id=f"r{at}", command=c)) for at, c in enumerate(lines)]
    # in a sandbox ordinary lines need no rule; without one every command asks
    rules = f"allow = {json_text(list(lines))}\n" if kind == "none" else ""
    more = f'[permissions]\nmode = "free"\nsandbox = "{kind}"\n{rules}'
    # `python` is the one that has pytest
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with server(cli, reply(*writes), *runs, http(HELLO), more=more, window=WINDOW) as on:
        cli.ok("-p", "Make the project, test it and commit it.", env={**ENV, "PATH": path})
        told = outputs(on)[-len(lines) :]
    for line, output in zip(lines, told, strict=True):
        assert "[exit code 0" in output, f"{line}: {output}"
    assert "42\n" in told[-2]
    assert "PROTECTED" not in "".join(told)
    log = git(cli.project, "log", "--format=%s", "--name-only")
    assert log.splitlines() == ["Add the app", "", *sorted(files)]
    assert git(cli.project, "status", "--short") == ""


def make_repository(folder: Path) -> None:
    git(folder, "init", "-q")
    git(folder, "config", "user.name", "me")
    git(folder, "config", "user.email", "me@example.com")


def git(folder: Path, *words: str) -> str:
    ran = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True)
    return ran.stdout
