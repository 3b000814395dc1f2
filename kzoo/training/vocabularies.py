"""A run's vocabularies: learned once, then read from its folder."""

import itertools
import json
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from keras_hub.tokenizers import Tokenizer

from kzoo.errors import JOINERS, UserError
from kzoo.files import atomic_write
from kzoo.presets.builders import BUILDERS
from kzoo.text import (
    CharacterTokenizer,
    MosesSubwordTokenizer,
    SubwordTokenizer,
    TruecasedSubwordTokenizer,
    common_chinese_characters,
    learn_characters,
    learn_forms,
    moses_tokens,
    train_subwords,
)
from kzoo.text.vocabulary import UnknownCharacters, unknown_characters
from kzoo.training.recipe import Recipe

RARE = 10  # fewer occurrences hardly teach a subword
TRIED = 1000  # sentences to check whether Moses supports a language


def learned_tokenizers(recipe: Recipe, folder: Path, source: Iterable[str], target: list[str]) -> list:
    """Return the recipe's tokenizers, one for each side or one for both.

    Moses depends on the language, so text in its form needs a tokenizer for each side even with a joint
    vocabulary.

    Args:
        recipe: the recipe.
        folder: folder of the vocabularies. If it has none, they are learned and written there.
        source: sentences to learn from.
        target: their translations.
    """
    size, form, tokenizers = recipe.vocabulary_size, recipe.text, []
    sides = {"source": (recipe.source, source), "target": (recipe.target, target)}
    if recipe.source_characters:
        tokenizers = [learned_characters(folder, source, recipe.source_characters)]
        del sides["source"]
    elif recipe.joint_vocabulary:
        joint = {"joint": ("", itertools.chain(source, target))} if form == "raw" else sides
        return learned_subwords(folder, "joint", joint, size, form)
    for side, text in sides.items():
        tokenizers += learned_subwords(folder, side, {side: text}, size, form)
    return tokenizers


def learned_subwords(
    folder: Path, name: str, sides: dict[str, tuple[str, list[str]]], size: int, text: str = "raw"
) -> list[SubwordTokenizer]:
    """Return tokenizers that share a vocabulary, one for each side; learn it if the run has none.

    Args:
        folder: the run's folder, with the vocabulary `subwords.NAME.model`.
        name: part of the file name, such as a language.
        sides: for each side's name, its language code (for Moses) and its sentences.
        size: int. Number of subwords.
        text: `"raw"`; or in Moses's form, `"lowercased"` or `"truecased"`, with the word forms in
            `truecaser.LANGUAGE.json`.

    Raises:
        UserError: Moses cannot tokenize one of the languages.
    """
    path = folder / f"subwords.{name}.model"
    learn = not path.exists()
    if learn and text != "raw":
        for language, sentences in sides.values():
            _check_form(text, language, sentences)
    tokenizers = [
        _tokenizer(text, folder, learn, language, sentences, f"{side}_tokenizer.json")
        for side, (language, sentences) in sides.items()
    ]
    if learn:
        texts = zip(tokenizers, sides.values(), strict=True)
        prepared = [tokenizer.normalize(s) for tokenizer, (_, sentences) in texts for s in sentences]
        with atomic_write(path) as file:
            file.write_bytes(train_subwords(prepared, size))
    for tokenizer in tokenizers:
        tokenizer.set_proto(path.read_bytes())
    return tokenizers


def _check_form(text: str, language: str, sentences: list[str]):
    """Raise `UserError` if Moses does not support a language in a form of text."""
    tried = sentences[:TRIED]
    broken = sum(any(map(_begins_within_letter, moses_tokens(one, language).split())) for one in tried)
    if 10 * broken > len(tried):
        raise UserError(
            f"text = {text!r} is not for language {language!r}: Moses separates letters from their marks in "
            f"{broken:,} of {len(tried):,} sentences; choose text = 'raw', or normalize the text (NFC)"
        )


def _begins_within_letter(token: str) -> bool:
    """Return whether a token begins with a mark or a joiner, which belongs to the letter before it."""
    # Armenian writes marks of emphasis, exclamation and question within a word.
    return unicodedata.category(token[0]).startswith("M") or token[0] in f"{JOINERS}՛՜՞"


def learned_characters(folder: Path, sentences: list[str], which: str) -> CharacterTokenizer:
    """Return the run's tokenizer of source characters.

    Args:
        folder: the run's folder, with the vocabulary `characters.json`.
        sentences: sentences to learn it from if the run has none.
        which: `"seen"`: the characters of `sentences`; `"common"`: also all other common Chinese ones.
    """
    path = folder / "characters.json"
    if not path.exists():
        characters = learn_characters(sentences)
        if which == "common":
            characters = list(dict.fromkeys([*characters, *common_chinese_characters()]))
        with atomic_write(path) as file:
            file.write_text(json.dumps("".join(characters), ensure_ascii=False), "utf-8")
    return CharacterTokenizer(json.loads(path.read_text("utf-8")), config_file="source_tokenizer.json")


def _tokenizer(
    text: str, folder: Path, learn: bool, language: str, sentences: list[str], file: str
) -> SubwordTokenizer:
    """Return a tokenizer without subwords. A truecased one learns word forms if `learn`, else reads them."""
    if text == "raw":
        return SubwordTokenizer(config_file=file)
    if text == "lowercased":
        return MosesSubwordTokenizer(language=language, config_file=file)
    path = folder / f"truecaser.{language}.json"
    if learn or not path.exists():
        forms = learn_forms(moses_tokens(sentence, language) for sentence in sentences)
        with atomic_write(path) as whole:
            whole.write_text(json.dumps(forms, ensure_ascii=False), "utf-8")
    forms = json.loads(path.read_text("utf-8"))
    return TruecasedSubwordTokenizer(language=language, forms=forms, config_file=file)


def unknown_by_language(
    languages: Sequence[str], tokenizers: Sequence[Tokenizer], texts: Sequence[list[str]], sides
) -> dict[str, UnknownCharacters]:
    """Return the characters that each language's vocabulary lacks; `sides` are the texts' token ids."""
    return {
        language: unknown_characters(text, tokens, tokenizer)
        for language, tokenizer, text, tokens in zip(languages, tokenizers, texts, sides, strict=True)
    }


def print_rare_subwords(recipe: Recipe, tokenizers: Sequence[Tokenizer], sides: Sequence[list[list[int]]]):
    """Print a line for each new vocabulary of which most subwords are too rare in the text to be learned.

    None if it could hardly be smaller, as each character needs a subword.
    """
    counts, least = {}, 0
    for tokenizer, side in zip(tokenizers, sides, strict=True):
        if recipe.preset in BUILDERS and isinstance(tokenizer, SubwordTokenizer):
            tokens = np.fromiter(itertools.chain.from_iterable(side), int)
            found = np.bincount(tokens, minlength=tokenizer.vocabulary_size())
            counts[tokenizer.proto] = counts.get(tokenizer.proto, 0) + found
            least = max(least, sum(len(piece) == 1 for piece in tokenizer.get_vocabulary()))
    for count in counts.values():
        if (rare := np.mean(count < RARE)) > 0.5 and len(count) > 1.5 * least:
            print(
                f"{rare:.0%} of {len(count):,} subwords occur fewer than {RARE} times in the training text: "
                "lower vocabulary_size"
            )
