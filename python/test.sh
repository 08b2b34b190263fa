#!/usr/bin/env bash
# Builds the wheel with the emulator and runs the tests with it, in an environment of their own; without a GPU, too. Needs Rust
# and CPython 3.12 or later: that of PYTHON, or the first that is found.
set -euo pipefail
cd "$(dirname "$0")"

is_new_enough() { "$1" -c 'import sys, venv; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; }

find_python() {
    local candidate
    # Versions that pyenv has are not on the path, or are there and do not run.
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 "$(pyenv root 2>/dev/null)"/versions/3.1[2-9]*/bin/python3}; do
        if is_new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    echo "the extension module needs CPython 3.12 or later, and ${PYTHON:-python3} is none: install one, or name it in PYTHON" >&2
    return 1
}

python=$(find_python)
environment=../target/python
if ! { [ -x "$environment/bin/maturin" ] && is_new_enough "$environment/bin/python"; }; then
    rm -rf "$environment"
    "$python" -m venv "$environment"
    "$environment/bin/pip" install --quiet --disable-pip-version-check "maturin>=1.9.4,<2" "pytest>=8"
fi
rm -rf target/wheels
"$environment/bin/maturin" build --quiet --profile tests --features emulator --interpreter "$environment/bin/python"
"$environment/bin/pip" install --quiet --disable-pip-version-check --no-index --no-deps --force-reinstall target/wheels/*.whl
# Two devices, where they are the emulator's: some tests are about arrays of another one.
GRIDCALL_EMULATED_DEVICES=${GRIDCALL_EMULATED_DEVICES:-2} "$environment/bin/python" -m pytest -q "$@"
