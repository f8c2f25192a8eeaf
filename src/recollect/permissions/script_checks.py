"""Programs with a language of their own, of which a small part is understood.

Each check gets a command's words and how its options were read, and objects to whatever it does
not know. Every scanner goes over its text once, from left to right, and never back: the time is
linear in the length whatever the text is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import dropwhile, takewhile
from typing import NamedTuple

from recollect.permissions.environment_variables import judge_assignment
from recollect.permissions.find_expression import ANY_NAME, may_find
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

_FIND_FLAGS = word_set(
    "-H -L -P -a -and -daystart -depth -d -empty -executable -false -follow -ignore_readdir_race"
    " -ls -mount -nogroup -noleaf -not -nouser -o -or -print -print0 -prune -quit -readable -true"
    " -warn -nowarn -writable -xdev"
)
_FIND_VALUED = word_set(
    "-amin -anewer -atime -cmin -cnewer -ctime -group -gid -ilname -iname -inum -ipath -iregex"
    " -iwholename -links -lname -maxdepth -mindepth -mmin -mtime -name -newer -newermt -newerat"
    " -newerct -path -perm -printf -regex -regextype -samefile -size -type -uid -used -user"
    " -wholename -xtype"
)
_FIND_GLOBS = frozenset({"-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename"})
_FIND_EXPRESSIONS = frozenset({"-regex", "-iregex"})
_FIND_RUNS = frozenset({"-exec", "-execdir"})
_FIND_ACTS = _FIND_RUNS | {"-delete"}


_FIND_EXPRESSION = re.compile(r"[-(!]")


class FindReading(NamedTuple):
    """What find would run (`{}` stands for a file), and where it starts."""

    commands: tuple[tuple[str, ...], ...] = ()
    places: tuple[int, ...] = ()  # where each of them begins
    deletes: bool = False
    patterns: tuple[str, ...] = ()  # of the names it finds
    has_regex: bool = False  # nobody can tell which names an expression finds
    objection: Objection | None = None
    starts: tuple[str, ...] = ()
    narrowed: bool = False  # a name or emptiness limits what it deletes or passes on
    left_out: frozenset[int] = frozenset()  # positions of patterns after `!`

    def takes_all_of(self, folder: str) -> bool:
        """Whether it passes on whatever is in the working folder."""
        whole = (".", "", folder.rstrip("/"), "$PWD", "${PWD}", "$(pwd)", "`pwd`")
        starts = [start.rstrip("/").removesuffix("/*") for start in self.starts] or ["."]
        return not self.narrowed and any(start in whole or start == "*" for start in starts)


def _is_narrowed(words: tuple[str, ...]) -> bool:
    """Whether a test that limits the names stands before what find does with them, and nothing
    turns it around: `find . ! -name a -delete` and `find . -name a -o -delete` take the rest."""
    acts = [at for at, word in enumerate(words) if word in _FIND_ACTS]
    before = words[: acts[0]] if acts else words
    if not {"-o", "-or", ","}.isdisjoint(words):
        return not may_find(words, ".", ANY_NAME)
    for at, word in enumerate(before):
        if at > 0 and before[at - 1] in ("!", "-not"):
            continue
        pattern = before[at + 1] if word in _FIND_GLOBS and at + 1 < len(before) else ""
        if word == "-empty" or pattern.strip("*?./"):
            return True
    return False


_MOST_PATTERNS = 100


def read_find(words: tuple[str, ...]) -> FindReading:
    """Read find's expression; the first word on no list is objected to."""
    commands: dict[int, tuple[str, ...]] = {}
    patterns: dict[int, str] = {}
    left_out = _left_out(words)
    deletes, at = False, 0
    while at < len(words):
        word = words[at]
        at += 1
        if word in _FIND_VALUED:
            if word in _FIND_GLOBS and at < len(words):
                patterns[at] = words[at]
            at += 1
        elif word in _FIND_RUNS:
            end = _end_of_exec(words, at)
            if word == "-execdir" or end <= at:
                return FindReading(objection=_refuse(f"find {word} is not plain"))
            commands[at] = words[at:end]
            at = end + 1
        elif word == "-delete":
            deletes = True
        elif word.startswith("-") and word not in _FIND_FLAGS and not word[1:].isdecimal():
            why = f"find {word[:40]} is not among what is known to be harmless"
            return FindReading(objection=_refuse(why))
    if (objected := _object_to_patterns(patterns, left_out)) is not None:
        return FindReading(objection=objected)
    has_regex = not _FIND_EXPRESSIONS.isdisjoint(words)
    if has_regex and (commands or deletes):
        return FindReading(objection=_refuse("nobody can tell which files find -regex means"))
    paths = dropwhile(lambda word: word in ("-H", "-L", "-P"), words)
    starts = tuple(takewhile(lambda word: not _FIND_EXPRESSION.match(word), paths))
    return FindReading(
        tuple(commands.values()),
        tuple(commands),
        deletes,
        tuple(patterns.values()),
        has_regex,
        starts=starts,
        narrowed=_is_narrowed(words),
        left_out=left_out,
    )


def _object_to_patterns(patterns: dict[int, str], left_out: frozenset[int]) -> Objection | None:
    if len(patterns) > _MOST_PATTERNS:
        return _refuse("it has too many patterns to look at")
    for at, pattern in patterns.items():
        if at not in left_out and glob_finds_secret(pattern):
            return _refuse(f"{pattern[:80]!r} may hold secrets")
    return None


def _left_out(words: tuple[str, ...]) -> frozenset[int]:
    """Positions of the patterns that `!` turns around."""
    found: set[int] = set()
    at = turned = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word in _FIND_VALUED:
            found |= {at} if turned == 1 and word in _FIND_GLOBS else set()
            at += 1
        elif word in _FIND_RUNS:
            at = max(at, _end_of_exec(words, at) + 1)
        turned = turned + 1 if word in ("!", "-not") else 0
    return frozenset(found)


def _end_of_exec(words: tuple[str, ...], start: int) -> int:
    """Where `;` is, or `+` directly after `{}`: anywhere else it is a word of the command."""
    for at in range(start, len(words)):
        if words[at] == ";" or (words[at] == "+" and words[at - 1] == "{}"):
            return at
    return -1


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
