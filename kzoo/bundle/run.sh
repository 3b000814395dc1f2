#!/usr/bin/env bash
# Trains and scores the recipes of this bundle with JAX; run again to resume.
#
#     bash run.sh [KEY=VALUE …]
#
# KEY=VALUE changes every recipe, such as epochs=1. PYTHON is the Python PYTHON_VERSION that has JAX (python3);
# OUT the folder for weights, scores and logs (./results). Runs with their checkpoints are in ./runs.
set -eu
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON:-python3}
packages=$PWD/runs/.packages

"$python" -c '
import importlib.util, sys
seen = "%d.%d" % sys.version_info[:2]
if seen != "PYTHON_VERSION":
    sys.exit(f"error: {sys.executable} is Python {seen}; this bundle is for PYTHON_VERSION: set PYTHON")
if importlib.util.find_spec("jax") is None:
    sys.exit(f"error: {sys.executable} has no JAX: set PYTHON to one that has")
'
# A folder, not a virtual environment: one made from another does not see the packages of the other.
if ! cmp -s "$here/bundle.json" "$packages/bundle.json"; then
    rm -rf "$packages"
    "$python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-compile \
        --target "$packages" "$here"/wheels/*.whl
    cp "$here/bundle.json" "$packages"
fi
export KERAS_BACKEND=jax KZOO_DATA=$here/data PYTHONPATH=$packages:$here/code${PYTHONPATH:+:$PYTHONPATH}
exec "$python" -m kzoo.bundle.target "$here" "$@"
