#!/usr/bin/env bash
# JAX finds the programs that it keeps only under the same path: in a moved folder, all are compiled again.
#
# An expert expects: a kept program's key is made of the program, the processor, the versions and XLA's flags. So the
# folder of `JAX_COMPILATION_CACHE_DIR` can be filled where an image is built, and mounted at any path.
# What happens: JAX writes the folder's path into XLA's options (for a file that only GPUs use, but on every
# processor), and the options are part of the key. The same program has another key in each folder, and nothing says
# that none is found. With `JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES=none` the path stays out, and the keys are equal.
# Why it matters: a server that starts from an image, or a job with a home of its own, compiles everything again, and
# the copied folder only grows.
#
# Versions: JAX 0.10.2, on a CPU.
# Source: jax/_src/compiler.py, `get_compile_options` (`xla_gpu_per_fusion_autotune_cache_dir`).
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.10.2 jaxlib==0.10.2

cat > "$folder/program.py" <<'PYTHON'
import jax
import jax.numpy as jnp


def step(x):
    return jnp.tanh(x) + 1


jax.jit(step)(jnp.ones((2, 3)))
PYTHON
export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1
run() {  # prints the number of kept programs
    JAX_COMPILATION_CACHE_DIR=$1 "$folder/venv/bin/python" "$folder/program.py"
    find "$1" -name 'jit_step-*' | wc -l
}
first=$(run "$folder/first")
again=$(run "$folder/first")
cp -r "$folder/first" "$folder/moved"
moved=$(run "$folder/moved")
export JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES=none
run "$folder/without" > "$folder/log"
cp -r "$folder/without" "$folder/without_moved"
without=$(run "$folder/without_moved")
echo "JAX 0.10.2: programs kept of one step: at first $first, in a second run $again, after a move $moved;" \
    "without XLA's own caches, after a move $without"
[ "$first $again $moved $without" = "1 1 2 1" ]
