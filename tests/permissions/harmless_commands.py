"""Everyday commands, and rules that a sensible user would write for them."""

from __future__ import annotations

_PROGRAMS = """
ls, cat, head, tail, wc, grep, rg, find, sort, uniq, cut, tr, sed, awk, diff, stat, file, du,
df, which, echo, printf, pwd, date, tree, basename, dirname, realpath, cd, mkdir, cp,
mv, test, true, jq, uname, whoami, id, ps, sha256sum, git status, git diff, git log, git show,
git branch, git add, git commit, git checkout, git switch, git stash, git blame, git grep, git
ls-files, git rev-parse, git remote, git fetch, git pull, git push, git tag, git config, git
describe, git shortlog, git restore, npm run, npm test, npm ls, python -m pytest, pytest, make,
ruff, mypy, cargo, go, python, node, tsc, pip list, pip show, tar
"""
SENSIBLE: tuple[str, ...] = (
    *(f"{' '.join(name.split())} *" for name in _PROGRAMS.split(",")),
    "npm ci",
    "touch src/new/__init__.py",  # `touch` is what hostile commands do, so only this one
    "npm install",
)

HARMLESS: tuple[str, ...] = tuple(
    r"""
ls
ls -la
ls -la src tests
ls *.py
ls src/*.py
cat README.md
cat pyproject.toml | head -20
head -n 50 src/main.py
tail -5 CHANGELOG.md
wc -l src/main.py
wc -l src/*.py | sort -n
grep -rn "TODO" src
grep -rn 'def main' --include='*.py' .
grep -n "class .*Error" src/errors.py
grep -c "foo\.bar" a.txt
grep -rnE 'foo|bar' src tests
grep -v '^#' settings.ini | sort | uniq -c | sort -rn | head -10
rg -n "import os" src
rg --files -g '*.ts'
rg -l TODO | wc -l
find . -name '*.py'
find . -name "*.py" -not -path './.venv/*'
find src -type f -name '*.ts' -newer package.json
find . -maxdepth 2 -type d
find . -type f -size +1M -print
find . -path ./node_modules -prune -o -name '*.js' -print
find . -name '*.log' -mtime +7 | wc -l
sort names.txt | uniq
sort -u -k 2,2 -t , data.csv
cut -d: -f1 users.txt
tr a-z A-Z < names.txt
sed -n '10,20p' src/main.py
sed -n '/start/,/end/p' log.txt
sed 's/foo/bar/g' a.txt
sed -e 's/a/b/' -e '/x/d' a.txt
sed 's|/usr/local|/opt|' paths.txt
awk '{print $1}' a.txt
awk -F: '{print $1, $3}' users.txt
awk 'NR==1 || NR==5' a.txt
awk '{sum += $2} END {print sum}' data.txt
diff a.txt b.txt
diff -u old.py new.py
stat setup.py
file image.png
du -sh .
du -sh node_modules 2>/dev/null
df -h
which python3 node
echo done
echo "Hello, world!"
printf '%s\n' one two
pwd
date
date +%Y-%m-%d
tree -L 2 -I node_modules
basename src/main.py .py
cd src && ls
mkdir -p src/new/pkg
touch src/new/__init__.py
cp a.txt b.txt
cp -r templates build/templates
mv old.py new.py
test -f Makefile && echo yes
jq '.scripts' package.json
uname -a
sha256sum dist.tar.gz
git status
git status --short
git diff
git diff --stat
git diff --cached
git diff HEAD~1
git diff main...HEAD -- src
git log --oneline -10
git log -5 --format='%h %an %s'
git log --oneline --graph --all | head -20
git log -p -1 -- src/main.py
git log --since='2 weeks ago' --author=me
git show HEAD
git show HEAD:src/main.py
git show --stat HEAD~2
git branch
git branch -a
git branch --show-current
git add -A
git add src/main.py tests/test_main.py
git commit -m "Fix the parser"
git commit -am 'Say why; not what'
git commit -m "Read .env files" -m "They were ignored."
git checkout -b feature/parser
git checkout main
git switch -c topic
git stash
git stash pop
git stash list
git blame -L 10,20 src/main.py
git grep -n TODO
git ls-files | wc -l
git rev-parse --abbrev-ref HEAD
git rev-parse HEAD
git remote -v
git fetch origin
git fetch --all --prune
git pull
git pull --rebase origin main
git push
git push -u origin feature/parser
git tag --list
git config --get user.name
git config user.email
git restore --staged a.txt
git --no-pager log -3
npm run build
npm run test -- --watch=false
npm test
npm ci
npm install
npm ls --depth=0
pytest
pytest -q
pytest -x tests/test_main.py
pytest tests/test_main.py::test_one -v
pytest -k "parser and not slow" --tb=short
pytest -q 2>&1 | tail -20
python -m pytest -q tests
python -m unittest -v
python scripts/build.py --verbose
python --version
python3 --version
node --version
node scripts/build.js
make
make test
make -j4 all
make -n install
ruff check .
ruff check --fix src
ruff format --check .
mypy src
mypy --strict src tests
cargo build
cargo test --release
cargo clippy -- -D warnings
go test ./...
go build ./...
go vet ./...
tsc --noEmit
pip list
pip show requests
tar tzf dist.tar.gz
tar czf out.tgz src
ps aux | grep node
""".strip().splitlines()
)
