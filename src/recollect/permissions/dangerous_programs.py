"""Programs that can be made to run or write anything, and what is harmless in them: data.

Some programs only read, whatever their options (`READ_ONLY_PROGRAMS`). Some are known by the list of what is
harmless in them (`GIT_SUBCOMMANDS`, `PROGRAMS`): an option that is not on the list, also a shortened one, is
objected to, so that a new or forgotten option asks instead of running. sed, awk, tar, find and
interpreters have a language of their own, of which a small part is understood. Some run what they
are told (`PROGRAM_RUNNERS`) or change the shell (`SHELL_BUILTINS`) and are never harmless. Pure and linear.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from recollect.permissions.command_parser import word_set

CommandWords: TypeAlias = tuple[str, ...]


# They read and print, whatever they are told; none has an option that runs or writes.
READ_ONLY_PROGRAMS = word_set(
    "arch b2sum base32 base64 basename cat cksum cmp column comm cut df diff dirname du echo"
    " egrep expand expr factor false fgrep fmt fold free grep groups head hexdump id join jq"
    " locale logname ls lscpu md5sum nl nproc numfmt od paste pgrep pr printenv ps pwd readlink"
    " realpath rev seq sha1sum sha224sum sha256sum sha384sum sha512sum sleep stat strings sum tac"
    " tail tr true tsort tty type uname unexpand uptime wc which who whoami zcat"
)

SHELL_BUILTINS = word_set(
    ". alias bg bind break builtin caller command compgen complete compopt continue coproc"
    " declare dirs disown enable eval exec exit export fc fg function getopts hash history jobs"
    " let local logout mapfile popd pushd read readarray readonly return set shift shopt source"
    " suspend time times trap typeset ulimit umask unalias unset wait"
)

PROGRAM_RUNNERS = word_set(
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

# --- what is harmless in programs that can do harm ----------------------------------------------


class HarmlessOptions(NamedTuple):
    """The harmless part of a program, or of one of its sub-commands."""

    flags: str = ""  # letters without a value
    valued: str = ""  # letters whose value may follow in the same word
    long: frozenset[str] = frozenset()
    first: frozenset[str] = frozenset()  # if any: what the first operand must be; "" means none
    operand: re.Pattern[str] | None = None  # what all operands, and all after `--`, must be
    most: int = 1_000  # operands

    def objection(self, words: CommandWords) -> str | None:
        if (option := self._unlisted(words)) is not None:
            return f"{option[:40]!r} is not among the options known to be harmless"
        end = words.index("--") if "--" in words else len(words)
        plain = tuple(word for word in words[:end] if not word.startswith("-") or word == "-")
        operands = plain + words[end + 1 :]
        if self.first and (operands[0] if operands else "") not in self.first:
            return f"{' '.join(operands)[:40]!r} is not among what is known to be harmless"
        if len(operands) > self.most:
            return "it has more operands than are known to be harmless"
        if self.operand and not all(self.operand.match(operand) for operand in operands):
            return "it has an operand that is not plain"
        return None

    def _unlisted(self, words: CommandWords) -> str | None:
        """Values are not skipped: one that looks like an option is taken for one, so that a wrong
        guess about which option takes a value can only object."""
        for word in words:
            if word == "--":
                return None
            if word.startswith("--"):
                if word[2:].partition("=")[0] not in self.long:
                    return word
            elif word.startswith("-") and not word[1:].isdigit() and not self._letters(word[1:]):
                return word
        return None

    def _letters(self, letters: str) -> bool:
        for letter in letters:
            if letter in self.valued:
                return True
            if letter not in self.flags:
                return False
        return True


def _harmless(
    flags: str = "",
    valued: str = "",
    long: str = "",
    first: str = "",
    operand: str = "",
    most: int = 1_000,
) -> HarmlessOptions:
    """`first` is a list; a leading `,` says that there may also be no operand."""
    firsts = word_set(first)
    if "," in firsts:
        firsts = firsts - {","} | {""}
    pattern = re.compile(rf"(?:{operand})\Z") if operand else None
    return HarmlessOptions(flags, valued, word_set(long), firsts, pattern, most)


_DIFF_OPTIONS = (
    "abbrev binary cached cc check color color-words compact-summary diff-algorithm diff-filter"
    " exit-code find-copies find-renames full-index function-context histogram ignore-all-space"
    " ignore-blank-lines ignore-space-at-eol ignore-space-change merge-base minimal name-only"
    " name-status no-color no-ext-diff no-patch no-prefix no-renames no-textconv numstat patch"
    " patience quiet raw relative shortstat staged stat summary text unified word-diff"
)
_LOG_OPTIONS = _DIFF_OPTIONS + (
    " abbrev-commit after all all-match ancestry-path author before boundary branches cherry"
    " cherry-mark cherry-pick children committer count date date-order decorate extended-regexp"
    " first-parent fixed-strings follow format full-history graph grep invert-grep left-right"
    " merges max-count no-abbrev-commit no-decorate no-merges no-notes oneline parents perl-regexp"
    " pretty regexp-ignore-case remotes reverse simplify-by-decoration since skip source tags"
    " topo-order until walk-reflogs"
)
_REF_OPTIONS = (
    "all contains count format ignore-case list merged no-contains no-merged points-at sort"
)
_LOG_COMMAND = _harmless("pusbwazRWqciEFPgmtrv", "nUSGMCLBl", _LOG_OPTIONS)
_BRANCH_NAME = (
    r"[A-Za-z0-9_][\w./-]*"  # a branch: no address, no `a:b`, which can name another host
)
_REMOTES = ", origin upstream fork"  # any other word can be a folder, whose hooks git then runs
GIT_SUBCOMMANDS = {
    **dict.fromkeys(("diff", "diff-tree", "log", "rev-list", "show", "whatchanged"), _LOG_COMMAND),
    "add": _harmless("AuvnfNp", "", "all update verbose dry-run force intent-to-add patch"),
    "bisect": _harmless(first="start good bad new old skip reset log"),
    "blame": _harmless("wesltcfnp", "LMC", "date porcelain line-porcelain show-email since root"),
    "branch": _harmless("arvdDmMcCfqlt", "u", _REF_OPTIONS + " show-current delete move copy track force"
                     " no-track set-upstream-to unset-upstream remotes verbose color no-color"),
    "checkout": _harmless("bBfqt", "", "detach force quiet track no-track ours theirs orphan"),
    "cherry-pick": _harmless("nxm", "", "abort continue skip quit no-commit"),
    "commit": _harmless("aqvsnop", "m", "all amend message no-edit quiet verbose signoff date author"
                     " allow-empty dry-run fixup no-verify only"),
    "config": _harmless("l", "", "get get-all get-regexp list global local system show-origin"
                     " show-scope name-only", operand=r"[\w*^-]+\.[\w.*^-]+", most=1),
    "describe": _harmless("", "", "all tags always abbrev dirty long exact-match match contains"),
    "fetch": _harmless("aptqvfn", "j", "all prune tags no-tags quiet verbose force dry-run depth"
                    " unshallow jobs", operand=_BRANCH_NAME,
                    first=_REMOTES),
    "for-each-ref": _harmless("", "", _REF_OPTIONS),
    "grep": _harmless("niIlLwcEFGPvhHrqapW", "eABCm", "line-number ignore-case files-with-matches"
                   " word-regexp count extended-regexp fixed-strings perl-regexp cached untracked"
                   " heading break color no-color name-only all-match and or not show-function"),
    "ls-files": _harmless("cdomiskutvz", "x", "cached deleted others modified ignored stage unmerged"
                       " exclude-standard full-name error-unmatch directory exclude"),
    "ls-tree": _harmless("drtlz", "", "name-only name-status full-name full-tree long"),
    "merge": _harmless("mnqv", "", "abort continue quit no-ff ff ff-only squash no-commit no-edit stat"
                    " no-stat quiet"),
    "merge-base": _harmless("a", "", "all is-ancestor fork-point octopus independent"),
    "mv": _harmless("vnkf", "", "verbose dry-run force"),
    "pull": _harmless("rqvpt", "", "rebase no-rebase ff ff-only no-ff prune tags autostash quiet"
                   " verbose", operand=_BRANCH_NAME,
                    first=_REMOTES),
    "push": _harmless("ufdnqv", "", "set-upstream force force-with-lease tags delete dry-run quiet"
                   " verbose follow-tags all no-verify", operand=_BRANCH_NAME,
                    first=_REMOTES),
    "rebase": _harmless("", "", "abort continue skip quit onto autostash"),
    "reflog": _harmless("p", "n", _LOG_OPTIONS, first=", show"),
    "remote": _harmless("v", "", "verbose", first=", show get-url"),
    "reset": _harmless("qp", "", "hard soft mixed keep merge quiet"),
    "restore": _harmless("SWqs", "", "staged worktree source quiet ours theirs"),
    "rev-parse": _harmless("q", "", "abbrev-ref show-toplevel short verify git-dir is-inside-work-tree"
                        " show-prefix symbolic-full-name is-bare-repository quiet all branches"),
    "revert": _harmless("nm", "", "abort continue skip quit no-commit no-edit"),
    "rm": _harmless("rfnq", "", "cached force dry-run quiet"),
    "shortlog": _harmless("nsec", "", "numbered summary email all since until no-merges group"),
    "stash": _harmless("ukqapS", "m", "include-untracked keep-index all message patch staged quiet"
                    " index stat", first=", list show push pop apply drop save"),
    "status": _harmless("sbuvz", "", "short branch porcelain long verbose untracked-files ignored"
                     " show-stash ahead-behind no-renames"),
    "submodule": _harmless("", "", "recursive cached", first=", status"),
    "switch": _harmless("cCdfqt", "", "create detach force quiet track no-track orphan"),
    "tag": _harmless("laidfn", "m", _REF_OPTIONS + " delete annotate message force"),
    "worktree": _harmless("v", "", "porcelain", first="list"),
}  # fmt: skip

_SCRIPT_WORD = r"[\w@./:=,+-]+"  # what npm hands to a shell must hold nothing that a shell reads
_SCRIPT_RUNNER = _harmless("sw", "", "silent if-present workspace workspaces no-audit no-fund prefer-offline"
                  " frozen-lockfile legacy-peer-deps", operand=_SCRIPT_WORD,
                  first=", run run-script test t tst start stop ls list outdated view why audit ci"
                  " install i build lint version ping")  # fmt: skip
_INSIDE_PATH = (
    r"(?!.*(?:^|/)\.\.(?:/|$))[A-Za-z0-9_.][^=]*"  # a path that begins here and stays here
)
PROGRAMS = {
    "black": _harmless("qvC", "lt", "check diff quiet verbose line-length target-version color",
                    operand=_INSIDE_PATH),
    "cargo": _harmless("qv", "pj", "release all workspace all-targets all-features features package"
                    " lib bin bins tests no-run quiet verbose locked offline no-default-features"
                    " check no-deps", first="build b test t check c clippy fmt run r tree doc bench"
                    " metadata", operand=r"--?[a-z][a-z-]*(=\d+)?|-[DWA]|[\w:.-]+"),
    "cd": _harmless(operand=_INSIDE_PATH, most=1),
    "curl": _harmless("sSfLIviG46", "m", "silent show-error fail location head verbose include"
                   " max-time connect-timeout compressed", operand=r"https?://[^@]*|\d+"),
    "date": _harmless("u", "dI", "utc iso-8601 rfc-3339 date", operand=r"\+.*|[\w: -]+"),
    "fd": _harmless("HIuisgFapL0", "tedE", "hidden no-ignore type extension max-depth exclude glob"
                 " full-path absolute-path color"),
    "file": _harmless("biLkh", "", "brief mime mime-type mime-encoding dereference"),
    "make": _harmless("ksnBqiw", "j", "jobs keep-going silent quiet dry-run just-print always-make"
                   " no-print-directory output-sync", operand=_INSIDE_PATH),
    "mypy": _harmless("qv", "pm", "strict ignore-missing-imports pretty show-error-codes"
                   " no-incremental explicit-package-bases no-color-output", operand=_INSIDE_PATH),
    "npm": _SCRIPT_RUNNER,
    "pip": _harmless("vq", "", "format outdated verbose user", first="list show freeze check"),
    "pnpm": _SCRIPT_RUNNER,
    "printf": _harmless(),
    "pytest": _harmless("vqxslh", "kmnr", "lf ff last-failed failed-first tb maxfail durations co sw"
                     " collect-only cov no-cov no-header no-summary verbose quiet exitfirst"
                     " stepwise strict-markers capture color disable-warnings numprocesses dist"
                     " timeout markers fixtures showlocals runxfail nf new-first", operand=_INSIDE_PATH),
    "rg": _harmless("niIlwcvFPSsHNuoULh0qa", "egtTABCmMrjd", "files files-with-matches line-number"
                 " ignore-case smart-case fixed-strings word-regexp count hidden no-ignore glob"
                 " type type-not context max-count max-depth no-heading heading color sort json"
                 " stats multiline only-matching invert-match after-context before-context iglob"
                 " vimgrep no-filename with-filename column trim follow type-list pcre2"),
    "ruff": _harmless("qv", "", "fix diff select ignore check no-cache show-fixes output-format quiet"
                   " statistics preview extend-select line-length target-version exclude verbose",
                   first="check format rule version linter", operand=_INSIDE_PATH),
    "sort": _harmless("bdfghiMnrRVsuzcCm", "ktS", "key field-separator numeric-sort reverse unique"
                   " ignore-case human-numeric-sort version-sort stable check month-sort"),
    "test": _harmless("abcdefghknoprsuwxzGLNOSt", "", operand=r".*"),
    "tree": _harmless("adfihspuDFCnNALIP", "", "dirsfirst gitignore prune noreport du filelimit"),
    "tsc": _harmless("b", "p", "noEmit pretty strict skipLibCheck build project", operand=_INSIDE_PATH),
    "uniq": _harmless("cduizD", "fsw", "count repeated unique ignore-case", most=1),
    "unittest": _harmless("vqfbc", "k", "verbose quiet failfast buffer", operand=_INSIDE_PATH),
    "xxd": _harmless("bugliscpo", most=1),
    "yarn": _SCRIPT_RUNNER,
}  # fmt: skip

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
    return (
        None
        if options <= _GO_OPTIONS and {*words[:1]} <= _GO_COMMANDS
        else "go can run what it is told"
    )


# One sed command: an address or two, then a letter that only prints, deletes or ends; or `s`.
# Versions differ on whether a delimiter in brackets ends a pattern, so none may stand there.
_SED_ADDRESS = r"(?:\d+|\$|/(?:[^/\\\[]|\\[^\n]|\[\^?\]?[^\]\\/]*\])*/I?)"
_SED_COMMAND = re.compile(
    rf" *(?:{_SED_ADDRESS}(?: *, *[+~]?{_SED_ADDRESS})?)? *!?(?:[pdqQ=DGHPNnhgx]|s([/|#,:@%])"
    r"(?:(?!\1)[^\\\[]|\\[^\n]|\[\^?\]?(?:(?!\1)[^\]\\])*\])*\1(?:(?!\1)[^\\]|\\[^\n])*\1[gpiI\d]*)"
    r" *(?:;|\Z)"
)
_SED_OPTIONS = _harmless("nErsuz", "", "quiet silent regexp-extended")


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
    "python": _harmless("uBOsEIvqb"),
    "node": _harmless("", "", "test check"),
    **dict.fromkeys(("bash", "sh", "perl", "ruby", "php", "pypy"), _harmless()),
}
_PYTHON_MODULES = word_set("black mypy pip pytest ruff unittest")
_SCRIPT_PATH = re.compile(_INSIDE_PATH + r"\Z")


def _object_to_interpreter(program: str, words: CommandWords) -> str | None:
    """A file of the working folder, few options before it; never code or standard input."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        if program == "python" and words[at] == "-m" and words[at + 1 : at + 2]:
            module = words[at + 1]
            if module in _PYTHON_MODULES:
                return PROGRAMS[module].objection(words[at + 2 :])
            return f"python -m {module[:40]} can run anything"
        if _INTERPRETERS[program].objection(words[at : at + 1]) is not None or words[at] in (
            "-",
            "--",
        ):
            return f"{program} {words[at][:40]} can run code that is no file"
        at += 1
    if "--test" in words[:at] and at == len(words):
        return None
    if at == len(words) or not _SCRIPT_PATH.match(words[at]):
        return f"{program} is given no plain file to run"
    return None


