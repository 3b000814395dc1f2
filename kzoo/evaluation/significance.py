"""How sure a difference in BLEU is: sacreBLEU's approximate randomization, and intervals by bootstrap."""

from collections.abc import Sequence
from typing import NamedTuple

from sacrebleu.significance import PairedTest

from kzoo.errors import UserError
from kzoo.evaluation.markdown import markdown_table
from kzoo.evaluation.scores import bleu_metric

TRIALS, DRAWS = 10_000, 1000  # of the randomization; of the bootstrap


class ComparedBleu(NamedTuple):
    """A model's BLEU.

    Args:
        model: its name.
        bleu: of all sentences.
        mean: of BLEU over random draws of the sentences.
        interval: half the width of the interval around it that 95 % of the draws are in.
        p: how often a difference from the first model at least as large would arise if each sentence's two
            translations were exchanged at random; `None` for the first model.
    """

    model: str
    bleu: float
    mean: float
    interval: float
    p: float | None


def compare_bleu(
    translations: Sequence[tuple[str, Sequence[str]]], references: Sequence[str], language: str
) -> tuple[list[ComparedBleu], str]:
    """Compare models' BLEU on the same sentences, each with the first model's.

    Another training of the same model, with another seed, may differ by as much: this test does not see that.

    Args:
        translations: a name for each of two models or more, and its translations of the same sentences.
        references: true translations.
        language: of the translations, which decides BLEU's tokenizer.

    Returns:
        A row for each model, and sacreBLEU's signature, with the numbers of trials (`ar`) and draws (`bs`)
        and the seed, which the environment variable SACREBLEU_SEED can change.

    Raises:
        UserError: fewer than two models, or the numbers of sentences differ.

    Reference:
        Clark et al. 2011, "Better Hypothesis Testing for Statistical Machine Translation".
        https://aclanthology.org/P11-2031
    """
    if len(translations) < 2:
        raise UserError("a comparison needs the translations of two models or more")
    for name, texts in translations:
        if len(texts) != len(references):
            raise UserError(f"{name}: {len(texts):,} translations but {len(references):,} references")
    systems = [(name, list(texts)) for name, texts in translations]
    metrics = {"BLEU": bleu_metric(language)}
    signatures, found = PairedTest(systems, metrics, [list(references)], "ar", TRIALS, DRAWS)()
    rows = zip(found["System"], found["BLEU"], strict=True)
    compared = [ComparedBleu(name, row.score, row.mean, row.ci, row.p_value) for name, row in rows]
    return compared, str(signatures["BLEU"])


def comparison_table(compared: list[ComparedBleu], signature: str) -> str:
    """Return the rows of `compare_bleu` as a Markdown table, with the signature below it."""
    rows = []
    for row in compared:
        p = "" if row.p is None else f"{row.p:.3f}"
        rows.append((row.model, f"{row.bleu:.1f}", f"{row.mean:.1f} ± {row.interval:.1f}", p))
    table = markdown_table(("model", "BLEU", "95 % of draws of the sentences", "p"), rows)
    return f"{table}\n\n`{signature}`"
