#!/usr/bin/env bash
# A repetition penalty that ends a loop in greedy search does nothing in transformers' beam search, but works in CTranslate2.
#
# An expert expects: `repetition_penalty=2` means the same with one beam and with four, and in two engines with one model.
# What happens: transformers divides logits in greedy search, but log-probabilities in beam search. A token that repeats
# surely has a log-probability near 0, and twice almost 0 is almost 0: the penalty is weakest just where a loop is. The
# model below writes its first word for ever; greedy search with the penalty leaves the loop, beam search does not.
# CTranslate2 works on logits in both, so the same model gives other texts there. And as logits are not fixed up to a
# constant (softmax does not see one), the same probabilities with other logits take the penalty otherwise.
# Why it matters: translators are decoded with beams, the penalty is the usual answer to a translation that repeats itself,
# and OPUS-MT models are served by both engines: a value tuned in one has no meaning in the other. For beam search,
# `no_repeat_ngram_size` acts alike in both.
#
# Versions: transformers 5.24.0, torch 2.13.0, ctranslate2 4.8.5, sentencepiece 0.2.3.
# Source: transformers/generation/utils.py (`_beam_search`: log_softmax before the processors), CTranslate2's
# docs/decoding.md; Keskar et al. 2019, which divides logits.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    torch==2.13.0 transformers==5.24.0 ctranslate2==4.8.5 sentencepiece==0.2.3 sacremoses==0.2.0

cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON' 2> "$folder/log" || { cat "$folder/log"; exit 1; }
import io
import json
from pathlib import Path

import ctranslate2
import sentencepiece
import torch
import transformers

print("transformers", transformers.__version__, "torch", torch.__version__, "ctranslate2", ctranslate2.__version__)
data = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(["the cat sat on the mat"]),
    model_writer=data,
    vocab_size=20,
    hard_vocab_limit=False,
    minloglevel=2,
)
subwords = sentencepiece.SentencePieceProcessor(model_proto=data.getvalue())
tokens = ["</s>", "<unk>", *(subwords.id_to_piece(i) for i in range(3, len(subwords))), "<pad>"]
END, LOOP, OTHER, PAD = 0, 2, 3, len(tokens) - 1


def searches(shift):
    """Return what each search writes, for a Marian model whose logits are the same at each step."""
    config = transformers.MarianConfig(
        vocab_size=len(tokens), d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=1,
        decoder_attention_heads=1, encoder_ffn_dim=8, decoder_ffn_dim=8, max_position_embeddings=32,
        pad_token_id=PAD, eos_token_id=END, bos_token_id=END, decoder_start_token_id=PAD,
    )  # fmt: skip
    model = transformers.MarianMTModel(config).eval()
    torch.nn.init.zeros_(model.model.shared.weight)
    logits = torch.zeros(1, len(tokens))
    logits[0, [LOOP, OTHER, END]] = torch.tensor([10.0, 7.0, 2.0])
    model.final_logits_bias = logits + shift
    folder = Path(f"model{shift}")
    model.save_pretrained(folder)
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(data.getvalue())
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "MarianTokenizer"}')
    ctranslate2.converters.TransformersConverter(str(folder)).convert(f"engine{shift}")
    engine = ctranslate2.Translator(f"engine{shift}")
    source = [OTHER, OTHER, END]
    found = {}
    for beams in (1, 4):
        ids = model.generate(
            torch.tensor([source]), num_beams=beams, do_sample=False, repetition_penalty=2.0, max_new_tokens=6
        )
        texts = engine.translate_batch(
            [[tokens[i] for i in source]], beam_size=beams, repetition_penalty=2.0, max_decoding_length=6
        )
        found["transformers", beams] = ids[0, 1:].tolist()
        found["ctranslate2", beams] = [tokens.index(token) for token in texts[0].hypotheses[0]]
    return found


for shift in (0, 10, -10):
    found = searches(shift)
    print("logits", [10 + shift, 7 + shift, 2 + shift], *(f"{k[0]}, {k[1]} beams: {v}" for k, v in found.items()), sep="\n  ")
    loops = {search: ids[:5] == [LOOP] * 5 for search, ids in found.items()}
    assert loops["transformers", 4]  # whatever the penalty
    assert loops["transformers", 1] == loops["ctranslate2", 1] == loops["ctranslate2", 4] == (shift < 0)
PYTHON
