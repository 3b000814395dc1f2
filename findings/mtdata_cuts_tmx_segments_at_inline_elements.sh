#!/usr/bin/env bash
# mtdata reads a TMX segment up to its first inline element only, and drops what comes after it.
#
# An expert expects: in TMX 1.4, a segment is text with inline elements (`bpt`, `ept`, `ph`, `it`, `hi`) for
# formatting, tags and placeholders of the document. A reader of translation memories leaves these out, or keeps them,
# and keeps the sentence around them.
# What happens: of "Press <bpt…/>Save<ept…/> before you close the window." mtdata keeps "Press". If a side begins with
# an element, its text counts as missing, and the whole unit is left out, with a warning about a "language mismatch".
# As languages put elements in other places, a whole sentence is then paired with a part of another.
# Why it matters: mtdata prepares the data of WMT's shared tasks, and reads the TMX of ELRC, the EU and Tilde so. Tools
# of translators write such elements wherever a document has formatting. Pairs of which one side is cut teach a
# translator to leave out or to invent. Take out the elements before, and keep the text around them.
#
# Versions: mtdata 0.5.1. Source: mtdata/tmx.py, `parse_tmx` (`tuv.findtext("seg")`); TMX 1.4b, section "Content
# Markup".
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet mtdata==0.5.1

cd "$folder"
cat > memory.tmx <<'TMX'
<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4">
  <header creationtool="editor" creationtoolversion="1" segtype="sentence" o-tmf="editor" adminlang="en" srclang="en"
    datatype="html"/>
  <body>
    <tu>
      <tuv xml:lang="en"><seg>The window closes by itself.</seg></tuv>
      <tuv xml:lang="de"><seg>Das Fenster schließt sich von selbst.</seg></tuv>
    </tu>
    <tu>
      <tuv xml:lang="en">
        <seg>Press <bpt i="1">&lt;b&gt;</bpt>Save<ept i="1">&lt;/b&gt;</ept> before you close the window.</seg>
      </tuv>
      <tuv xml:lang="de">
        <seg>Bevor Sie das Fenster schließen, drücken Sie <bpt i="1">&lt;b&gt;</bpt>OK<ept i="1">&lt;/b&gt;</ept>.</seg>
      </tuv>
    </tu>
    <tu>
      <tuv xml:lang="en"><seg>Do you want to delete <ph x="1">%s</ph>?</seg></tuv>
      <tuv xml:lang="de"><seg><ph x="1">%s</ph> löschen?</seg></tuv>
    </tu>
  </body>
</tmx>
TMX
MTDATA="$folder/cache" venv/bin/python -m mtdata.tmx --inp memory.tmx --langs eng-deu --out pairs.tsv 2> log || { cat log; exit 1; }
venv/bin/python - <<'PYTHON'
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

print("mtdata", version("mtdata"))
units = [
    ["".join([seg.text or "", *(element.tail or "" for element in seg)]) for seg in unit.iter("seg")]
    for unit in ElementTree.parse("memory.tmx").iter("tu")
]
print("the file's text without its elements:", *units, sep="\n    ")
pairs = [line.split("\t") for line in Path("pairs.tsv").read_text().splitlines()]
print("mtdata's pairs:", *pairs, sep="\n    ")
print(Path("log").read_text().strip())
assert len(units) == 3
assert pairs == [units[0], ["Press", "Bevor Sie das Fenster schließen, drücken Sie"]]
PYTHON
