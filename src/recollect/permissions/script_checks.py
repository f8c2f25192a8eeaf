"""Programs with a language of their own, of which a small part is understood.

Each check gets a command's words and how its options were read, and objects to whatever it does
not know. Every scanner goes over its text once, from left to right, and never back: the time is
linear in the length whatever the text is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from recollect.permissions.environment_variables import judge_assignment
from recollect.permissions.find_reading import read_find
from recollect.permissions.parsed_line import word_set
from recollect.permissions.program_record import Objection, OptionReading, looks_like_option
from recollect.permissions.protected_paths import glob_finds_secret
from recollect.permissions.sed_script import only_edits
from recollect.permissions.shell_values import expand_braces, is_plain_value
from recollect.permissions.wrapper_programs import SHELLS


class CheckedWords(NamedTuple):
    """The words after a program's name, as its options were read."""

    program: str
    words: tuple[str, ...]
    reading: OptionReading
    uncertain: frozenset[int]  # positions among `words`
    splitting: frozenset[int] = frozenset()  # those that may become several words
    stdin_text: str | None = None
    root: str = ""

    def operands(self) -> tuple[str, ...]:
        return tuple(self.words[at] for at in self.reading.operands)


def _refuse(reason: str) -> Objection:
    return Objection("refused", reason)


# --- sed ----------------------------------------------------------------------------------------


def _check_sed(given: CheckedWords) -> Objection | None:
    scripts = given.reading.values("--expression")
    after = given.operands() if given.reading.dashes >= 0 else ()
    if any(map(looks_like_option, after)):
        return _refuse("sed has options after `--`")
    if not scripts:
        operands = given.reading.operands
        if operands and operands[0] in given.uncertain:
            return _refuse("the shell decides what the sed script is")
        scripts = given.operands()[:1]
    elif any(option.value_at in given.uncertain for option in given.reading.options):
        return _refuse("the shell decides what the sed script is")
    # versions differ on how several scripts are joined, so they count together and one by one
    for script in (*scripts, "\n".join(scripts)):
        if not only_edits(script):
            return _refuse("the sed script has commands that can run, read or write")
    return None


# --- awk ----------------------------------------------------------------------------------------


def _check_awk(given: CheckedWords) -> Objection | None:
    operands = given.reading.operands
    if not operands or given.reading.dashes >= 0:
        return _refuse("awk has no plain program")
    if operands[0] in given.uncertain:
        return _refuse("the shell decides what the awk program is")
    if any(given.words[at].startswith("-") for at in operands[1:]):
        return _refuse("awk has options after its program")
    program = given.words[operands[0]]
    plain = program.replace("||", "")
    first_print = plain.find("print")  # before it `>` compares; after it `>` may name a file
    writes = first_print >= 0 and ">" in plain[first_print:]
    if writes or any(word in plain for word in ("|", "@", "system", "getline", "ARGV", "ARGC")):
        return _refuse("the awk program can run or write")
    return None


# --- find ---------------------------------------------------------------------------------------


def _check_find(given: CheckedWords) -> Objection | None:
    found = read_find(given.words)
    if found.objection is not None:
        return found.objection
    return Objection("code", "find -delete removes files") if found.deletes else None


# --- others -------------------------------------------------------------------------------------

_TAR_BUNDLE = re.compile(r"[cxtvzjJkmpOf]+\Z")


def split_tar_bundle(words: tuple[str, ...]) -> tuple[str, ...]:
    """`tar xzf a.tgz` as `tar -xzf a.tgz`; other old bundles stay what they are."""
    bundle = words[0] if words else ""
    if _TAR_BUNDLE.match(bundle) and (bundle.count("f") == 0 or bundle.endswith("f")):
        return (f"-{bundle}", *words[1:])
    return words


def _check_tar(given: CheckedWords) -> Objection | None:
    reading = given.reading
    if any(":" in given.words[at] for at in range(len(given.words))):
        return _refuse("tar takes a name with `:` for another machine")
    if reading.has("-c", "--create", "-t", "--list") and not reading.has("-r", "-u", "-x"):
        return None
    if reading.has("-x", "--extract", "--get"):
        return Objection("code", "tar writes the files that the archive names")
    return _refuse("tar can run programs and write anywhere")


def _check_test(given: CheckedWords) -> Objection | None:
    """`test -v 'a[$(x)]'` runs x; so does a word that becomes `-v`."""
    words = given.words[:-1] if given.words[-1:] == ("]",) else given.words
    for at, word in enumerate(words):
        last = at + 1 >= len(words)
        follows = not last and (at + 1 in given.uncertain or "[" in words[at + 1])
        if follows and (word in ("-v", "-R") or at in given.uncertain):
            return _refuse("test -v evaluates a subscript")
        if at in given.splitting and not is_plain_value(word):
            return _refuse("test gets words that the shell decides; put them in double quotes")
    if any(word in ("-v", "-R") for word in words) and any("[" in word for word in words):
        return _refuse("test -v evaluates a subscript")
    return None


_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def _check_printf(given: CheckedWords) -> Objection | None:
    first = given.words[:1]
    if first and first[0].startswith("-v"):
        name = first[0][2:] or (given.words[1] if len(given.words) > 1 else "")
        if not _IDENTIFIER.match(name):
            return _refuse("printf -v evaluates a subscript")
        objected = judge_assignment(name, "")
        return objected if objected is not None and objected.concern == "refused" else None
    return None


_LONGEST_PATTERN = 200  # characters, whose braces are expanded


