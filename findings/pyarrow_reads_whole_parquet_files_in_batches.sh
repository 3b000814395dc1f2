#!/usr/bin/env bash
# pyarrow's `iter_batches` holds a whole Parquet file in memory, however small the batches are.
#
# An expert expects: `ParquetFile(path).iter_batches(1000)` reads a file that is larger than the memory: a batch of rows
# at a time, or a row group.
# What happens: by default, `pre_buffer=True` reads the chosen columns of all row groups into memory before the first
# batch. `pre_buffer=False` reads one row group; with `buffer_size=`, too, little more than a batch needs.
# Why it matters: parallel text comes as Parquet (Hugging Face's data sets), and is read in batches because it is larger
# than the memory.
#
# Versions: pyarrow 26.0.1. Source: pyarrow/parquet/core.py, `ParquetFile.__init__` (`pre_buffer=True`), and
# cpp/src/parquet/arrow/reader.cc, `GetRecordBatchReader` (`PreBuffer`).
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyarrow==26.0.1

cd "$folder"
cat > read.py <<'PYTHON'
import sys

import pyarrow
import pyarrow.parquet

options = {"default": {}, "pre_buffer=False": {"pre_buffer": False}}
options["pre_buffer=False, buffer_size"] = {"pre_buffer": False, "buffer_size": 2**20}
before = pyarrow.total_allocated_bytes()
peak = rows = 0
for batch in pyarrow.parquet.ParquetFile("rows.parquet", **options[sys.argv[1]]).iter_batches(1000):
    rows += len(batch)
    peak = max(peak, pyarrow.total_allocated_bytes() - before)
assert rows == 200_000
print(peak >> 20)
PYTHON
venv/bin/python - <<'PYTHON'
import random
import subprocess
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet

print("pyarrow", pyarrow.__version__)
drawn = random.Random(1)
names = ("en", "de")
with pyarrow.parquet.ParquetWriter(
    "rows.parquet", pyarrow.schema([(name, pyarrow.string()) for name in names]), compression="none"
) as writer:
    for _ in range(10):  # row groups of 20,000 rows
        rows = {name: [drawn.randbytes(500).hex() for _ in range(20_000)] for name in names}
        writer.write_table(pyarrow.table(rows))
size = Path("rows.parquet").stat().st_size >> 20
print(f"the file: {size} MiB in 10 row groups; a batch of 1000 rows: 2 MiB")
taken = {}
for options in ("default", "pre_buffer=False", "pre_buffer=False, buffer_size"):
    done = subprocess.run([sys.executable, "read.py", options], check=True, capture_output=True, text=True)
    taken[options] = int(done.stdout)
    print(f"{options}: {taken[options]} MiB allocated")
whole, group, buffered = taken.values()
assert whole > 0.9 * size and group < 0.3 * size and buffered < 0.1 * size
PYTHON
