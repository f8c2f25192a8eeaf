"""What this user can do next: sessions to import, a model to use, and how to call the program.

Everything is looked up on this machine, and every command works when it is typed as printed. Keys
are never shown, only the names of their variables.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from recollect.cli.console import paint
from recollect.display.display_text import align_table, one_line
from recollect.errors import RecollectError
from recollect.profiles import ENDPOINTS
from recollect.runtime.model_offers import ModelOffers, find_model_offers
from recollect.settings import load_settings
from recollect.transcripts.installed_agents import (
    AGENT_LOCATIONS,
    AgentSessions,
    find_agent_sessions,
)

SUGGESTED_KEYS = 3  # variables that are named when no key is set


def next_step_lines() -> Iterator[str]:
    program = program_call()
    yield paint("What you can do now", fg="green", bold=True)
    yield ""
    yield from _call_lines(program)
    yield from _import_lines(program, find_agent_sessions())
    yield from _model_lines(program)


def program_call() -> str:
    """How to call this program in the user's shell: by its name if that is found and means this
    installation, else by its path."""
    script = Path(sys.executable).with_name("recollect")
    on_path = shutil.which("recollect")
    if on_path is not None and os.path.realpath(on_path) == os.path.realpath(script):
        return "recollect"
    if not script.is_file():
        return f"{shlex.quote(sys.executable)} -m recollect"
    return _typed_path(script)


def _typed_path(path: Path, extra: str = "") -> str:
    """As a user types it: relative if it is below the working directory."""
    below = os.path.relpath(path)
    return shlex.quote((str(path) if below.startswith(os.pardir) else below) + extra)


def _call_lines(program: str) -> Iterator[str]:
    if program == "recollect":
        return
    where = "Call it" if Path(program).is_absolute() else "In this folder, call it"
    yield f"{where} {paint.bold(program)}."
    checkout = Path(__file__).resolve().parents[3]
    if (checkout / "pyproject.toml").is_file():
        uv = Path(shutil.which("uv") or "uv")
        # the one that `./start` brought along is not on the user's own PATH
        called = _typed_path(uv) if uv.is_relative_to(checkout) else "uv"
        yield "To have it as `recollect` everywhere:"
        # with what runs the models of `recollect models get`
        yield f"  {called} tool install {_typed_path(checkout, '[embedded]')}"
    yield ""


def _import_lines(program: str, found: tuple[AgentSessions, ...]) -> Iterator[str]:
    if not found:
        agents = " or ".join(location.agent for location in AGENT_LOCATIONS)
        yield f"Sessions of {agents} were not found here. To import a file:"
        yield f"  {program} import FILE"
        yield ""
        return
    yield "Look into the sessions that you have; importing copies them:"
    rows = [
        [
            f"  {program} import {_shell_pattern(one)}",
            f"# {one.agent}: {one.files:,}{'' if one.complete else ' or more'}",
        ]
        for one in found
    ]
    rows.append([f"  {program} sessions", "# then: context, search, show"])
    yield from ("  ".join(row).rstrip() for row in align_table(rows, width=None, stretch=0))
    yield ""


def _shell_pattern(found: AgentSessions) -> str:
    """The files as a pattern that a shell expands, with `~` for the home."""
    folder, home = found.folder, Path.home()
    if folder.is_relative_to(home) and folder != home:
        quoted = f"~/{shlex.quote(str(folder.relative_to(home)))}"
    else:
        quoted = shlex.quote(str(folder.absolute()))
    return one_line(f"{quoted}/{found.pattern}")


def _model_lines(program: str) -> Iterator[str]:
    try:
        offers = find_model_offers(load_settings())
    except RecollectError as error:  # a settings file with a mistake
        offers = ModelOffers(problem=str(error))
    if offers.problem:
        yield f"No model can be chosen: {one_line(offers.problem)}"
        return
    if offers.keys:
        yield f"Keys found: {', '.join(offers.keys)}. `{program} models` lists the models."
    prompt = f'{program} -p "Which files are here, and what do they do?"'
    if offers.has_agent:
        yield f"Let the agent look around in this folder, with {one_line(offers.model)}:"
        yield f"  {prompt}"
        return
    if offers.servers:
        yield "Let the agent look around in this folder, with a model that runs here:"
        for server in offers.servers:
            yield f"  {prompt} -m {shlex.quote(server.models[0])}  # {server.name}"
        yield "or set the key of a provider first:"
    else:
        yield "Let the agent look around in this folder. It needs a model: set a key,"
        yield "start Ollama, LM Studio, vLLM or llama.cpp, or download one that runs offline:"
    first, *others = [one.keys[0] for one in ENDPOINTS if one.keys]
    yield f"  export {first}=…  # or {', '.join(others[: SUGGESTED_KEYS - 1])}, …"
    if not offers.servers and offers.download:
        size = f"{offers.download_bytes / 1e9:.1f} GB"
        yield f"  {program} models get {offers.download}  # {size}"
    yield f"  {prompt}"
