"""Everyday lines of a developer's agent: build, test, lint, git, search, file work.

In mode `free` with a sandbox nearly all of them run without a question; `RULES` are what a
developer would write who wants the same in mode `ask`.
"""

from __future__ import annotations

_PLAIN = r"""
uv run pytest -q
uv run pytest tests/test_parser.py::test_quotes -x -vv
uv run ruff check . && uv run mypy
uv sync
uv lock --check
npx tsc --noEmit
npx eslint src --ext .ts,.tsx --max-warnings 0
npx prettier --check "src/**/*.ts"
npm run build 2>&1 | tail -40
npm test -- --watch=false
npm ci
cd sub && npm test
cd web && npm run lint && npm run build
pnpm exec vitest run
yarn test
timeout 60 pytest
timeout 120 npm test 2>&1 | tail -n 60
poetry run pytest -q
poetry run mypy src
bundle exec rspec
python -m build
python -m venv .venv
python -m pytest -q tests 2>&1 | tail -40
python -m json.tool package.json
python -c 'import sys; print(sys.version)'
python3 scripts/release_notes.py --since v1.2
PYTHONPATH=. pytest
PYTHONPATH=src:. python -m unittest discover -s tests
CI=1 npm test
NODE_ENV=test node scripts/seed.js
RUST_BACKTRACE=1 cargo test -- --nocapture
cargo clippy --all-targets -- -D warnings
go test ./... -run TestParser -count=1
make -j4 test 2>&1 | tee build.log | tail -20
cmake -S . -B build && cmake --build build -j 4
gcc -Wall -O2 -o build/app src/main.c && ./build/app
node -e 'console.log(require("./package.json").version)'
pip install -e '.[dev]'
time pytest -q
nice -n 10 make
bash scripts/build.sh
./gradlew test
for f in src/*.py; do python -m py_compile "$f"; done
for i in 1 2 3; do pytest -q tests/test_flaky.py || break; done
for d in */; do echo "== $d"; ls "$d" | head -5; done
while read -r name; do echo "$name"; done < names.txt
if [ -f package.json ]; then npm test; else echo "no package.json"; fi
[[ -d node_modules ]] || npm ci
test -d .venv || python -m venv .venv
echo $HOME
echo "exit: $?"
export FOO=1 && env | grep FOO
which python node npm; python --version; node --version
command -v node && node --version
ls -la && pwd
ls src/**/*.ts | wc -l
cat pyproject.toml
head -n 40 README.md && tail -5 CHANGELOG.md
sed -n 1,80p src/app.py
sed -n '120,160p' src/app.py
sed -i 's/old_name/new_name/g' src/app.py
rg -n "def main" -g '*.py'
rg -l TODO src | xargs sed -i 's/TODO/FIXME/'
grep -rn "TODO" --include='*.py' src | head -20
find . -name '*.pyc' -delete
find . -name '*.orig' | xargs rm -f
find src -name '*.py' -print0 | xargs -0 wc -l | sort -n | tail -15
find . -type f -name '*.test.ts' -exec grep -l "describe" {} +
jq '.dependencies | keys' package.json
awk '{print $1}' access.log | sort | uniq -c | sort -rn | head
curl -s http://localhost:8000/health
curl -s -o /dev/null -w '%{http_code}\n' http://127.0.0.1:3000/
git status --short && git diff --stat
git --no-pager log --oneline -20
git diff main...HEAD -- src | head -300
git checkout -b fix/parser && git add -A
git log -1 --format=%H && git show --stat HEAD
git stash && git pull --rebase && git stash pop
git rev-parse --show-toplevel
mkdir -p src/new/pkg && touch src/new/pkg/__init__.py
cp .env.example settings.example && mv old.py new.py && rm -rf build dist
tar czf dist.tar.gz src README.md
diff <(sort a.txt) <(sort b.txt)
sqlite3 app.db '.tables'
ps aux | grep node | grep -v grep
""".strip().splitlines()

_SEVERAL_LINES = [
    "git add -A && git commit -m \"$(cat <<'EOF'\nFix the parser\n\nIt lost a word.\nEOF\n)\"",
    "python - <<'EOF'\nimport json\nprint(json.load(open('package.json'))['name'])\nEOF",
    "cat > src/new.py <<'EOF'\ndef main() -> None:\n    print('hello')\nEOF",
    "cat <<EOF > notes.txt\nbuilt on $(date +%F) in $PWD\nEOF",
    "# run the fast tests first\npytest -q -m 'not slow'\npytest -q -m slow --maxfail=1",
    "npm run build \\\n  && npm test \\\n  && echo ok",
    'VERSION=$(git describe --tags)\necho "building $VERSION"\nmake VERSION="$VERSION"',
    "set -e\ncd sub\nnpm ci\nnpm run build",
    "npm run dev > dev.log 2>&1 &\nsleep 2; curl -s localhost:3000 | head -5",
]

EVERYDAY: tuple[str, ...] = (*_PLAIN, *_SEVERAL_LINES)

_PROGRAMS = """
uv sync, uv lock, pytest, ruff, mypy, tsc, eslint, prettier, npm run, npm test, npm ci, vitest,
yarn test, rspec, python, python3, node, cargo, go, make, cmake, gcc, ./build/app, pip install,
bash scripts/build.sh, ./gradlew, echo, ls, cat, head, tail, wc, sort, uniq, sed, rg, grep, find,
rm, jq, awk, curl, git, mkdir, touch, cp, mv, tar, diff, sqlite3, ps, which, pwd, cd, test, env,
sleep, date, tee, xargs, read, set, export, break, npm
"""
RULES: tuple[str, ...] = tuple(f"{' '.join(name.split())} *" for name in _PROGRAMS.split(","))
