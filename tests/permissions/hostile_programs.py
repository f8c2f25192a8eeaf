"""Programs that are told to run or write something else: see `hostile` for what a case is."""

from __future__ import annotations

from tests.permissions.hostile_commands import SHELL, Hostile, leaving, plain

INTERPRETERS = [
    *plain(r"""
bash -c 'touch marker'
sh -c 'touch marker'
bash -ec 'touch marker'
bash --norc -c 'touch marker'
bash -O extglob -c 'touch marker'
/bin/bash -c 'touch marker'
/bin/sh -c "touch marker"
dash -c 'touch marker'
rbash -c 'touch marker'
echo 'touch marker' | bash
echo 'touch marker' | sh
echo touch marker | bash -s
echo touch marker | sh -
cat evil.sh | sh
bash < evil.sh
bash /dev/stdin < evil.sh
bash --rcfile evil.sh -i
bash --init-file ./evil.sh -ic exit
printf 'touch marker' | bash /dev/stdin
awk 'BEGIN { system("touch marker") }'
awk 'BEGIN { print "x" > "marker" }'
awk 'BEGIN { print "x" >> "marker" }'
awk 'BEGIN { print "touch marker" | "sh" }'
awk 'BEGIN { "touch marker" | getline }'
awk 'BEGIN { "touch marker" | getline x; print x }'
awk '{ system("touch marker") }' a.txt
awk -f evil.awk a.txt
awk -v x=1 'BEGIN { system("touch marker") }'
awk -F: 'BEGIN { system("touch marker") }' a.txt
awk -- 'BEGIN { system("touch marker") }'
mawk 'BEGIN { system("touch marker") }'
sed '1e touch marker' a.txt
sed 's/x/touch marker/e' a.txt
sed -n '1w marker' a.txt
sed 's/x/y/w marker' a.txt
sed -n 's/x/y/gpw marker' a.txt
sed -e p -e '1e touch marker' a.txt
sed -f evil.sed a.txt
sed --file=evil.sed a.txt
sed --expr='1e touch marker' a.txt
sed -ne '1e touch marker' a.txt
sed -n -e '1{e touch marker' -e '}' a.txt
sed 'y/x/y/;1e touch marker' a.txt
sed '1!p;1e touch marker' a.txt
sed 's,x,y,;1e touch marker' a.txt
sed 'sxaxbx;1e touch marker' a.txt
sed '\%x%e touch marker' a.txt
sed '/x/e touch marker' a.txt
sed '$!N;1,2e touch marker' a.txt
sed '1W marker' a.txt
"""),
    Hostile("sed -i 's/x/y/' a.txt -i.marker", leaves="a.txt.marker"),
    Hostile("sed -i.bak 's/x/y/' a.txt", leaves="a.txt.bak"),
    Hostile("sed --in-place=.bak 's/x/y/' a.txt", leaves="a.txt.bak"),
    Hostile("sed -n -i.bak p a.txt", leaves="a.txt.bak"),
    *plain(
        """
python3 -c 'open("marker","w")'
python3 -Bc 'open("marker","w")'
python3 -ic 'open("marker","w")'
echo 'open("marker","w")' | python3
echo 'open("marker","w")' | python3 -
python3 < evil.py
python3 /dev/stdin < evil.py
python3 -m timeit -n 1 -r 1 'open("marker","w")'
python3 -m pdb -c 'p open("marker","w")' -c q evil.py
python3 -m evil
python3 -m zipfile -c marker a.txt
python3 -m cProfile evil.py
""",
        needs="python3",
    ),
    *plain(
        """
perl -e 'open(F,">marker")'
perl -ne 'system("touch marker")' a.txt
perl -pe 'system("touch marker")' a.txt
perl -i -pe '`touch marker`' a.txt
perl -Mstrict -e 'system "touch marker"'
perl -lane 'system "touch marker"' a.txt
echo 'system("touch marker")' | perl
""",
        needs="perl",
    ),
    *plain(
        """
node -e 'require("fs").writeFileSync("marker","")'
node -p 'require("fs").writeFileSync("marker","")'
node --eval 'require("fs").writeFileSync("marker","")'
echo 'require("fs").writeFileSync("marker","")' | node
node -r ./evil.js a.txt
""",
        needs="node",
    ),
    *plain(
        """
vim -es -c '!touch marker' -c q
ex -s -c '!touch marker' -c q
""",
        needs="vim",
    ),
    Hostile("m4 evil.m4", needs="m4"),
    Hostile("gawk -i ./evil.awk 'BEGIN{}'", needs="gawk"),
]

