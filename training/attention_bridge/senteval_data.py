"""SentEval's tasks, read from their publishers' files: sentences or sentence pairs, and their targets."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kzoo.data.text_files import read_lines
from kzoo.errors import UserError, nearest
from training.paper_tables import data_folder

# SentEval's sets, without SMT of 2013, which is not free.
STS_SETS = {
    2012: ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    2013: ("FNWN", "headlines", "OnWN"),
    2014: ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    2016: ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
# The five sets of STS 2015 and their numbers of pairs, in file order; 5,500 of the 8,500 have no score.
STS_2015_SETS = {
    "answers-forums": 2000,
    "answers-students": 1500,
    "belief": 2000,
    "headlines": 1500,
    "images": 1500,
}
WINDOWS = ("rt-polarity", "subj", "TREC")  # files published in Windows-1252
ENTAILMENT = ("contradiction", "neutral", "entailment")


class Examples(NamedTuple):
    """The examples of one split.

    `texts` is one list of sentences, or two aligned lists; `targets` has one class (int from 0) or score
    (float) per example.
    """

    texts: tuple[list[str], ...]
    targets: list[int] | list[float]


class _Files(NamedTuple):
    """A task's files by split, which may end in `.gz`, and the function that reads them."""

    names: dict[str, str]
    read: Callable[[Path], Examples | dict[str, Examples]]


def senteval_examples(task: str) -> dict[str, Examples]:
    """Return the examples of one of SentEval's tasks, by split.

    The files are in `senteval` in the folder of the environment variable `KZOO_DATA`: those of the probing
    tasks in `senteval/probing`, those of STS 2012, 2013, 2014 and 2016 in `senteval/downstream/STS`.

    Args:
        task: a key of `SENTEVAL_TASKS`.

    Returns:
        The splits: `"all"` if the task is cross-validated, otherwise `"train"`, `"val"` (not for TREC) and
        `"test"`. Tasks without training, `NAME-cosine`, have `"test"` only, or the sets of a year of STS.

    Raises:
        UserError: no such task, a missing file, or an invalid line.

    Example:
        >>> senteval_examples("TREC")["test"].texts[0][0]
        'How far is it from Denver to Aspen ?'
    """
    if task not in SENTEVAL_TASKS:
        raise UserError(f"unknown SentEval task {task!r}: {nearest(task, list(SENTEVAL_TASKS))}")
    folder = data_folder("senteval")
    files = SENTEVAL_TASKS[task]
    splits = {}
    for split, name in files.names.items():
        path = _find(folder, name)
        if path is None:
            raise UserError(f"task {task}: neither {folder / name} nor {name}.gz beside it exists")
        read = files.read(path)
        found = read if isinstance(read, dict) else {split: read}
        for part, examples in found.items():
            if not examples.targets:
                raise UserError(f"task {task}: {path} has no {part} example")
        splits |= found
    return splits


def senteval_tasks() -> list[str]:
    """Return the names of the tasks whose files exist, in the order of `SENTEVAL_TASKS`."""
    folder = data_folder("senteval")
    return [
        task
        for task, files in SENTEVAL_TASKS.items()
        if all(_find(folder, name) for name in files.names.values())
    ]


def _find(folder: Path, name: str) -> Path | None:
    files = (folder / f"{name}.gz", folder / name)
    return next((file for file in files if file.is_file()), None)


def _labelled(path: Path) -> Examples:
    """Read lines with a class, a space and a tokenized sentence."""
    sentences, labels = [], []
    for number, line in enumerate(_lines(path), 1):
        label, space, sentence = line.partition(" ")
        if not label.isdecimal() or not space:
            raise UserError(f"{path}, line {number}: {line[:40]!r} is not a class, a space and a sentence")
        labels.append(int(label))
        sentences.append(sentence.strip())
    return Examples((sentences,), labels)


def _lines(path: Path) -> list[str]:
    """Return the lines of a file in UTF-8 or, for MR, SUBJ and TREC, in Windows-1252."""
    try:
        return read_lines(path).sentences
    except UserError:
        if not path.name.startswith(WINDOWS):
            raise
    try:
        return read_lines(path, "windows-1252").sentences
    except UserError as error:
        raise UserError(f"{error}, nor UTF-8") from None


