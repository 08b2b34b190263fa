#!/usr/bin/env bash
# Builds the wheel and runs the tests with it, in an environment of their own. Needs Rust and CPython 3.12 or later, by the name
# in PYTHON if it is not python3; a GPU for more than skipping.
set -euo pipefail
cd "$(dirname "$0")"

python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' || { echo "needs CPython 3.12 or later: set PYTHON" >&2; exit 1; }
environment=../target/python
[ -x "$environment/bin/maturin" ] || {
    "$python" -m venv "$environment"
    "$environment/bin/pip" install --quiet --disable-pip-version-check "maturin>=1.9.4,<2" "pytest>=8"
}
rm -rf target/wheels
"$environment/bin/maturin" build --quiet --release --interpreter "$environment/bin/python"
"$environment/bin/pip" install --quiet --disable-pip-version-check --no-index --no-deps --force-reinstall target/wheels/*.whl
"$environment/bin/python" -m pytest -q "$@"
