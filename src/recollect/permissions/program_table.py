"""Every known program by its name."""

from __future__ import annotations

from recollect.permissions.build_programs import BUILD_PROGRAMS, OTHER_PROGRAMS
from recollect.permissions.command_parser import program_name
from recollect.permissions.git_programs import GIT
from recollect.permissions.program_record import ProgramRecord
from recollect.permissions.shell_builtins import BUILTINS
from recollect.permissions.text_programs import TEXT_PROGRAMS

_PROGRAMS: dict[str, ProgramRecord] = {
    **OTHER_PROGRAMS,
    **TEXT_PROGRAMS,
    **BUILTINS,
    **BUILD_PROGRAMS,
    "git": GIT,
}


def find_record(name: str) -> ProgramRecord | None:
    """What is known of a program; its path does not count, so `./git` is as suspect as git."""
    return _PROGRAMS.get(program_name(name))
