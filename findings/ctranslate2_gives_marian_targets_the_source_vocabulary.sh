#!/usr/bin/env bash
# CTranslate2 converts a Marian model with two vocabularies without an error, and translates into the source's words.
#
# An expert expects: a Marian model with a vocabulary for each side (`separate_vocabs`, `vocab.json` and
# `target_vocab.json`), which transformers reads, becomes a CTranslate2 model that writes what transformers writes.
# What happens: the converter takes the source's vocabulary for both sides. The numbers of the translation are right,
# but are looked up in the wrong list: a German translation comes out in English words that mean something else.
# Nothing is printed; the folder has a `shared_vocabulary.json`.
# Why it matters: models for two scripts (English and Korean, say) have two vocabularies, and CTranslate2 is how Marian
# models are served. Scores near 0 look like a bad model. Replace `shared_vocabulary.json` by `source_vocabulary.json`
# and `target_vocabulary.json`, each without "<pad>", or convert Marian's own files with `ct2-marian-converter`, which
# asks for both.
#
# Versions: ctranslate2 4.8.5, transformers 5.24.0, torch 2.13.0, sentencepiece 0.2.3. Source:
# ctranslate2/converters/transformers.py, `MarianMTLoader.get_vocabulary` and `BartLoader.set_vocabulary`.
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
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

print(*(f"{name} {version(name)}" for name in ("ctranslate2", "transformers", "torch", "sentencepiece")))
SOURCE, TARGET = "the dog sleeps here".split(), "der Hund schläft hier".split()
for side, file, words in (("source", "vocab", SOURCE), ("target", "target_vocab", TARGET)):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(words)]),
        model_prefix=side,
        model_type="word",
        use_all_vocab=True,
        minloglevel=2,
    )
    Path(f"{side}.model").rename(f"marian/{side}.spm")
    pieces = ["</s>", "<unk>", *(f"▁{word}" for word in words), "<pad>"]
    Path(f"marian/{file}.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}))
settings = {"tokenizer_class": "MarianTokenizer", "separate_vocabs": True, "source_lang": "en", "target_lang": "de"}
Path("marian/tokenizer_config.json").write_text(json.dumps(settings))

END, PAD, SIZE = 0, 6, 7
sizes = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "max_position_embeddings": 16}
for side in ("encoder", "decoder"):
    sizes |= {f"{side}_attention_heads": 1, f"{side}_ffn_dim": 8}
config = MarianConfig(
    vocab_size=SIZE,
    decoder_vocab_size=SIZE,
    share_encoder_decoder_embeddings=False,
    pad_token_id=PAD,
    decoder_start_token_id=PAD,
    eos_token_id=END,
    forced_eos_token_id=END,
    activation_function="swish",
    scale_embedding=True,
    **sizes,
)
torch.manual_seed(0)
model = MarianMTModel(config).eval()
with torch.no_grad():  # random weights; the bias keeps to words, so that it "translates" at length
    model.model.decoder.embed_tokens.weight.normal_()[PAD] = 0  # as Marian begins
    model.final_logits_bias[0, [END, 1, PAD]] = -100.0
model.save_pretrained("marian")

tokenizer = MarianTokenizer.from_pretrained("marian")
source = tokenizer("the dog sleeps here")["input_ids"]
found = model.generate(torch.tensor([source]), num_beams=1, max_length=6)[0].tolist()
expected = tokenizer.decode(found, skip_special_tokens=True)
print("transformers:", expected)

ctranslate2.converters.TransformersConverter("marian").convert("converted")
print("files:", *sorted(path.name for path in Path("converted").iterdir()))
translator = ctranslate2.Translator("converted")
pieces = translator.translate_batch(
    [tokenizer.convert_ids_to_tokens(source)], beam_size=1, max_decoding_length=4
)[0].hypotheses[0]
text = "".join(pieces).replace("▁", " ").strip()
print("ctranslate2: ", text)
assert all(word in TARGET for word in expected.split()) and len(expected.split()) == 4
assert text.split() == [SOURCE[TARGET.index(word)] for word in expected.split()]
PYTHON
