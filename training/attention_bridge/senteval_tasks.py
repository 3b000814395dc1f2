"""SentEval's protocols: what is trained on sentence vectors, how regularization is chosen, what is scored.

Each takes vectors and targets and returns lists of scores by name: one per seed, or a single one if no random
number is drawn. `training.attention_bridge.senteval` says which task uses which.
"""

import numpy as np
import scipy.stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from training.attention_bridge.logistic_regressions import logistic_logits

FOLDS = 10
NESTED_SEED = (
    1111  # SentEval draws the folds of its nested cross-validation with it, whatever its own seed is
)
STRENGTHS = [2.0**power for power in range(-2, 4)]
STRENGTHS_WITHOUT_VALIDATION = [2.0**power for power in range(-1, 6)]  # SentEval's, for TREC and MRPC

Split = tuple[np.ndarray, np.ndarray]  # features (N, F) and targets (N,)


def pair_features(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return |u − v| and u · v, element by element, side by side: `(N, 2E)`."""
    return np.concatenate([np.abs(first - second), first * second], axis=1)


def nested_cross_validation(data: Split) -> dict[str, list[float]]:
    """Score by 10 folds; for each, 10 folds of the other nine choose the regularization (MR, CR, SUBJ, MPQA).

    Args:
        data: features `(N, F)` and classes `(N,)`.

    Returns:
        `"accuracy"`: percent, the mean over the folds, one number.
    """
    features, labels = data
    folds = list(_folds(features, labels, NESTED_SEED))
    inner = [_folds(features[train], labels[train], NESTED_SEED) for train, _ in folds]
    rows = [
        (train[inner_train], train[inner_test])
        for (train, _), splits in zip(folds, inner, strict=True)
        for inner_train, inner_test in splits
    ]
    correct = _held_out_accuracy(features, labels, rows, STRENGTHS).reshape(len(folds), FOLDS, -1)
    best = correct.mean(axis=1).argmax(axis=1)
    scores = [
        _classifier(features[train], labels[train], STRENGTHS[choice])(features[test]) == labels[test]
        for (train, test), choice in zip(folds, best, strict=True)
    ]
    return {"accuracy": [100 * float(np.mean([np.mean(score) for score in scores]))]}


def cross_validated_training(
    train: Split, test: Split, seeds: list[int], f1: bool = False
) -> dict[str, list[float]]:
    """Score on a test set; 10 folds of the training set choose the regularization (TREC, MRPC).

    Args:
        train: features and classes.
        test: features and classes.
        seeds: each shuffles the folds again.
        f1: whether to score also the F1 of class 1.

    Returns:
        `"accuracy"` and perhaps `"f1"`, percent, one per seed.
    """
    features, labels = train
    scores = {"accuracy": []} | ({"f1": []} if f1 else {})
    for seed in seeds:
        rows = list(_folds(features, labels, seed))
        correct = _held_out_accuracy(features, labels, rows, STRENGTHS_WITHOUT_VALIDATION)
        strength = STRENGTHS_WITHOUT_VALIDATION[correct.mean(axis=0).argmax()]
        predicted = _classifier(features, labels, strength)(test[0])
        scores["accuracy"].append(100 * float(np.mean(predicted == test[1])))
        if f1:
            scores["f1"].append(100 * float(f1_score(test[1], predicted)))
    return scores


def validated_training(train: Split, validation: Split, test: Split) -> dict[str, list[float]]:
    """Score on a test set; a validation set chooses the regularization (SST-2, SST-5, SICK-E).

    Returns:
        `"accuracy"`: percent, one number.
    """
    features = np.concatenate([train[0], validation[0]])
    labels = np.concatenate([train[1], validation[1]])
    rows = np.split(np.arange(len(labels)), [len(train[1])])
    correct = _held_out_accuracy(features, labels, [tuple(rows)], STRENGTHS)
    predicted = _classifier(*train, STRENGTHS[correct[0].argmax()])(test[0])
    return {"accuracy": [100 * float(np.mean(predicted == test[1]))]}


def cosine_similarity(sets: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> dict[str, list[float]]:
    """Compare the cosine of two vectors with a score of similarity; nothing is trained (STS).

    Args:
        sets: the first vectors, the second vectors and the scores of each set.

    Returns:
        `"pearson"` and `"spearman"`: the mean over the sets, weighted by their numbers of pairs.
    """
    sizes = [len(scores) for *_, scores in sets]
    found = {"pearson": [], "spearman": []}
    for first, second, scores in sets:
        lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        cosines = (first * second).sum(axis=1) / np.maximum(lengths, 1e-12)
        found["pearson"].append(correlation(scipy.stats.pearsonr, cosines, scores))
        found["spearman"].append(correlation(scipy.stats.spearmanr, cosines, scores))
    return {name: [float(np.average(values, weights=sizes))] for name, values in found.items()}


def _folds(features: np.ndarray, labels: np.ndarray, seed: int):
    return StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(features, labels)


def _held_out_accuracy(features, labels, rows, strengths) -> np.ndarray:
    """Return the accuracy on the held-out rows, for each (training rows, held-out rows) and strength."""
    inside = np.zeros((len(labels), len(rows)), bool)
    for index, (train, _) in enumerate(rows):
        inside[train, index] = True
    classes = np.unique(labels)
    targets = labels[:, None] == classes[1:] if len(classes) == 2 else labels[:, None] == classes
    logits = logistic_logits(features, targets, inside, strengths)
    chosen = classes[logits.argmax(axis=-1) if len(classes) > 2 else (logits[..., 0] > 0).astype(int)]
    correct = chosen == labels[:, None, None]
    return np.stack([correct[held_out, index].mean(axis=0) for index, (_, held_out) in enumerate(rows)])


def _classifier(features: np.ndarray, labels: np.ndarray, strength: float):
    """Return scikit-learn's logistic regression, fitted: a function from features to classes."""
    # Centred and at unit scale, so that the solver's tolerance means the same for all embeddings; strength is
    # scaled too, so that the minimum stays the same.
    mean, scale = features.mean(axis=0), max(float(features.std()), 1e-12)
    model = LogisticRegression(C=strength * scale**2, max_iter=1000)
    # Its many small products gain nothing from threads; beside other work, threads that wait for each other
    # took 30 times the processor time.
    with threadpool_limits(1):
        model.fit((features - mean) / scale, labels)
    return lambda others: model.predict((others - mean) / scale)


def correlation(measure, predicted: np.ndarray, scores: np.ndarray) -> float:
    """Return a correlation; 0 if all predictions, or all true scores, are equal."""
    return float(measure(predicted, scores)[0]) if np.ptp(predicted) > 0 and np.ptp(scores) > 0 else 0.0
