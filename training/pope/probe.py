"""Which distances between words a linear read-out finds in a trained Transformer's encoder, depth by depth.

    python -m training.pope.probe RUN …

Two tokens of a sentence, 1 to 8 places apart on either side, are given by their vectors alone. A logistic
regression, which is linear in the two vectors, says how far the second stands from the first: trained on
Multi30k's validation sentences, scored on those of test_2016_flickr. Depth 0 is what enters the first
layer. Prints a Markdown table, and writes the unrounded shares as JSON.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import keras
import numpy as np
import typer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kzoo.cli import main
from kzoo.cli.console import start_backend
from kzoo.data import open_corpus
from kzoo.decoding.batched_search import padded
from kzoo.evaluation.scores import markdown_table
from kzoo.files import write_json
from kzoo.text.vocabulary import END, START

FARTHEST = 8  # places
SHOWN = (1, 2, 3, 4, 6, 8)
TRAINED, SCORED = 1_000, 500  # pairs of tokens for each of the 16 distances
SENTENCES = 64  # at once

app = typer.Typer(add_completion=False)


def encoder_states(translator, texts: Sequence[str]) -> list[list[np.ndarray]]:
    """Return the vectors of each text's tokens at each depth: one list a depth, of arrays `(S, D)`.

    Args:
        translator: a Transformer for two languages.
        texts: sentences within the translator's maximum length.
    """
    backbone = translator.backbone
    entering, *_ = keras.tree.flatten(backbone.encoder_layers[0].input)
    depths = [entering, *(layer.output for layer in backbone.encoder_layers)]
    states = keras.Model(backbone.input, depths)
    rows, found = [[*tokens, END] for tokens in translator.source_tokenizer(texts)], [[] for _ in depths]
    for first in range(0, len(rows), SENTENCES):
        some = rows[first : first + SENTENCES]
        source = padded(some, max(map(len, rows)))
        outputs = states.predict_on_batch({"source": source, "target": padded([[START]] * len(some), 1)})
        for depth, output in zip(found, outputs, strict=True):
            depth += [vectors[: len(row)] for vectors, row in zip(output, some, strict=True)]
    return found


def pairs_of_tokens(lengths: Sequence[int], each: int, seed: int) -> list[tuple[int, int, int]]:
    """Draw pairs of tokens: sentence, place of the first, and distance of the second, `each` a distance."""
    random, drawn = np.random.default_rng(seed), []
    for distance in (*range(-FARTHEST, 0), *range(1, FARTHEST + 1)):
        every = [
            (sentence, place, distance)
            for sentence, length in enumerate(lengths)
            for place in range(max(0, -distance), min(length, length - distance))
        ]
        drawn += [every[i] for i in random.permutation(len(every))[:each]]
    return drawn


def found_distances(trained: list[np.ndarray], scored: list[np.ndarray], seed: int = 1) -> dict[int, float]:
    """Return the share of pairs whose distance the read-out finds, for 1 to `FARTHEST` places.

    Args:
        trained, scored: the vectors `(S, D)` of two sets of sentences at one depth.
        seed: of the pairs that are drawn.
    """
    read_out = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2_000))
    read_out.fit(*_examples(trained, TRAINED, seed))
    vectors, distances = _examples(scored, SCORED, seed)
    right = read_out.predict(vectors) == distances
    return {places: float(right[abs(distances) == places].mean()) for places in range(1, FARTHEST + 1)}


def _examples(sentences: list[np.ndarray], each: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of vectors `(N, 2 D)` and their distances `(N,)`."""
    pairs = pairs_of_tokens(list(map(len, sentences)), each, seed)
    both = [np.r_[sentences[s][place], sentences[s][place + distance]] for s, place, distance in pairs]
    return np.stack(both), np.array([distance for *_, distance in pairs])


@app.command(help=__doc__)
def probe(
    runs: Annotated[list[str], typer.Argument(help="Trained presets or runs, English to German.")],
    output: Annotated[Path, typer.Option("-o", help="JSON file of the shares.")] = Path("probe.json"),
):
    start_backend()
    from kzoo.presets import load

    corpus, results = open_corpus("multi30k"), {}
    texts = [corpus.sentences(split, "en") for split in ("val", "test_2016_flickr")]
    for run in runs:
        trained, scored = (encoder_states(translator, side) for translator in [load(run)] for side in texts)
        depths = zip(trained, scored, strict=True)
        results[Path(run).name] = [found_distances(*sides) for sides in depths]
    write_json(output, results)
    print(table(results))


def table(results: dict[str, list[dict[int, float]]]) -> str:
    """Return the shares in per cent: a row for each model and depth, and the mean over all distances."""
    rows = [
        (name, str(depth), *(f"{100 * shares[places]:.0f}" for places in SHOWN), f"{100 * mean:.1f}")
        for name, depths in results.items()
        for depth, shares in enumerate(depths)
        for mean in [np.mean(list(shares.values()))]
    ]
    return markdown_table(("model", "depth", *map(str, SHOWN), f"mean, 1 to {FARTHEST}"), rows)


if __name__ == "__main__":
    main(app)
