"""Small models whose vocabulary names languages, in the form of M2M-100, NLLB-200 and SMaLL-100."""

import functools
import io
from collections.abc import Sequence

import keras
import sentencepiece

from kzoo.data import open_corpus
from kzoo.models import TransformerBackbone, Translator
from kzoo.text import LanguageTokenizer
from kzoo.text.vocabulary import SPECIAL

KINDS = ("m2m", "nllb", "small")
THREE_LETTERS = {"ast": "ast", "cs": "ces", "de": "deu", "en": "eng", "ru": "rus", "zh": "zho"}
SCRIPTS = {"ru": "Cyrl", "zh": "Hans"}
RUSSIAN = ["Собака бежит по снегу.", "Две женщины играют на гитаре.", "Собаки и дети играют."] * 20


@functools.cache
def sentence_piece_model(model_type: str = "bpe") -> bytes:
    """Return a SentencePiece model of text in three scripts."""
    model, scenes = io.BytesIO(), open_corpus("scenes")
    lines = [line for code in ("cs", "de", "en", "zh") for line in scenes.sentences("train", code)[:400]]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines + RUSSIAN + ["0123456789 éß–%()"]),
        model_writer=model,
        vocab_size=700,
        model_type=model_type,
        character_coverage=1.0,
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()


def make(kind: str, proto: bytes, codes: Sequence[str] = (), **sizes) -> Translator:
    """Return a translator of one of the `KINDS` with random weights; it knows not all pieces.

    NLLB's may name other languages, by `codes`.
    """
    names = {code: f"__{code}__" for code in THREE_LETTERS}
    if kind == "nllb":
        codes = codes or [f"{three}_{SCRIPTS.get(code, 'Latn')}" for code, three in THREE_LETTERS.items()]
        names = dict(zip(codes, codes, strict=True))
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
    pieces = [processor.id_to_piece(token) for token in range(3, processor.vocab_size())]
    missing = [piece for piece in pieces if len(piece) > 3][:5]
    pieces = [piece for piece in pieces if piece not in missing]
    vocabulary = [*SPECIAL.values(), *pieces, "<unused 700>", *names.values(), "<mask>"]
    sides = ("target", None) if kind == "small" else ("source", "target")
    tokenizers = [
        LanguageTokenizer(proto, vocabulary, names, side, config_file=f"{file}_tokenizer.json")
        for file, side in zip(("source", "target"), sides, strict=True)
    ]
    keras.utils.set_random_seed(1)
    sizes = {"num_layers": 1, "width": 16, "num_heads": 2, "feedforward_dim": 24, "max_length": 64} | sizes
    options = {"position_encoding": "sine", "norm": "pre", "position_options": {"first_position": 2}}
    return Translator(TransformerBackbone(len(vocabulary), **options, **sizes), *tokenizers)
