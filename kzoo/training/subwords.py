"""A run's subword vocabularies: learned once, then read from its folder."""

from pathlib import Path

from kzoo.files import whole_file
from kzoo.text import SubwordTokenizer, train_subwords


def learned_subwords(folder: Path, name: str, sentences: list[str], size: int) -> SubwordTokenizer:
    """Return the run's tokenizer of this name.

    Args:
        folder: the run; the vocabulary stands there as `subwords.NAME.model`.
        name: such as a language.
        sentences: what it is learned from if the run has none yet.
        size: int. Its subwords.
    """
    path = folder / f"subwords.{name}.model"
    if not path.exists():
        with whole_file(path) as file:
            file.write_bytes(train_subwords(sentences, size))
    return SubwordTokenizer(path.read_bytes(), config_file=f"{name}_tokenizer.json")
