#!/usr/bin/env bash
# CTranslate2 converts a Marian model that transformers has trained to another model, which translates otherwise.
#
# An expert expects: a converted float32 model gives the same logits but for rounding, whoever trained it.
# What happens: transformers starts the decoder with "<pad>", whose embedding is zero in the models that Marian
# trained. CTranslate2 relies on that: it drops the row and starts from zeros. But in transformers the embeddings are
# also the output layer, whose gradient reaches this row, and training moves it. Then the decoder starts elsewhere. The
# model below copies all of 200 sentences in transformers, and fewer than half in CTranslate2 (96; trained with one
# thread, 3). Nothing is printed. With the row set to zero, transformers writes what CTranslate2 writes, in all 200.
# Why it matters: models of the Marian architecture are trained with transformers' `Seq2SeqTrainer` and served with
# CTranslate2, and scores measured in training need not be those of the server. After fine-tuning a model whose row was
# zero, the row was not zero either, but in a trial all 200 translations stayed the same. Keep the row at zero while
# training (`model.model.shared.weight.data[pad] = 0` after each step), or compare before use.
#
# Versions: ctranslate2 4.8.5, transformers 5.24.0, torch 2.13.0, sentencepiece 0.2.3. Source:
# ctranslate2/converters/transformers.py, `MarianMTLoader` (`start_from_zero_embedding`, `_remove_pad_weights`).
# Output seen, after the versions:
#     norm of an embedding: <pad> 0.72, others 1.00
#     right of 200: transformers 200, ctranslate2 96; transformers with the row at zero 96, 200 as ctranslate2
# The whole script took 15 minutes on two busy cores.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    torch==2.13.0 transformers==5.24.0 ctranslate2==4.8.5 sentencepiece==0.2.3 sacremoses==0.2.0

cd "$folder"
mkdir marian
venv/bin/python -W ignore - <<'PYTHON' 2> log || { cat log; exit 1; }
import json
from importlib.metadata import version
from pathlib import Path

import ctranslate2
import sentencepiece
import torch
from transformers import MarianConfig, MarianMTModel

print(*(f"{name} {version(name)}" for name in ("ctranslate2", "transformers", "torch", "sentencepiece")))
WORDS = "red green blue black white grey brown pink".split()
PIECES = ["</s>", "<unk>", *(f"▁{word}" for word in WORDS), "<pad>"]
END, FIRST, PAD, SIZE = 0, 2, len(PIECES) - 1, len(PIECES)
for side in ("source", "target"):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(WORDS)]),
        model_prefix=side,
        model_type="word",
        use_all_vocab=True,
        minloglevel=2,
    )
    Path(f"{side}.model").rename(f"marian/{side}.spm")
Path("marian/vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(PIECES)}))
settings = {"tokenizer_class": "MarianTokenizer", "source_lang": "en", "target_lang": "de"}
Path("marian/tokenizer_config.json").write_text(json.dumps(settings))

sizes = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "max_position_embeddings": 32}
for side in ("encoder", "decoder"):
    sizes |= {f"{side}_attention_heads": 2, f"{side}_ffn_dim": 64}
config = MarianConfig(
    vocab_size=SIZE,
    decoder_vocab_size=SIZE,
    pad_token_id=PAD,
    decoder_start_token_id=PAD,
    eos_token_id=END,
    forced_eos_token_id=END,
    activation_function="swish",
    scale_embedding=True,
    dropout=0.0,
    init_std=0.1,
    **sizes,
)
torch.manual_seed(0)
model = MarianMTModel(config)


def sentences(number):
    """Return sentences of six words, with the end symbol."""
    rows = torch.randint(FIRST, PAD, (number, 7))
    rows[:, -1] = END
    return rows


table = model.model.shared.weight
assert not table[PAD].any()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(800):  # the translation is the sentence itself
    rows = sentences(64)
    optimizer.zero_grad()
    model(input_ids=rows, labels=rows.clone()).loss.backward()
    optimizer.step()
model.eval().save_pretrained("marian")
norms = table.detach().norm(dim=1)
print(f"norm of an embedding: <pad> {norms[PAD]:.2f}, others {norms[FIRST:PAD].mean():.2f}")

rows = sentences(200)
right = [[PIECES[i] for i in row[:-1]] for row in rows.tolist()]


def by_transformers():
    """Return transformers' translations, as pieces."""
    found = model.generate(rows, num_beams=1, max_length=20)
    return [[PIECES[i] for i in row if i not in (END, PAD)] for row in found.tolist()]


def equal(first, second):
    return sum(a == b for a, b in zip(first, second))


trained = by_transformers()
ctranslate2.converters.TransformersConverter("marian").convert("converted")
source = [[PIECES[i] for i in row] for row in rows.tolist()]
results = ctranslate2.Translator("converted").translate_batch(source, beam_size=1, max_decoding_length=19)
converted = [result.hypotheses[0] for result in results]
with torch.no_grad():
    table[PAD] = 0
zeroed = by_transformers()
print(f"right of 200: transformers {equal(trained, right)}, ctranslate2 {equal(converted, right)};", end=" ")
print(f"transformers with the row at zero {equal(zeroed, right)}, {equal(zeroed, converted)} as ctranslate2")
assert equal(trained, right) > 190 > equal(converted, right) and equal(zeroed, converted) > 190
PYTHON
