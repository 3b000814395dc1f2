"""Compares two models: the significance of their difference in BLEU, and the page of `kzoo report`.

The test is approximate randomization; sacreBLEU's bootstrap gives the intervals. The page follows the case
study in Figures 4 and 5 of Ma et al. 2020: two translations side by side, with the picture.
"""

import base64
import html
import io
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from string import Template
from typing import NamedTuple

import numpy as np
import regex
from PIL import Image
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest
from scipy.stats import permutation_test

from kzoo.errors import UserError
from kzoo.evaluation.scores import all_references, check_forms, markdown_table
from kzoo.files import atomic_write
from kzoo.text.bleu import bleu_metric
from kzoo.text.languages import CHINESE

TRIALS, DRAWS = 10_000, 1000  # of the randomization; of the bootstrap
SEED = 1  # of the randomization
HOW_P = (
    f"p: difference from the first model, by approximate randomization ({TRIALS:,} random exchanges of "
    f"translations, seed {SEED}; all exchanges if there are fewer)"
)
PAGE = Template(Path(__file__).with_name("report.html").read_text("utf-8"))

# Chinese, kana, Thai, Lao, Burmese and Khmer.
WITHOUT_SPACES = f"{CHINESE}\u3040-\u30ff\u31f0-\u31ff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
ANY_WITHOUT_SPACES = regex.compile(f"[{WITHOUT_SPACES}]")
# Words of other scripts and single characters, each with the vowel and tone marks that follow.
CHARACTERS = regex.compile(rf"(?:[[\p{{L}}\p{{N}}_]--[{WITHOUT_SPACES}]]+|.)\p{{M}}*", regex.V1 | regex.S)
CHRF2 = CHRF()
SMALL = 128  # pixels: pictures up to this width and height are enlarged without smoothing


class ComparedBleu(NamedTuple):
    """A model's BLEU.

    Args:
        model: its name.
        bleu: of all sentences.
        mean: of BLEU over bootstrap samples of the sentences.
        interval: half the width of the interval around the mean that contains 95 % of the samples.
        p: the probability of a difference from the first model at least as large if each sentence's two
            translations are exchanged at random; `None` for the first model.
    """

    model: str
    bleu: float
    mean: float
    interval: float
    p: float | None


def compare_bleu(
    translations: Sequence[tuple[str, Sequence[str]]],
    references: Sequence[str],
    language: str,
    more_references: Sequence[Sequence[str]] = (),
) -> tuple[list[ComparedBleu], str]:
    """Compare the BLEU of models with that of the first, on the same sentences.

    The test ignores variation between seeds: training one model twice may give as large a difference.

    Args:
        translations: names of two or more models, each with its translations.
        references: true translations.
        language: target language, which selects BLEU's tokenizer.
        more_references: further true translations, each a list like `references`; `""` for none.

    Returns:
        A row for each model, and sacreBLEU's signature, with the number of samples (`bs`) and their seed. The
        environment variable SACREBLEU_SEED changes the seed. `HOW_P` describes p.

    Raises:
        UserError: fewer than two models, no sentences, or the numbers of sentences differ.

    Reference:
        Clark et al. 2011, "Better Hypothesis Testing for Statistical Machine Translation".
        https://aclanthology.org/P11-2031
    """
    if len(translations) < 2:
        raise UserError("a comparison needs the translations of at least two models")
    if not references:
        raise UserError("there are no sentences to compare")
    for name, texts in translations:
        if len(texts) != len(references):
            raise UserError(f"{name}: {len(texts):,} translations but {len(references):,} references")
    systems = [(name, list(texts)) for name, texts in translations]
    metric, true = bleu_metric(language), all_references(references, more_references)
    check_forms([*(texts for _, texts in systems), references, *more_references])
    signatures, found = PairedTest(systems, {"BLEU": metric}, true, "bs", DRAWS)()
    first, *others = (_statistics(metric, texts, true) for _, texts in systems)
    p = [None, *(_p(first, other) for other in others)]
    rows = zip(found["System"], found["BLEU"], p, strict=True)
    compared = [ComparedBleu(name, row.score, row.mean, row.ci, p) for name, row, p in rows]
    return compared, str(signatures["BLEU"])


def _statistics(metric: BLEU, texts: Sequence[str], references: list[list[str | None]]) -> np.ndarray:
    """Return each sentence's counts, from which BLEU is computed: `(sentences, 10)`."""
    rows = zip(texts, *references, strict=True)
    scores = [metric.corpus_score([text], [[one] for one in true]) for text, *true in rows]
    return np.array([[*score.counts, *score.totals, score.sys_len, score.ref_len] for score in scores])


