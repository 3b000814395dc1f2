"""The taggers' text: Chinese treebanks, split into training, validation and tests."""

import os
from pathlib import Path

from kzoo.errors import UserError
from kzoo.text.segment_tags import Segment, segments_to_tags
from training.glyph.conllu import read_conllu
from training.glyph.ctb5 import read_ctb5

# Universal Dependencies: training text (PUD and HK are traditional), and one test in two scripts.
TREEBANKS = ("zh_gsdsimp-ud-dev", "zh_pud-ud-test", "zh_hk-ud-test", "zh_cfl-ud-test")
TAGGED_TESTS = {"simplified": "zh_gsdsimp-ud-test", "traditional": "zh_gsd-ud-test"}

Sentences = list[list[Segment]]


def universal_dependencies(
    treebanks: tuple[str, ...] = TREEBANKS,
) -> tuple[Sentences, Sentences, dict[str, Sentences]]:
    """Return training sentences, validation sentences and tests by script, from KZOO_DATA/ud_chinese.

    No text of training or validation is in a test, in the other, or twice. Every tenth sentence is for
    validation, unless it has a tag that training has not.

    Args:
        treebanks: names of the files that are trained on.

    Raises:
        UserError: KZOO_DATA is not set, or as in `read_conllu`.
    """
    folder = _data_folder() / "ud_chinese"
    tests = {name: read_conllu(folder / f"{file}.conllu.gz") for name, file in TAGGED_TESTS.items()}
    known = {text_of(sentence) for true in tests.values() for sentence in true}
    fresh = {}
    for file in treebanks:
        for sentence in read_conllu(folder / f"{file}.conllu.gz"):
            if text_of(sentence) not in known:
                fresh.setdefault(text_of(sentence), sentence)
    fresh = list(fresh.values())
    training = [sentence for number, sentence in enumerate(fresh) if number % 10]
    tags = set().union(*map(_tags, training))
    return training, [sentence for sentence in fresh[::10] if _tags(sentence) <= tags], tests


def chinese_treebank() -> tuple[Sentences, Sentences, dict[str, Sentences]]:
    """Return training sentences, validation sentences and the test of the treebank in KZOO_DATA/ctb5.

    Raises:
        UserError: KZOO_DATA is not set, or as in `read_ctb5`.
    """
    folder = _data_folder() / "ctb5"
    return read_ctb5(folder, "train"), read_ctb5(folder, "dev"), {"test": read_ctb5(folder, "test")}


def text_of(sentence: list[Segment]) -> str:
    """Return a tagged sentence's text."""
    return "".join(word for word, _ in sentence)


def _tags(sentence: list[Segment]) -> set[str]:
    return set(segments_to_tags(sentence)[1])


def _data_folder() -> Path:
    if not os.environ.get("KZOO_DATA"):
        raise UserError("set KZOO_DATA to the folder that holds the treebanks")
    return Path(os.environ["KZOO_DATA"]).expanduser()
