"""Everyday lines that go through whole folders: recursive searches, `find`, `xargs`, loops.

Where no secret lies in the folder, `SEARCHES` run. `BESIDE_A_SECRET` run too where `.env` lies at
the top of the project, because their own words leave it out.
"""

from __future__ import annotations

SEARCHES: tuple[str, ...] = tuple(
    r"""
grep -rn "TODO" .
grep -rn foo
grep -rni "def main" src tests | head -50
grep -rl deprecated . | sort | head
grep -rn "import os" --include='*.py' . | wc -l
grep -R "class Parser" lib/
grep -rho "https\?://[^ ]*" docs | sort -u
grep -rc foo src | grep -v ':0$'
rg --hidden foo
rg -uu "feature_flag" .
rg -n --hidden -g '!.git' "workflow" .
rg -l foo | xargs wc -l
rg --files | xargs grep -l "use strict" | head
find . -type f -name '*.py' -exec grep -Hn "print(" {} +
find . -type f | xargs wc -l | sort -n | tail
find . -type f -newer Makefile -exec head -n 3 {} \;
find src -type f -print0 | xargs -0 grep -n "FIXME"
find . -name '*.md' | while read -r f; do head -n1 "$f"; done
find . -path ./node_modules -prune -o -name '*.ts' -print | xargs cat | wc -l
find . -name '*.log' -mtime +7 | xargs rm -f
for f in $(ls src); do echo "== $f"; head -n 5 "src/$f"; done
for f in $(git ls-files '*.py'); do grep -Hn "TODO" "$f"; done
while read -r f; do wc -l "$f"; done < <(git ls-files src)
cat $(git diff --name-only main | grep '\.py$')
git ls-files | xargs grep -n foo
git ls-files -o --exclude-standard | xargs ls -la
git diff --name-only HEAD~1 | xargs sed -n 1,20p
ls -t logs | head -1 | xargs -I{} tail -n 100 logs/{}
ls src/*.py | xargs -n1 basename
diff -r old new | head -40
diff -ru src build/src
tar czf /tmp/backup.tgz . && ls -la /tmp/backup.tgz
cp -r templates /tmp/templates && ls /tmp/templates
zip -qr dist.zip dist
cd web && grep -rn "useState" . | head
git grep -n "def main"
ls | xargs -n1 du -sh
python -c "import pathlib; print(sum(1 for p in pathlib.Path('src').rglob('*.py')))"
x=$(git ls-files '*.toml' | head -1); cat "$x"
for f in *.js; do mv "$f" "${f%.js}.ts"; done
for f in docs/*.rst; do cp "$f" "/tmp/$(basename "$f").bak"; done
""".strip().splitlines()
)

BESIDE_A_SECRET: tuple[str, ...] = tuple(
    r"""
grep -rn foo src tests
grep -rn foo --include='*.py' .
grep -rn foo --exclude='.env*' .
grep -rn foo --exclude=.env .
grep -rl foo .
rg foo
rg -n "def main" -g '*.py'
rg --hidden foo src
rg --hidden -g '!.env' foo
find src -name '*.py' | xargs wc -l
find . -name '*.py' | xargs grep -n foo
find . -name '*.py' -exec cat {} +
find . -type f ! -name '.env*' -exec grep -n foo {} +
find . -type f -not -name .env -print0 | xargs -0 head -n1
find . -type f | xargs sha256sum
find . \( -name '*.py' -o -name '*.md' \) | xargs cat
git ls-files | xargs grep foo
git ls-files '*.py' | xargs sed -n 1,5p
git grep -n foo
git grep -n foo -- '*.py'
for f in $(git ls-files); do head -n1 "$f"; done
for f in src/*.py; do head -n1 "$f"; done
for f in *.md; do cat "$f"; done
cat *
cat *.md src/*.py
head -n1 $(ls src/*.py)
ls | xargs wc -l
ls -la && ls -A | wc -l
ls src | xargs -I{} head -n1 src/{}
tar czf /tmp/src.tgz src
tar czf /tmp/all.tgz --exclude=.env .
cp -r src /tmp/src
diff -r src tests
cd src && grep -rn foo .
cd src && ls -A | xargs cat
python -c "from pathlib import Path; print(Path('src/app.py').read_text())"
python -c "from pathlib import Path; [print(p.read_text()) for p in Path('src').rglob('*.py')]"
python -c "import os; print(os.listdir('.'))"
V=$(git describe --tags --always) && echo "$V" > version.txt
cat "$(git rev-parse --show-toplevel)/README.md"
cat README.md && n=$(wc -l < README.md) && tail -n "$n" README.md
while read -r f; do wc -l "$f"; done < <(find . -type f)
git add -A && git commit -m "$(date +%F)"
""".strip().splitlines()
)
