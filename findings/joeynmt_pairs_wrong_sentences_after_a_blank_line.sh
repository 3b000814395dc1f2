#!/usr/bin/env bash
# JoeyNMT pairs each sentence after a blank line with another one's translation.
#
# An expert expects: of two parallel files, a row with a blank side is left out, or is an error. And a line ends at a
# line feed, so `wc -l` says how many rows there are.
# What happens: JoeyNMT first compares the number of lines, then takes the blank lines out of each side by itself. A
# blank source line moves all sentences behind it up by one, against their translations. Nothing is printed; training
# goes on, on wrong pairs. Blank lines on both sides shift what is between them.
# Lines also end at U+2028, U+0085, form feeds and other marks, which web text and text from PDFs contain. One on either
# side passes the check of the number of lines, and shifts what is between them, too.
# Why it matters: Europarl, Common Crawl and news corpora have blank lines on one side. Whoever compares a translator with
# JoeyNMT on such files compares it with a system that was trained on noise, and its BLEU, whose references are read in
# the same way, is as wrong. Take out rows with a blank side, and replace these marks, before.
#
# Versions: joeynmt 2.3.0, torch 2.13.0. Source: joeynmt/datasets.py, `PlaintextDataset.load_data`, and joeynmt/helpers.py,
# `read_list_from_file`; github.com/joeynmt/joeynmt, issue 183 (open), which says that blank lines are skipped.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet joeynmt==2.3.0 torch==2.13.0 sentencepiece==0.2.0 setuptools==80.10.2 \
    importlib_metadata==10.2.0

cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON' 2> "$folder/log" || { cat "$folder/log"; exit 1; }
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

from joeynmt.config import _check_special_symbols
from joeynmt.data import load_data  # what `joeynmt train` calls

print("joeynmt", version("joeynmt"), "torch", version("torch"))
ENGLISH = ["A dog runs.", "A man sleeps.", "Two men sit.", "A boy sings.", "A woman reads."]
GERMAN = ["Ein Hund rennt.", "Ein Mann schläft.", "Zwei Männer sitzen.", "Ein Junge singt.", "Eine Frau liest."]


def pairs(title, english, german):
    """Return the pairs that JoeyNMT would train on."""
    for code, lines in (("en", english), ("de", german)):
        Path(f"train.{code}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    config = {code: {"lang": language, "level": "word"} for code, language in (("src", "en"), ("trg", "de"))}
    config |= {"train": "train", "special_symbols": SimpleNamespace(**_check_special_symbols({}))}
    data = load_data(config, datasets=["train"])[2]
    found = [(" ".join(source), " ".join(target)) for _, source, target in map(data.__getitem__, range(len(data)))]
    print(title, *(f"{source} = {target}" for source, target in found), sep="\n  ")
    return found


def with_row(texts, row, text):
    return [*texts[:row], text, *texts[row + 1 :]]


right = list(zip(ENGLISH, GERMAN))
assert pairs("as written", ENGLISH, GERMAN) == right
found = pairs("line 2 of the source is blank", with_row(ENGLISH, 1, ""), GERMAN)
assert found == [right[0], *zip(ENGLISH[2:], GERMAN[1:])]  # all but the first are wrong
found = pairs("and line 4 of the target", with_row(ENGLISH, 1, ""), with_row(GERMAN, 3, ""))
assert found == [right[0], *zip(ENGLISH[2:4], GERMAN[1:3]), right[4]]
for name, mark in (("U+2028", "\u2028"), ("U+0085", "\u0085"), ("form feed", "\x0c")):
    english, german = (with_row(texts, row, texts[row].replace(" ", mark, 1)) for texts, row in ((ENGLISH, 1), (GERMAN, 3)))
    found = pairs(f"{name} in line 2 of the source and line 4 of the target", english, german)
    assert len(found) == 6 and found[2:4] == [("man sleeps.", GERMAN[2]), (ENGLISH[2], "Ein")]
PYTHON
