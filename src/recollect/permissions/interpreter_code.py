"""The code that a command carries: what its interpreter is given on the line or as input."""

from __future__ import annotations

from recollect.permissions.normal_command import NormalCommand
from recollect.permissions.parsed_line import word_set
from recollect.permissions.program_record import read_options
from recollect.permissions.program_table import find_record
from recollect.permissions.script_checks import CheckedWords, code_on_line

# Interpreters on no list of ours, or on one without their options.
_INTERPRETERS = word_set(
    "bun bunx deno elixir erl gawk ghc ghci gjs groovy guile iex ipython ipython3 janet jruby js"
    " jshell julia kotlin lua lua5.1 lua5.2 lua5.3 lua5.4 luajit mawk nawk nim nodejs ocaml octave"
    " osascript php php-cli pwsh pypy3 qjs R racket raku Rscript ruby runghc sbcl scala stack swift"
    " swipl tclsh texlua ts-node tsx xonsh zx m4"
)
_BEFORE_CODE = word_set(
    "-c -e -E -p -pe -ne -r -x --eval --expr --execute --exec --print -Command -command eval exec"
    " print"
)


def codes_of(command: NormalCommand) -> tuple[str, ...]:
    """Every text that the command runs as code of another language than the shell's."""
    words, found = command.words, find_record(command.words[0])
    if found is not None and found.check == "interpreter":
        reading = read_options(found, words[1:], command.doubtful())
        given = CheckedWords(
            command.program, words[1:], reading, frozenset(), stdin_text=command.stdin_text
        )
        return code_on_line(given)
    if command.program not in _INTERPRETERS:
        return ()
    following = [words[at] for at in range(1, len(words)) if words[at - 1] in _BEFORE_CODE]
    glued = [word.partition("=")[2] for word in words if word.startswith(("--eval=", "--expr="))]
    return (*following, *glued, *([command.stdin_text] if command.stdin_text else []))
