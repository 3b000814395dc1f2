"""Scores of a translator on a corpus: sacreBLEU's, with their signatures, and METEOR; tables of scores."""

import dataclasses
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import unicodedata
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from sacrebleu.metrics import CHRF, TER

from kzoo.data.corpora import Corpus
from kzoo.errors import UserError
from kzoo.files import write_json
from kzoo.text.bleu import bleu_metric
from kzoo.text.languages import (
    Direction,
    has_spaces,
    has_two_kinds_of_i,
    is_chinese,
    lower_case,
    main_code,
)

ENTITY = re.compile(r"&(?:[A-Za-z]{2,8}|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});")
METEOR_LEFT_OUT = "METEOR is left out: to compute it, install Java and pip install pycocoevalcap"
# METEOR's word matchers by language; the package has synonyms and paraphrases for English only.
MATCHING = {
    "cs": "exact",
    "de": "exact stem",
    "en": "exact stem synonym paraphrase",
    "es": "exact stem",
    "fr": "exact stem",
    "ru": "exact stem",
}


@dataclass(frozen=True)
class SplitScores:
    """The scores of one set of sentences, all in percent.

    Args:
        split: the split's name; `"all"` for several splits together.
        sentences: number of sentences.
        bleu, bleu_lowercased, chrf2, ter: sacreBLEU's scores.
        signatures: sacreBLEU's signatures, by the name of the score.
        meteor: METEOR, if Java and its jar are installed and work.
    """

    split: str
    sentences: int
    bleu: float
    bleu_lowercased: float
    chrf2: float
    ter: float
    signatures: dict[str, str]
    meteor: float | None = None


def score_translations(
    split: str,
    translations: list[str],
    references: list[str],
    language: str,
    more_references: Sequence[list[str]] = (),
) -> SplitScores:
    """Score translations against one or more references.

    Args:
        split: name of the set of sentences.
        translations: one for each reference.
        references: true translations.
        language: target language, which selects sacreBLEU's tokenizer: zh for Chinese, char for other
            languages without spaces, 13a for all others.
        more_references: further true translations, each a list like `references`; `""` for none.

    Raises:
        UserError: the numbers of translations and references differ, or there are none.

    Warns:
        UserWarning: sentences are not in Unicode's form NFC; translations have HTML's entities; or METEOR
            fails, which leaves it out.

    Example:

    >>> score_translations("test", ["Ein Hund rennt."], ["Ein Hund rennt."], "de").chrf2
    100.0
    """
    if len(translations) != len(references):
        raise UserError(f"{split}: {len(translations):,} translations but {len(references):,} references")
    if not references:
        raise UserError(f"{split}: there are no sentences to score")
    check_forms([translations, references, *more_references])
    check_entities(translations, [references, *more_references])
    texts = [translations, *all_references(references, more_references)]
    chinese = is_chinese(language)
    has_words = chinese or has_spaces(language)  # in other languages, TER would see one word per sentence
    bleu = bleu_metric(language)
    tokenize = bleu.tokenizer
    edited = texts if has_words else [[tokenize(s) if s else s for s in sentences] for sentences in texts]
    turkic = has_two_kinds_of_i(language)
    if turkic:  # TER ignores case, but sacreBLEU makes i of I
        edited = [[lower_case(s, language) if s else s for s in sentences] for sentences in texts]
    metrics = {
        "bleu": (bleu, texts),
        "bleu_lowercased": (bleu_metric(language, lowercase=True), texts),
        "chrf2": (CHRF(), texts),
        "ter": (TER(normalized=chinese, asian_support=chinese), edited),
    }
    scores = {
        name: metric.corpus_score(found, true).score for name, (metric, (found, *true)) in metrics.items()
    }
    signatures = {name: str(metric.get_signature()) for name, (metric, _) in metrics.items()}
    if not has_words:
        signatures["ter"] += "|split:char"  # split above, so not in sacreBLEU's signature
    if turkic:
        for name in ("bleu_lowercased", "ter"):  # lowercased by other rules than sacreBLEU's
            signatures[name] += "|lc:tr"
    meteor = None
    if find_meteor():
        try:
            meteor = meteor_score(translations, references, language, more_references)
        except UserError as error:  # the other scores are worth keeping
            warnings.warn(f"{split} has no METEOR score: {error}", stacklevel=2)
    return SplitScores(split, len(references), **scores, signatures=signatures, meteor=meteor)


