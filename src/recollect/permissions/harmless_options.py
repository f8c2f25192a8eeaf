"""For programs that can do harm, the options and operands that are known to be harmless: data.

An option that is not on a program's list, also a shortened one, is objected to, so that a new or
forgotten option asks instead of running. Pure and linear.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from recollect.permissions.command_parser import CommandWords


class HarmlessOptions(NamedTuple):
    """The harmless part of a program, or of one of its sub-commands."""

    flags: str = ""  # letters without a value
    valued: str = ""  # letters whose value may follow in the same word
    long: str = ""  # names
    first: str = ""  # if any: what the first operand must be; `,`: there may be none
    operand: str = ""  # an expression for every operand, also after `--`
    most: int = 1_000  # operands

    def objection(self, words: CommandWords) -> str | None:
        if (option := self._unlisted(words)) is not None:
            return f"{option[:40]!r} is not among the options known to be harmless"
        end = words.index("--") if "--" in words else len(words)
        plain = tuple(word for word in words[:end] if not word.startswith("-") or word == "-")
        operands = plain + words[end + 1 :]
        firsts = {"" if word == "," else word for word in self.first.split()}
        if firsts and (operands[0] if operands else "") not in firsts:
            return f"{' '.join(operands)[:40]!r} is not among what is known to be harmless"
        if len(operands) > self.most:
            return "it has more operands than are known to be harmless"
        if self.operand and not all(re.fullmatch(self.operand, word) for word in operands):
            return "it has an operand that is not plain"
        return None

    def _unlisted(self, words: CommandWords) -> str | None:
        """The first option not on the list. Values are not skipped: one that looks like an option
        is taken for one, so that a wrong guess about which option takes a value only objects."""
        for word in words:
            if word == "--":
                return None
            if word.startswith("--"):
                listed = word[2:].partition("=")[0] in self.long.split()
            else:  # after letters without a value comes none, or one that takes the rest as its own
                letters = word[1:].lstrip(self.flags)
                listed = word[:1] != "-" or word[1:].isdigit() or letters[:1] in self.valued
            if not listed:
                return word
        return None


allow = HarmlessOptions  # as the tables below are read
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
_REFS = "all contains count format ignore-case list merged no-contains no-merged points-at sort"
_LOG_COMMAND = allow("pusbwazRWqciEFPgmtrv", "nUSGMCLBl", _LOG_OPTIONS)
_BRANCH = r"[A-Za-z0-9_][\w./-]*"  # not an address, not `a:b`, which can name another host
_REMOTES = ", origin upstream fork"  # any other word can be a folder, whose hooks git then runs
GIT_SUBCOMMANDS = {
    **dict.fromkeys(("diff", "diff-tree", "log", "rev-list", "show", "whatchanged"), _LOG_COMMAND),
    "add": allow("AuvnfNp", "", "all update verbose dry-run force intent-to-add patch"),
    "bisect": allow(first="start good bad new old skip reset log"),
    "blame": allow("wesltcfnp", "LMC", "date porcelain line-porcelain show-email since root"),
    "branch": allow("arvdDmMcCfqlt", "u", _REFS + " show-current delete move copy track force"
                    " no-track set-upstream-to unset-upstream remotes verbose color no-color"),
    "checkout": allow("bBfqt", "", "detach force quiet track no-track ours theirs orphan"),
    "cherry-pick": allow("nxm", "", "abort continue skip quit no-commit"),
    "commit": allow("aqvsnop", "m", "all amend message no-edit quiet verbose signoff date author"
                    " allow-empty dry-run fixup no-verify only"),
    "config": allow("l", "", "get get-all get-regexp list global local system show-origin"
                    " show-scope name-only", operand=r"[\w*^-]+\.[\w.*^-]+", most=1),
    "describe": allow("", "", "all tags always abbrev dirty long exact-match match contains"),
    "fetch": allow("aptqvfn", "j", "all prune tags no-tags quiet verbose force dry-run depth"
                   " unshallow jobs", operand=_BRANCH, first=_REMOTES),
    "for-each-ref": allow("", "", _REFS),
    "grep": allow("niIlLwcEFGPvhHrqapW", "eABCm", "line-number ignore-case files-with-matches"
                  " word-regexp count extended-regexp fixed-strings perl-regexp cached untracked"
                  " heading break color no-color name-only all-match and or not show-function"),
    "ls-files": allow("cdomiskutvz", "x", "cached deleted others modified ignored stage unmerged"
                      " exclude-standard full-name error-unmatch directory exclude"),
    "ls-tree": allow("drtlz", "", "name-only name-status full-name full-tree long"),
    "merge": allow("mnqv", "", "abort continue quit no-ff ff ff-only squash no-commit no-edit stat"
                   " no-stat quiet"),
    "merge-base": allow("a", "", "all is-ancestor fork-point octopus independent"),
    "mv": allow("vnkf", "", "verbose dry-run force"),
    "pull": allow("rqvpt", "", "rebase no-rebase ff ff-only no-ff prune tags autostash quiet"
                  " verbose", operand=_BRANCH, first=_REMOTES),
    "push": allow("ufdnqv", "", "set-upstream force force-with-lease tags delete dry-run quiet"
                  " verbose follow-tags all no-verify", operand=_BRANCH, first=_REMOTES),
    "rebase": allow("", "", "abort continue skip quit onto autostash"),
    "reflog": allow("p", "n", _LOG_OPTIONS, first=", show"),
    "remote": allow("v", "", "verbose", first=", show get-url"),
    "reset": allow("qp", "", "hard soft mixed keep merge quiet"),
    "restore": allow("SWqs", "", "staged worktree source quiet ours theirs"),
    "rev-parse": allow("q", "", "abbrev-ref show-toplevel short verify git-dir is-inside-work-tree"
                       " show-prefix symbolic-full-name is-bare-repository quiet all branches"),
    "revert": allow("nm", "", "abort continue skip quit no-commit no-edit"),
    "rm": allow("rfnq", "", "cached force dry-run quiet"),
    "shortlog": allow("nsec", "", "numbered summary email all since until no-merges group"),
    "stash": allow("ukqapS", "m", "include-untracked keep-index all message patch staged quiet"
                   " index stat", first=", list show push pop apply drop save"),
    "status": allow("sbuvz", "", "short branch porcelain long verbose untracked-files ignored"
                    " show-stash ahead-behind no-renames"),
    "submodule": allow("", "", "recursive cached", first=", status"),
    "switch": allow("cCdfqt", "", "create detach force quiet track no-track orphan"),
    "tag": allow("laidfn", "m", _REFS + " delete annotate message force"),
    "worktree": allow("v", "", "porcelain", first="list"),
}  # fmt: skip

_SCRIPT_WORD = r"[\w@./:=,+-]+"  # npm passes it to a shell, so nothing that a shell reads
_SCRIPTS = allow("sw", "", "silent if-present workspace workspaces no-audit no-fund prefer-offline"
                 " frozen-lockfile legacy-peer-deps", operand=_SCRIPT_WORD,
                 first=", run run-script test t tst start stop ls list outdated view why audit ci"
                 " install i build lint version ping")  # fmt: skip
INSIDE = r"(?!.*(?:^|/)\.\.(?:/|$))[A-Za-z0-9_.][^=]*"  # a path inside the working folder
PROGRAMS = {
    **dict.fromkeys(("npm", "pnpm", "yarn"), _SCRIPTS),
    "black": allow("qvC", "lt", "check diff quiet verbose line-length target-version color",
                   operand=INSIDE),
    "cargo": allow("qv", "pj", "release all workspace all-targets all-features features package"
                   " lib bin bins tests no-run quiet verbose locked offline no-default-features"
                   " check no-deps", first="build b test t check c clippy fmt run r tree doc bench"
                   " metadata", operand=r"--?[a-z][a-z-]*(=\d+)?|-[DWA]|[\w:.-]+"),
    "cd": allow(operand=INSIDE, most=1),
    "curl": allow("sSfLIviG46", "m", "silent show-error fail location head verbose include"
                  " max-time connect-timeout compressed", operand=r"https?://[^@]*|\d+"),
    "date": allow("u", "dI", "utc iso-8601 rfc-3339 date", operand=r"\+.*|[\w: -]+"),
    "fd": allow("HIuisgFapL0", "tedE", "hidden no-ignore type extension max-depth exclude glob"
                " full-path absolute-path color"),
    "file": allow("biLkh", "", "brief mime mime-type mime-encoding dereference"),
    "make": allow("ksnBqiw", "j", "jobs keep-going silent quiet dry-run just-print always-make"
                  " no-print-directory output-sync", operand=INSIDE),
    "mypy": allow("qv", "pm", "strict ignore-missing-imports pretty show-error-codes"
                  " no-incremental explicit-package-bases no-color-output", operand=INSIDE),
    "pip": allow("vq", "", "format outdated verbose user", first="list show freeze check"),
    "printf": allow(),
    "pytest": allow("vqxslh", "kmnr", "lf ff last-failed failed-first tb maxfail durations co sw"
                    " collect-only cov no-cov no-header no-summary verbose quiet exitfirst"
                    " stepwise strict-markers capture color disable-warnings numprocesses dist"
                    " timeout markers fixtures showlocals runxfail nf new-first", operand=INSIDE),
    "rg": allow("niIlwcvFPSsHNuoULh0qa", "egtTABCmMrjd", "files files-with-matches line-number"
                " ignore-case smart-case fixed-strings word-regexp count hidden no-ignore glob"
                " type type-not context max-count max-depth no-heading heading color sort json"
                " stats multiline only-matching invert-match after-context before-context iglob"
                " vimgrep no-filename with-filename column trim follow type-list pcre2"),
    "ruff": allow("qv", "", "fix diff select ignore check no-cache show-fixes output-format quiet"
                  " statistics preview extend-select line-length target-version exclude verbose",
                  first="check format rule version linter", operand=INSIDE),
    "sort": allow("bdfghiMnrRVsuzcCm", "ktS", "key field-separator numeric-sort reverse unique"
                  " ignore-case human-numeric-sort version-sort stable check month-sort"),
    "test": allow("abcdefghknoprsuwxzGLNOSt", "", operand=r".*"),
    "tree": allow("adfihspuDFCnNALIP", "", "dirsfirst gitignore prune noreport du filelimit"),
    "tsc": allow("b", "p", "noEmit pretty strict skipLibCheck build project", operand=INSIDE),
    "uniq": allow("cduizD", "fsw", "count repeated unique ignore-case", most=1),
    "unittest": allow("vqfbc", "k", "verbose quiet failfast buffer", operand=INSIDE),
    "xxd": allow("bugliscpo", most=1),
}  # fmt: skip
