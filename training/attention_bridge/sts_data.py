"""The STS tasks of 2012 to 2016 in SentEval's layout: a file of sentence pairs and one of scores per set."""

from pathlib import Path

from kzoo.data.text_files import read_lines
from kzoo.errors import UserError

# SentEval's sets; 2013 is without SMT, which is not free. 2015 has another file (`senteval_data.py`).
STS_SETS = {
    2012: ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    2013: ("FNWN", "headlines", "OnWN"),
    2014: ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    2016: ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}


def sts_files(year: int) -> dict[str, str]:
    """Return the names of the files of a year's pairs, by set.

    Args:
        year: a key of `STS_SETS`.

    Example:
        >>> sts_files(2013)["FNWN"]
        'downstream/STS/STS13-en-test/STS.input.FNWN.txt'
    """
    folder = f"downstream/STS/STS{year % 100}-en-test"
    return {name: f"{folder}/STS.input.{name}.txt" for name in STS_SETS[year]}


def read_sts_set(path: Path) -> tuple[tuple[list[str], list[str]], list[float]]:
    """Return the pairs of a set that have a score, as two aligned lists, and their scores.

    Args:
        path: `STS.input.NAME.txt`, two sentences a line, separated by a tab. Beside it stands
            `STS.gs.NAME.txt`, a score a line, or an empty line if the pair has none.

    Raises:
        UserError: the files have different numbers of lines; or a line has one sentence, or a score that is
            no number from 0 to 5 (the message names the line).
    """
    scored = path.with_name(path.name.replace("STS.input.", "STS.gs."))
    lines, given = read_lines(path).sentences, read_lines(scored).sentences
    if len(lines) != len(given):
        raise UserError(f"{path} has {len(lines):,} lines but {scored} has {len(given):,}: one score a line")
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
    return pairs, scores


def similarity(text: str) -> float | None:
    """Return a score, or None for the empty text that stands where the annotators disagree.

    Raises:
        ValueError: it is not a number from 0 to 5.
    """
    if text and not 0 <= float(text) <= 5:
        raise ValueError
    return float(text) if text else None
