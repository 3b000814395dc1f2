"""Repositories in the form of M2M-100, NLLB-200 and SMaLL-100, made with transformers: small, on Scenes."""

import io
import json
from pathlib import Path

import numpy as np
import sentencepiece
import torch
from transformers import M2M100Config, M2M100ForConditionalGeneration, M2M100Tokenizer, NllbTokenizer

from kzoo.data import open_corpus
from kzoo.presets.m2m import M2M_LANGUAGES

KINDS = ("m2m", "nllb", "small")
# Some of NLLB-200's 202, in their order.
CODES = (
    "ace_Arab ace_Latn afr_Latn amh_Ethi arb_Arab asm_Beng azj_Latn bel_Cyrl ben_Beng bul_Cyrl cat_Latn "
    "ces_Latn dan_Latn deu_Latn ell_Grek eng_Latn est_Latn fin_Latn fra_Latn fuv_Latn heb_Hebr hin_Deva "
    "hun_Latn ind_Latn ita_Latn jpn_Jpan kas_Arab kas_Deva kat_Geor kor_Hang nld_Latn nno_Latn nob_Latn "
    "pol_Latn por_Latn rus_Cyrl spa_Latn srp_Cyrl swe_Latn tha_Thai tur_Latn ukr_Cyrl zho_Hans zho_Hant"
)
NLLB_LANGUAGES = CODES.split()
SIZES = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "max_position_embeddings": 64}
SIZES |= {
    f"{side}_{name}": size
    for side in ("encoder", "decoder")
    for name, size in (("attention_heads", 4), ("ffn_dim", 48))
}


def subwords(size: int) -> bytes:
    """Return a SentencePiece model of English and German."""
    model, sides = io.BytesIO(), open_corpus("scenes").pairs("train", "en", "de")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sides[0] + sides[1]),
        model_writer=model,
        vocab_size=size,
        model_type="bpe",
        minloglevel=2,
        num_threads=1,
    )
    return model.getvalue()


def make(folder: Path, kind: str, size: int = 200, **sizes) -> Path:
    """Write a repository of one of the `KINDS`, with random weights."""
    folder.mkdir(parents=True, exist_ok=True)
    proto = subwords(size)
    (folder / "sentencepiece.bpe.model").write_bytes(proto)
    if kind == "nllb":
        listed = {"additional_special_tokens": NLLB_LANGUAGES}
        (folder / "special_tokens_map.json").write_text(json.dumps(listed))
        count = size + 1 + len(NLLB_LANGUAGES) + 1 + 2  # fairseq's offset, <mask>, and two unused
    else:
        processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
        pieces = [processor.id_to_piece(token) for token in range(3, size - 5)]  # not all are in vocab.json
        words = ["<s>", "<pad>", "</s>", "<unk>", *pieces, "madeupword"]
        (folder / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words)}))
        count = len(words) + len(M2M_LANGUAGES) + 8
        if kind == "small":
            sizes = {"encoder_layers": 3, "decoder_layers": 1, **sizes}
            (folder / "tokenization_small100.py").write_text("raise ImportError\n")
    config = M2M100Config(vocab_size=count, num_beams=5, dropout=0.1, **{**SIZES, **sizes})
    torch.manual_seed(3)
    model = M2M100ForConditionalGeneration(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "layer_norm.weight" not in name:
                weight.normal_(0, config.d_model**-0.5)
    model.save_pretrained(folder)
    return folder


def train(folder: Path, pair: tuple[str, str], steps: int = 300, rows: int = 32) -> Path:
    """Train a repository's model on Scenes, English to German and back, for a minute or two."""
    sides = dict(zip(pair, open_corpus("scenes").pairs("train", "en", "de"), strict=True))
    trained, random = model(folder).train(), np.random.default_rng(1)
    directions = [(tokenizer(folder, *names), names) for names in (pair, pair[::-1])]
    optimizer = torch.optim.Adam(trained.parameters(), 2e-3)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 2e-3 * min((step + 1) / 100, 1)
        theirs, (source, target) = directions[step % 2]
        chosen = random.integers(len(sides[source]), size=rows)
        batch = theirs([sides[source][i] for i in chosen], return_tensors="pt", padding=True)
        labels = theirs(text_target=[sides[target][i] for i in chosen], return_tensors="pt", padding=True)
        labels = labels["input_ids"][:, 1 if is_small(folder) else 0 :]  # SMaLL-100's have no language
        batch["labels"] = labels.masked_fill(labels == theirs.pad_token_id, -100)
        trained(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    trained.eval().save_pretrained(folder)
    return folder


def is_small(folder: Path) -> bool:
    return (folder / "tokenization_small100.py").exists()


def tokenizer(folder: Path, source: str, target: str):
    """Return transformers' own tokenizer of a repository."""
    if not (folder / "vocab.json").exists():
        # The published tokenizers have the mask after the languages.
        codes = {"extra_special_tokens": [*NLLB_LANGUAGES, "<mask>"], "mask_token": None}
        return NllbTokenizer.from_pretrained(folder, src_lang=source, tgt_lang=target, **codes)
    if is_small(folder):  # which begins sentences with the target language
        source = target
    return M2M100Tokenizer.from_pretrained(folder, src_lang=source, tgt_lang=target)


def model(folder: Path) -> M2M100ForConditionalGeneration:
    """Return transformers' own model of a repository."""
    return M2M100ForConditionalGeneration.from_pretrained(folder).eval()
