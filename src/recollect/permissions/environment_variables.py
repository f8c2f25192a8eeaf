"""What a variable that is set for a command can do, by its name.

Some names change only what a program says or how a test runs. Some decide which program runs, what
it loads first or where it reads its settings. All others are somebody's own: harmless to the shell
and known only to the program, which a sandbox holds.
"""

from __future__ import annotations

import re

from recollect.permissions.parsed_line import word_set
from recollect.permissions.program_record import Objection
from recollect.permissions.protected_paths import code_names_secret

_HARMLESS = word_set("""
CI COLUMNS COVERAGE DEBUG FORCE_COLOR LINES LOG_LEVEL LOGLEVEL NODE_ENV NO_COLOR PORT
PYTHONDONTWRITEBYTECODE PYTHONFAULTHANDLER PYTHONHASHSEED PYTHONIOENCODING PYTHONUNBUFFERED
PYTHONUTF8 PYTHONWARNINGS RUST_BACKTRACE RUST_LOG CARGO_TERM_COLOR TERM TZ VERBOSE CLICOLOR
CLICOLOR_FORCE APP_ENV RAILS_ENV RACK_ENV FLASK_ENV FLASK_DEBUG DJANGO_SETTINGS_MODULE ENVIRONMENT
HYPOTHESIS_PROFILE PYTEST_ADDOPTS_OFF TESTING GOMAXPROCS OMP_NUM_THREADS MKL_NUM_THREADS
CUDA_VISIBLE_DEVICES TOKENIZERS_PARALLELISM DEBIAN_FRONTEND NEXT_TELEMETRY_DISABLED
""")
_PATHS = frozenset({"PYTHONPATH"})
_PLAIN_PATH = re.compile(
    r"(?!\.\.)[A-Za-z0-9_.][A-Za-z0-9_./-]*|(?:\$PWD|\$\{PWD\})(?:/[A-Za-z0-9_./-]*)?"
    r"|\$PYTHONPATH|\$\{PYTHONPATH\}|"
)
# Of names that could decide what is run, the values that decide nothing.
_NUMBER, _NAME = r"[0-9]{1,9}", r"[\w .,:+@<>-]*"  # also a date or an address
_SCRATCH = r"/tmp(?:/[a-z0-9_-]+)*"  # noqa: S108 - a sandbox has its own
_HEAP = r"(?:-X(?:mx|ms|ss)[0-9]+[kmgKMG]?(?: +|\Z))+"
_PLAIN_VALUES = tuple(
    (re.compile(names), re.compile(values))
    for names, values in {
        r"(?:GIT_|MAN)?PAGER": r"(?:cat)?",
        r"(?:GIT_(?:SEQUENCE_)?)?EDITOR|VISUAL": r"true|:",
        r"GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)": _NAME,
        r"GIT_(?:TERMINAL_PROMPT|OPTIONAL_LOCKS)|NODE_NO_WARNINGS|DOCKER_BUILDKIT": "[01]",
        r"NODE_OPTIONS": r"(?:--(?:max[-_]old[-_]space[-_]size=[0-9]+|experimental-vm-modules"
        r"|(?:no|trace|throw)-(?:warnings|deprecation)|enable-source-maps)(?: +|\Z))+",
        r"PYTHON(?:ASYNCIODEBUG|DEVMODE|NOUSERSITE|OPTIMIZE|SAFEPATH|TRACEMALLOC)": _NUMBER,
        r"PIP_(?:DISABLE_PIP_VERSION_CHECK|NO_CACHE_DIR|NO_INPUT|QUIET)": r"[01]|true|false",
        r"PIP_ROOT_USER_ACTION": "ignore",
        r"UV_(?:FROZEN|LOCKED|NO_CACHE|NO_PROGRESS|NO_SYNC|OFFLINE)": r"[01]|true|false",
        r"UV_LINK_MODE": r"copy|clone|hardlink|symlink",
        r"(?:npm_config|NPM_CONFIG)_(?:yes|YES|loglevel|LOGLEVEL|fund|FUND|audit|AUDIT)": "[a-z]+",
        r"GOFLAGS": r"(?:-(?:mod=(?:mod|vendor|readonly)|count=[0-9]+|race|trimpath|v)(?: +|\Z))+",
        r"MAKEFLAGS": r"-?j ?[0-9]*|-?[ks]",
        r"CARGO_BUILD_JOBS": _NUMBER,
        r"JAVA_OPTS|JAVA_TOOL_OPTIONS": _HEAP,
        r"CARGO_TARGET_DIR|TMPDIR|XDG_CACHE_HOME|UV_CACHE_DIR|YARN_CACHE_FOLDER|PIP_CACHE_DIR"
        r"|(?:npm_config|NPM_CONFIG)_(?:cache|CACHE)": _SCRATCH,
    }.items()
)
_LOCALES = frozenset({"", "C", "POSIX", "C.UTF-8", "C.utf8", "en_US.UTF-8", "en_US.utf8"})
# They decide what is run, loaded or obeyed by programs that are meant for something else.
_DECIDING = re.compile(
    r"(?:BASH|COMP_|CARGO_(?:CONFIG|HOME|BUILD|TARGET|REGISTR)|DOCKER_|DYLD_|FZF_|GCONV|GIT_|HIST"
    r"|GNUMAKEF|JAVA_|_JAVA|JDK_|KUBE|LD_|LESS|MAIL|MAKEF|NODE_|(?i:npm_config)|OPENSSL_|PERL"
    r"|PIP_|PS[0-9]|PYTEST_(?:ADDOPTS\Z|PLUGINS)|PYTHON|READLINE_|RIPGREP_|RSYNC_|RUBY|RUSTC?_W"
    r"|RUSTUP_|SSH_|SUDO_|TAR_|UV_|XDG_|YARN_)"
    r"|(?:AWKLIBPATH|AWKPATH|BROWSER|CDPATH|CLASSPATH|EDITOR|ENV|EXECIGNORE|FCEDIT|FIGNORE|FPATH"
    r"|FUNCNEST|GLOBIGNORE|GOFLAGS|GREP_OPTIONS|HOME|HOSTALIASES|IFS|INPUTRC|LOCPATH|MANPAGER"
    r"|MANPATH|NLSPATH|OLDPWD|OPTERR|OPTIND|PAGER|PATH|POSIXLY_CORRECT|PROMPT_COMMAND|PWD|REPLY"
    r"|COMPILER_PATH|CURL_HOME|DEPENDENCIES_OUTPUT|DOTNET_STARTUP_HOOKS|ERL_A?FLAGS"
    r"|GCC_EXEC_PREFIX|GEM_HOME|GOENV|GOROOT|LUA_INIT|MALLOC_TRACE|PHPRC|PHP_INI_SCAN_DIR"
    r"|SQLITE_HISTORY|SUNPRO_DEPENDENCIES|TAPE|UNZIP(?:OPT)?|XZ_(?:OPT|DEFAULTS)|ZIPOPT"
    r"|SHELL|SHELLOPTS|SSLKEYLOGFILE|TERMCAP|TERMINFO|TMPDIR|VISUAL|WGETRC|ZDOTDIR)\Z"
)


def judge_assignment(name: str, value: str) -> Objection | None:
    """Why a variable needs a second look; None if it is harmless with a sandbox."""
    if code_names_secret(value):
        return Objection("refused", f"the value of {name} names what may hold secrets")
    if name in _HARMLESS:
        return None
    if name in ("LANG", "LANGUAGE") or name.startswith("LC_"):
        if value in _LOCALES:
            return None
        return Objection("refused", f"{name} changes which characters a shell reads")
    if name in _PATHS and all(map(_PLAIN_PATH.fullmatch, value.split(":"))):
        return None
    if _DECIDING.match(name) and not _is_plain(name, value):
        return Objection("refused", f"{name} can decide what is run")
    return Objection("code", f"{name} is set, and what it does is up to the program")


def _is_plain(name: str, value: str) -> bool:
    known = (values for names, values in _PLAIN_VALUES if names.fullmatch(name))
    return any(values.fullmatch(value) for values in known)
