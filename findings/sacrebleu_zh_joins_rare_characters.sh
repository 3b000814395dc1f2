#!/usr/bin/env bash
# sacreBLEU's tokenizer "zh" does not split the rarer Chinese characters, but splits English words at ’.
#
# An expert expects: "zh" makes every Chinese character a token of its own, as its table of ranges says (it names
# Extension B), and tokenizes what is not Chinese as "13a" does.
# What happens: the table writes Extension B as '\u20000'-'\u2a6d6'. Python reads '\u2000' and a '0', so the range covers
# U+2001 to U+2A6D instead: dashes, curly quotes, €, arrows, mathematical signs. Characters of Extension B and later
# (𠮷, 𨋢, 𡃁), and those added to the main block after 2005 (鿏, 鿭), are not split: a run of them is one token. An English
# word with ’ becomes three tokens, while "13a" keeps it whole.
# Why it matters: Cantonese, names, place names and chemistry use such characters. One wrong character then costs the
# whole run, and scores of English inside Chinese differ between ' and ’.
#
# Version: sacrebleu 2.6.0. Source: sacrebleu/tokenizers/tokenizer_zh.py, `_UCODE_RANGES`.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet sacrebleu==2.6.0

"$folder/venv/bin/python" - <<'PYTHON'
import sacrebleu
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh

print("sacrebleu", sacrebleu.__version__)
zh, plain = TokenizerZh(), Tokenizer13a()
for text in ("食啲嘢先", "啲𡃁仔𨋢𨈇", "鿏鿔鿭", "the man’s dog"):
    print(f"{text} -> {zh(text).split()}")
assert zh("食啲嘢先").split() == list("食啲嘢先")
assert zh("𡃁𨋢𨈇").split() == ["𡃁𨋢𨈇"]
assert zh("鿏鿔鿭").split() == ["鿏鿔鿭"]
assert zh("the man’s dog").split() == ["the", "man", "’", "s", "dog"]
assert plain("the man’s dog").split() == ["the", "man’s", "dog"]

# Two systems, each with one wrong character of the same four; in the second pair the four are of Extension B.
common = sacrebleu.corpus_bleu(["佢喺門口等緊我食啲嘢後"], [["佢喺門口等緊我食啲嘢先"]], tokenize="zh")
rare = sacrebleu.corpus_bleu(["佢喺門口等緊我𡃁𨋢𨈇𠝹"], [["佢喺門口等緊我𡃁𨋢𨈇𠱁"]], tokenize="zh")
print(f"one wrong character of four: 1-gram precision {common.precisions[0]:.1f}, in Extension B {rare.precisions[0]:.1f}")
assert common.counts[0] == 10 and common.totals[0] == 11
assert rare.counts[0] == 7 and rare.totals[0] == 8
PYTHON