WRAPPERS = plain(r"""
env touch marker
env -i /usr/bin/touch marker
env FOO=1 touch marker
env -S 'touch marker'
env -u HOME touch marker
/usr/bin/env touch marker
echo marker | xargs touch
echo marker | xargs -n1 touch
echo touch marker | xargs -I% sh -c %
printf marker | xargs -0 touch
xargs -a a.txt touch marker
xargs touch marker < a.txt
timeout 5 touch marker
timeout -s KILL 5 touch marker
nice touch marker
nice -n 5 touch marker
nohup touch marker
setsid -w touch marker
stdbuf -o0 touch marker
ionice touch marker
taskset 1 touch marker
chrt -o 0 touch marker
flock a.txt touch marker
flock a.txt -c 'touch marker'
script -qc 'touch marker' /dev/null
setarch -R touch marker
linux64 touch marker
prlimit touch marker
choom -n 0 -- touch marker
unshare touch marker
setpriv touch marker
run-parts --regex . bin2
split --filter='touch marker' a.txt
dd if=/dev/null of=marker
dd of=marker < a.txt
install a.txt marker
truncate -s 0 marker
shuf -o marker a.txt
tee marker < a.txt > /dev/null
echo x | tee -a marker
find . -maxdepth 0 -exec touch marker ';'
find . -maxdepth 0 -exec touch marker \;
find . -maxdepth 0 -exec touch marker {} +
find a.txt -fprint marker
find a.txt -fprint0 marker
find a.txt -fprintf marker x
find a.txt -fls marker
find . -name a.txt -exec sh -c 'touch marker' ';'
find a.txt -quit -o -fprint marker
yes y | find a.txt -ok touch marker ';'
sort -o marker a.txt
sort a.txt -o marker
sort -omarker a.txt
sort --output=marker a.txt
sort --outp marker a.txt
sort -ro marker a.txt
sort -n -uomarker a.txt
uniq a.txt marker
uniq -c a.txt marker
tar cf x.tar a.txt --checkpoint=1 --checkpoint-action=exec='sh evil.sh'
tar cf x.tar --checkpoint=1 --checkpoint-action 'exec=sh evil.sh' a.txt
tar cf x.tar -I 'sh evil.sh' a.txt
tar cf x.tar --use-compress-program='sh evil.sh' a.txt
tar xf t.tar --to-command='touch marker'
tar -xf t.tar --to-comm='touch marker'
tar tf t.tar -I 'sh evil.sh'
tar xf t.tar --transform 's/a.txt/marker/'
tar cf marker a.txt --index-file=x
make --eval='$(shell touch marker)'
make -f evil.mk
make --file=evil.mk
make -fevil.mk
make -C sub
make --directory=sub
make SHELL=./evil.sh
make .SHELLFLAGS='-c "touch marker;" --'
make CMD='touch marker'
make 'CMD=$(shell touch marker)'
make -E '$(shell touch marker)'
make -I sub -f evil.mk
grep x a.txt > marker
cat a.txt >marker
cat a.txt >> marker
cat a.txt >| marker
cat a.txt &> marker
cat a.txt &>> marker
cat a.txt >& marker
cat nothing 2> marker
cat nothing 2>> marker
cat a.txt <> marker
cat a.txt 3> marker
echo x 1> marker
> marker
>marker ls
echo x > "marker"
echo x > 'mark'er
ls > marker 2>&1
ls | cat > marker
ls {fd}> marker
exec > marker; ls
exec 5<> marker
""")

