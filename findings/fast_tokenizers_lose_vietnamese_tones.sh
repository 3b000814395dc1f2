#!/usr/bin/env bash
# Hugging Face's fast tokenizers lose accents of decomposed text that SentencePiece keeps.
#
# An expert expects: a fast tokenizer that takes over a SentencePiece model takes over its normalization, byte for byte, so
# "ế" written as e + circumflex + acute (NFD) becomes "ế" in both.
# What happens: tokenizers' `Precompiled` normalizer looks for the shortest rule that fits, and replaces the whole cluster
# by it: e + circumflex + acute becomes "ê". The acute is gone, without a word. SentencePiece takes the longest rule.
# Text in one piece for each letter (NFC) is not affected, so tests with it pass.
# Why it matters: in Vietnamese, an accent more or less is another word ("bán": sell, "bàn": table). Text that was typed on
# or copied from some systems is NFD. A model that was trained with SentencePiece reads other words if it is served with
# transformers' tokenizer of T5, mBART-50, NLLB or XLM-R, which use this normalizer. Normalize to NFC before.
#
# Versions: tokenizers 0.23.3, sentencepiece 0.2.3. Source: github.com/huggingface/tokenizers, issues 2116 and 2334 (open).
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tokenizers==0.23.3 sentencepiece==0.2.3 protobuf==7.36.2

"$folder/venv/bin/python" - <<'PYTHON'
import io
import unicodedata
from importlib.metadata import version

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import normalizers

print("tokenizers", version("tokenizers"), "sentencepiece", version("sentencepiece"))
texts = [
    "Tiếng Việt là ngôn ngữ của người Việt.",
    "Một người đàn ông đang đọc sách ở thư viện.",
    "Trường đại học ở gần đây.",
]
model = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(texts), model_writer=model, vocab_size=80, hard_vocab_limit=False, minloglevel=2
)
processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
rules = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue()).normalizer_spec.precompiled_charsmap
fast = normalizers.Precompiled(rules)
for text in texts:
    decomposed = unicodedata.normalize("NFD", text)
    of_sentencepiece = processor.decode(processor.encode(decomposed))
    of_tokenizers = unicodedata.normalize("NFC", fast.normalize_str(decomposed))
    print(f"text          {text}\nsentencepiece {of_sentencepiece}\ntokenizers    {of_tokenizers}")
    assert of_sentencepiece == text
    assert of_tokenizers != text
    assert fast.normalize_str(text) == text  # composed text is kept
assert unicodedata.normalize("NFC", fast.normalize_str("e\u0302\u0301")) == "ê"
PYTHON