def _table(columns: Sequence[int | str], value: Callable[[str], float | None], path: Path) -> Examples:
    """Read a table of tab-separated columns.

    Args:
        columns: those of first sentences, of second sentences and of targets: their headers or, without a
            header row, their numbers from 0.
        value: function from a target's text to the target; `None` leaves the example out.
        path: the file.
    """
    lines = read_lines(path).sentences
    if isinstance(columns[0], int):
        return _pairs(path, lines, *columns, value)
    header = lines[0].split("\t") if lines else []
    for column in columns:
        if column not in header:
            seen = ", ".join(header) or "nothing"
            raise UserError(f"{path}, line 1: no column {column!r} (the header has {seen})")
    return _pairs(path, lines[1:], *map(header.index, columns), value, line=2, width=len(header))


def _pairs(path, lines, first, second, target, value, line=1, width=0) -> Examples:
    """Return the examples in the lines of a table; `line` is the number of the first line."""
    pairs, targets = ([], []), []
    for where, row in _rows(path, lines, width or 1 + max(first, second, target), line):
        try:
            found = value(row[target].strip())
        except ValueError:
            raise UserError(
                f"{where}, column {target + 1}: {row[target]!r} is not a target of this task"
            ) from None
        if found is not None:
            pairs[0].append(row[first].strip())
            pairs[1].append(row[second].strip())
            targets.append(found)
    return Examples(pairs, targets)


def _rows(path: Path, lines: list[str], width: int, line: int = 1) -> Iterator[tuple[str, list[str]]]:
    """Yield the location and the columns of each line. Raise `UserError` for fewer columns than `width`."""
    for number, text in enumerate(lines, line):
        row = text.split("\t")
        if len(row) < width:
            raise UserError(f"{path}, line {number}: {len(row)} columns, not {width}, separated by tabs")
        yield f"{path}, line {number}", row


def _entailment(text: str) -> int | None:
    """Return the class of an entailment judgment; `None` for SNLI's "-", where annotators disagree."""
    return None if text == "-" else ENTAILMENT.index(text.lower())


def _sts_2015_sets(path: Path) -> dict[str, Examples]:
    """Read the five sets of STS 2015's test. The rest of the file repeats train and validation."""
    lines = read_lines(path).sentences
    needed = sum(STS_2015_SETS.values())
    if len(lines) < needed:
        raise UserError(f"{path}: {len(lines):,} lines, but the sets of STS 2015 have {needed:,}")
    sets, start = {}, 0
    for name, size in STS_2015_SETS.items():
        sets[name] = _pairs(path, lines[start : start + size], 1, 2, 0, similarity, line=start + 1)
        start += size
    return sets


def _sts_2015(path: Path) -> Examples:
    """Read a split of STS 2015; for the test, its five sets only."""
    if ".test." not in path.name:
        return _table((1, 2, 0), similarity, path)
    sets = _sts_2015_sets(path).values()
    texts = tuple([text for examples in sets for text in examples.texts[side]] for side in (0, 1))
    return Examples(texts, [score for examples in sets for score in examples.targets])


def sts_files(year: int) -> dict[str, str]:
    """Return the names of a year's files, by set.

    Args:
        year: a key of `STS_SETS`.

    Example:
        >>> sts_files(2013)["FNWN"]
        'downstream/STS/STS13-en-test/STS.input.FNWN.txt'
    """
    folder = f"downstream/STS/STS{year % 100}-en-test"
    return {name: f"{folder}/STS.input.{name}.txt" for name in STS_SETS[year]}


def read_sts_set(path: Path) -> Examples:
    """Return the pairs of a set of STS that have a score, and their scores.

    Args:
        path: `STS.input.NAME.txt`, with two sentences per line, separated by a tab. `STS.gs.NAME.txt` beside
            it has one score per line, or an empty line for a pair without one.

    Raises:
        UserError: the files have different numbers of lines; or a line has only one sentence, or a score
            that is not a number from 0 to 5.
    """
    scored = path.with_name(path.name.replace("STS.input.", "STS.gs."))
    lines, given = read_lines(path).sentences, read_lines(scored).sentences
    if len(lines) != len(given):
        raise UserError(f"{path} has {len(lines):,} lines but {scored} has {len(given):,} scores")
    pairs, scores = ([], []), []
    for number, (line, text) in enumerate(zip(lines, given, strict=True), 1):
        first, tab, rest = line.partition("\t")
        if not tab:
            raise UserError(f"{path}, line {number}: {line[:40]!r} is not two sentences separated by a tab")
        try:
            score = similarity(text.strip())
        except ValueError:
            raise UserError(f"{scored}, line {number}: {text!r} is not a score from 0 to 5") from None
        if score is not None:
            pairs[0].append(first.strip())
            pairs[1].append(rest.split("\t")[0].strip())
            scores.append(score)
    return Examples(pairs, scores)


