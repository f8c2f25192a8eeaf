"""What git's sub-commands take, as data. An option that is on no list here is refused: git can run
a program, write a file or read another configuration in a hundred ways. `program_record` says how
the lists are written.
"""

from __future__ import annotations

import re

from recollect.permissions.program_record import ProgramRecord, record

_DIFF = (
    "-pusbwaRWqczt -U,--unified= -M,--find-renames=? -C,--find-copies=? -B,--break-rewrites=?"
    " -S= -G= -l= -D,--irreversible-delete --abbrev=? --binary --cached --staged --cc --check"
    " --color=? --no-color --color-words=? --color-moved=? --compact-summary --diff-algorithm="
    " --diff-filter= --dirstat=? --exit-code --full-index --function-context --histogram"
    " --ignore-all-space --ignore-blank-lines --ignore-cr-at-eol --ignore-space-at-eol"
    " --ignore-space-change --ignore-submodules=? --inter-hunk-context= --ita-invisible-in-index"
    " --line-prefix= --merge-base --minimal --name-only --name-status --no-ext-diff --no-patch"
    " --no-prefix --no-renames --no-textconv --numstat --patch --patch-with-stat --patience"
    " --pickaxe-all --pickaxe-regex --quiet --raw --relative=? --no-relative --root --shortstat"
    " --stat=? --stat-width= --stat-count= --stat-name-width= --submodule=? --summary --text"
    " --word-diff=? --word-diff-regex= --ws-error-highlight= --src-prefix= --dst-prefix= --ours"
    " --theirs --base --indent-heuristic --anchored= --find-copies-harder --skip-to= --rotate-to="
    " !--output= !--ext-diff !--textconv !-O= !--no-index"
)
_LOG = _DIFF + (
    " -n,--max-count= -L= -iEFPgmrv --abbrev-commit --after= --all --all-match --ancestry-path=?"
    " --author= --before= --boundary --branches=? --cherry --cherry-mark --cherry-pick --children"
    " --committer= --count --date= --date-order --author-date-order --decorate=? --decorate-refs="
    " --decorate-refs-exclude= --exclude= --extended-regexp --first-parent --fixed-strings --follow"
    " --format= --full-diff --full-history --glob= --graph --grep= --invert-grep --left-only"
    " --left-right --log-size --merges --max-parents= --min-parents= --no-abbrev-commit"
    " --no-decorate --no-expand-tabs --no-graph --no-merges --no-notes --no-walk=? --notes=?"
    " --not --objects --oneline --parents --perl-regexp --pretty=? --regexp-ignore-case"
    " --relative-date --remotes=? --reverse --right-only --show-signature --simplify-by-decoration"
    " --simplify-merges --since= --since-as-filter= --skip= --source --sparse --tags=?"
    " --timestamp --topo-order --until= --use-mailmap --walk-reflogs --dense --remove-empty"
    " --diff-merges= --encoding= --mailmap --no-mailmap --cherry --stdin --no-diff-merges"
)
_REFS = (
    "-i,--ignore-case --all --contains=? --no-contains=? --count= --format= --list --merged=?"
    " --no-merged=? --points-at= --sort= --color=? --no-color --column=? --no-column --omit-empty"
)
_LOG_COMMAND = record(_LOG, numbers=True)
_REMOTES = ", origin upstream fork"  # any other word can be a folder, whose hooks git then runs
_PICK = "-nxes -m,--mainline= --abort --continue --skip --quit --no-commit --no-edit --signoff --ff"
_PICK += " --allow-empty --keep-redundant-commits --edit !--strategy= !-S=? !--gpg-sign=?"

