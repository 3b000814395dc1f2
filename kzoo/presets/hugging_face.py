"""What the Transformers in Hugging Face's repositories share: `kzoo.presets.marian` and `kzoo.presets.m2m`.

kzoo reorders their tokens: a vocabulary begins with padding, unknown, start and end; in theirs, the start
symbol is padding or the end symbol. `kzoo.presets.hugging_face_weights` reads their weights.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from kzoo.decoding import SearchSettings
from kzoo.errors import UserError
from kzoo.files import check_fetched, read_object, read_typed
from kzoo.hub.preset import CONFIG_FILE
from kzoo.text.vocabulary import SPECIAL

ACTIVATIONS = {"swish": "silu", "silu": "silu", "relu": "relu", "gelu": "gelu"}
COPY_IT = "copy it from the repository that the model comes from"

Layers = Annotated[int, Meta(ge=1, le=1000)]
Size = Annotated[int, Meta(ge=1, le=10**6)]
Token = Annotated[int, Meta(ge=0, le=10**7)]


class Config(msgspec.Struct):
    """The entries of `config.json` that kzoo reads, besides those that have only one value."""

    vocab_size: Token
    d_model: Annotated[int, Meta(ge=2, le=10**5, multiple_of=2)]
    encoder_layers: Layers
    decoder_layers: Layers
    encoder_attention_heads: Size
    decoder_attention_heads: Size
    encoder_ffn_dim: Size
    decoder_ffn_dim: Size
    max_position_embeddings: Annotated[int, Meta(ge=2, le=10**5)]
    pad_token_id: Token
    decoder_start_token_id: Token
    eos_token_id: Token
    activation_function: str
    dropout: Annotated[float, Meta(ge=0, lt=1)] = 0.1
    num_beams: int | None = None
    length_penalty: float | None = None

    @property
    def vocabulary_sizes(self) -> tuple[int, ...]:
        """The size of the joint vocabulary, or those of source and target."""
        return (self.vocab_size,)


def check_files(folder: Path, names: Sequence[str], kind: str):
    """Raise `UserError` for a missing file."""
    if missing := [file for file in names if not (folder / file).is_file()]:
        raise UserError(f"{folder} is not {kind}: it has no {', '.join(missing)}; if it is one, {COPY_IT}")


def read_config(folder: Path, kind: type[Config], name: str, needed: dict[str, tuple]) -> tuple[Config, dict]:
    """Return a repository's configuration and arguments of the backbone.

    Args:
        folder: the repository.
        kind: the configuration's class.
        name: the models', for errors.
        needed: by their keys, the default and the only supported value of other settings.

    Raises:
        UserError: an entry is missing, of another type, or not supported.
    """
    path = folder / CONFIG_FILE
    config, entries = read_typed(path, kind), read_object(path)

    def same(key: str) -> int:
        sizes = [getattr(config, f"{side}_{key}") for side in ("encoder", "decoder")]
        if sizes[0] != sizes[1]:
            raise UserError(f"{folder}: encoder and decoder differ in {key}, {sizes[0]} and {sizes[1]}")
        return sizes[0]

    for key, (usual, only) in needed.items():
        if (value := entries.get(key, usual)) != only:
            raise UserError(f"{folder}: {key} is {value!r:.80}; kzoo reads only {name} models with {only}")
    activation = config.activation_function
    if activation not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise UserError(f"{folder}: activation_function is {activation!r:.80}, not one of {known}")
    if config.decoder_start_token_id not in (config.pad_token_id, config.eos_token_id):
        raise UserError(
            f"{folder}: decoder_start_token_id is {config.decoder_start_token_id}; kzoo reads only {name} "
            "models that start with the padding or the end symbol"
        )
    differ = config.decoder_layers != config.encoder_layers
    sizes = [size + 1 for size in config.vocabulary_sizes]  # kzoo's start symbol is another token
    return config, {
        "source_vocabulary_size": sizes[0],
        "target_vocabulary_size": sizes[1] if len(sizes) == 2 else None,
        "position_encoding": "sine",
        "num_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers if differ else None,
        "width": config.d_model,
        "num_heads": same("attention_heads"),
        "feedforward_dim": same("ffn_dim"),
        "dropout": config.dropout,
        "activation": ACTIVATIONS[activation],
        "max_length": config.max_position_embeddings,
    }


def search_settings(folder: Path, config: Config) -> SearchSettings:
    """Return the search settings of a configuration."""
    beams = 4 if config.num_beams is None else config.num_beams
    entries = {"beam_size": beams, "length_penalty": config.length_penalty}
    return SearchSettings.from_entries(entries, folder / CONFIG_FILE)


def read_vocabulary(path: Path, size: int, most: int | None = None) -> list[str]:
    """Return the pieces of a `vocab.json` in the order of their ids.

    Args:
        path: the file.
        size: the number of pieces that it has; with `most`, the fewest.
        most: the most pieces that it may have.

    Raises:
        UserError: it has another number of pieces, or ids other than 0 to the number of pieces - 1.
    """
    vocabulary = read_object(path)
    count = len(vocabulary)
    if not size <= count <= (most or size):
        raise UserError(f"{path} has {count:,} pieces, but the model {most or size:,}")
    pieces = {}
    for piece, token in vocabulary.items():
        if type(token) is not int or not 0 <= token < count or token in pieces:
            raise UserError(
                f"{path}: {piece!r:.80} has the id {token!r:.80}, not one of its own from 0 to {count - 1}"
            )
        pieces[token] = piece
    return [pieces[token] for token in range(count)]


def order(path: Path, pieces: list[str], config: Config) -> tuple[list[int], list[str]]:
    """Return a vocabulary's ids in kzoo's order, special tokens first, and the other pieces.

    Args:
        path: the vocabulary's file, named in errors.
        pieces: its pieces in the order of their ids.
        config: the model's configuration.

    Raises:
        UserError: a special token is missing, or has another id in the configuration.
    """
    ids = {piece: token for token, piece in enumerate(pieces)}
    if "<unk>" not in ids:
        raise UserError(f"{path} has no <unk>")
    for piece, key in (("</s>", "eos_token_id"), ("<pad>", "pad_token_id")):
        token, expected = ids.get(piece), getattr(config, key)
        if token != expected:
            raise UserError(f"{path}: {piece} has the id {token}, but {key} in {CONFIG_FILE} is {expected}")
    special = [config.pad_token_id, ids["<unk>"], config.decoder_start_token_id, config.eos_token_id]
    others = [token for token in range(len(pieces)) if token not in special]
    # Some vocabularies also have SentencePiece's own "<s>", which no text contains.
    names = [f"<unused {token}>" if pieces[token] in SPECIAL.values() else pieces[token] for token in others]
    return [*special, *others], names


def sentence_piece_model(path: Path) -> bytes:
    """Return the bytes of a SentencePiece model's file.

    Raises:
        UserError: it is damaged, or a pointer of Git LFS.
    """
    from sentencepiece import SentencePieceProcessor

    check_fetched(path)
    try:
        proto = path.read_bytes() or b"x"  # SentencePiece accepts an empty file as a model
        SentencePieceProcessor(model_proto=proto)
    except (OSError, RuntimeError):
        raise UserError(f"{path} is damaged: fetch the repository again") from None
    return proto