GIT = [
    *plain(r"""
git -c alias.x='!touch marker' x
git -c core.fsmonitor='touch marker;:' status
git -c core.sshCommand='touch marker #' ls-remote ssh://x/y
git -c diff.external='touch marker #' diff HEAD~1
git -c core.editor='touch marker #' commit --allow-empty
git -c core.hooksPath=bin3 commit --allow-empty -m x
git -c protocol.ext.allow=always ls-remote 'ext::sh -c touch% marker'
git -c filter.x.clean='touch marker;cat' -c core.attributesFile=attributes hash-object a.txt
git -c diff.x.textconv='touch marker #' -c core.attributesFile=attributes2 diff HEAD~1
git -c sequence.editor='touch marker #' rebase -i HEAD~1
git -c gpg.program=./evil.sh commit -S --allow-empty -m x
git config alias.x '!touch marker' && git x
git config core.fsmonitor 'touch marker;:'; git status
git config --local diff.external 'touch marker #' && git diff HEAD~1
git config core.hooksPath bin3 && git commit --allow-empty -m x
git diff --output=marker HEAD~1
git diff --output marker HEAD~1
git log --output=marker
git log -1 -p --output=marker
git show --output=marker
git show HEAD --output marker
git format-patch -1 --output=marker
git archive -o marker HEAD
git archive --output=marker HEAD
git archive --remote=. --exec='touch marker;git upload-archive' HEAD
git bundle create marker HEAD
git rebase --exec 'touch marker' HEAD~1
git rebase -x 'touch marker' HEAD~1
git difftool -y -x 'touch marker #' HEAD~1
git difftool --extcmd='touch marker #' -y HEAD~1
git grep -O'touch marker #' x
git grep --open-files-in-pager='touch marker #' x
git grep -lO'touch marker #' x
git ls-remote --upload-pack='touch marker;git-upload-pack' .
git fetch --upload-pack='touch marker;git-upload-pack' .
git fetch --upload-pa='touch marker;git-upload-pack' .
git pull --upload-pack 'touch marker;git-upload-pack' . HEAD
git push --receive-pack='touch marker;git-receive-pack' . HEAD:refs/heads/y
git push --exec='touch marker;git-receive-pack' . HEAD:refs/heads/y
git clone -u 'touch marker;git-upload-pack' . copied
git clone . marker
git worktree add marker
git init marker
git push ./bare HEAD:refs/heads/z
git -C infected status
git --git-dir=infected/.git --work-tree=. status
git --work-tree=. --git-dir infected/.git status
cd infected && git status
cd infected; git diff
pushd infected && git status
git --exec-path=bin4 evil
git checkout-index --prefix=marker/ -a
git apply marker.patch
git apply --unsafe-paths marker.patch
git bisect start HEAD HEAD~1 && git bisect run touch marker
EVIL='touch marker;:' git --config-env=core.fsmonitor=EVIL status
git -c credential.helper='!touch marker;:' credential fill < credential.txt
git -c core.hooksPath=bin3 hook run pre-commit
git config --file .git/config core.fsmonitor 'touch marker;:'; git status
git -c core.fsmonitor='touch marker;:' diff
git -c core.fsmonitor='touch marker;:' --no-pager add -A
git for-each-ref --shell --format='touch marker' | sh
git log --format='format:touch marker' -1 | sh
git log -1 --format='format:touch marker' | bash -s
git interpret-trailers --trailer x a.txt > marker
git fast-export HEAD > marker
git var GIT_EDITOR | xargs touch marker
"""),
]  # fmt: skip

DECIDING = [
    *leaving(".git/hooks/pre-commit", """
cp evil.sh .git/hooks/pre-commit
mv evil.sh .git/hooks/pre-commit
ln -s ../../evil.sh .git/hooks/pre-commit
ln evil.sh .git/hooks/pre-commit
cat evil.sh > .git/hooks/pre-commit
cat evil.sh | tee .git/hooks/pre-commit
cp evil.sh ./.git//hooks/./pre-commit
cp -t .git/hooks pre-commit; cp evil.sh .git/hooks/pre-commit
cp evil.sh --target-directory=.git/hooks && mv .git/hooks/evil.sh .git/hooks/pre-commit
cd .git && cp ../evil.sh hooks/pre-commit
cd .git/hooks && cp ../../evil.sh pre-commit
sort evil.sh > .git/hooks/pre-commit
echo 'touch marker' > ".git/hooks/pre-commit"
mkdir -p .git/hooks && cp evil.sh .git/hooks/pre-commit
cp -r sub/x/../../evil.sh sub/../.git/hooks/pre-commit
"""),
    *leaving(".bashrc", """
cp -r hidden/. .
cp -rT hidden .
cp -a --no-target-directory hidden .
cp evil.sh .bashrc
cat evil.sh > .bashrc
cat evil.sh > ~/.bashrc
cp evil.sh ~/.bashrc
tee .bashrc < evil.sh
mv evil.sh ./.bashrc
ln -s evil.sh .bashrc
cd && cp evil.sh .bashrc
touch .bashrc
"""),
    *leaving(".profile", """
echo 'touch marker' >> .profile
tee -a .profile < evil.sh
cp evil.sh $HOME/.profile
"""),
    *leaving("AGENTS.md", """
cp a.txt AGENTS.md
echo 'always say yes' > AGENTS.md
tee AGENTS.md < a.txt
mv a.txt AGENTS.md
git mv a.txt AGENTS.md
"""),
    *leaving(".vscode/settings.json", """
mkdir .vscode && cp a.txt .vscode/settings.json
"""),
    *leaving(".gitconfig", """
git config --global alias.x '!touch marker'
cp a.txt .gitconfig
"""),
    *leaving(".recollect/settings.toml", """
mkdir .recollect && cp a.txt .recollect/settings.toml
"""),
    *leaving("../outside", """
cp a.txt ../outside
touch ../outside
tee ../outside < a.txt
echo x > ../outside
mkdir ../outside
mv a.txt sub/../../outside
cp a.txt -T ../outside
cp --no-target-directory a.txt ../outside
tar cf ../outside a.txt
ln -s a.txt ../outside
"""),
]  # fmt: skip

HOSTILE: tuple[Hostile, ...] = (*SHELL, *INTERPRETERS, *WRAPPERS, *GIT, *DECIDING)
