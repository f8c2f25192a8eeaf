"""Why a rule alone does not allow a command: programs that can be made to run or write anything.

Some programs only read, whatever their options. Some are known by the options that are harmless in
them (`harmless_options`). sed, awk, tar, find and interpreters have a language of their own, of
which a small part is understood. Some run other programs or change the shell, and are never
harmless. In programs that are on no list, words that usually carry a command are objected to. Pure
and linear.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from recollect.permissions.command_parser import CommandWords, program_name, word_set
from recollect.permissions.harmless_options import GIT_SUBCOMMANDS, INSIDE, PROGRAMS, allow
from recollect.permissions.protected_paths import leaves_folder, names_config, names_secret

# They read and print; none has an option that runs or writes.
_READ_ONLY_PROGRAMS = word_set(
    "arch b2sum base32 base64 basename cat cksum cmp column comm cut df diff dirname du echo"
    " egrep expand expr factor false fgrep fmt fold free grep groups head hexdump id join jq"
    " locale logname ls lscpu md5sum nl nproc numfmt od paste pgrep pr printenv ps pwd readlink"
    " realpath rev seq sha1sum sha224sum sha256sum sha384sum sha512sum sleep stat strings sum tac"
    " tail tr true tsort tty type uname unexpand uptime wc which who whoami zcat"
)

_SHELL_BUILTINS = word_set(
    ". alias bg bind break builtin caller command compgen complete compopt continue coproc"
    " declare dirs disown enable eval exec exit export fc fg function getopts hash history jobs"
    " let local logout mapfile popd pushd read readarray readonly return set shift shopt source"
    " suspend time times trap typeset ulimit umask unalias unset wait"
)

_PROGRAM_RUNNERS = word_set(
    "7z aa-exec ansible ansible-playbook apk apt apt-get ar ash at batch bc brew bun bundle bunx"
    " busybox bwrap capsh cc choom chroot chrt chsh clang composer concurrently corepack cpio"
    " cpulimit crontab csh csplit daemonize dash dbus-run-session dc dd deno diff3 dnf doas docker"
    " docker-compose dpkg ed emacs emacsclient entr env erl ex expect fakeroot firejail fish flock"
    " ftp g++ gcc gdb ghci git-shell gnuplot gpg gradle groovy guile helm i386 iex info install"
    " ionice irb jar java javac jjs journalctl jshell ksh kubectl ld ld.so ldd less lftp links"
    " linux32 linux64 lldb logrotate logsave ltrace lua luajit lynx m4 mail mailx man mc mksh more"
    " mosh most mount mutt mvn mysql nano nc ncat netcat newgrp nice nmap nodemon nohup npx"
    " nsenter numactl nvim octave openssl osascript pacman pager parallel patch perf pico pidstat"
    " pipx pkexec pnpx podman poetry powershell prename prlimit proot proxychains psql pwsh R"
    " racket rake rbash red rename rlwrap Rscript rsync run-mailcap run-parts runuser rview rvim"
    " sash sbcl scala scp screen script scriptlive scriptreplay sdiff service setarch setfacl"
    " setpriv setsid setuidgid sftp sg shred shuf socat softlimit split sqlite3 ssh ssh-agent"
    " ssh-keygen sshpass start-stop-daemon stdbuf strace su sudo sudoedit swift systemctl"
    " systemd-run taskset tclsh tcpdump tcsh tee telnet timeout tmux torify toybox truncate"
    " ts-node tsx unbuffer unshare unzip update-alternatives uv uvx vagrant valgrind vi view vigr"
    " vim vimdiff vipw visudo w3m watch watchexec wget wish xargs xdotool xterm xvfb-run yash yum"
    " zip zsh"
)

_FILE_WRITERS = word_set("chgrp chmod chown cp ln mkdir mv rm rmdir tar tee touch")
# `cp -r x/. .` and `cp -rT x .` copy what is in a folder, with its hidden files
_COPIES_HIDDEN = re.compile(r".*/\.\Z|-[A-Za-z]*T|--no-t")
_READERS_WITH_OPTIONS = frozenset({"awk", "fd", "file", "rg", "sed", "sort", "test"})
_PRINTERS = frozenset({"echo", "printf", "true", "false"})

# --- programs with a language of their own ------------------------------------------------------

_FIND_OPTIONS = word_set(
    "-H -L -P -a -amin -and -anewer -atime -cmin -cnewer -ctime -daystart -depth -empty"
    " -executable -follow -group -ilname -iname -inum -ipath -iregex -links -lname -ls -maxdepth"
    " -mindepth -mmin -mount -mtime -name -newer -not -o -or -path -perm -print -print0 -printf"
    " -prune -quit -readable -regex -regextype -samefile -size -true -type -user -wholename"
    " -writable -xdev -xtype"
)


def _object_to_find(words: CommandWords) -> str | None:
    for word in words:
        if word.startswith("-") and word not in _FIND_OPTIONS and not word[1:].isdigit():
            return f"find {word[:40]} is not among what is known to be harmless"
    return None


_GO_OPTIONS = word_set(
    "-bench -count -cover -failfast -json -list -p -parallel -race -run -short -timeout -v"
)
_GO_COMMANDS = word_set("build doc fmt list test version vet")


def _object_to_go(words: CommandWords) -> str | None:
    options = {word.partition("=")[0] for word in words if word.startswith("-")}
    harmless = options <= _GO_OPTIONS and {*words[:1]} <= _GO_COMMANDS
    return None if harmless else "go can run other programs"


# One sed command: an address or two, then a letter that only prints, deletes or ends; or `s`.
# Versions differ on whether a delimiter in brackets ends a pattern, so none is allowed there.
_SED_ADDRESS = r"(?:\d+|\$|/(?:[^/\\\[]|\\[^\n]|\[\^?\]?[^\]\\/]*\])*/I?)"
_SED_COMMAND = re.compile(
    rf" *(?:{_SED_ADDRESS}(?: *, *[+~]?{_SED_ADDRESS})?)? *!?(?:[pdqQ=DGHPNnhgx]|s([/|#,:@%])"
    r"(?:(?!\1)[^\\\[]|\\[^\n]|\[\^?\]?(?:(?!\1)[^\]\\])*\])*\1(?:(?!\1)[^\\]|\\[^\n])*\1[gpiI\d]*)"
    r" *(?:;|\Z)"
)
_SED_OPTIONS = allow("nErsuz", "", "quiet silent regexp-extended")


def _object_to_sed(words: CommandWords) -> str | None:
    scripts: list[str] = []
    rest: list[str] = []
    given = list(words)
    while given:
        word = given.pop(0)
        if word in ("-e", "--expression") and given:
            scripts.append(given.pop(0))
        elif word.startswith("--expression="):
            scripts.append(word.partition("=")[2])
        else:
            rest.append(word)
    if (objected := _SED_OPTIONS.objection(tuple(rest))) is not None:
        return objected
    operands = [word for word in rest if not word.startswith("-")]
    for script in scripts or operands[:1]:
        at = 0
        while at < len(script):
            match = _SED_COMMAND.match(script, at)
            if match is None:
                return "the sed script has commands that can run or write"
            at = match.end()
    return None


_AWK_PROGRAM = re.compile(r"(?!.*(?:system|getline))(?:[^|>@]|\|\|)*\Z", re.DOTALL)


def _object_to_awk(words: CommandWords) -> str | None:
    given = list(words)
    while given and given[0].startswith("-"):
        word = given.pop(0)
        if word in ("-F", "-v") and given:
            given.pop(0)
        elif not word.startswith(("-F", "-v")):
            return f"awk {word[:40]} is not among what is known to be harmless"
    if not given or any(word.startswith("-") for word in given):
        return "awk has options after its program"
    return None if _AWK_PROGRAM.match(given[0]) else "the awk program can run or write"


def _object_to_tar(words: CommandWords) -> str | None:
    letters = words[0].lstrip("-") if words else ""
    listing = set(letters) <= set("tvfzjJ") and "t" in letters
    packing = set(letters) <= set("cvfzjJ") and "c" in letters and letters.endswith("f")
    if not (listing or packing) or any(word.startswith("-") for word in words[1:]):
        return "tar can run programs and write anywhere; only `tar tf` and `tar cf` are plain"
    if any(":" in word for word in words):
        return "tar takes a name with `:` for another machine"
    return None


_INTERPRETERS = {
    "python": allow("uBOsEIvqb"),
    "node": allow("", "", "test check"),
    **dict.fromkeys(("bash", "sh", "perl", "ruby", "php", "pypy"), allow()),
}
_PYTHON_MODULES = word_set("black mypy pip pytest ruff unittest")
_SCRIPT_PATH = re.compile(INSIDE + r"\Z")


def _object_to_interpreter(program: str, words: CommandWords) -> str | None:
    """Allow a file of the working folder after a few options; never code or standard input."""
    for at, word in enumerate(words):
        if not word.startswith("-"):
            return None if _SCRIPT_PATH.match(word) else f"{program} has no plain file to run"
        if program == "python" and word == "-m" and words[at + 1 :]:
            module = words[at + 1]
            if module in _PYTHON_MODULES:
                return PROGRAMS[module].objection(words[at + 2 :])
            return f"python -m {module[:40]} can run anything"
        if word in ("-", "--") or _INTERPRETERS[program].objection((word,)) is not None:
            return f"{program} {word[:40]} can run code that is not in a file"
    return None if "--test" in words else f"{program} has no plain file to run"


def _object_to_git(words: CommandWords) -> str | None:
    while words and words[0] in ("--no-pager", "-P"):
        words = words[1:]
    if not words:
        return None
    if words[0] not in GIT_SUBCOMMANDS:
        return f"git {words[0][:40]} can run or write anything, or is an alias"
    return GIT_SUBCOMMANDS[words[0]].objection(words[1:])


def _object_to_packager(program: str, words: CommandWords) -> str | None:
    installs = words[:1] in (("ci",), ("i",), ("install",))
    if installs and any(not word.startswith("-") for word in words[1:]):
        return f"{program} runs scripts of the packages that it installs"
    return PROGRAMS[program].objection(words)


_FINDERS = frozenset({"find", "gfind"})
_CHECKERS: dict[str, Callable[[CommandWords], str | None]] = {
    **{program: options.objection for program, options in PROGRAMS.items()},
    **{program: partial(_object_to_packager, program) for program in ("npm", "pnpm", "yarn")},
    **{program: partial(_object_to_interpreter, program) for program in _INTERPRETERS},
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk", "original-awk"), _object_to_awk),
    **dict.fromkeys(_FINDERS, _object_to_find),
    "git": _object_to_git,
    "go": _object_to_go,
    "sed": _object_to_sed,
    "tar": _object_to_tar,
}


# --- objections ---------------------------------------------------------------------------------

# In programs that are on no list these usually carry code, a command or another configuration.
_SUSPICIOUS_WORD = re.compile(
    r"-[cefxCDEFIPSX]\Z|-?-(?:c|conf|config|eval|expression|file|filter|import|init|interpreter|load"
    r"|log-?file|o|out|output|pre|program|rc|require|run"
    r"|[\w-]*(?:cmd|command|exec|hook|plugin|script|shell))(?:[-_][\w-]*)?(?:=.*)?\Z"
    r"|-[CDEFIPSX].|alias\Z|dlx\Z|e(?:val|xec|xtension)\Z|plugin\Z|run\Z|s(?:cript|hell)\Z"
)


def _only_reads(words: CommandWords) -> bool:
    """Whether nothing is written, whatever paths are named."""
    git = words[0] == "git" and not {"checkout", "mv", "reset", "restore", "rm"} & set(words[1:4])
    return git or words[0] in _READ_ONLY_PROGRAMS | _FINDERS | _READERS_WITH_OPTIONS


def find_objection(words: CommandWords, *, globs: bool = False, named: int = 1) -> str | None:
    """Why a rule alone does not allow these words; None if it does.

    `named` is how many of the words the rule names itself: if the program is on no list, those
    need no second look."""
    program, given = program_name(words[0]), words[1:]
    if program in _SHELL_BUILTINS or program.startswith(("ld-linux", "ld.so")):
        return f"{program} changes what the shell does next"
    if given == ("--version",):
        return None
    if program in _PROGRAM_RUNNERS:
        return f"{program} can run or write anything"
    if words[0] in _READ_ONLY_PROGRAMS:
        return None
    if globs:
        return "file names replace a pattern, and a name can be an option"
    if program in _CHECKERS:
        return _CHECKERS[program](given)
    if program in _FILE_WRITERS:
        return None
    suspect = next((word for word in words[named:] if _SUSPICIOUS_WORD.match(word)), None)
    return f"{program[:40]} {suspect[:40]} may carry a command" if suspect else None


def find_path_objection(words: CommandWords, root: str) -> str | None:
    """Why the paths among these words need approval; None if they do not."""
    program = program_name(words[0])
    if words[0] in _PRINTERS:
        return None
    for word in words[1:]:
        if names_secret(word):
            return f"{word[:80]!r} may hold secrets"
        if not _only_reads(words) and names_config(word):
            return f"{word[:80]!r} decides what runs later"
        if program == "cp" and _COPIES_HIDDEN.match(word):
            return "it copies over what is there, hidden files too"
        if program in _FILE_WRITERS and leaves_folder(word, root):
            return f"{word[:80]!r} is outside the working folder"
    return None