def _p(first: np.ndarray, second: np.ndarray) -> float:
    """Return p for two models' statistics.

    sacreBLEU's own p does not count equal differences: for equal models, it would be 0.0001.
    """
    differing = (first != second).any(axis=1)
    if differing.sum() < 2:  # exchanging the only one just changes the sign
        return 1.0
    same = first[~differing].sum(axis=0)
    both = np.stack([first[differing], second[differing]])
    sentences = np.arange(both.shape[1])

    def difference(one, other, axis):
        """Return the difference in BLEU; `one` and `other` are the model numbers of the translations."""
        totals = [same + both[models, sentences].sum(axis=-2) for models in (one, other)]
        one, other = (np.apply_along_axis(_bleu, -1, total) for total in totals)
        return one - other

    models = np.zeros(len(sentences), int), np.ones(len(sentences), int)
    random = np.random.default_rng(SEED)
    options = {"permutation_type": "samples", "n_resamples": TRIALS, "batch": 100, "rng": random}
    return permutation_test(models, difference, **options).pvalue


def _bleu(statistics: np.ndarray) -> float:
    *counts, length, true_length = statistics.tolist()
    return BLEU.compute_bleu(counts[:4], counts[4:], length, true_length, smooth_method="exp").score


def comparison_table(compared: list[ComparedBleu], signature: str) -> str:
    """Return the rows of `compare_bleu` as a Markdown table, with the signature and `HOW_P` below it."""
    table = markdown_table(("model", "BLEU", "95 % interval (bootstrap)", "p"), map(_cells, compared))
    return f"{table}\n\nBLEU and interval: `{signature}`\n\n{HOW_P}"


def _cells(row: ComparedBleu) -> tuple[str, str, str, str]:
    """Return a row of a table: model, BLEU, interval, and p with three decimals, never as "0.000"."""
    p = "" if row.p is None else "< 0.001" if row.p < 0.0005 else f"{row.p:.3f}"
    return row.model, f"{row.bleu:.1f}", f"{row.mean:.1f} ± {row.interval:.1f}", p


class Case(NamedTuple):
    """A sentence, its reference and its translations by the models that a page shows.

    `difference` is from 0 (equal) to 1: of two translations, or of one from the reference.
    """

    number: int
    source: str
    reference: str
    translations: tuple[str, ...]
    difference: float


def cases(
    sources: Sequence[str], references: Sequence[str], first: Sequence[str], second: Sequence[str]
) -> list[Case]:
    """Return the sentences, those first that two models translate most differently.

    The difference is one minus the share of words (characters, in scripts without spaces) that both
    translations have in the same order.

    Args:
        sources: the sentences.
        references: true translations.
        first: the first model's translations.
        second: the second model's translations.

    Raises:
        ValueError: their numbers differ.
    """
    rows = [
        Case(number, *texts, both, 1 - SequenceMatcher(None, *_words(*both), False).ratio())
        for number, (*texts, both) in enumerate(
            zip(sources, references, zip(first, second, strict=True), strict=True)
        )
    ]
    return sorted(rows, key=lambda case: (-case.difference, case.number))


def write_report(
    path: str | Path,
    title: str,
    names: tuple[str, str],
    chosen: Sequence[Case],
    images: Sequence[np.ndarray] | Mapping[int, np.ndarray] | None,
    compared: tuple[list[ComparedBleu], str],
    languages: tuple[str, str],
    sentences: int,
    trained: tuple[int, int] = (0, 0),
):
    """Write the page that compares two models, a single self-contained HTML file.

    Args:
        path: the file.
        title: the page's heading.
        names: the two models' names.
        chosen: the cases to show, as `cases` returns them.
        images: the pictures by `Case.number`, each uint8 `(h, w, 3)`; `None`: no pictures are shown.
        compared: the models' BLEU on all sentences, as `compare_bleu` returns it, shown at the top.
        languages: codes of the source and the target, shown on the page. Browsers use them to choose fonts
            and voices.
        sentences: int. Number of sentences that were translated.
        trained: how many of them each model was trained on, as far as known.

    Raises:
        UserError: the file cannot be written.
    """
    intro = [
        f"{name} was trained on {count:,} of them."
        for name, count in zip(names, trained, strict=True)
        if count
    ]
    intro += [f"Shown: {len(chosen):,} of them."] * (sentences != len(chosen))
    intro += [
        "The sentences that the two models translate most differently come first. "
        "Words that the other translation lacks are marked."
    ]
    table = [("model", "BLEU", "95 % interval", "p"), *map(_cells, compared[0])]
    how = [("95 % interval: bootstrap over sentences. BLEU and interval:", compared[1]), (HOW_P, "")]
    write_page(path, title, names, chosen, images, table, how, languages, sentences, " ".join(intro))


