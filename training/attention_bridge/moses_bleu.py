"""BLEU of Moses's tokens, with and without its escapes, beside BLEU of plain text.

    python -m training.attention_bridge.moses_bleu attention_bridge_m2m_tiny_multi30k

Prints a Markdown table of the twelve directions of test_2016_flickr, lowercased, with the paper's M-2-M with
monolingual pairs beside them.

The paper's text is "lowercased, normalized and tokenized" with Moses. It states neither that these tokens are
scored, nor that Moses's escapes stay in them, as in `l&apos; herbe` for `l'herbe`. sacreBLEU splits an escape
into further tokens, the same in every elision.
"""

from itertools import permutations
from pathlib import Path
from statistics import fmean
from typing import Annotated

import typer
from sacrebleu.metrics import BLEU
from sacremoses import MosesPunctNormalizer, MosesTokenizer

from kzoo.cli import main
from kzoo.data import open_corpus
from kzoo.evaluation import evaluate
from kzoo.evaluation.scores import markdown_table
from kzoo.files import write_json
from kzoo.presets import load
from training.attention_bridge.tables import PAPER, SPLIT

FORMS = ("plain text", "tokens", "escaped tokens")

app = typer.Typer(add_completion=False)


@app.command(help=__doc__)
def table(
    preset: Annotated[str, typer.Argument(help="A translator between the paper's four languages.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="JSON file for the scores.")] = None,
):
    translator, corpus, papers = load(preset), open_corpus("multi30k"), PAPER["table1"]["m2m_mono"]
    scores = {}
    for source, target in permutations(translator.languages, 2):
        _, found = evaluate(translator, corpus, [SPLIT], source, target)
        scores[f"{source}-{target}"] = score_forms(found[SPLIT], corpus.sentences(SPLIT, target), target)
    if output:
        write_json(output, {"signature": str(METRIC.get_signature()), "scores": scores})
    rows = [[pair, *(score[form] for form in FORMS), papers[pair] + 1e-9] for pair, score in scores.items()]
    rows.append(["mean", *(fmean(column) for column in list(zip(*rows, strict=True))[1:])])
    cells = [[pair, *(f"{bleu:.1f}" for bleu in row)] for pair, *row in rows]
    print(f"{markdown_table(['direction', *FORMS, 'paper'], cells)}\n\n`{METRIC.get_signature()}`")


METRIC = BLEU(lowercase=True, force=True)  # `force`: no warning about tokenized text


def score_forms(translations: list[str], references: list[str], language: str) -> dict[str, float]:
    """Return BLEU of translations, by the form of the text that is scored, one of `FORMS`.

    Args:
        translations: plain text.
        references: the same; one for each translation.
        language: its code, which selects Moses's rules.
    """
    normalizer, tokenizer = MosesPunctNormalizer(language), MosesTokenizer(language)

    def tokens(text: str, escape: bool) -> str:
        return tokenizer.tokenize(normalizer.normalize(text.lower()), return_str=True, escape=escape)

    def bleu(form) -> float:
        sides = [[form(text) for text in texts] for texts in (translations, references)]
        return METRIC.corpus_score(sides[0], [sides[1]]).score

    forms = (lambda text: text, lambda text: tokens(text, False), lambda text: tokens(text, True))
    return dict(zip(FORMS, map(bleu, forms), strict=True))


if __name__ == "__main__":
    main(app)
