#!/usr/bin/env bash
# transformers 5 reads rare characters as <unk> where the SentencePiece model of mT5 and its kind spells them as bytes.
#
# An expert expects: a SentencePiece model with byte fallback has no unknown characters; its tokenizer in transformers
# spells 厘 as <0xE5> <0x8E> <0x98>, as tokenizers has done for unigram models since 2023 (`byte_fallback`).
# What happens: `T5Tokenizer` and the tokenizers of mBART, NLLB, XLM-R and Pegasus build their unigram model with
# `byte_fallback=False`, whatever the SentencePiece model says, and even if the folder's `tokenizer.json` says true. So
# does `AutoTokenizer`. The character becomes <unk> and is lost. transformers 4 warned when it made a fast tokenizer of
# such a model, and had a slow one that kept the bytes; version 5 does neither.
# Why it matters: names with rare characters (Chinese, Japanese, Korean) vanish from the source in silence, and from the
# targets in training. The same model in SentencePiece or TensorFlow Text keeps them, so scores differ.
# Load `tokenizer.json` with `PreTrainedTokenizerFast`, after setting `byte_fallback`, or encode by SentencePiece.
#
# Versions: transformers 5.24.0, tokenizers 0.23.3, sentencepiece 0.2.3. Source:
# transformers/models/t5/tokenization_t5.py; github.com/ggml-org/llama.cpp, issue 28862 and pull request 28864 (mT5).
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet transformers==5.24.0 tokenizers==0.23.3 sentencepiece==0.2.3 protobuf==7.36.2

cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import json
from importlib.metadata import version
from pathlib import Path

import sentencepiece
import transformers
from tokenizers import Tokenizer

transformers.utils.logging.set_verbosity_error()  # that torch is not installed
print("transformers", version("transformers"), "tokenizers", version("tokenizers"), end=" ")
print("sentencepiece", version("sentencepiece"))
TEXT = "他说巴厘语。"
FILES = {
    "T5Tokenizer": "spiece.model",
    "PegasusTokenizer": "spiece.model",
    "MBart50Tokenizer": "sentencepiece.bpe.model",
    "NllbTokenizer": "sentencepiece.bpe.model",
    "XLMRobertaTokenizer": "sentencepiece.bpe.model",
}


def show(name, pieces, back):
    print(f"{name:24} {' '.join(pieces)}    {back}")
    return back


sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(["他说汉语。", "她说法语。", "我说巴西的葡萄牙语。", "他去巴黎。"]),
    model_prefix="trained",
    model_type="unigram",
    vocab_size=300,
    hard_vocab_limit=False,
    byte_fallback=True,
    pad_id=0,
    eos_id=1,
    unk_id=2,
    bos_id=-1,
    minloglevel=2,
)
model = Path("trained.model").read_bytes()
processor = sentencepiece.SentencePieceProcessor(model_proto=model)
pieces = processor.encode(TEXT, out_type=str)
assert show("sentencepiece", pieces, processor.decode(pieces)) == TEXT

for name, file in FILES.items():
    Path(name).mkdir()
    Path(name, file).write_bytes(model)
    tokenizer = getattr(transformers, name).from_pretrained(name)
    ids = tokenizer.encode(TEXT, add_special_tokens=False)
    assert "<unk>" in show(name, tokenizer.convert_ids_to_tokens(ids), tokenizer.decode(ids))

transformers.T5Tokenizer.from_pretrained("T5Tokenizer").save_pretrained("saved")
saved = json.loads(Path("saved/tokenizer.json").read_text())
saved["model"]["byte_fallback"] = True
saved["decoder"] = {"type": "Sequence", "decoders": [saved["decoder"], {"type": "ByteFallback"}, {"type": "Fuse"}]}
Path("saved/tokenizer.json").write_text(json.dumps(saved))
print("with byte_fallback in tokenizer.json:")
ids = Tokenizer.from_file("saved/tokenizer.json").encode(TEXT, add_special_tokens=False)
assert ids.tokens == pieces
for name in ("AutoTokenizer", "T5Tokenizer", "PreTrainedTokenizerFast"):
    tokenizer = getattr(transformers, name).from_pretrained("saved")
    ids = tokenizer.encode(TEXT, add_special_tokens=False)
    back = show(name, tokenizer.convert_ids_to_tokens(ids), tokenizer.decode(ids))
    assert ("<unk>" in back) == (name != "PreTrainedTokenizerFast")
PYTHON
