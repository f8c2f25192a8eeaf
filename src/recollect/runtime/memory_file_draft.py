"""A memory file that a model drafts and only the user writes.

Memory files are protected from tools. So the model looks around, answers with the file's text, and
the program writes exactly the change that the user was shown, if the file has not changed since.
"""

from __future__ import annotations

import os
import re

from recollect.errors import BadInput
from recollect.runtime.runtime import Runtime
from recollect.workspace.memory_writer import (
    PlannedMemory,
    own_memory_file,
    plan_text,
    write_fact,
)

BEGIN, END = "BEGIN MEMORY FILE", "END MEMORY FILE"
DRAFT_PROMPT = f"""Look around in this project and draft its memory file, {{name}}, which every \
later session here will be given before its first prompt.

Read what tells the most: the README, the build files and settings of linters and tests, the layout
of the folders, a few typical source files. If {{name}} is there already, keep what is still
true of it.

Write what somebody who has never seen this project needs and cannot guess: what it is, in two
sentences; the exact commands to build it, to test it (also one test alone) and to check its style;
how the code is laid out; conventions that the code follows and a newcomer would break. Be brief:
under 80 lines, no advice that holds for every project, nothing that you did not see in a file.

Do not write any file. Answer with the whole text of the file between these two lines, and nothing
after them:

{BEGIN}
{END}"""
_NEW_MODE = 0o666  # less what the user's umask takes away
_FENCE = re.compile(r"\A(`{3,}|~{3,})(?:markdown|md)?[ \t]*\n(.*)\n\1[ \t]*\Z", re.DOTALL)
_FENCED = re.compile(r"^(`{3,})(?:markdown|md)[ \t]*\n(.*)^\1[ \t]*$", re.DOTALL | re.MULTILINE)


def draft_prompt(runtime: Runtime) -> str:
    """What the model is sent."""
    root = runtime.folders.root
    name = own_memory_file(root, runtime.settings.agent.memory_files).name
    return DRAFT_PROMPT.format(name=name)


def plan_memory_file(runtime: Runtime, reply: str) -> PlannedMemory:
    """What writing the file of this reply into the project's root would change."""
    path = own_memory_file(runtime.folders.root, runtime.settings.agent.memory_files)
    return plan_text(path, drafted_text(reply))


def write_memory_file(planned: PlannedMemory) -> None:
    """Write what the user has seen; a new file gets the usual mode of the project's files."""
    mask = os.umask(0o077)  # the only way to read it
    os.umask(mask)
    write_fact(planned, mode=None if planned.before is not None else _NEW_MODE & ~mask)


def drafted_text(reply: str) -> str:
    """The text of the file in a reply: between the two lines, or in a fence of Markdown, or all of
    a reply that begins with a heading."""
    text = reply.replace("\r\n", "\n").strip()
    lines = text.split("\n")
    bare = [line.strip().strip("*`#<> ") for line in lines]
    if BEGIN in bare:
        begin = len(bare) - 1 - bare[::-1].index(BEGIN)
        end = bare.index(END, begin) if END in bare[begin:] else len(lines)
        text = "\n".join(lines[begin + 1 : end]).strip()
    elif (fenced := _FENCED.search(text)) is not None:
        return fenced[2].strip() + "\n"
    elif not text.startswith("# "):
        raise BadInput("the reply has no text of a memory file; ask for it again with /init")
    whole = _FENCE.match(text)
    return (whole[2] if whole is not None else text).strip() + "\n"
