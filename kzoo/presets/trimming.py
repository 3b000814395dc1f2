"""Cuts the vocabulary of a model of many languages to the languages in use."""

import os
from collections.abc import Iterable, Sequence

import numpy as np
import regex
from keras import ops
from sentencepiece import SentencePieceProcessor
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from kzoo.data.scripts import scripts_of
from kzoo.errors import UserError
from kzoo.hub.preset import Preset
from kzoo.models.backbones import without_initial_values
from kzoo.models.translator import Translator
from kzoo.presets.shelf import load
from kzoo.text.languages import matching_code, not_known
from kzoo.text.preparation import prepare
from kzoo.text.tokenizers import LanguageTokenizer
from kzoo.text.vocabulary import SPECIAL

NORMAL = ModelProto.SentencePiece.NORMAL


def trim(
    preset: str | os.PathLike | Preset, languages: Sequence[str], texts: Iterable[str] | None = None
) -> Translator:
    """Load a preset of fewer languages, without the pieces of its vocabulary that they do not need.

    Kept are the pieces whose characters are letters of the languages' scripts, digits, punctuation and
    symbols: text of these is tokenized as before. With `texts`, only the pieces that they are tokenized to
    are kept, and single characters: the texts are tokenized as before, others to smaller pieces.

    Kept pieces keep their order, their vectors and their logits.

    Args:
        preset: an M2M-100, NLLB-200 or SMaLL-100 model, as `load` takes it.
        languages: codes of the languages to keep, in any form that `matching_code` finds.
        texts: sentences in these languages.

    Returns:
        The translator; `save_to_preset` writes it.

    Raises:
        UserError: another model; a language that it lacks, or whose script is not known; or as for `load`.
    """
    translator = load(preset)
    tokenizer = translator.source_tokenizer
    if not isinstance(tokenizer, LanguageTokenizer):
        raise UserError(f"{preset} cannot be trimmed: only M2M-100, NLLB-200 and SMaLL-100 can")
    scripts = _scripts(languages, translator.target_languages)
    model = ModelProto.FromString(tokenizer.proto)
    pieces = _needed(model, {script for some in scripts.values() for script in some}, texts)
    needed = {piece.piece: piece for piece in model.pieces if piece.type != NORMAL or piece.piece in pieces}
    del model.pieces[:]
    model.pieces.extend(needed.values())
    model.DiscardUnknownFields()  # among them sentences that a test splits with the whole vocabulary
    names = {code: token for code, token in tokenizer.tokens.items() if code in scripts}
    kept = [
        token
        for token, piece in enumerate(tokenizer.vocabulary)
        if token in SPECIAL or piece in needed or piece in names.values()
    ]
    vocabulary = [tokenizer.vocabulary[token] for token in kept]
    tokenizers = [
        LanguageTokenizer(
            model.SerializeToString(), vocabulary, names, one.names, config_file=one.config_file
        )
        for one in (tokenizer, translator.target_tokenizer)
    ]
    own = [code if code in names else None for code in translator.languages]
    backbone = without_initial_values(lambda: _with_rows(translator.backbone, kept))
    return Translator(backbone, *tokenizers, *own, search=translator.search)


def _scripts(given: Sequence[str], known: Sequence[str]) -> dict[str, list[str]]:
    """Return the scripts of languages by the model's codes."""
    found = {}
    for language in given:
        code = matching_code(language, known)
        if code is None:
            raise UserError(f"the model's languages are {not_known(language, known)}")
        found[code] = scripts_of(code if "_" in code else language)
        if not found[code]:
            raise UserError(f"the script of {language!r} is not known: name it, such as {language}_Latn")
    return found


def _needed(model: ModelProto, scripts: set[str], texts: Iterable[str] | None) -> set[str]:
    """Return the pieces of a SentencePiece model that scripts need; with texts, those that they need."""
    letters = "".join(rf"\p{{Script={script}}}" for script in sorted(scripts))
    own = regex.compile(rf"[{letters}\p{{Script=Common}}\p{{Script=Inherited}}]+")
    known = {piece.piece for piece in model.pieces if piece.type == NORMAL}
    fitting = {piece for piece in known if own.fullmatch(piece)}
    ascii_characters = {
        piece for piece in known if len(piece) == 1 and piece.isascii()
    }  # in any language's text
    if texts is None:
        return fitting | ascii_characters
    processor = SentencePieceProcessor(model_proto=model.SerializeToString())
    found = {piece for piece in fitting if len(piece) == 1} | ascii_characters
    for text in texts:
        found.update(processor.encode(prepare(text, processor.normalize), out_type=str))
    # A byte-pair encoding merges smaller pieces to larger ones.
    parts = {
        piece[first:end]
        for piece in found
        for first in range(len(piece))
        for end in range(first + 1, len(piece) + 1)
    }
    return parts & known


def _with_rows(backbone, kept: list[int]):
    """Return a backbone that has the weights of another, but only some rows of the vocabulary's."""
    smaller = type(backbone).from_config({**backbone.get_config(), "source_vocabulary_size": len(kept)})
    for ours, whole in zip(smaller.weights, backbone.weights, strict=True):
        same = ours.shape == whole.shape
        ours.assign(whole if same else np.take(ops.convert_to_numpy(whole), kept, axis=0))
    return smaller
