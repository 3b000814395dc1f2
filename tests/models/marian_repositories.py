"""Repositories in the format of Helsinki-NLP's OPUS-MT, made with transformers: small, on Scenes."""

import io
import json
from pathlib import Path

import numpy as np
import sentencepiece
import torch
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

from kzoo.data import open_corpus

SIZES = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2}
SIZES |= {
    f"{side}_{name}": size
    for side in ("encoder", "decoder")
    for name, size in (("attention_heads", 4), ("ffn_dim", 48))
}
# What most of OPUS-MT's models have.
BASE = {
    "d_model": 512,
    "encoder_layers": 6,
    "decoder_layers": 6,
    "encoder_attention_heads": 8,
    "decoder_attention_heads": 8,
    "encoder_ffn_dim": 2048,
    "decoder_ffn_dim": 2048,
    "extra": 58_000,
}


def subwords(sentences: list[str], size: int, byte_fallback: bool) -> bytes:
    """Return a SentencePiece model with the special tokens where OPUS-MT's have them."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=model,
        vocab_size=size,
        byte_fallback=byte_fallback,
        minloglevel=2,
        num_threads=1,
    )
    return model.getvalue()


def pieces(model: bytes) -> list[str]:
    """Return a SentencePiece model's pieces without the special ones."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(token) for token in range(3, processor.vocab_size())]


def make(
    folder: Path,
    languages: tuple[str, ...] = (),
    separate: bool = False,
    size: int = 120,
    extra: int = 0,
    byte_fallback: bool = False,
    **sizes,
) -> Path:
    """Write a repository with random weights: English to German, or to the languages of target tokens.

    Its vocabulary has some `extra` pieces that no text has.
    """
    folder.mkdir(parents=True, exist_ok=True)
    english, german = open_corpus("scenes").pairs("train", "en", "de")
    models = {
        "source": subwords(english, size, byte_fallback),
        "target": subwords(german, size - 10, byte_fallback),
    }
    for side, model in models.items():
        (folder / f"{side}.spm").write_bytes(model)
    sides = [pieces(models["source"]), pieces(models["target"])]
    codes = [*(f">>{code}<<" for code in languages), *(f"<extra{i}>" for i in range(extra))]
    entries = sides if separate else [[*dict.fromkeys(sides[0] + sides[1])]]
    vocabularies = [["</s>", "<unk>", *words, *codes, "<pad>"] for words in entries]
    if separate:  # padding has one number in the configuration
        longest = max(map(len, vocabularies))
        vocabularies = [
            [*v[:-1], *(f"<free{i}>" for i in range(longest - len(v))), "<pad>"] for v in vocabularies
        ]
    for name, words in zip(("vocab.json", "target_vocab.json"), vocabularies, strict=False):
        (folder / name).write_text(json.dumps({word: i for i, word in enumerate(words)}, ensure_ascii=False))
    target = "mul" if languages else "de"
    options = {
        "source_lang": "en",
        "target_lang": target,
        "separate_vocabs": separate,
        "model_max_length": 64,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(options))
    count = len(vocabularies[0])
    config = MarianConfig(
        vocab_size=count,
        decoder_vocab_size=count,
        share_encoder_decoder_embeddings=not separate,
        max_position_embeddings=64,
        activation_function="swish",
        scale_embedding=True,
        pad_token_id=count - 1,
        decoder_start_token_id=count - 1,
        eos_token_id=0,
        forced_eos_token_id=0,
        dropout=0.1,
        **{**SIZES, **sizes},
    )
    torch.manual_seed(3)
    model = MarianMTModel(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "embed_positions" not in name and "layer_norm.weight" not in name:
                weight.normal_(0, 0.85 * config.d_model**-0.5)
        model.final_logits_bias.normal_()
    model.save_pretrained(folder)
    return folder


def tokenizer(folder: Path) -> MarianTokenizer:
    """Return transformers' own tokenizer of a repository."""
    return MarianTokenizer.from_pretrained(folder)


def model(folder: Path) -> MarianMTModel:
    """Return transformers' own model of a repository."""
    return MarianMTModel.from_pretrained(folder).eval()


def train(folder: Path, steps: int = 700, rows: int = 48) -> Path:
    """Train a repository's model on Scenes for some minutes."""
    english, german = open_corpus("scenes").pairs("train", "en", "de")
    trained, theirs = MarianMTModel.from_pretrained(folder).train(), tokenizer(folder)
    with torch.no_grad():
        for name, weight in trained.named_parameters():
            if weight.ndim == 2 and "embed_positions" not in name:
                weight.normal_(0, weight.shape[-1] ** -0.5)
        trained.final_logits_bias.zero_()
    optimizer, random = torch.optim.Adam(trained.parameters(), 2e-3), np.random.default_rng(1)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 2e-3 * min((step + 1) / 100, 1)
        chosen = random.integers(len(english), size=rows)
        texts = {"text": [english[i] for i in chosen], "text_target": [german[i] for i in chosen]}
        batch = theirs(**texts, return_tensors="pt", padding=True)
        batch["labels"][batch["labels"] == theirs.pad_token_id] = -100
        trained(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    trained.eval().save_pretrained(folder)
    return folder