def write_page(
    path: str | Path,
    title: str,
    names: Sequence[str],
    chosen: Sequence[Case],
    images: Sequence[np.ndarray] | Mapping[int, np.ndarray] | None,
    table: Sequence[Sequence[str]],
    how: Sequence[tuple[str, str]],
    languages: tuple[str, str],
    sentences: int,
    intro: str,
):
    """Write a page with scores and translations of one or two models; arguments as in `write_report`.

    Args:
        table: the scores, and their head first.
        how: lines on how they were computed, each with a signature or "".
        intro: what stands above the translations.
    """
    head, *rows = ([html.escape(cell) for cell in row] for row in table)
    page = PAGE.substitute(
        articles="\n".join(_article(case, names, images, *languages) for case in chosen),
        title=html.escape(title),
        direction=html.escape(" → ".join(languages)),
        sentences=f"{sentences:,}",
        head="".join(f"<th>{cell}" for cell in head),
        rows="".join(f"<tr><td>{'<td>'.join(row)}" for row in rows),
        how="<br>".join(_how(*line) for line in how),
        intro=html.escape(intro),
        chrf2=html.escape(str(CHRF2.get_signature())),  # after the articles: it needs a score
    )
    with atomic_write(path) as file:
        file.write_text(page, "utf-8")


def _how(text: str, signature: str) -> str:
    return html.escape(text) + (f" <code>{html.escape(signature)}</code>" if signature else "")


def _article(
    case: Case,
    names: Sequence[str],
    images: Sequence[np.ndarray] | Mapping[int, np.ndarray] | None,
    source: str,
    target: str,
) -> str:
    given = _term("source", html.escape(case.source), source)
    given += _term("reference", html.escape(case.reference), target)
    if len(names) == 2:
        shown = _marked(*case.translations)
    else:
        shown = _marked(*case.translations, case.reference)[:1]
    scores = [CHRF2.sentence_score(text, [case.reference]).score for text in case.translations]
    rows = zip(names, scores, shown, strict=True)
    translated = "".join(_term(f"{name} · {score:.1f}", text, target) for name, score, text in rows)
    if len(names) == 2:
        translated = f'</dl><dl class="two">{translated}'
    texts = f"<div><dl>{given}{translated}</dl></div>"
    heading = f"<h2>Sentence {case.number + 1}</h2>"
    if images is None:
        return f'<article class="plain">{heading}{texts}</article>'
    picture = _picture(images[case.number], f"picture of sentence {case.number + 1}")
    return f"<article>{heading}{picture}{texts}</article>"


def _term(name: str, text: str, language: str) -> str:
    """Return a name and its text, which is already HTML, as HTML."""
    return f'<dt>{html.escape(name)}</dt><dd dir="auto" lang="{html.escape(language)}">{text}</dd>'


def _marked(first: str, second: str) -> tuple[str, str]:
    """Return two texts as HTML, each with the words marked that the other lacks."""
    sides, shown = _words(first, second), ([], [])
    between = "" if ANY_WITHOUT_SPACES.search(first + second) else " "
    for kind, *bounds in SequenceMatcher(None, *sides, False).get_opcodes():
        for i in (0, 1):
            text = html.escape(between.join(sides[i][bounds[2 * i] : bounds[2 * i + 1]]))
            if text:
                shown[i].append(text if kind == "equal" else f"<mark>{text}</mark>")
    return tuple(between.join(parts) for parts in shown)


def _words(first: str, second: str) -> tuple[list[str], list[str]]:
    """Return the words of two texts; if one has a script without spaces, the `CHARACTERS` of both."""
    split = CHARACTERS.findall if ANY_WITHOUT_SPACES.search(first + second) else str.split
    return split(first), split(second)


def _picture(picture: np.ndarray, alternative: str) -> str:
    """Return HTML with a picture embedded: large ones as JPEG, a tenth of the size of a PNG."""
    small, file = max(picture.shape[:2]) <= SMALL, io.BytesIO()
    kind = "png" if small else "jpeg"
    Image.fromarray(np.asarray(picture, "uint8")).save(file, kind)
    source = f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"
    marked = ' class="small"' if small else ""
    return f'<img{marked} src="{source}" alt="{html.escape(alternative)}">'
