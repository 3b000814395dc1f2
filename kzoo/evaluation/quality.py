"""How good a run's model is, for the end of its training: scores, examples, and what would help most."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sacrebleu.metrics import CHRF

from kzoo.evaluation.comparison import CHRF2, DRAWS, Case, write_page
from kzoo.evaluation.plots import read_history
from kzoo.evaluation.scores import all_references, check_entities, check_forms
from kzoo.text.bleu import bleu_metric

BEST, MEDIAN, WORST = 3, 4, 3  # examples of each
ENOUGH = 5  # scored epochs, to see a curve
LATE = 0.8  # a best score after this part of the epochs is still rising
LEARNING = 0.02  # a loss that fell by this part since the best score still falls


class Score(NamedTuple):
    """A score of a test set.

    Args:
        name: BLEU or chrF2.
        score: of all sentences.
        mean: of the score over bootstrap samples of the sentences.
        interval: half the width of the interval around the mean that contains 95 % of the samples.
        signature: sacreBLEU's.
    """

    name: str
    score: float
    mean: float
    interval: float
    signature: str

    @property
    def cells(self) -> tuple[str, str, str]:
        """The score as a row of a table."""
        return self.name, f"{self.score:.1f}", f"{self.mean:.1f} ± {self.interval:.1f}"


def scores_with_intervals(
    translations: Sequence[str],
    references: Sequence[str],
    language: str,
    more_references: Sequence[Sequence[str]] = (),
) -> list[Score]:
    """Return BLEU and chrF2 with sacreBLEU's bootstrap intervals.

    Args:
        translations: one for each reference.
        references: true translations, at least one.
        language: target language, which selects BLEU's tokenizer.
        more_references: further true translations, each a list like `references`; `""` for none.
    """
    check_forms([translations, references, *more_references])
    check_entities(translations, [references, *more_references])
    true, rows = all_references(references, more_references), []
    for metric in (bleu_metric(language), CHRF()):
        found = metric.corpus_score(translations, true, n_bootstrap=DRAWS)
        signature = str(metric.get_signature())
        row = json.loads(
            found.format(is_json=True, signature=signature)
        )  # has no interval if all scores are 0
        interval = row.get("confidence_mean", 0.0), row.get("confidence_var", 0.0)
        rows.append(Score(found.name, found.score, *interval, signature))
    return rows


def examples(sources: Sequence[str], references: Sequence[str], translations: Sequence[str]) -> list[Case]:
    """Return the best, the median and the worst translations by chrF2, best first; all of ten or fewer."""
    rows = [
        Case(number, source, reference, (text,), 1 - CHRF2.sentence_score(text, [reference]).score / 100)
        for number, (source, reference, text) in enumerate(
            zip(sources, references, translations, strict=True)
        )
    ]
    rows.sort(key=lambda case: case.difference)
    if len(rows) <= BEST + MEDIAN + WORST:
        return rows
    middle = (len(rows) - MEDIAN) // 2
    return rows[:BEST] + rows[middle : middle + MEDIAN] + rows[-WORST:]


def most_helpful(history: str | Path) -> str:
    """Return what would help a run's model most, by the curves in its `history.csv`, in a sentence.

    `""` if they are too short. The history is that of a run with a cooldown, which raises every score: only
    the epochs before it count.

    Raises:
        UserError: as for `read_history`.
    """
    run = read_history(history, ["epoch", "val_bleu", "loss", "rate_factor"])
    rows = [row for row in zip(*run.values(), strict=True) if row[-1] == 1]
    scored = [(bleu, -epoch, loss) for epoch, bleu, loss, _ in rows if not math.isnan(bleu)]
    if len(scored) < ENOUGH:
        return ""
    _, epoch, loss = max(scored)
    last, _, last_loss, _ = rows[-1]
    if -epoch > LATE * last:
        return "More time would help most: the validation score was still rising when the learning rate fell."
    stopped = f"the validation score stopped rising in epoch {-epoch:.0f}"
    if last_loss < (1 - LEARNING) * loss:
        return f"More text would help most: {stopped}, but the training loss still fell."
    return f"A larger model may help most: {stopped}, and so did the training loss stop falling."


def write_quality(
    path: str | Path,
    name: str,
    scores: Sequence[Score],
    chosen: Sequence[Case],
    languages: tuple[str, str],
    sentences: int,
    advice: str,
):
    """Write the scores and examples of a run as a page, a single HTML file.

    Args:
        path: the file.
        name: the model's name.
        scores: of `scores_with_intervals`.
        chosen: of `examples`.
        languages: codes of the source and the target.
        sentences: int. Number of sentences of the test set.
        advice: of `most_helpful`.

    Raises:
        UserError: the file cannot be written.
    """
    table = [("score", "test set", "95 % interval"), *(score.cells for score in scores)]
    how = [("95 % interval: bootstrap over sentences.", "")]
    how += [(f"{score.name}:", score.signature) for score in scores]
    intro = (
        f"{advice} Below: the best, the median and the worst translations. "
        "Words that the reference lacks are marked."
    )
    write_page(path, f"{name} on its test set", [name], chosen, None, table, how, languages, sentences, intro)