def all_references(
    references: Sequence[str], more_references: Sequence[Sequence[str]]
) -> list[list[str | None]]:
    """Return all lists of references, with `None`, which sacreBLEU ignores, for a blank further one.

    Raises:
        UserError: the lists have different lengths.
    """
    for further in more_references:
        if len(further) != len(references):
            raise UserError(f"{len(references):,} references but {len(further):,} further ones: give as many")
    return [list(references), *([text if text.strip() else None for text in one] for one in more_references)]


def check_forms(texts: Sequence[Sequence[str]]):
    """Warn if texts are not in Unicode's form NFC: words that look equal may then differ."""
    for sentences in texts:
        if odd := [sentence for sentence in sentences if not unicodedata.is_normalized("NFC", sentence)]:
            warnings.warn(
                f"{len(odd):,} of {len(sentences):,} sentences are not in Unicode's form NFC, so words that "
                f"look equal may count as different: use unicodedata.normalize on them ({odd[0][:40]!r})",
                stacklevel=2,
            )


def check_entities(translations: Sequence[str], references: Sequence[Sequence[str]]):
    """Warn of HTML's entities that no reference has: BLEU's tokenizer 13a reads `&quot;` as a quote."""
    expected = {entity for text in chain.from_iterable(references) for entity in ENTITY.findall(text)}
    found = [set(ENTITY.findall(text)) - expected for text in translations]
    if entities := sorted(set().union(*found)):
        warnings.warn(
            f"{sum(map(bool, found)):,} of {len(found):,} translations have HTML's {' '.join(entities[:5])}, "
            "which no reference has and BLEU may not count as errors: use html.unescape on the training text",
            stacklevel=3,
        )


def find_meteor() -> Path | None:
    """Return the path of METEOR's jar, from the package pycocoevalcap; `None` without it or Java."""
    found = importlib.util.find_spec("pycocoevalcap")
    if found is None or shutil.which("java") is None:
        return None
    jar = Path(found.submodule_search_locations[0]) / "meteor" / "meteor-1.5.jar"
    return jar if jar.is_file() else None


