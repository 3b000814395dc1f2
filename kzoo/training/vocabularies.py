"""A run's vocabularies: learned once, then read from its folder."""

import json
import re
from pathlib import Path

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

GIVEN_BACK = 1000  # sentences on which Moses's form is tried


def learned_subwords(
    folder: Path, name: str, sentences: list[str], size: int, text: str = "raw", language: str = ""
) -> SubwordTokenizer:
    """Return the run's tokenizer of this name.

    Args:
        folder: the run's folder; the vocabulary is stored there as `subwords.NAME.model`.
        name: such as a language.
        sentences: what it is learned from if the run has none yet.
        size: int. Number of subwords.
        text: `"raw"`; or in Moses's form: `"lowercased"`, or `"truecased"`, whose word forms are stored in
            the run as `truecaser.LANGUAGE.json`.
        language: language code, for Moses.
    """
    return shared_subwords(folder, name, {name: (language, sentences)}, size, text)[0]


def shared_subwords(
    folder: Path, name: str, sides: dict[str, tuple[str, list[str]]], size: int, text: str
) -> list[SubwordTokenizer]:
    """Return the run's tokenizers that share the vocabulary of this name, one for each side.

    Args:
        folder, name, size, text: as for `learned_subwords`.
        sides: for each side's name, its language and its sentences.

    Raises:
        UserError: Moses's form of a language does not give most of its sentences back.
    """
    path = folder / f"subwords.{name}.model"
    learn = not path.exists()
    tokenizers = [
        FORMS[text](folder, learn, language, sentences, f"{side}_tokenizer.json")
        for side, (language, sentences) in sides.items()
    ]
    if learn:
        texts = list(zip(tokenizers, sides.values(), strict=True))
        if text != "raw":
            for tokenizer, (_, sentences) in texts:
                _check_given_back(tokenizer, sentences, text)
        prepared = [tokenizer.normalize(s) for tokenizer, (_, sentences) in texts for s in sentences]
        with whole_file(path) as file:
            file.write_bytes(train_subwords(prepared, size))
    for tokenizer in tokenizers:
        tokenizer.set_proto(path.read_bytes())
    return tokenizers


def _check_given_back(tokenizer: MosesSubwordTokenizer, sentences: list[str], text: str):
    """Raise `UserError` if Moses's form does not give most sentences back: it does not know the language."""
    sample = sentences[:GIVEN_BACK]
    same = sum(_letters(tokenizer.plain(tokenizer.normalize(one))) == _letters(one) for one in sample)
    if 2 * same < len(sample):
        raise UserError(
            f"text = {text!r} is not for language {tokenizer.language!r}, which Moses does not know: only "
            f"{same:,} of {len(sample):,} sentences keep their spaces and signs; choose text = 'raw'"
        )


def _letters(text: str) -> str:
    """Return a text without what Moses's forms change: case, quotes, and repeated spaces."""
    return " ".join(re.sub("[\"'“”„«»‘’‚]", "", text).casefold().split())


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
