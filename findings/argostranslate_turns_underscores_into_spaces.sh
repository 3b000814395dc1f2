#!/usr/bin/env bash
# Argos Translate writes a space for each underscore of a translation.
#
# An expert expects: SentencePiece's pieces are decoded as SentencePiece does: `▁` (U+2581) is a space, and `_` (U+005F),
# another character, stays. So a translator that copies an address, a file's name or a placeholder gives it unchanged.
# What happens: after SentencePiece has decoded the pieces, `SentencePieceTokenizer.decode` replaces what is left of `▁`,
# and then every `_`, by a space: `ann_lee@example.org` becomes `ann lee@example.org`, and `%(user_name)s` no longer is a
# placeholder. The model is not at fault, and `_` in the source makes no difference.
# Why it matters: LibreTranslate, and what asks it, translate web pages, documents and programs' messages with it. Compare
# translations with underscores before a model is moved there.
#
# Versions: argostranslate 1.11.0, sentencepiece 0.2.1. Source: argostranslate/tokenizer.py, `SentencePieceTokenizer.decode`,
# which argostranslate/translate.py calls for each translation.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
# Without what splits texts into sentences: the tokenizer needs only SentencePiece.
"$folder/venv/bin/pip" install --quiet --no-deps argostranslate==1.11.0 sentencepiece==0.2.1

cd "$folder"
venv/bin/python - <<'PYTHON'
from importlib.metadata import version
from pathlib import Path

import sentencepiece
from argostranslate.tokenizer import SentencePieceTokenizer

print("argostranslate", version("argostranslate"), "sentencepiece", version("sentencepiece"))
TEXTS = [
    "Write to ann_lee@example.org.",
    "Open https://example.org/my_file_2.html, please.",
    "Hello %(user_name)s, your file is report_final.pdf.",
    "No such character here.",
]
Path("text.txt").write_text("".join(f"{text}\n" * 20 for text in TEXTS))
sentencepiece.SentencePieceTrainer.train(
    input="text.txt", model_prefix="tiny", vocab_size=60, hard_vocab_limit=False, minloglevel=2
)
processor = sentencepiece.SentencePieceProcessor(model_file="tiny.model")
tokenizer = SentencePieceTokenizer(Path("tiny.model"))
for text in TEXTS:
    pieces = tokenizer.encode(text)
    decoded = tokenizer.decode(pieces)
    print(f"text:           {text}\nSentencePiece:  {processor.decode(pieces)}\nArgos:          {decoded}\n")
    assert processor.decode(pieces) == text
    assert decoded == text.replace("_", " ")
PYTHON
