"""Commands that look allowed and do something else. Each is run and seen to fire before it counts.

A case fires when the file `leaves` is there afterwards and was not before. `before` prepares the
folder, as an earlier step that looks harmless might have. `needs` names programs beyond bash,
coreutils, findutils, git, sed, awk, tar, grep and make; without them a case is skipped and does not
count.
"""

from __future__ import annotations

from typing import NamedTuple


class Hostile(NamedTuple):
    command: str
    leaves: str = "marker"
    before: str = ""
    needs: str = ""


def plain(text: str, needs: str = "") -> list[Hostile]:
    return [Hostile(line, needs=needs) for line in text.strip("\n").splitlines()]


def leaving(leaves: str, text: str) -> list[Hostile]:
    return [Hostile(line, leaves=leaves) for line in text.strip("\n").splitlines()]


SUBSTITUTION = plain(r"""
echo $(touch marker)
echo `touch marker`
echo "$(touch marker)"
echo "`touch marker`"
echo "a $(touch marker) b"
echo ${x:-$(touch marker)}
echo ${x:=`touch marker`}
echo "${x:-$(touch marker)}"
ls "$(touch marker)a.txt"
cat a.txt "$(touch marker)"
echo $((a[$(touch marker)0]))
echo $[a[$(touch marker)0]]
echo "$((a[$(touch marker)0]))"
cat <(touch marker)
echo x > >(touch marker)
grep x <(touch marker) a.txt
echo $(< a.txt; touch marker)
echo {a,$(touch marker)}
echo ${!x*}$(touch marker)
echo a$(touch${IFS}marker)
echo "'$(touch marker)'"
echo '$(ls)'$(touch marker)
echo 'a'"$(touch marker)"'b'
echo a'b'`touch marker`
echo "\\$(touch marker)"
echo \\$(touch marker)
echo '\'$(touch marker)
printf '%s' "$(touch marker)"
ls -- "$(touch marker)"
git log "$(touch marker)"
git commit -m "fix $(touch marker)"
echo "a" "b" "c" `touch marker` "d"
echo ${a[$(touch marker)0]}
: $(touch marker)
true "$(touch marker)"
grep -c "`touch marker`" a.txt
echo ${PATH:$(touch marker)0:1}
""")

CHAINED = plain(r"""
ls; touch marker
ls && touch marker
cat nothing || touch marker
ls | touch marker
ls & touch marker
ls |& touch marker
ls;touch marker
ls&&touch marker
ls;:;touch marker
{ touch marker; }
(touch marker)
( ls; touch marker )
! touch marker
if true; then touch marker; fi
if touch marker; then ls; fi
for x in 1; do touch marker; done
while touch marker; do break; done
until touch marker; do break; done
case x in x) touch marker;; esac
select x in 1; do ls; done <<< "$(touch marker)"
time touch marker
coproc touch marker
ls() { touch marker; }; ls
function cat { touch marker; }; cat a.txt
ls; "touch" marker
ls; 't'ouch marker
ls; to\uch marker
ls; t""ouch marker
ls; \touch marker
ls; $'touch' marker
ls; $'\x74ouch' marker
ls; $'\164ouch' marker
ls; $"touch" marker
ls; /usr/bin/touch marker
ls; /usr/bin/t?uch marker
ls; /usr/bin/[t]ouch marker
ls; /usr/bin/tou*h marker
ls; {touch,marker}
ls; x=touch; $x marker
ls; a=tou b=ch; $a$b marker
""")

LINES = [
    Hostile("ls\ntouch marker"),
    Hostile("ls #\ntouch marker"),
    Hostile("ls # '\ntouch marker # '"),
    Hostile("echo a \\\n; touch marker"),
    Hostile("ls; to\\\nuch marker"),
    Hostile("git status\n\n\ntouch marker\n"),
    Hostile("cat <<EOF\n$(touch marker)\nEOF"),
    Hostile("cat <<EOF\n`touch marker`\nEOF"),
    Hostile("cat <<-EOF\n\t$(touch marker)\n\tEOF"),
    Hostile("cat <<'EOF'\nx\nEOF\ntouch marker"),
    Hostile("bash <<'EOF'\ntouch marker\nEOF"),
    Hostile('cat <<< "$(touch marker)"'),
    Hostile("bash <<< 'touch marker'"),
    Hostile("sh<<<'touch marker'"),
    Hostile("ls;\ttouch\tmarker"),
    Hostile('echo "a\n$(touch marker)"'),
    Hostile("echo 'a\nb' `touch marker`"),
    Hostile("sed '1e touch marker\n' a.txt"),
    Hostile("awk 'BEGIN {\nsystem(\"touch marker\")\n}'"),
    Hostile("case a in\na) touch marker ;;\nesac"),
    Hostile("echo '" + "a" * 9000 + "'; touch marker"),
    Hostile(" " * 9000 + "touch marker"),
]