COMMANDS: dict[str, ProgramRecord] = {
    **dict.fromkeys(("diff", "log", "show", "whatchanged"), _LOG_COMMAND),
    **dict.fromkeys(("diff-tree", "diff-index", "diff-files", "rev-list"), _LOG_COMMAND),
    "add": record(
        "-AuvfNp -n,--dry-run --all --no-all --update --verbose --force --intent-to-add --patch"
        " --refresh --renormalize --ignore-errors --ignore-missing --ignore-removal --sparse"
        " --chmod="
    ),
    "am": record("--abort --continue --skip --quit", first=","),
    "apply": record("-3Rv -p= --check --stat --numstat --summary --index --cached --reverse --3way"
                    " --verbose --whitespace= --recount --ignore-whitespace --reject",
                    concern="code"),
    "bisect": record(first="start good bad new old skip reset log"),
    "blame": record("-wesltcfnpbk -L= -M=? -C=? --date= --porcelain --line-porcelain --show-email"
                    " --since= --root --abbrev= --color-lines --color-by-age --first-parent"
                    " --incremental --show-name --show-number --ignore-rev="),
    "branch": record(
        "-arvqltk -d,--delete -D -m,--move -M -c,--copy -C -f,--force -u,--set-upstream-to= "
        + _REFS
        + " --show-current --track=? --no-track --unset-upstream --remotes --verbose --abbrev="
        " --quiet --create-reflog"
    ),
    "cat-file": record("-tsep --batch=? --batch-check=? --allow-unknown-type --batch-all-objects"),
    "check-ignore": record("-vqnz --verbose --quiet --non-matching --no-index --stdin"),
    "checkout": record("-bBftqd -l -m --detach --force --quiet --track=? --no-track --ours --theirs"
                       " --orphan --merge --conflict= --no-guess --guess --progress --no-progress"
                       " --recurse-submodules --ignore-skip-worktree-bits --overlay --no-overlay"),
    "cherry": record("-v --abbrev=?"),
    "cherry-pick": record(_PICK),
    "clean": record("-n --dry-run -d -x -q --quiet !-f !--force"),
    "clone": record("-qvn -b,--branch= -o,--origin= --depth= --single-branch --no-tags --quiet"
                    " --progress --filter= --no-checkout --shallow-since= --bare --mirror",
                    concern="code"),
    "commit": record(
        "-aqvsnopez -m,--message= -F,--file= --all --amend --no-edit --edit --quiet --verbose"
        " --signoff --date= --author= --allow-empty --allow-empty-message --dry-run --fixup="
        " --squash= --no-verify --only --include -i -C,--reuse-message= --reset-author --short"
        " --branch --porcelain --long --status --no-status --cleanup= --no-signoff --trailer="
        " --no-gpg-sign --untracked-files=? -u=? !-S=? !--gpg-sign=? !-t= !--template= !-c="
        " !--reedit-message= !--patch",
    ),
    "config": record("-l --get --get-all --get-regexp --list --global --local --system --worktree"
                     " --show-origin --show-scope --name-only --type= --bool --int --path"
                     " -z,--null --default= --includes --no-includes",
                     operand="config key", most=1),
    "count-objects": record("-vH --verbose --human-readable"),
    "describe": record("--all --tags --always --abbrev= --dirty=? --broken=? --long --exact-match"
                       " --match= --exclude= --contains --candidates= --first-parent --debug"),
    "fetch": record(
        "-aptqvfkn4 -j,--jobs= --all --prune --prune-tags --tags --no-tags --quiet --verbose"
        " --force"
        " --dry-run --depth= --deepen= --unshallow --append --keep --update-shallow --progress"
        " --no-progress --shallow-since= --atomic --multiple --set-upstream",
        operand="branch", first=_REMOTES,
    ),
    "for-each-ref": record(_REFS + " --exclude= --include-root-refs"),
    "fsck": record("--full --no-progress --lost-found --unreachable --strict --connectivity-only"),
    "gc": record("--prune=? --auto --aggressive --quiet", concern="code"),
    "grep": record(
        "-niIlLwcEFGPvhHrqapWo0z -e= -A,--after-context= -B,--before-context= -C,--context="
        " -m,--max-count= --line-number --ignore-case --files-with-matches --files-without-match"
        " --word-regexp --count --extended-regexp --fixed-strings --perl-regexp --basic-regexp"
        " --cached --untracked --heading --break --color=? --no-color --name-only --all-match --and"
        " --or --not --show-function --function-context --invert-match --only-matching --column"
        " --full-name --max-depth= --recursive --no-recursive --threads= --text --quiet --null"
        " --no-exclude-standard --exclude-standard --recurse-submodules -f="
        " !-O,--open-files-in-pager=? !--no-index !--textconv !--ext-grep",
        numbers=True,
    ),
    "hash-object": record("-t= --stdin --literally --no-filters"),
    "help": record(nature="refused"),
    "init": record("-q -b,--initial-branch= --quiet --bare", concern="code"),
    "ls-files": record("-cdomiskutvz -x,--exclude= --cached --deleted --others --modified --ignored"
                       " --stage --unmerged --killed --directory --no-empty-directory --eol"
                       " --exclude-standard --full-name --error-unmatch --abbrev=? --deduplicate"
                       " --recurse-submodules --format= -X= --exclude-from="
                       " --exclude-per-directory="),
    "ls-remote": record("-hqt --heads --branches --tags --refs --quiet --exit-code --get-url"
                        " --sort= --symref", operand="branch", first=_REMOTES),
    "ls-tree": record("-drtlz --name-only --name-status --full-name --full-tree --long --abbrev=?"
                      " --format= --object-only"),
    "merge": record("-nqv -m= --abort --continue --quit --no-ff --ff --ff-only --squash --no-squash"
                    " --commit --no-commit --no-edit --stat --no-stat --quiet --verbose --progress"
                    " --no-progress --allow-unrelated-histories --autostash --no-autostash"
                    " --log=? --no-verify --signoff -X= --strategy-option= --no-gpg-sign"),
    "merge-base": record("-a --all --is-ancestor --fork-point --octopus --independent"),
    "merge-tree": record("--write-tree --name-only --messages --merge-base= -z"),
    "mv": record("-vnkf --verbose --dry-run --force"),
    "name-rev": record("--tags --refs= --name-only --always --all --exclude= --no-undefined"),
    "notes": record("--ref=", first=", list show"),
    "pull": record("-qvpt -r,--rebase=? --no-rebase --ff --ff-only --no-ff --prune --tags --all"
                   " --autostash --no-autostash --quiet --verbose --no-edit --squash --no-commit"
                   " --stat --no-stat --depth= --force -f --progress --no-tags --commit",
                   operand="branch", first=_REMOTES),
    "push": record("-nqv -u,--set-upstream -f,--force -d,--delete --force-with-lease=?"
                   " --force-if-includes --tags --dry-run --quiet --verbose --follow-tags --all"
                   " --no-verify --atomic --progress --no-progress --porcelain --branches --prune",
                   operand="branch", first=_REMOTES, concern="outward"),
    "range-diff": _LOG_COMMAND,
    "rebase": record("-qv --abort --continue --skip --quit --onto= --autostash --no-autostash"
                     " --quiet --verbose --stat --no-stat --root --keep-base --fork-point"
                     " --no-fork-point --autosquash --no-autosquash --signoff --no-ff"
                     " --force-rebase"
                     " --reset-author-date --rebase-merges=? --show-current-patch -X= --apply"
                     " --merge -m --update-refs --no-verify --no-gpg-sign"
                     " ~-i ~--interactive !--edit-todo !-x= !--exec= !-s= !--strategy= !-S=?"),
    "reflog": record(_LOG, numbers=True, first=", show"),
    "remote": record("-v --verbose", first=", show get-url"),
    "reset": record("-qp -N --hard --soft --mixed --keep --merge --quiet --no-quiet --patch"
                    " --intent-to-add --pathspec-from-file="),
    "restore": record("-SWqpm -s,--source= --staged --worktree --quiet --ours --theirs --patch"
                      " --overlay --no-overlay --merge --conflict= --ignore-unmerged --progress"),
    "rev-parse": record("-q --abbrev-ref=? --show-toplevel --short=? --verify --git-dir"
                        " --absolute-git-dir --git-common-dir --git-path= --show-prefix"
                        " --show-cdup --show-superproject-working-tree --is-inside-work-tree"
                        " --is-inside-git-dir --is-bare-repository --is-shallow-repository --quiet"
                        " --symbolic --symbolic-full-name --all --branches=? --tags=? --remotes=?"
                        " --since= --until= --revs-only --no-revs --flags --no-flags --sq --not"
                        " --path-format= --default= --local-env-vars --show-object-format=?"),
    "revert": record(_PICK),
    "rm": record("-rfnq --cached --force --dry-run --quiet --ignore-unmatch --sparse"),
    "shortlog": record(_LOG.replace("!-O=", "")
                       + " -nsec --numbered --summary --email --committer --group=", numbers=True),
    "show-ref": record("-hqds --head --heads --branches --tags --hash=? --abbrev=? --verify"
                       " --dereference --quiet --exists"),
    "sparse-checkout": record(first="list"),
    "stash": record("-ukqpS -m,--message= --include-untracked --keep-index --no-keep-index"
                    " !-a !--all --patch --staged --quiet --index --stat --name-only --name-status"
                    " --only-untracked --pathspec-from-file=",
                    numbers=True,
                    first=", list show push pop apply drop save branch clear create"),
    "status": record("-sbvz -u,--untracked-files=? --short --branch --porcelain=? --long --verbose"
                     " --ignored=? --show-stash --ahead-behind --no-ahead-behind --renames"
                     " --no-renames --find-renames=? --ignore-submodules=? --column=? --null"),
    "submodule": record("-q --quiet --recursive --cached", first=", status summary"),
    "switch": record("-dfqtm -c,--create= -C,--force-create= --detach --force --quiet --track=?"
                     " --no-track --orphan= --discard-changes --merge --guess --no-guess"
                     " --progress --no-progress --ignore-other-worktrees"),
    "symbolic-ref": record("-q --short --quiet", most=1),
    "tag": record("-lafv -d,--delete -n=? -m,--message= -F,--file= -e "
                  + _REFS
                  + " --annotate --force --no-sign --cleanup= !-s !--sign !-u= !--local-user="),
    "var": record("-l", most=1),
    "verify-commit": record(nature="refused"),
    "version": record("--build-options"),
    "worktree": record("-v --porcelain --verbose -z ~-b= ~-B= ~--detach ~--force ~-f ~--checkout",
                       first="list"),
}  # fmt: skip

