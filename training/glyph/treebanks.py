"""Chinese treebanks for the taggers, read as sentences of (word, part of speech), and their splits.

Universal Dependencies in CoNLL-U format, and the user's licensed copy of the Chinese Treebank 5.0.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from kzoo.data.text_files import read_lines
from kzoo.errors import UserError, nearest
from kzoo.models.segments import Segment, segments_to_tags
from training.paper_tables import data_folder

# Universal Dependencies: training text (PUD and HK in traditional characters), and a test set in two scripts.
TREEBANKS = ("zh_gsdsimp-ud-dev", "zh_pud-ud-test", "zh_hk-ud-test", "zh_cfl-ud-test")
TAGGED_TESTS = {"simplified": "zh_gsdsimp-ud-test", "traditional": "zh_gsd-ud-test"}

Sentences = list[list[Segment]]
CONLLU_COLUMNS = 10
RANGE_OR_EMPTY = re.compile(r"\d+(-|\.)\d+")
# The split of Jiang et al. 2008 for joint segmentation and tagging, as ranges of file numbers.
SPLITS = {
    "train": ((1, 270), (400, 931), (1001, 1151)),
    "dev": ((301, 325),),
    "test": ((271, 300),),
}
# The file numbers of the treebank's 890 files, as ranges.
FILES = ((1, 325), (400, 454), (500, 554), (590, 596), (600, 885), (900, 931), (1001, 1078), (1100, 1151))
NAME = re.compile(r"chtb_(\d+)(\.fid)?\.pos")
ENCODING = "gb18030"  # the files are GB2312, a subset of it
EMPTY = "-NONE-"  # the tag of empty categories, which are not text


def universal_dependencies(
    treebanks: tuple[str, ...] = TREEBANKS,
) -> tuple[Sentences, Sentences, dict[str, Sentences]]:
    """Return training sentences, validation sentences and test sets by script, from KZOO_DATA/ud_chinese.

    Training and validation share no text with each other or with a test set, and have no duplicates. Every
    tenth sentence is for validation, unless it has a tag that the training sentences lack.

    Args:
        treebanks: names of the files to train on.

    Raises:
        UserError: as for `data_folder` or `read_conllu`.
    """
    folder = data_folder("ud_chinese")
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
    """Return training sentences, validation sentences and the test set of the treebank in KZOO_DATA/ctb5.

    Raises:
        UserError: as for `data_folder` or `read_ctb5`.
    """
    folder = data_folder("ctb5")
    return read_ctb5(folder, "train"), read_ctb5(folder, "dev"), {"test": read_ctb5(folder, "test")}


def text_of(sentence: list[Segment]) -> str:
    """Return a tagged sentence's text."""
    return "".join(word for word, _ in sentence)


def _tags(sentence: list[Segment]) -> set[str]:
    return set(segments_to_tags(sentence)[1])


def read_conllu(path: str | Path) -> Sentences:
    """Return the sentences of a CoNLL-U file: each a list of (word, UPOS).

    Skips lines of multiword tokens and empty nodes, because only words are tagged.

    Args:
        path: the file; gzipped if its name ends in `.gz`.

    Raises:
        UserError: the file cannot be read or has no sentence; or a line does not have ten columns, or has a
            number out of order, no word, or no UPOS.

    Example:

    >>> read_conllu("zh_gsdsimp-ud-dev.conllu.gz")[0][:2]
    [('同样', 'ADV'), ('，', 'PUNCT')]

    Reference:
        https://universaldependencies.org/format.html
    """
    sentences, words = [], []
    text = read_lines(Path(path).expanduser())
    for number, line in enumerate([*text.sentences, ""], 1):
        if line.strip() and not line.startswith("#"):
            words += _conllu_word(line, len(words) + 1, f"{text.where}, line {number}")
        elif not line.strip() and words:
            sentences.append(words)
            words = []
    if not sentences:
        raise UserError(f"{text.where}: no sentence in it; a CoNLL-U file has one word per line")
    return sentences


def _conllu_word(line: str, expected: int, where: str) -> list[tuple[str, str]]:
    """Return the word of a line, or nothing for a multiword token or an empty node."""
    columns = line.split("\t")
    if len(columns) != CONLLU_COLUMNS:
        raise UserError(f"{where}: {len(columns)} columns instead of {CONLLU_COLUMNS}, separated by tabs")
    identity, form, upos = columns[0], columns[1], columns[3]
    if RANGE_OR_EMPTY.fullmatch(identity):
        return []
    if identity != str(expected):
        raise UserError(f"{where}: the word's number is {identity!r}, {expected} was expected")
    if not form.strip():
        raise UserError(f"{where}: no word ({form!r}) in column 2")
    if upos.strip() in ("", "_"):
        raise UserError(f"{where}: no UPOS ({upos!r}) in column 4")
    return [(form, upos)]


def read_ctb5(folder: str | Path, split: str) -> Sentences:
    """Return the sentences of a split: each a list of (word, part of speech), the treebank's own tags.

    Args:
        folder: the treebank's folder, with `data/postagged` in it.
        split: "train", "dev" or "test": about 18,100, 350 and 348 sentences.

    Raises:
        UserError: no such split; a missing folder or missing files; or a file has another encoding, no
            sentence, or a token that is not `word_TAG`.

    Example:

    >>> read_ctb5("LDC2005T01", "train")[0][:2]
    [('上海', 'NR'), ('浦东', 'NR')]

    Reference:
        https://catalog.ldc.upenn.edu/LDC2005T01; the split: Jiang, Huang, Liu and Lü, ACL 2008
    """
    if split not in SPLITS:
        raise UserError(f"Chinese Treebank 5.0 has no split {split!r}: {nearest(split, list(SPLITS))}")
    tagged = Path(folder).expanduser() / "data" / "postagged"
    if not tagged.is_dir():
        raise UserError(f"{tagged}: no such folder; give the folder of Chinese Treebank 5.0")
    files = {int(match[1]): path for path in tagged.iterdir() if (match := NAME.fullmatch(path.name))}
    numbers = [
        number
        for first, last in SPLITS[split]
        for number in range(first, last + 1)
        if any(low <= number <= high for low, high in FILES)
    ]
    missing = [f"chtb_{number:03}.pos" for number in numbers if number not in files]
    if missing:
        more = f" and {len(missing) - 10} more" if len(missing) > 10 else ""
        raise UserError(
            f"{tagged}: {len(missing)} of the {len(numbers)} files of split {split} are missing: "
            f"{', '.join(missing[:10])}{more}"
        )
    return [sentence for number in numbers for sentence in _ctb5_sentences(files[number])]


def _ctb5_sentences(path: Path) -> Sentences:
    """Return the sentences of a file: the lines between `<S ID=…>` and `</S>`."""
    sentences, words, inside = [], [], False
    for number, line in enumerate(read_lines(path, ENCODING).sentences, 1):
        line = line.strip()
        if line.startswith("<") and line.endswith(">"):
            if words:
                sentences.append(words)
            words, inside = [], line.startswith("<S ")
        elif inside:
            words += _ctb5_words(line, f"{path}, line {number}")
    if not sentences:
        raise UserError(f"{path}: no sentence in it; sentences are between <S ID=…> and </S>")
    return sentences


def _ctb5_words(line: str, where: str) -> Iterator[tuple[str, str]]:
    for token in line.split():
        word, _, tag = token.rpartition("_")
        if tag == EMPTY:
            continue
        if not word or not tag:
            raise UserError(f"{where}: token {token!r} is not word_TAG")
        yield word, tag
