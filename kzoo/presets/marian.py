"""Converts Marian models from Hugging Face, such as OPUS-MT, to presets."""

import os
import re
from pathlib import Path

import msgspec

from kzoo.errors import UserError
from kzoo.files import read_typed
from kzoo.hub.preset import CONFIG_FILE
from kzoo.models.translator import Translator
from kzoo.presets import hugging_face
from kzoo.presets.hugging_face import Token
from kzoo.presets.hugging_face_weights import build
from kzoo.text.tokenizers import MarianTokenizer
from kzoo.text.vocabulary import SPECIAL

FILES = (CONFIG_FILE, "vocab.json", "source.spm", "target.spm")
# Settings of Marian's configuration: the default, and the value that kzoo's Transformer needs.
NEEDED = {
    "scale_embedding": (False, True),
    "normalize_before": (False, False),
    "normalize_embedding": (False, False),
    "add_final_layer_norm": (False, False),
    "tie_word_embeddings": (True, True),
    "static_position_embeddings": (True, True),
}


class Config(hugging_face.Config):
    """The entries of Marian's `config.json`."""

    decoder_vocab_size: Token | None = None
    share_encoder_decoder_embeddings: bool = True

    @property
    def vocabulary_sizes(self):
        if self.share_encoder_decoder_embeddings:
            return (self.vocab_size,)
        if self.decoder_vocab_size is None:
            raise UserError(f"{CONFIG_FILE} lacks decoder_vocab_size")
        return self.vocab_size, self.decoder_vocab_size


class Options(msgspec.Struct):
    """The entries of `tokenizer_config.json` that kzoo reads."""

    source_lang: str | None = None
    target_lang: str | None = None


def read_marian(folder: str | os.PathLike, name: str | None = None) -> Translator:
    """Convert the Marian model of a repository, such as Helsinki-NLP's OPUS-MT models, to a translator.

    Args:
        folder: `config.json`, `vocab.json`, `source.spm`, `target.spm`, and the weights in
            `model.safetensors` or `pytorch_model.bin`.
        name: the repository's name, which may end in its language codes; the folder's name by default.

    Raises:
        UserError: a file is missing, damaged, or of another architecture.

    Reference:
        Tiedemann and Thottingal 2020, "OPUS-MT: Building open translation services for the World".
        https://aclanthology.org/2020.eamt-1.61
    """
    folder = Path(folder)
    hugging_face.check_files(folder, FILES, "a Marian model")
    config, settings = hugging_face.read_config(folder, Config, "Marian", NEEDED)
    settings |= {"norm": "post", "output_bias": True}
    options = folder / "tokenizer_config.json"
    options = read_typed(options, Options) if options.is_file() else Options()
    search = hugging_face.search_settings(folder, config)
    files = zip(("vocab.json", "target_vocab.json"), config.vocabulary_sizes, strict=False)
    orders = [
        hugging_face.order(folder / file, hugging_face.read_vocabulary(folder / file, size), config)
        for file, size in files
    ]
    tokenizers = [
        _tokenizer(folder, side, pieces)
        for side, (_, pieces) in zip(("source", "target"), (orders[0], orders[-1]), strict=True)
    ]
    backbone = build(folder, config, settings, [order for order, _ in orders])
    codes = re.search(r"(?<![A-Za-z_+])([a-z]{2,3})-([a-z]{2,3})$", name or folder.resolve().name)
    source, target = codes.groups() if codes else (None, None)
    source, target = options.source_lang or source, options.target_lang or target
    return Translator(backbone, *tokenizers, source, target, search=search)


def _tokenizer(folder: Path, side: str, pieces: list[str]) -> MarianTokenizer:
    proto = hugging_face.sentence_piece_model(folder / f"{side}.spm")
    return MarianTokenizer(proto, [*SPECIAL.values(), *pieces], config_file=f"{side}_tokenizer.json")
