"""Chinese Treebank 5.0, the user's own licensed copy, read as sentences of words with parts of speech."""

import re
from collections.abc import Iterator
from pathlib import Path

from kzoo.data.text_files import read_bytes
from kzoo.errors import UserError, nearest

# The split of Jiang et al. 2008 for joint segmentation and tagging: ranges of the numbers in the files' names
SPLITS = {
    "train": ((1, 270), (400, 931), (1001, 1151)),
    "dev": ((301, 325),),
    "test": ((271, 300),),
}
# The treebank's 890 files: no file has a number in between
FILES = ((1, 325), (400, 454), (500, 554), (590, 596), (600, 885), (900, 931), (1001, 1078), (1100, 1151))
NAME = re.compile(r"chtb_(\d+)(\.fid)?\.pos")
ENCODING = "gb18030"  # the files are GB2312, a part of it
EMPTY = "-NONE-"  # the tag of empty categories, which are not text


def read_ctb5(folder: str | Path, split: str) -> list[list[tuple[str, str]]]:
    """Return the sentences of a split: each a list of (word, part of speech), the treebank's own tags.

    Args:
        folder: the treebank's folder, with `data/postagged` in it.
        split: "train", "dev" or "test": about 18,100, 350 and 348 sentences.

    Raises:
        UserError: no such split; a missing folder or files, by name; a file in another encoding, without a
            sentence, or with a token that is not `word_TAG`, with its line.

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
        raise UserError(f"{tagged}: no such folder; give the folder of Chinese Treebank 5.0 that has it")
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
    return [sentence for number in numbers for sentence in _sentences(files[number])]


def _sentences(path: Path) -> list[list[tuple[str, str]]]:
    """Return the sentences of a file: the lines between `<S ID=…>` and `</S>`; other lines are headings."""
    sentences, words, inside = [], [], False
    for number, raw in enumerate(read_bytes(path).split(b"\n"), 1):
        where = f"{path}, line {number}"
        try:
            line = raw.decode(ENCODING).strip()
        except UnicodeDecodeError as error:
            raise UserError(f"{where}: not in the treebank's encoding, GB2312 ({error.reason})") from None
        if line.startswith("<") and line.endswith(">"):
            if words:
                sentences.append(words)
            words, inside = [], line.startswith("<S ")
        elif inside:
            words += _words(line, where)
    if not sentences:
        raise UserError(f"{path}: no sentence in it; sentences are between <S ID=…> and </S>")
    return sentences


def _words(line: str, where: str) -> Iterator[tuple[str, str]]:
    for token in line.split():
        word, _, tag = token.rpartition("_")
        if tag == EMPTY:
            continue
        if not word or not tag:
            raise UserError(f"{where}: token {token!r} is not word_TAG")
        yield word, tag
