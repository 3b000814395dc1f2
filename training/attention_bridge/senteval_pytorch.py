"""SentEval's PyTorch variant without a validation set: MR, CR, SUBJ, MPQA, TREC and MRPC.

Logistic regressions are trained with Adam, and folds choose their regularization. All regressions of a task
are trained side by side in NumPy, because their steps are too small to compile.
"""

import numpy as np
import scipy.special
from sklearn.metrics import f1_score
from threadpoolctl import threadpool_limits

from training.attention_bridge import senteval_linear as linear
from training.attention_bridge.senteval_linear import NESTED_SEED, Split
from training.attention_bridge.senteval_networks import BATCH_SIZE, PROBE_MISSES, PROBE_PASSES, STRENGTHS

LOOKS = 200 // PROBE_PASSES + 1
VALIDATION_SHARE = 0.05  # of the training set, for the last training, when there is no validation set

Rows = tuple[np.ndarray, np.ndarray]  # training rows and validation rows


def nested_cross_validation(data: Split, seeds: list[int]) -> dict[str, list[float]]:
    """Score by 10 folds; in each, 10 inner folds choose the regularization (MR, CR, SUBJ, MPQA).

    Args:
        data: features `(N, F)` and classes `(N,)`, from 0.
        seeds: seeds of the initial weights and the order of examples. The folds always have seed 1111.

    Returns:
        `"accuracy"`: percent, the mean over the folds, one per seed.
    """
    features, labels = data
    folds = list(linear.stratified_folds(features, labels, NESTED_SEED))
    inner = [
        (train[rows], train[held_out])
        for train, _ in folds
        for rows, held_out in linear.stratified_folds(features[train], labels[train], NESTED_SEED)
    ]
    accuracies = []
    for seed in seeds:
        chosen = _chosen_strengths(features, labels, inner, len(folds), seed)
        sets = [_split(train, seed) for train, _ in folds]
        weights, _ = train_regressions(features, labels, sets, chosen[:, None], seed)
        scores = [
            round(100 * np.mean(_classes(features[test], weight) == labels[test]), 2)
            for (_, test), weight in zip(folds, weights[:, :, 0], strict=True)
        ]
        accuracies.append(float(np.mean(scores)))
    return {"accuracy": accuracies}


def cross_validated_training(
    train: Split, test: Split, seeds: list[int], f1: bool = False
) -> dict[str, list[float]]:
    """Score on a test set; 10 folds of the training set choose the regularization (TREC, MRPC).

    Args:
        train, test: features and classes, from 0.
        seeds: seeds of the folds, the initial weights and the order of examples.
        f1: whether to compute the F1 of class 1 too.

    Returns:
        `"accuracy"` and, if requested, `"f1"`: percent, one per seed.
    """
    features, labels = train
    scores = {"accuracy": []} | ({"f1": []} if f1 else {})
    for seed in seeds:
        sets = list(linear.stratified_folds(features, labels, seed))
        chosen = _chosen_strengths(features, labels, sets, 1, seed)
        last = [_split(np.arange(len(labels)), seed)]
        weights, _ = train_regressions(features, labels, last, chosen[:, None], seed)
        predicted = _classes(test[0], weights[0, :, 0])
        scores["accuracy"].append(100 * float(np.mean(predicted == test[1])))
        if f1:
            scores["f1"].append(100 * float(f1_score(test[1], predicted)))
    return scores


def _chosen_strengths(features, labels, sets: list[Rows], groups: int, seed: int) -> np.ndarray:
    """Return the best strength of each group of sets by their mean accuracy, rounded as in SentEval."""
    strengths = np.tile(STRENGTHS, (len(sets), 1))
    _, accuracy = train_regressions(features, labels, sets, strengths, seed)
    means = np.round(100 * accuracy.reshape(groups, -1, len(STRENGTHS)).mean(axis=1), 2)
    return np.array(STRENGTHS)[means.argmax(axis=1)]


def _split(rows: np.ndarray, seed: int) -> Rows:
    order = np.random.default_rng(seed).permutation(rows)
    held_out = int(VALIDATION_SHARE * len(rows))
    return order[held_out:], order[:held_out]


