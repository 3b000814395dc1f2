"""SentEval: scores sentence embeddings by simple classifiers trained on them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from kzoo.errors import UserError
from kzoo.evaluation.scores import markdown_table
from training.attention_bridge import senteval_linear as linear
from training.attention_bridge import senteval_pytorch as pytorch_variant
from training.attention_bridge.senteval_data import (
    PROBING_TASKS,
    STS_SETS,
    Examples,
    senteval_examples,
    senteval_tasks,
)
from training.attention_bridge.senteval_networks import probe, relatedness
from training.paper_tables import spread

Embed = Callable[[list[str]], np.ndarray]  # N sentences → float (N, E)
SEEDS = (1111, 1112, 1113, 1114, 1115)  # SentEval's own, and the next four


@dataclass(frozen=True)
class TaskScores:
    """The scores of one task.

    Args:
        task: the task's name.
        scores: lists of numbers by the score's name, the main score first: a number per seed, or a single one
            if nothing is random. `accuracy` and `f1` are percent.
    """

    task: str
    scores: dict[str, list[float]]

    def mean(self, score: str) -> float:
        """Return the mean over the seeds."""
        return float(np.mean(self.scores[score]))


def evaluate_embeddings(
    embed: Embed,
    tasks: Sequence[str] | None = None,
    seeds: Sequence[int] = SEEDS,
    pytorch: bool = False,
) -> list[TaskScores]:
    """Score sentence embeddings on SentEval's tasks, by its protocols.

    - MR, CR, SUBJ, MPQA: logistic regression, nested 10-fold cross-validation. SentEval always draws these
      folds with seed 1111.
    - TREC, MRPC: logistic regression; 10 folds of the training set choose the regularization.
    - SST-2, SST-5, SICK-E: logistic regression; the validation set chooses the regularization.
    - SICK-R, STS-B, STS-2015: SentEval's regression of relatedness.
    - SNLI and the probing tasks: SentEval's network, in Keras.
    - `SICK-R-cosine`, `STS-B-cosine`, `STS-YEAR-cosine`: correlation of the score with the cosine of two
      vectors; a year's is the mean over its sets, weighted by their numbers of pairs.

    Logistic regressions are those of SentEval's scikit-learn variant (`usepytorch=False`), or of its PyTorch
    variant, which trains them with Adam. Sentences are embedded once per task; an empty one as ".", as in
    SentEval.

    Args:
        embed: function of N sentences that returns their vectors `(N, E)`.
        tasks: names, keys of `SENTEVAL_TASKS`; by default all whose files exist.
        seeds: seeds of the folds of TREC and MRPC, and of what Adam trains.
        pytorch: whether to use the PyTorch variant.

    Returns:
        The scores, one entry per task.

    Raises:
        UserError: as for `senteval_examples`; or the vectors have another shape or are not finite.

    Example:

    >>> scores = evaluate_embeddings(lambda texts: model.embed(texts, "en"), ["MR", "SICK-R"])
    >>> print(senteval_table({"bridge": scores}))
    """
    tasks = senteval_tasks() if tasks is None else tasks
    return [evaluate_task(embed, task, senteval_examples(task), seeds, pytorch) for task in tasks]


def evaluate_task(
    embed: Embed, task: str, splits: dict[str, Examples], seeds: Sequence[int] = SEEDS, pytorch: bool = False
) -> TaskScores:
    """Score embeddings on the examples of a task; the other arguments as in `evaluate_embeddings`."""
    protocols = {**_PROTOCOLS, **(_PYTORCH if pytorch else {})}
    return TaskScores(task, protocols[task](_embedded(embed, splits), list(seeds)))


def senteval_table(columns: dict[str, list[TaskScores]]) -> str:
    """Return models' scores as a Markdown table, mean ± spread.

    Args:
        columns: the models' scores, by column heading.
    """
    by_model = [{task.task: task for task in scores} for scores in columns.values()]
    names = [(task.task, score) for scores in columns.values() for task in scores for score in task.scores]
    rows = [
        (task, score, *(_cell(scores.get(task), score) for scores in by_model))
        for task, score in dict.fromkeys(names)
    ]
    return markdown_table(("task", "score", *columns), rows, left=2)


def _cell(task: TaskScores | None, score: str) -> str:
    if task is None or score not in task.scores:
        return "–"
    return spread(task.scores[score], digits=1 if score in ("accuracy", "f1") else 3)


@dataclass
class _Vectors:
    """A split with vectors instead of sentences.

    Args:
        vectors: `(U, E)`. Vectors of the task's distinct sentences, which splits share.
        rows: row numbers in `vectors`, an array for each list of sentences.
        targets: the examples' targets.
    """

    vectors: np.ndarray
    rows: list[np.ndarray]
    targets: np.ndarray

    def of(self, examples=slice(None)) -> list[np.ndarray]:
        """Return the vectors of examples, `(N, E)` for each list of sentences."""
        return [self.vectors[rows[examples]] for rows in self.rows]


def _embedded(embed: Embed, splits: dict[str, Examples]) -> dict[str, _Vectors]:
    """Return the splits with vectors instead of sentences; each distinct sentence is embedded once."""
    every = (text or "." for examples in splits.values() for texts in examples.texts for text in texts)
    row = {text: number for number, text in enumerate(dict.fromkeys(every))}
    vectors = np.asarray(embed(list(row)), "float32")
    if vectors.ndim != 2 or len(vectors) != len(row):
        raise UserError(f"embed gave an array of shape {vectors.shape} for {len(row)} sentences, not (N, E)")
    if not np.isfinite(vectors).all():
        bad = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise UserError(f"embed gave a vector that is not finite for {list(row)[bad]!r}")
    return {
        split: _Vectors(
            vectors,
            [np.array([row[text or "."] for text in texts], "int64") for texts in examples.texts],
            np.array(examples.targets),
        )
        for split, examples in splits.items()
    }


def _features(split: _Vectors) -> linear.Split:
    """Return the features: a sentence's vector, or those of a pair."""
    vectors = split.of()
    return (vectors[0] if len(vectors) == 1 else linear.pair_features(*vectors)), split.targets