def _check_globs(given: CheckedWords) -> Objection | None:
    """Patterns for file names may name secrets: `rg . -g '.e*'`, `fd -H '^\\.env$'`."""
    globs = [value for value in given.reading.values("--glob", "--iglob") if value[:1] != "!"]
    globs += [value.partition(":")[2] for value in given.reading.values("--type-add")]
    globs = [name for one in globs for name in _expanded(one)]
    hidden = given.reading.has("-H", "-u", "--hidden", "--unrestricted")
    if given.program.startswith("fd") and hidden:
        globs += [word.strip("^$").replace("\\", "") for word in given.operands()[:1]]
    secret = next((one for one in globs if glob_finds_secret(one)), None)
    return _refuse(f"{secret[:80]!r} may hold secrets") if secret is not None else None


def _expanded(pattern: str) -> list[str]:
    return expand_braces(pattern) if len(pattern) <= _LONGEST_PATTERN else [pattern]


_WEB_ADDRESS = re.compile(r"(?:https?://)?(?:[\w.-]+|\[[0-9a-f:]+\])(?::[0-9]+)?(?:[/?#]|\Z)")

_CURL_CHOICE = re.compile(r"[{\[#]")  # `-o '#1.md' 'http://x/{a,b}'`


def _check_curl(given: CheckedWords) -> Objection | None:
    options = given.reading
    sent = options.values("--data", "--data-binary", "--data-urlencode", "--json", "--form")
    if any("@" in value or "<" in value for value in sent):
        return _refuse("curl sends a file")
    if any(value.startswith("@") for value in options.values("--header", "--write-out")):
        return _refuse("curl reads a file")
    if any("%output" in value for value in options.values("--write-out")):
        return _refuse("curl writes a file that its format names")
    urls = (*given.operands(), *options.values("--url"))
    if not all(map(_WEB_ADDRESS.match, urls)):
        return _refuse("curl opens something that is not a web page")
    written = [value for value in options.values("--output") if value not in ("/dev/null", "-")]
    if written or options.has("-O", "--remote-name"):
        if any(_CURL_CHOICE.search(word) for word in (*written, *urls)):
            return _refuse("curl decides which file it writes")
        return Objection("code", "curl writes a file")
    if options.has("--request", "--data", "--data-raw", "--data-binary", "--json", "--form"):
        return Objection("code", "curl sends data")
    return None


_SQLITE_RUNS = re.compile(
    r"\bedit\b|load_extension|writefile|readfile|fsdir|zipfile|fts3_tokenizer|attach"
)
_SQLITE_ADDRESS = re.compile(r"file:(?!/)(?:(?!\.\.)[\w./-])*(?:\?[\w=&]*)?\Z")
_SQLITE_PLAIN = word_set(".tables .schema .indexes .databases .headers .mode .dump .quit")


def _check_sqlite(given: CheckedWords) -> Objection | None:
    if len(given.operands()) < 2 and given.stdin_text is None:
        return _refuse("sqlite3 takes its commands from standard input")
    address = given.operands()[:1]
    if address and address[0].startswith("file:") and not _SQLITE_ADDRESS.match(address[0]):
        return _refuse("the address of the database is not plain")
    texts = (*given.operands()[1:], given.stdin_text or "")
    sql = " ".join(texts).lower()
    if _SQLITE_RUNS.search(sql) or ("vacuum" in sql and "into" in sql):
        return _refuse("the SQL can run, read or write")
    for line in (line.strip() for text in texts for line in text.splitlines()):
        word = line.split(" ")[0]
        if word.startswith(".") and (word not in _SQLITE_PLAIN or "|" in line):
            return _refuse(f"sqlite3 {word[:40]} can run or write")
    return None


# --- interpreters -------------------------------------------------------------------------------

_CODE_SIGNS = re.compile(r"[\s'\"(]")
_CODE_OPTIONS = ("-c", "-e", "-E", "-p", "-r", "--eval", "--print")


def code_on_line(given: CheckedWords) -> tuple[str, ...]:
    """The code that an interpreter's options and input carry."""
    if given.program in ("python", "pypy"):
        codes = given.reading.values("-c")
        if given.reading.values("-m"):  # `-m timeit 'open(…)'`
            codes = (*codes, *filter(_CODE_SIGNS.search, given.operands()))
    elif given.program in ("node", "perl", "ruby", "php"):
        codes = given.reading.values(*_CODE_OPTIONS)
    else:
        codes = ()
    return (*codes, *([given.stdin_text] if given.stdin_text else []))


def _check_interpreter(given: CheckedWords) -> Objection | None:
    """Allow a file of the working folder after a few options; code on the line is `code`."""
    program, reading = given.program, given.reading
    operands = given.operands()
    if reading.has("-c") and program in SHELLS:
        return _refuse(f"the shell decides what {program} runs")
    if any(code_on_line(given)):
        return Objection("code", f"{program} runs code that is not in a file")
    if program in ("python", "pypy") and reading.values("-m"):
        return Objection("code", f"python -m {reading.values('-m')[0][:40]} can run anything")
    if reading.has("--version", "-V", "--help") and not operands:
        return None
    if reading.has("--test") and not operands:
        return None
    if operands and operands[0].startswith("+") and program in SHELLS:
        return _refuse(f"{program} {operands[0][:40]} is an option")
    if not operands or operands[0] in ("-", "/dev/stdin") or operands[0].startswith("/proc/"):
        return _refuse(f"{program} takes its code from standard input")
    if reading.operands[0] in given.uncertain or operands[0].startswith(("/", "~", "../")):
        return Objection("code", f"{program} has no file of the folder to run")
    return None


SCRIPT_CHECKS: dict[str, Callable[[CheckedWords], Objection | None]] = {
    "awk": _check_awk,
    "curl": _check_curl,
    "find": _check_find,
    "globs": _check_globs,
    "interpreter": _check_interpreter,
    "printf": _check_printf,
    "sed": _check_sed,
    "sqlite": _check_sqlite,
    "tar": _check_tar,
    "test": _check_test,
}
