# Sourced by ./start and ./test: sets $UV to a uv that works, and says in one line what it does.
# A machine with Python 3.11 and pip is enough: uv is brought along in .uv when it is not there.
# Nothing outside this directory changes, nothing needs root, and nothing is asked.

root=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

if [ -n "${UV:-}" ] && [ -x "$UV" ]; then
    : # given from outside
elif UV=$(command -v uv); then
    :
else
    UV=$root/.uv/bin/uv
    if ! "$UV" --version >/dev/null 2>&1; then
        echo "setting up: bringing uv along into .uv" >&2
        PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-input \
            --target "$root/.uv" --upgrade uv >&2 || {
            echo "could not fetch uv; install it (https://docs.astral.sh/uv/) and try again" >&2
            exit 1
        }
    fi
fi
PATH=$(dirname -- "$UV"):$PATH  # the embedded model's weights are fetched with it
export PATH
[ -d "$root/.venv" ] || echo "setting up: making .venv with the locked packages" >&2