def meteor_score(
    translations: Sequence[str],
    references: Sequence[str],
    language: str,
    more_references: Sequence[Sequence[str]] = (),
) -> float:
    """Return METEOR 1.5 of translations against one or more references, in percent.

    English words match by form, stem, synonym and paraphrase; German, French, Spanish and Russian words by
    form and stem; words of other languages by form only; text without spaces by characters. Case is ignored.
    Scores are lower than with METEOR's own paraphrase tables.

    Args:
        translations: one for each reference.
        references: true translations.
        language: target language.
        more_references: further true translations, each a list like `references`.

    Raises:
        UserError: Java or the jar is missing, or the program fails, for example for too few translations.

    Reference:
        Denkowski and Lavie 2014, "Meteor Universal". https://aclanthology.org/W14-3348
    """
    jar = find_meteor()
    if jar is None:
        raise UserError("METEOR needs Java and pycocoevalcap: install Java, then pip install pycocoevalcap")
    language = main_code(language)
    known = language in MATCHING
    split = str if known else bleu_metric(language).tokenizer
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("translations", "references")]
        # METEOR reads a sentence's references from consecutive lines.
        rows = zip(*all_references(references, more_references), strict=True)
        interleaved = [reference or row[0] for row in rows for reference in row]
        for file, sentences in zip(files, (translations, interleaved), strict=True):
            lines = [split(sentence) for sentence in sentences]
            file.write_text("".join(" ".join(line.split()) + "\n" for line in lines), "utf-8")
        command = ["java", "-Xmx2G", "-jar", str(jar), *map(str, files)]
        command += ["-r", str(1 + len(more_references)), "-m", MATCHING.get(language, "exact")]
        command += ["-l", language, "-norm"] if known else ["-l", "other", "-lower"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    final = [line.split()[-1] for line in done.stdout.splitlines() if line.startswith("Final score:")]
    if done.returncode or not final:
        output = (done.stderr or done.stdout).strip().splitlines() or ["it wrote nothing"]
        reasons = [line for line in output if "rror" in line or "xception" in line]
        raise UserError(f"METEOR failed: {(reasons or output)[0]}")
    return 100 * float(final[0])


def evaluate(
    translator,
    corpus: Corpus,
    splits: list[str],
    source: str,
    target: str,
    images: Mapping | None = None,
    direction: Direction | None = None,
    **options,
) -> tuple[list[SplitScores], dict[str, list[str]]]:
    """Translate splits of a corpus and score each of them; if there are several, also all together.

    A split is scored against all its references; all splits together against the first reference only.

    Args:
        translator: has `translate`.
        corpus: has the splits in both languages.
        splits: their names.
        source: the corpus's code of the source language.
        target: the corpus's code of the target language.
        images: by split, for a translator that reads images; by default, those of the corpus.
        direction: the translator's own codes, from its `direction`; by default, those that the corpus's mean.
        **options: of `Translator.translate`, such as `beam_size`, `truncate` and `progress`.

    Returns:
        The scores, and each split's translations.
    """
    scores, translated, references = [], {}, []
    if direction:
        languages = {"direction": direction}
    else:
        languages = {"source_language": source, "target_language": target}
    for split in splits:
        sentences, expected = corpus.pairs(split, source, target)
        more = corpus.more_references(split, target)
        shown = {}
        if translator.image_shape:
            shown["images"] = images[split] if images else corpus.images(split)
        translated[split] = translator.translate(
            sentences,
            split_sentences=False,  # one line per reference
            **languages,
            **shown,
            **options,
        )
        references += expected
        scores.append(score_translations(split, translated[split], expected, target, more))
    if len(splits) > 1:
        everything = [sentence for split in splits for sentence in translated[split]]
        scores.append(score_translations("all", everything, references, target))
    return scores, translated


def score_table(scores: list[SplitScores]) -> str:
    """Return the scores as a Markdown table with the signatures below it."""
    columns = {"BLEU": "bleu", "BLEU, lowercased": "bleu_lowercased", "chrF2": "chrf2", "TER": "ter"}
    if all(s.meteor is not None for s in scores):
        columns["METEOR"] = "meteor"
    rows = [
        (s.split, str(s.sentences), *(f"{getattr(s, name):.1f}" for name in columns.values())) for s in scores
    ]
    lines = []
    for name in scores[0].signatures:
        splits = {}  # by signature: other splits may have other numbers of references
        for s in scores:
            splits.setdefault(s.signatures[name], []).append(s.split)
        for signature, found in splits.items():
            sets = f" ({', '.join(found)})" if len(splits) > 1 else ""
            lines.append(f"{name}{sets}: `{signature}`")
    return "\n".join([markdown_table(("set", "sentences", *columns), rows), "", *lines])


def write_scores(scores: list[SplitScores], path: str | os.PathLike, **about):
    """Write the scores that `evaluate` returned as JSON, with further entries such as `beam_size=5`."""
    rows = [dataclasses.asdict(s) for s in scores]
    rows = [{name: value for name, value in row.items() if value is not None} for row in rows]  # METEOR
    write_json(path, {**about, "scores": rows})


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Return a table with the first `left` columns aligned left and the others, numbers, right."""
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    lines = ([cell.replace("|", "\\|") for cell in cells] for cells in (head, rule, *rows))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