def similarity(text: str) -> float | None:
    """Return a score; `None` for empty text, where annotators disagree.

    Raises:
        ValueError: it is not a number from 0 to 5.
    """
    if text and not 0 <= float(text) <= 5:
        raise ValueError
    return float(text) if text else None


def _probing(path: Path) -> dict[str, Examples]:
    """Read lines with a split (tr, va, te), a label and a sentence. Classes are train's sorted labels."""
    names = {"tr": "train", "va": "val", "te": "test"}
    found = {split: ([], []) for split in names.values()}
    for where, row in _rows(path, read_lines(path).sentences, 3):
        if row[0] not in names:
            raise UserError(f"{where}: split {row[0]!r} is not one of {', '.join(names)}")
        labels, sentences = found[names[row[0]]]
        labels.append(row[1])
        sentences.append(row[-1].strip())
    classes = {label: index for index, label in enumerate(sorted(set(found["train"][0])))}
    for split, (labels, _) in found.items():
        if unknown := sorted(set(labels) - set(classes)):
            raise UserError(f"{path}: label {unknown[0]!r} of split {split} is not in split train")
    return {
        split: Examples((sentences,), [classes[label] for label in labels])
        for split, (labels, sentences) in found.items()
    }


def _splits(pattern: str, val: str = "val") -> dict[str, str]:
    names = {"train": "train", "val": val, "test": "test"}
    return {split: pattern.format(name) for split, name in names.items() if name}


_sick = {"train": "SICK_train.txt", "val": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}
_sick_r = partial(_table, ("sentence_A", "sentence_B", "relatedness_score"), similarity)
_sick_e = partial(_table, ("sentence_A", "sentence_B", "entailment_judgment"), _entailment)
_sts_b = partial(_table, (5, 6, 4), similarity)
_msr = partial(_table, ("#1 String", "#2 String", "Quality"), ("0", "1").index)
_snli = partial(_table, ("sentence1", "sentence2", "gold_label"), _entailment)

PROBING_TASKS = {
    "Length": "sentence_length",
    "WordContent": "word_content",
    "Depth": "tree_depth",
    "TopConstituents": "top_constituents",
    "BigramShift": "bigram_shift",
    "Tense": "past_present",
    "SubjNumber": "subj_number",
    "ObjNumber": "obj_number",
    "OddManOut": "odd_man_out",
    "CoordinationInversion": "coordination_inversion",
}

SENTEVAL_TASKS: dict[str, _Files] = {
    "MR": _Files({"all": "rt-polarity.all"}, _labelled),
    "CR": _Files({"all": "custrev.all"}, _labelled),
    "SUBJ": _Files({"all": "subj.all"}, _labelled),
    "MPQA": _Files({"all": "mpqa.all"}, _labelled),
    "SST-2": _Files(_splits("stsa.binary.{}", val="dev"), _labelled),
    "SST-5": _Files(_splits("stsa.fine.{}", val="dev"), _labelled),
    "TREC": _Files(_splits("TREC.{}.all", val=""), _labelled),
    "MRPC": _Files(_splits("msr-para-{}.tsv"), _msr),
    "SICK-E": _Files(_sick, _sick_e),
    "SNLI": _Files(_splits("snli_1.0_{}.txt", val="dev"), _snli),
    "SICK-R": _Files(_sick, _sick_r),
    "STS-B": _Files(_splits("sts-{}.csv", val="dev"), _sts_b),
    "STS-2015": _Files(_splits("sts-2015.{}.tsv"), _sts_2015),
    "SICK-R-cosine": _Files({"test": _sick["test"]}, _sick_r),
    "STS-B-cosine": _Files({"test": "sts-test.csv"}, _sts_b),
    "STS-2015-cosine": _Files({"test": "sts-2015.test.tsv"}, _sts_2015_sets),
    **{f"STS-{year}-cosine": _Files(sts_files(year), read_sts_set) for year in STS_SETS},
    **{task: _Files({"all": f"probing/{name}.txt"}, _probing) for task, name in PROBING_TASKS.items()},
}