def _nested(splits, seeds):
    return linear.nested_cross_validation(_features(splits["all"]))


def _nested_pytorch(splits, seeds):
    return pytorch_variant.nested_cross_validation(_features(splits["all"]), seeds)


def _trec(splits, seeds, variant=linear):
    return variant.cross_validated_training(_features(splits["train"]), _features(splits["test"]), seeds)


def _mrpc(splits, seeds, variant=linear):
    # SentEval trains on the publishers' training set, which these files split in two.
    parts = [_features(splits[split]) for split in ("train", "val")]
    train = tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return variant.cross_validated_training(train, _features(splits["test"]), seeds, f1=True)


def _validated(splits, seeds):
    return linear.validated_training(*(_features(splits[split]) for split in ("train", "val", "test")))


def _relatedness(splits, seeds):
    return relatedness(*(_features(splits[split]) for split in ("train", "val", "test")), seeds)


def _cosine(splits, seeds):
    return linear.cosine_similarity([(*split.of(), split.targets) for split in splits.values()])


def _snli(splits, seeds):
    def features(u, v):
        return np.concatenate([u, v, linear.pair_features(u, v)], axis=1)

    return _probing(splits, seeds, features, hidden_units=0, strengths=[1e-9], passes=1, looks=16)


def _validated_pytorch(splits, seeds):
    def lazy(features: np.ndarray, targets: np.ndarray):
        return features.__getitem__, targets

    return probe(
        *(lazy(*_features(splits[split])) for split in ("train", "val", "test")), seeds, hidden_units=0
    )


def _probing(splits, seeds, features=lambda vectors: vectors, **kwargs):
    """Train on features that are computed batch by batch: SNLI's would not fit into memory."""

    def lazy(split: _Vectors):
        return lambda examples: features(*split.of(examples)), split.targets

    return probe(*(lazy(splits[split]) for split in ("train", "val", "test")), seeds, **kwargs)


# Functions of the splits and the seeds that return lists of scores by name.
_PROTOCOLS = {
    **dict.fromkeys(("MR", "CR", "SUBJ", "MPQA"), _nested),
    "TREC": _trec,
    "MRPC": _mrpc,
    **dict.fromkeys(("SST-2", "SST-5", "SICK-E"), _validated),
    "SNLI": _snli,
    **dict.fromkeys(("SICK-R", "STS-B", "STS-2015"), _relatedness),
    **dict.fromkeys(("SICK-R-cosine", "STS-B-cosine", "STS-2015-cosine"), _cosine),
    **{f"STS-{year}-cosine": _cosine for year in STS_SETS},
    **dict.fromkeys(PROBING_TASKS, _probing),
    "WordContent": partial(_probing, hidden_units=0),  # 1,000 words: SentEval uses no hidden layer
}
# Of SentEval's PyTorch variant, the others are the same.
_PYTORCH = {
    **dict.fromkeys(("MR", "CR", "SUBJ", "MPQA"), _nested_pytorch),
    "TREC": partial(_trec, variant=pytorch_variant),
    "MRPC": partial(_mrpc, variant=pytorch_variant),
    **dict.fromkeys(("SST-2", "SST-5", "SICK-E"), _validated_pytorch),
}
