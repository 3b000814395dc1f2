"""SentEval's regression of relatedness scores, in NumPy: its steps are too small for a graph to pay off."""

from collections.abc import Callable

import numpy as np
import scipy.special
import scipy.stats
from threadpoolctl import threadpool_limits

from training.attention_bridge.senteval_tasks import Split, correlation

VALUES = np.arange(1, 6, dtype="float32")
BATCH_SIZE = 64
PASSES = 50  # over the training set between two looks at the validation set
LOOKS = 21
MISSES = 4  # looks without a better correlation, in a row or not


def relatedness(train: Split, validation: Split, test: Split, seeds: list[int]) -> dict[str, list[float]]:
    """Predict a relatedness score as the mean of a distribution over 1 to 5 (SICK-R, STS).

    A softmax layer learns the distribution over the two integers around the true score whose mean is that
    score (Tai et al. 2015, Eq. 15), by the squared error between the distributions and Adam, without
    regularization. After every 50 passes the validation set is scored, until Pearson's correlation there has
    failed to rise four times, in a row or not; the best weights count. As in SentEval, which has the values 1
    to 5 for STS too, the target of a score below 1 is that score as the share of 1, and nothing for the rest.

    Args:
        train: features and scores.
        validation: features and scores.
        test: features and scores.
        seeds: seeds of the initial weights and the order of examples.

    Returns:
        `"pearson"`, `"spearman"` and `"mse"` (in squared scores), one per seed.

    Reference:
        Tai et al. 2015, "Improved Semantic Representations From Tree-Structured Long Short-Term Memory
        Networks". https://arxiv.org/abs/1503.00075
    """
    found = {"pearson": [], "spearman": [], "mse": []}
    for seed in seeds:
        with threadpool_limits(1):  # small products gain nothing from threads
            predicted = _trained(train, validation, seed)(test[0])
        found["pearson"].append(correlation(scipy.stats.pearsonr, predicted, test[1]))
        found["spearman"].append(correlation(scipy.stats.spearmanr, predicted, test[1]))
        found["mse"].append(float(np.mean((predicted - test[1]) ** 2)))
    return found


def score_distributions(scores: np.ndarray) -> np.ndarray:
    """Return the shares of 1 to 5 whose mean is the score, float32 `(N, 5)`."""
    return np.maximum(0, 1 - np.abs(scores[:, None] - VALUES)).astype("float32")


class SoftmaxLayer:
    """Probabilities of 1 to 5, learned with Adam; the initial weights are as PyTorch's, which SentEval uses.

    Args:
        width: int, F.
        random: generator of the initial weights.
    """

    def __init__(self, width: int, random: np.random.Generator):
        limit = 1 / np.sqrt(width)
        shapes = ((width, len(VALUES)), (len(VALUES),))
        self.weights = [random.uniform(-limit, limit, shape).astype("float32") for shape in shapes]
        self.means = [np.zeros_like(weight) for weight in self.weights]
        self.squares = [np.zeros_like(weight) for weight in self.weights]
        self.steps = 0

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Return the probabilities, `(N, 5)`."""
        kernel, bias = self.weights
        return scipy.special.softmax(features @ kernel + bias, axis=1)

    def step(self, features: np.ndarray, targets: np.ndarray):
        """Take a step of Adam down the mean squared error of a batch's probabilities."""
        p = self(features)
        slope = 2 * (p - targets) / p.size
        slope = p * (slope - (slope * p).sum(axis=1, keepdims=True))  # of the logits
        self.steps += 1
        rate, spread = 1e-3 / (1 - 0.9**self.steps), np.sqrt(1 - 0.999**self.steps)
        gradients = (features.T @ slope, slope.sum(axis=0))
        for weight, mean, square, gradient in zip(
            self.weights, self.means, self.squares, gradients, strict=True
        ):
            mean += 0.1 * (gradient - mean)
            square += 0.001 * (gradient**2 - square)
            weight -= float(rate) * mean / (np.sqrt(square) / float(spread) + 1e-8)


def _trained(train: Split, validation: Split, seed: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from features to scores with the best weights on the validation set."""
    random = np.random.default_rng(seed)
    features, targets = train[0].astype("float32"), score_distributions(train[1])
    layer, best, misses = SoftmaxLayer(features.shape[1], random), -np.inf, 0
    for _ in range(LOOKS):
        for _ in range(PASSES):
            order = random.permutation(len(features))
            for start in range(0, len(order), BATCH_SIZE):
                rows = order[start : start + BATCH_SIZE]
                layer.step(features[rows], targets[rows])
        found = correlation(scipy.stats.pearsonr, layer(validation[0]) @ VALUES, validation[1])
        if found > best:
            best, weights = found, [weight.copy() for weight in layer.weights]
        else:
            misses += 1
            if misses == MISSES:
                break
    layer.weights = weights
    return lambda others: layer(others) @ VALUES
