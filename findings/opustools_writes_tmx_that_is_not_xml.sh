#!/usr/bin/env bash
# OpusTools writes a TMX file that no XML parser reads, as soon as one alignment is not one to one.
#
# An expert expects: `opus_read --write_mode tmx` writes one `<tu>` for each alignment, with a `<tuv>` for each
# language; two sentences that are aligned with one are joined by a space, as in its `moses` mode.
# What happens: it opens a `<tu>` for each source sentence, and closes one for each target sentence. Two source
# sentences with one target sentence leave a `<tu>` open, one with two closes what is not open, and a sentence without
# a counterpart does one of these. It writes the file without a message. Strict parsers refuse all of it; lenient ones
# (lxml with `recover`) pair other sentences.
# Why it matters: OPUS is where most training text comes from, its books, subtitles and parliaments are full of
# alignments of two sentences with one, and TMX is what translators' tools and many training programs take.
# `--src_range 1 --tgt_range 1` gives a valid file, without these sentences; `--write_mode moses` gives all of them.
#
# Versions: opustools 1.9.0. Source: opustools/formatting.py, `sentence_format_type` (`tmx_src`, `tmx_trg`);
# github.com/Helsinki-NLP/OpusTools, issue 25 (2021, closed).
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet opustools==1.9.0 lxml==6.1.3

cd "$folder"
venv/bin/python - <<'PYTHON'
import gzip
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree
from zipfile import ZipFile

import lxml.etree

print("opustools", version("opustools"))
TEXTS = {
    "en": ["The dog barks.", "It rains.", "We stay at home.", "Good night!"],
    "sv": ["Hunden skäller.", "Det regnar, så vi stannar hemma.", "God natt!"],
}
for language, texts in TEXTS.items():
    lines = [f'<s id="{i}">{text}</s>' for i, text in enumerate(texts, 1)]
    text = "<text>\n" + "\n".join(lines) + "\n</text>\n"
    with ZipFile(f"{language}.zip", "w") as archive:
        archive.writestr(f"Tales/raw/{language}/one.xml", '<?xml version="1.0" encoding="utf-8"?>\n' + text)
with gzip.open("en-sv.xml.gz", "wt") as file:
    file.write(
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<!DOCTYPE cesAlign PUBLIC "-//CES//DTD XML cesAlign//EN" "">\n<cesAlign version="1.0">\n'
        '<linkGrp targType="s" fromDoc="en/one.xml.gz" toDoc="sv/one.xml.gz">\n'
        '<link xtargets="1;1" id="SL1" />\n<link xtargets="2 3;2" id="SL2" />\n<link xtargets="4;3" id="SL3" />\n'
        "</linkGrp>\n</cesAlign>\n"
    )


def read(mode, *options):
    """Return what `opus_read` writes."""
    command = [Path(sys.executable).with_name("opus_read"), "-d", "Tales", "-s", "en", "-t", "sv", "-p", "raw"]
    command += ["-af", "en-sv.xml.gz", "-sz", "en.zip", "-tz", "sv.zip", "-wm", mode, "-w", "out", *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # it shows progress
    return Path("out").read_text()


pairs = [line.split("\t") for line in read("moses").splitlines()]
print("moses:", *pairs, sep="\n    ")
assert pairs[1] == ["It rains. We stay at home.", TEXTS["sv"][1]] and len(pairs) == 3
text = read("tmx")
print(text)
try:
    ElementTree.fromstring(text.encode())
    raise SystemExit("the file is XML")
except ElementTree.ParseError as error:
    print("Python's parser:", error)
repaired = lxml.etree.fromstring(text.encode(), lxml.etree.XMLParser(recover=True))
units = [[segment.text for segment in unit.iter("seg")] for unit in repaired.iter("tu")]
print("lxml with recover:", *units, sep="\n    ")
assert units != pairs
kept = ElementTree.fromstring(read("tmx", "-S", "1", "-T", "1").encode())
print("one to one only:", len([*kept.iter("tu")]), "of 3 units")
assert len([*kept.iter("tu")]) == 2
PYTHON