_AWKS = frozenset({"awk", "gawk", "mawk", "nawk", "original-awk"})
FINDERS = frozenset({"find", "gfind"})


_CHECKERS: dict[str, Callable[[CommandWords], str | None]] = {
    "go": _object_to_go,
    "sed": _object_to_sed,
    "tar": _object_to_tar,
}
_CHECKERS |= dict.fromkeys(_AWKS, _object_to_awk) | dict.fromkeys(FINDERS, _object_to_find)


def _installs_packages(given: CommandWords) -> bool:
    installs = given[:1] in (("ci",), ("i",), ("install",))
    return installs and any(not word.startswith("-") for word in given[1:])


def object_to_program(program: str, given: CommandWords) -> tuple[bool, str | None]:
    """Is the program known, and what is there to object?"""
    if program in _CHECKERS:
        return True, _CHECKERS[program](given)
    if program in _INTERPRETERS:
        return True, _object_to_interpreter(program, given)
    if program == "git":
        while given and given[0] in ("--no-pager", "-P"):
            given = given[1:]
        if not given:
            return True, None
        if given[0] not in GIT_SUBCOMMANDS:
            return True, f"git {given[0][:40]} can run or write anything, or is an alias"
        return True, GIT_SUBCOMMANDS[given[0]].objection(given[1:])
    if PROGRAMS.get(program) is _SCRIPT_RUNNER and _installs_packages(given):
        return True, f"{program} runs what the packages that it installs bring along"
    if program in PROGRAMS:
        return True, PROGRAMS[program].objection(given)
    return False, None