# What `git -c` may set: it changes what is printed, or who has written a commit.
HARMLESS_SETTING = re.compile(
    r"(?:user\.(?:name|email)=[\w .,+@-]*|(?:color\.(?:ui|[a-z]+)|advice\.[a-z]+|core\.quotepath"
    r"|commit\.gpgsign|tag\.gpgsign|pull\.(?:rebase|ff)|rebase\.auto[a-z]+|diff\.(?:renames|algorithm"
    r"|context|mnemonicprefix|noprefix)|merge\.conflictstyle|init\.defaultbranch|gc\.auto"
    r"|rerere\.enabled|log\.[a-z]+|grep\.[a-z]+|status\.[a-z]+)=[\w-]*"
    r"|core\.pager=(?:cat)?|(?:core|sequence)\.editor=(?:true|:))\Z",
    re.IGNORECASE,
)

GIT = record(
    "-Pph --no-pager --paginate --no-optional-locks --literal-pathspecs --glob-pathspecs"
    " --noglob-pathspecs --icase-pathspecs --no-replace-objects --no-lazy-fetch --no-advice"
    " --version -v --help -C= !-c= !--config-env= !--git-dir= !--work-tree= !--exec-path=?"
    " !--namespace= !--super-prefix= !--bare !--attr-source= --html-path --man-path --info-path"
    " --list-cmds=",
    permutes=False,
    ends_options=False,
    commands=COMMANDS,
    aliases="send-pack=push http-push=push stage=add annotate=blame",
)
