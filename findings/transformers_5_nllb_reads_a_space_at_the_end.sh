#!/usr/bin/env bash
# transformers 5 reads a space at the end of a text as one more token for NLLB-200 and mBART-50; SentencePiece removes it.
#
# An expert expects: SentencePiece removes spaces at both ends, and the tokenizers that take over its models do so, too. In
# transformers 4, both did (4.57.1).
# What happens: `NllbTokenizer` and `MBart50Tokenizer` of transformers 5 append a lone "▁", also for a line end and for a
# no-break space. Spaces at the beginning and within the text are read as before. `MBartTokenizer`, `XLMRobertaTokenizer`
# and `T5Tokenizer` of the same version do as SentencePiece does. A repository's own `tokenizer.json` changes nothing:
# transformers 5 builds these two tokenizers from the vocabulary alone.
# Why it matters: whoever reads a file line by line, and does not strip the lines, gives the model a token that it never
# saw in this place in training; the translation may be another, and differ from that of a program that uses
# SentencePiece. Strip each line before.
#
# Versions: transformers 5.24.0, tokenizers 0.23.3, sentencepiece 0.2.3. Source: transformers,
# models/nllb/tokenization_nllb.py and models/mbart50/tokenization_mbart50.py.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet transformers==5.24.0 tokenizers==0.23.3 sentencepiece==0.2.3 protobuf==7.36.2

FOLDER="$folder" "$folder/venv/bin/python" - <<'PYTHON'
import io
import os
from importlib.metadata import version
from pathlib import Path

import sentencepiece
from transformers import MBart50Tokenizer, MBartTokenizer, NllbTokenizer, XLMRobertaTokenizer

print("transformers", version("transformers"), "sentencepiece", version("sentencepiece"))
TEXTS = ["a dog runs", "a dog runs ", "a dog runs\n", "a dog runs\u00a0", " a dog runs", "a  dog runs"]
KINDS = {NllbTokenizer: "bpe", MBart50Tokenizer: "unigram", MBartTokenizer: "unigram", XLMRobertaTokenizer: "unigram"}
for kind, model_type in KINDS.items():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a dog runs in the park", "a cat sees the dog", "the cat runs"] * 10),
        model_writer=model,
        model_type=model_type,
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    repository = Path(os.environ["FOLDER"]) / kind.__name__
    repository.mkdir()
    (repository / "sentencepiece.bpe.model").write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    tokenizer = kind.from_pretrained(repository)
    print(kind.__name__)
    for text in TEXTS:
        expected = processor.encode(text, out_type=str)
        found = tokenizer.convert_ids_to_tokens(tokenizer(text, add_special_tokens=False)["input_ids"])
        print(f"  {text!r:16} {' '.join(found)}")
        more = kind in (NllbTokenizer, MBart50Tokenizer) and text[-1].isspace()
        assert found == expected + ["▁"] * more, (found, expected)
PYTHON
