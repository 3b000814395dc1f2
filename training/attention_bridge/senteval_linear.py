"""SentEval's protocols without a network: logistic regressions, with a choice of regularization, and cosines.

Each takes vectors and targets, and returns lists of scores by name: one number per seed, or a single one if
nothing is random.
"""

import numpy as np
import scipy.linalg
import scipy.special
import scipy.stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

FOLDS = 10
NESTED_SEED = 1111  # of the nested cross-validation's folds, for any seed of SentEval
STRENGTHS = [2.0**power for power in range(-2, 4)]
STRENGTHS_WITHOUT_VALIDATION = [2.0**power for power in range(-1, 6)]  # SentEval's, for TREC and MRPC

Split = tuple[np.ndarray, np.ndarray]  # features (N, F) and targets (N,)


def pair_features(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return |u − v| and u · v, element by element, side by side: `(N, 2E)`."""
    return np.concatenate([np.abs(first - second), first * second], axis=1)


def nested_cross_validation(data: Split) -> dict[str, list[float]]:
    """Score by 10 folds; in each, 10 inner folds choose the regularization (MR, CR, SUBJ, MPQA).

    Args:
        data: features `(N, F)` and classes `(N,)`.

    Returns:
        `"accuracy"`: percent, the mean over the folds, one number.
    """
    features, labels = data
    folds = list(stratified_folds(features, labels, NESTED_SEED))
    rows = [
        (train[inner_train], train[inner_test])
        for train, _ in folds
        for inner_train, inner_test in stratified_folds(features[train], labels[train], NESTED_SEED)
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
        train, test: features and classes.
        seeds: seeds of the folds.
        f1: whether to compute the F1 of class 1 too.

    Returns:
        `"accuracy"` and, if requested, `"f1"`: percent, one per seed.
    """
    features, labels = train
    scores = {"accuracy": []} | ({"f1": []} if f1 else {})
    for seed in seeds:
        rows = list(stratified_folds(features, labels, seed))
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
    """Correlate the cosine of two vectors with their score of similarity (STS).

    Args:
        sets: the first vectors, the second vectors and the scores of each set.

    Returns:
        `"pearson"` and `"spearman"`: means over the sets, weighted by their numbers of pairs.
    """
    sizes = [len(scores) for *_, scores in sets]
    found = {"pearson": [], "spearman": []}
    for first, second, scores in sets:
        lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        cosines = (first * second).sum(axis=1) / np.maximum(lengths, 1e-12)
        found["pearson"].append(correlation(scipy.stats.pearsonr, cosines, scores))
        found["spearman"].append(correlation(scipy.stats.spearmanr, cosines, scores))
    return {name: [float(np.average(values, weights=sizes))] for name, values in found.items()}


def stratified_folds(features: np.ndarray, labels: np.ndarray, seed: int):
    return StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(features, labels)


def _held_out_accuracy(features, labels, rows, strengths) -> np.ndarray:
    """Return the accuracy on held-out rows for each (training rows, held-out rows) and each strength."""
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
    # Centred and scaled, so that the solver's tolerance means the same for all embeddings. The strength is
    # scaled too, which keeps the minimum.
    mean, scale = features.mean(axis=0), max(float(features.std()), 1e-12)
    model = LogisticRegression(C=strength * scale**2, max_iter=1000)
    # Its products are too small for threads: on a busy machine, waiting threads took 30 times the processor
    # time.
    with threadpool_limits(1):
        model.fit((features - mean) / scale, labels)
    return lambda others: model.predict((others - mean) / scale)


def correlation(measure, predicted: np.ndarray, scores: np.ndarray) -> float:
    """Return a correlation; 0 if all predictions, or all true scores, are equal."""
    return float(measure(predicted, scores)[0]) if np.ptp(predicted) > 0 and np.ptp(scores) > 0 else 0.0


def logistic_logits(
    features: np.ndarray,
    targets: np.ndarray,
    train: np.ndarray,
    strengths: list[float],
    tolerance: float = 1e-7,
    max_iterations: int = 300,
) -> np.ndarray:
    """Fit a logistic regression for each set of training examples and each strength; return all logits.

    The nested cross-validation fits 600 of them for one score. With 10,662 examples of 2,560 features, the
    whole task took 84 s on two busy cores; scikit-learn takes 1.0 to 3.3 s of one core for each of the 600.

    Each has the objective of scikit-learn's `LogisticRegression(C=strength)`: strength · the sum of its
    examples' cross-entropies + ‖W‖² / 2, without biases in W. It is minimized by Nesterov's accelerated
    gradient with restarts. The Hessian is at most c·XᵀX + I / strength, c = 1/4 for a sigmoid and 1/2 for a
    softmax (Böhning 1992). The inverse of this bound, the same for all training sets, is the step.

    Args:
        features: float32 `(N, F)`.
        targets: `(N, 1)` with the probability of class 1 of two, or `(N, K)` with those of all K classes.
        train: bool `(N, P)`. The examples of each of P training sets.
        strengths: inverse strengths of the regularization, scikit-learn's C.
        tolerance: float. Stop when the loss per example is about this close to its minimum.
        max_iterations: int. Maximum number of steps.

    Returns:
        float32 `(N, P, len(strengths), K)`, for all examples, also those not trained on.

    Reference:
        Böhning 1992, "Multinomial logistic regression algorithm". Annals of the Institute of Statistical
        Mathematics 44. O'Donoghue and Candès 2015, "Adaptive Restart for Accelerated Gradient Schemes".
        https://arxiv.org/abs/1204.3982
    """
    x = (features - features.mean(axis=0)).astype("float32")  # the biases absorb the mean
    y = targets.astype("float32")[:, None, None, :]
    inside = train.astype("float32")[:, :, None, None]
    f, sets, s, k = x.shape[1], train.shape[1], len(strengths), y.shape[-1]
    steps, bias_step = _steps(x, strengths, 0.25 if k == 1 else 0.5)

    shape = (f, sets, s, k)
    weights, ahead = np.zeros(shape, "float32"), np.zeros(shape, "float32")
    bias, bias_ahead = np.zeros(shape[1:], "float32"), np.zeros(shape[1:], "float32")
    momentum = np.ones((sets, s, 1))
    for _ in range(max_iterations):
        errors = _probabilities(np.tensordot(x, ahead, 1) + bias_ahead) - y
        errors *= inside
        slope = np.tensordot(x.T, errors, 1) + ahead / np.array(strengths, "float32")[:, None]
        bias_slope = errors.sum(axis=0)
        move = np.stack([np.tensordot(steps[i], slope[:, :, i], 1) for i in range(s)], axis=2)
        bias_move = bias_step * bias_slope

        next_weights, next_bias = ahead - move, bias_ahead - bias_move
        to_go = (slope * move).sum(axis=(0, 3)) + (bias_slope * bias_move).sum(axis=2)
        if (to_go <= 2 * tolerance * train.sum(axis=0)[:, None]).all():
            break
        # Reset the momentum where the last step went uphill.
        change, bias_change = next_weights - weights, next_bias - bias
        uphill = (slope * change).sum(axis=(0, 3)) + (bias_slope * bias_change).sum(axis=2) > 0
        momentum[uphill] = 1
        next_momentum = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ratio = ((momentum - 1) / next_momentum).astype("float32")
        ahead, bias_ahead = next_weights + ratio * change, next_bias + ratio * bias_change
        weights, bias, momentum = next_weights, next_bias, next_momentum
    return np.tensordot(x, next_weights, 1) + next_bias


def _steps(x: np.ndarray, strengths: list[float], curvature: float) -> tuple[np.ndarray, float]:
    """Return the inverse bounds on the Hessian: one matrix per strength, and a number for the biases."""
    gram, identity, inverses = curvature * (x.T @ x).astype("float64"), np.eye(x.shape[1]), []
    for strength in strengths:
        factor = scipy.linalg.cho_factor(gram + identity / strength, lower=True, overwrite_a=True)
        inverses.append(scipy.linalg.cho_solve(factor, identity).astype("float32"))
    return np.stack(inverses), 1 / (curvature * len(x))


def _probabilities(logits: np.ndarray) -> np.ndarray:
    """Return the sigmoid of a single logit, or the softmax of several."""
    return scipy.special.expit(logits) if logits.shape[-1] == 1 else scipy.special.softmax(logits, axis=-1)
