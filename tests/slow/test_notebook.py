"""The notebook's cells run, one after the other, in an empty folder, and its model has learned."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHECKS = """
assert scores[0].bleu > 80, scores
assert load("first").translate(sentences) == translator.translate(sentences)
"""


def test_the_first_translator(tmp_path):
    notebook = json.loads((ROOT / "docs/first_translator.ipynb").read_text("utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
    subprocess.run(
        [sys.executable, "-c", "\n".join([*cells, CHECKS])], cwd=tmp_path, env=environment, check=True
    )
    for made in ("attention.png", "first/metadata.json", "first_ctranslate2/model.bin"):
        assert (tmp_path / made).is_file()
