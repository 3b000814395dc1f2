"""A run's vocabularies: learned once, then read from its folder."""

import json
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from kzoo.data import Shards
from kzoo.errors import UserError
from kzoo.files import whole_file
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
from kzoo.text.languages import has_two_kinds_of_i
from kzoo.training.recipe import Recipe

TRIED = 1000  # sentences on which it is seen whether Moses knows a language


def learned_tokenizers(recipe: Recipe, folder: Path, source: Iterable[str], target: list[str]) -> list:
    """Return the recipe's tokenizers, one for each side or one for both.

    Text in Moses's form has one for each side even with a shared vocabulary, because the languages differ.

    Args:
        recipe: the recipe.
        folder: where their vocabularies are or will be stored.
        source: sentences that they are learned from if there are none yet.
        target: their translations.
    """
    size, form, tokenizers = recipe.vocabulary_size, recipe.text, []
    sides = {"source": (recipe.source, source), "target": (recipe.target, target)}
    if recipe.source_characters:
        tokenizers = [learned_characters(folder, source, recipe.source_characters)]
        del sides["source"]
    elif recipe.joint_vocabulary:
        joint = {"joint": ("", [*source, *target])} if form == "raw" else sides
        return learned_subwords(folder, "joint", joint, size, form)
    for side, text in sides.items():
        tokenizers += learned_subwords(folder, side, {side: text}, size, form)
    return tokenizers


def learned_subwords(
    folder: Path, name: str, sides: dict[str, tuple[str, list[str]]], size: int, text: str = "raw"
) -> list[SubwordTokenizer]:
    """Return the run's tokenizers that share the vocabulary of this name, one for each side.

    Args:
        folder: the run's folder; the vocabulary is stored there as `subwords.NAME.model`.
        name: such as a language.
        sides: for each side's name, its language code, for Moses, and its sentences, from which the
            vocabulary is learned if the run has none yet.
        size: int. Number of subwords.
        text: `"raw"`; or in Moses's form: `"lowercased"`, or `"truecased"`, whose word forms are stored in
            the run as `truecaser.LANGUAGE.json`.

    Raises:
        UserError: Moses does not know how one of the languages is written.
    """
    path = folder / f"subwords.{name}.model"
    learn = not path.exists()
    if learn and text != "raw":
        for language, sentences in sides.values():
            _check_form(text, language, sentences)
    tokenizers = [
        FORMS[text](folder, learn, language, sentences, f"{side}_tokenizer.json")
        for side, (language, sentences) in sides.items()
    ]
    if learn:
        texts = zip(tokenizers, sides.values(), strict=True)
        prepared = [tokenizer.normalize(s) for tokenizer, (_, sentences) in texts for s in sentences]
        with whole_file(path) as file:
            file.write_bytes(train_subwords(prepared, size))
    for tokenizer in tokenizers:
        tokenizer.set_proto(path.read_bytes())
    return tokenizers


def _check_form(text: str, language: str, sentences: list[str]):
    """Raise `UserError` if a form of text is not for a language: Moses does not know how it is written."""
    if text == "truecased" and has_two_kinds_of_i(language):
        raise UserError(f"text = {text!r} does not know the two kinds of i of language {language!r}")
    tried = sentences[:TRIED]
    apart = sum(any(map(_is_torn_off, moses_tokens(one, language).split())) for one in tried)
    if 10 * apart > len(tried):
        raise UserError(
            f"text = {text!r} is not for language {language!r}: Moses tears marks off their letters in "
            f"{apart:,} of {len(tried):,} sentences; choose text = 'raw', or bring the text into NFC"
        )


def _is_torn_off(token: str) -> bool:
    """Return whether a token begins with what belongs to the letter before: a mark or a joiner."""
    return unicodedata.category(token[0]).startswith("M") or token[0] in "\u200c\u200d"


def learned_characters(folder: Path, sentences: list[str], which: str) -> CharacterTokenizer:
    """Return the run's tokenizer of source characters.

    Args:
        folder: the run's folder; the vocabulary is stored there as `characters.json`.
        sentences: what it is learned from if the run has none yet.
        which: `"seen"`: the characters of `sentences`; `"common"`: these, then the other common Chinese ones.
    """
    path = folder / "characters.json"
    if not path.exists():
        characters = learn_characters(sentences)
        if which == "common":
            characters = list(dict.fromkeys([*characters, *common_chinese_characters()]))
        with whole_file(path) as file:
            file.write_text(json.dumps("".join(characters), ensure_ascii=False), "utf-8")
    return CharacterTokenizer(json.loads(path.read_text("utf-8")), config_file="source_tokenizer.json")


def _truecased(
    folder: Path, learn: bool, language: str, sentences: list[str], file: str
) -> TruecasedSubwordTokenizer:
    """Return a tokenizer without subwords, whose forms are in the run's folder, learned again if `learn`."""
    path = folder / f"truecaser.{language}.json"
    if learn or not path.exists():
        forms = learn_forms(moses_tokens(sentence, language) for sentence in sentences)
        with whole_file(path) as whole:
            whole.write_text(json.dumps(forms, ensure_ascii=False), "utf-8")
    forms = json.loads(path.read_text("utf-8"))
    return TruecasedSubwordTokenizer(language=language, forms=forms, config_file=file)


# Each takes a run's folder, whether to learn, a language, its sentences and the name of a preset's file, and
# returns a tokenizer that still lacks its subwords.
FORMS = {
    "raw": lambda folder, learn, language, sentences, file: SubwordTokenizer(config_file=file),
    "lowercased": lambda folder, learn, language, sentences, file: MosesSubwordTokenizer(
        language=language, config_file=file
    ),
    "truecased": _truecased,
}


def recipe_shards(recipe: Recipe) -> Shards:
    """Return the recipe's shards.

    Raises:
        UserError: there are none, they are damaged, or they were made for other languages or vocabularies.
    """
    shards = Shards(recipe.shards)
    shards.require(**shard_settings(recipe))
    return shards


def shard_settings(recipe: Recipe) -> dict:
    """Return what shards for the recipe depend on, apart from the text.

    Raises:
        UserError: the recipe's text has a form that shards cannot have.
    """
    if recipe.text != "raw":
        raise UserError(f"shards hold raw text, but the recipe's is {recipe.text}: leave text or shards out")
    names = ("source", "target", "vocabulary_size", "joint_vocabulary", "source_characters")
    return {name: getattr(recipe, name) for name in names}