def _classes(features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return (features @ weights[:-1] + weights[-1]).argmax(axis=-1)


def train_regressions(
    features: np.ndarray,
    labels: np.ndarray,
    sets: list[Rows],
    strengths: np.ndarray,
    seed: int,
    looks: int = LOOKS,
) -> tuple[np.ndarray, np.ndarray]:
    """Train logistic regressions: several for each set of rows, with different regularization.

    Adam in PyTorch's form, 64 examples per batch, and a weight decay of biases too. After every four passes,
    the validation rows are scored; a regression stops when its accuracy there has failed to rise six times,
    in a row or not. All start from the same weights, and sets of equal size have the same order of rows,
    because SentEval sets the seed before each training.

    Args:
        features: `(N, F)`.
        labels: `(N,)`, from 0 to K - 1.
        sets: P pairs of training rows and validation rows.
        strengths: `(P, S)`. Weights of the L2 penalty ‖W‖² / 2 of each set's regressions.
        seed: int.
        looks: int. Maximum number of validations.

    Returns:
        The weights with the best accuracy on the validation rows, `(P, F + 1, S, K)`, biases last, and this
        accuracy, `(P, S)`, from 0 to 1.
    """
    inputs = np.concatenate([features, np.ones((len(features), 1))], axis=1).astype("float32")
    targets = np.eye(labels.max() + 1, dtype="float32")[labels]
    limit = 1 / np.sqrt(features.shape[1])
    first = np.random.default_rng(seed).uniform(-limit, limit, (inputs.shape[1], 1, targets.shape[1]))
    shape = (len(sets), *first.shape[:1], strengths.shape[1], *first.shape[2:])
    weights = np.broadcast_to(first, shape).astype("float32")
    means, squares, steps = np.zeros_like(weights), np.zeros_like(weights), np.zeros(len(sets), int)
    decay = strengths[:, None, :, None].astype("float32")
    best, misses, kept = np.full(strengths.shape, -1.0), np.zeros(strengths.shape, int), weights.copy()
    randoms = {len(train): np.random.default_rng(seed) for train, _ in sets}
    with threadpool_limits(1):  # small products gain nothing from threads
        for _ in range(looks):
            left = np.flatnonzero((misses < PROBE_MISSES).any(axis=1))
            if not len(left):
                break
            state = [array[left] for array in (weights, means, squares, steps)]
            for _ in range(PROBE_PASSES):
                orders = {size: random.permutation(size) for size, random in randoms.items()}
                batches = _batches([sets[p][0][orders[len(sets[p][0])]] for p in left])
                for rows, counts in batches:
                    _step(inputs[rows], targets[rows], counts, decay[left], *state)
            for array, values in zip((weights, means, squares, steps), state, strict=True):
                array[left] = values
            for p in left:
                held_out = sets[p][1]
                logits = np.tensordot(inputs[held_out], weights[p], 1)
                found = (logits.argmax(axis=-1) == labels[held_out, None]).mean(axis=0)
                running = misses[p] < PROBE_MISSES
                better = running & (found > best[p])
                misses[p] += running & ~better
                best[p][better], kept[p][:, better] = found[better], weights[p][:, better]
    return kept, best


def _batches(orders: list[np.ndarray]):
    """Yield the rows of each batch `(P, 64)`, and how many of them each set has; others are the row 0."""
    number = max(-(-len(order) // BATCH_SIZE) for order in orders)
    rows = np.zeros((len(orders), number * BATCH_SIZE), int)
    for row, order in zip(rows, orders, strict=True):
        row[: len(order)] = order
    sizes = np.array([len(order) for order in orders])
    for start in range(0, rows.shape[1], BATCH_SIZE):
        yield rows[:, start : start + BATCH_SIZE], np.clip(sizes - start, 0, BATCH_SIZE)


def _step(inputs, targets, counts, decay, weights, means, squares, steps):
    """Take a step of Adam on the mean cross-entropy of each set's batch, in place; none for empty batches."""
    sets, features, strengths, classes = weights.shape
    logits = (inputs @ weights.reshape(sets, features, -1)).reshape(sets, -1, strengths, classes)
    slope = scipy.special.softmax(logits, axis=-1) - targets[:, :, None]
    slope *= (np.arange(BATCH_SIZE) < counts[:, None])[:, :, None, None]
    slope /= np.maximum(counts, 1)[:, None, None, None]
    gradient = np.swapaxes(inputs, 1, 2) @ slope.reshape(sets, BATCH_SIZE, -1).astype("float32")
    gradient = gradient.reshape(weights.shape) + decay * weights
    moving = counts > 0
    steps += moving
    on = moving[:, None, None, None].astype("float32")
    means += on * 0.1 * (gradient - means)
    squares += on * 0.001 * (gradient**2 - squares)
    t = steps[:, None, None, None]
    rate, spread = (1e-3 / (1 - 0.9**t)).astype("float32"), np.sqrt(1 - 0.999**t).astype("float32")
    weights -= on * rate * means / (np.sqrt(squares) / spread + np.float32(1e-8))
