#!/usr/bin/env bash
# OpenNMT's tokenizer turns the Chinese colon, percent sign and number sign into ASCII, and does not turn them back.
#
# An expert expects: tokenize and detokenize give the text back, with joiners marked; only the tool's own signs (the joiner
# ￭ and the feature separator ￨) must be replaced in a text.
# What happens: by default, every ： ％ ＃ (full width) becomes : % #, in each mode, even in `space` and `none`. The tool
# uses the full-width signs inside its own markup. Other full-width punctuation (，。？！) stays, so few notice.
# Why it matters: ： is a common sign of Chinese and Japanese text. If the training data is tokenized, a
# model never writes it. sacreBLEU against raw references counts each one as an error; models that were trained on
# tokenized and on untokenized text get different vocabularies. `no_substitution=True` keeps them. Eole and OpenNMT use
# this tokenizer for their on-the-fly tokenization.
#
# Versions: pyonmttok 1.38.1, sacrebleu 2.6.0. Source: OpenNMT Tokenizer's docs/options.md (`no_substitution`).
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyonmttok==1.38.1 sacrebleu==2.6.0

"$folder/venv/bin/python" - <<'PYTHON'
import pyonmttok
import sacrebleu

print("pyonmttok", pyonmttok.__version__, "sacrebleu", sacrebleu.__version__)
texts = ["他说：“好，我们走吧！”", "利率上升了５％。", "注意：价格不含税。", "時間：午後三時、場所：駅前"]
for mode in ("conservative", "aggressive", "char", "space", "none"):
    tokenizer = pyonmttok.Tokenizer(mode, joiner_annotate=True)
    back = [tokenizer.detokenize(tokenizer(text)) for text in texts]
    print(mode, *back)
    assert back == [text.replace("：", ":").replace("％", "%") for text in texts]
    kept = pyonmttok.Tokenizer(mode, joiner_annotate=True, no_substitution=True)
    assert [kept.detokenize(kept(text)) for text in texts] == texts
score = sacrebleu.corpus_bleu(back, [texts], tokenize="zh").score
print(f"BLEU of the texts against themselves, after tokenize and detokenize: {score:.1f}")
assert score < 90
PYTHON
