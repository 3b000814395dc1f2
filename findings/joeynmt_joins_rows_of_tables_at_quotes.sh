#!/usr/bin/env bash
# JoeyNMT reads a table of sentences (`dataset_type: tsv`) as quoted cells: a quotation mark can swallow many rows.
#
# An expert expects: a `.tsv` of parallel text is split at tabs and line feeds, as Tatoeba, OPUS and WMT write it;
# quotation marks and words such as "None" are text.
# What happens: JoeyNMT reads it by pandas with its defaults. A sentence that begins with " and does not close it (speech
# that goes on in the next row) takes in all that follows, tabs and line feeds too, up to the next ". That cell becomes
# one sentence of several rows, or its row lacks a side and is left out. If the quotation closes, its marks are lost. A
# sentence "None", "null" or "NA" counts as missing, and its row is left out. Nothing is printed.
# Why it matters: Tatoeba and subtitles are full of direct speech. The training text is smaller and other than the file, the
# translator never sees the marks, and scores are computed on fewer test sentences. Write two plain files instead.
#
# Versions: joeynmt 2.3.0, pandas 3.1.1. Source: joeynmt/datasets.py, `TsvDataset.load_data`.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet joeynmt==2.3.0 torch==2.13.0 pandas==3.1.1 sentencepiece==0.2.0 \
    setuptools==80.10.2 importlib_metadata==10.2.0

cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON' 2> "$folder/log" || { cat "$folder/log"; exit 1; }
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

from joeynmt.config import _check_special_symbols
from joeynmt.data import load_data  # what `joeynmt train` calls

print("joeynmt", version("joeynmt"), "pandas", version("pandas"))
ROWS = [
    ("A dog runs.", "Ein Hund rennt."),
    ('"Come here!" he said.', "„Komm her!“, sagte er."),
    ("None", "Keine"),
    ('"I was asleep.', "„Ich schlief."),
    ("I did not hear you.", "Ich habe dich nicht gehört."),
    ('It was late," she said.', "Es war spät“, sagte sie."),
    ("Two men sit.", "Zwei Männer sitzen."),
]


def pairs(rows):
    """Return the pairs that JoeyNMT would train on."""
    text = "".join(f"{english}\t{german}\n" for english, german in [("en", "de"), *rows])
    Path("train.tsv").write_text(text, encoding="utf-8")
    config = {code: {"lang": language, "level": "word"} for code, language in (("src", "en"), ("trg", "de"))}
    config |= {"train": "train", "dataset_type": "tsv", "special_symbols": SimpleNamespace(**_check_special_symbols({}))}
    data = load_data(config, datasets=["train"])[2]
    found = [(" ".join(source), " ".join(target)) for _, source, target in map(data.__getitem__, range(len(data)))]
    print(f"{len(rows)} rows, {len(found)} read:", *map(repr, found), sep="\n  ")
    return found


plain = [ROWS[0], ROWS[4], ROWS[6]]
assert pairs(plain) == plain
found = pairs(ROWS)
assert len(found) < len(ROWS) and found[0] == ROWS[0] and found[-1] == ROWS[-1]
assert ("Come here! he said.", ROWS[1][1]) in found  # without its marks
assert all(english != "None" for english, _ in found)
assert not {ROWS[4], ROWS[5]} & set(found)  # swallowed
PYTHON