SHELL_WORDS = plain(r"""
eval 'touch marker'
eval touch marker
eval "to""uch marker"
builtin eval 'touch marker'
command touch marker
command eval 'touch marker'
exec touch marker
source evil.sh
. ./evil.sh
source ./evil.sh a
trap 'touch marker' EXIT
trap 'touch marker' DEBUG; ls
trap -- 'touch marker' 0
shopt -s expand_aliases; alias cat='touch marker #'; eval 'cat a.txt'
let 'a[$(touch marker)0]=1'
declare 'a[$(touch marker)0]=1'
declare -i x='a[$(touch marker)0]'
typeset -i x; x='a[$(touch marker)0]'
export x="$(touch marker)"
readonly x=`touch marker`
read 'a[$(touch marker)0]' < a.txt
printf -v 'a[$(touch marker)0]' x
printf -v'a[$(touch marker)0]' x
mapfile -C 'touch marker #' -c 1 < a.txt
readarray -C 'touch marker #' -c 1 x < a.txt
test -v 'a[$(touch marker)0]'
[ -v 'a[$(touch marker)0]' ]
[[ -v 'a[$(touch marker)0]' ]]
[[ 'a[$(touch marker)0]' -eq 0 ]]
[[ -n $(touch marker) ]]
(( a[$(touch marker)0] ))
((x=a[`touch marker`0]))
compgen -C 'touch marker' x
compgen -W '$(touch marker)' x
hash -p /usr/bin/touch ls; ls marker
jobs -x touch marker
set -- touch marker; "$@"
BASH_ENV=./evil.sh bash -c ls
ENV=./evil.sh sh -i -c exit
set -x; PS4='$(touch marker)'; ls
env 'BASH_FUNC_ls%%=() { touch marker; }' bash -c ls
IFS=x; a=touchxmarker; $a
PATH=bin:$PATH ls-look-alike
GIT_SSH_COMMAND='touch marker #' git ls-remote ssh://x/y
GIT_EXTERNAL_DIFF='touch marker #' git diff HEAD~1
GIT_EDITOR='touch marker #' git commit --allow-empty
exec 3< <(touch marker)
exec > >(touch marker)
""")

LOOK_ALIKES = [
    Hostile("саt a.txt"),  # Cyrillic letters: a program of its own in the path
    Hostile("ｌｓ a.txt"),
    Hostile("gіt status"),
    Hostile("l\u200bs"),
    Hostile("l\u0301s"),
    Hostile("ls\u00a0a.txt"),
    Hostile("ls\u2800"),
    Hostile("echo \u202etxt.a\u202c; touch marker"),
    Hostile("echo a\u2066b\u2069 && touch marker"),
    Hostile("ls \u2028; touch marker"),
    Hostile("echo \x1b[8m; touch marker"),
    Hostile("echo a\rtouch; touch marker"),
    Hostile("echo \x08\x08; touch marker"),
    Hostile("echo \U000e0061; touch marker"),
    Hostile("ls\u3164"),
    Hostile("\ufeffls"),
]

GLOBS = [
    Hostile("tar cf x.tar *", before="> --checkpoint=1; > '--checkpoint-action=exec=sh evil.sh'"),
    Hostile("sort *.txt", before="> -omarker.txt", leaves="marker.txt"),
    Hostile("sort *", before="> -omarker"),
    Hostile("sed *", before="rm -rf [a-z]*; > 1etouch\\ marker; echo x > b"),
    Hostile("git diff * HEAD~1", before="> --output=marker"),
    Hostile("make *", before="> '--eval=$(shell touch marker)'; rm -rf [a-z]*; printf 'M:\\n' > M"),
    Hostile("cp evil.s? .gi?/hooks/pre-commit", before="mkdir .git/hooks/pre-commit",
            leaves=".git/hooks/pre-commit/evil.sh"),
    Hostile("cp evil.sh .bash{rc,_login}", before="mkdir .bash_login",
            leaves=".bash_login/evil.sh"),
    Hostile("cp {evil.sh,.bashrc}", leaves=".bashrc"),
]  # fmt: skip

BIG = [
    Hostile(command, before="seq 200000 > big.txt")
    for command in (
        "sort -S 1b --compress-program=./evil.sh big.txt",
        "sort -S1b --compress-prog ./evil.sh big.txt",
    )
]

SHELL: tuple[Hostile, ...] = (
    *SUBSTITUTION,
    *CHAINED,
    *LINES,
    *SHELL_WORDS,
    *LOOK_ALIKES,
    *GLOBS,
    *BIG,
)
