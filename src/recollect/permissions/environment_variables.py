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
_PLAIN_PATHS = re.compile(r"(?:(?!\.\.)[A-Za-z0-9_.][A-Za-z0-9_./-]*:?)*\Z")
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
    if name in _PATHS and _PLAIN_PATHS.match(value):
        return None
    if _DECIDING.match(name):
        return Objection("refused", f"{name} can decide what is run")
    return Objection("code", f"{name} is set, and what it does is up to the program")
