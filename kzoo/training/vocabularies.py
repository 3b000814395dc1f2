"""A run's vocabularies: learned once, then read from its folder."""

import json
from pathlib import Path

from kzoo.files import whole_file
from kzoo.text import (
    CharacterTokenizer,
    MosesSubwordTokenizer,
    SubwordTokenizer,
    common_chinese_characters,
    learn_characters,
    moses_text,
    train_subwords,
)


def learned_subwords(
    folder: Path, name: str, sentences: list[str], size: int, text: str = "raw", language: str = ""
) -> SubwordTokenizer:
    """Return the run's tokenizer of this name.

    Args:
        folder: the run; the vocabulary stands there as `subwords.NAME.model`.
        name: such as a language.
        sentences: what it is learned from if the run has none yet.
        size: int. Its subwords.
        text: `"raw"`, or `"lowercased"`: in Moses's form and lower case.
        language: code, for Moses.
    """
    path = folder / f"subwords.{name}.model"
    prepare, make = FORMS[text]
    if not path.exists():
        with whole_file(path) as file:
            file.write_bytes(train_subwords([prepare(s, language) for s in sentences], size))
    return make(path.read_bytes(), language, f"{name}_tokenizer.json")


def learned_characters(folder: Path, sentences: list[str], which: str) -> CharacterTokenizer:
    """Return the run's tokenizer of source characters.

    Args:
        folder: the run; the vocabulary stands there as `characters.json`.
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


FORMS = {
    "raw": (
        lambda sentence, language: sentence,
        lambda proto, language, file: SubwordTokenizer(proto, config_file=file),
    ),
    "lowercased": (
        moses_text,
        lambda proto, language, file: MosesSubwordTokenizer(proto, language, config_file=file),
    ),
}
