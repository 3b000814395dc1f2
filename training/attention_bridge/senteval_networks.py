"""SentEval's networks: the regression of relatedness, and the classifier of SNLI and the probing tasks.

The regression is in NumPy, because its steps are too small to compile. The classifier is in Keras.
"""

from collections.abc import Callable

import keras
import numpy as np
import scipy.special
import scipy.stats
from threadpoolctl import threadpool_limits

from training.attention_bridge.senteval_linear import Split, correlation

BATCH_SIZE = 64
VALUES = np.arange(1, 6, dtype="float32")
PASSES, LOOKS, MISSES = 50, 21, 4  # for relatedness: as `passes`, `looks` and `PROBE_MISSES` for `probe`
STRENGTHS = [1e-5, 1e-4, 1e-3, 1e-2]
PROBE_PASSES, PROBE_MISSES = 4, 6

# A function from row numbers to features, and the classes of all rows.
LazySplit = tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]


def relatedness(train: Split, validation: Split, test: Split, seeds: list[int]) -> dict[str, list[float]]:
    """Predict a relatedness score as the mean of a distribution over 1 to 5 (SICK-R, STS).

    A softmax layer learns a distribution over the two integers around the true score, with that score as its
    mean (Tai et al. 2015, Eq. 15). It minimizes the squared error between distributions with Adam, without
    regularization. After every 50 passes, the validation set is scored; training stops when Pearson's
    correlation there has failed to rise four times, in a row or not, and the best weights are kept. As in
    SentEval, STS also uses 1 to 5: a score below 1 becomes the probability of 1, and the rest is missing.

    Args:
        train, validation, test: features and scores.
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
    """Return distributions over 1 to 5 with the scores as their means, float32 `(N, 5)`."""
    return np.maximum(0, 1 - np.abs(scores[:, None] - VALUES)).astype("float32")


class SoftmaxLayer:
    """Probabilities of 1 to 5, learned with Adam, from PyTorch's initial weights, as in SentEval.

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
        """Take a step of Adam on the mean squared error of a batch's probabilities."""
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


def _trained(
    train: Split, validation: Split, seed: int, passes: int = PASSES, looks: int = LOOKS
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from features to scores with the best weights on the validation set."""
    random = np.random.default_rng(seed)
    features, targets = train[0].astype("float32"), score_distributions(train[1])
    layer, best, misses = SoftmaxLayer(features.shape[1], random), -np.inf, 0
    for _ in range(looks):
        for _ in range(passes):
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


def probe(
    train: LazySplit,
    validation: LazySplit,
    test: LazySplit,
    seeds: list[int],
    hidden_units: int = 200,
    dropout: float = 0.1,
    strengths: list[float] = STRENGTHS,
    passes: int = PROBE_PASSES,
    looks: int = 200 // PROBE_PASSES + 1,
) -> dict[str, list[float]]:
    """Train SentEval's classifier; the validation set chooses when to stop and the regularization.

    Adam with 64 examples per batch. After every `passes` passes, the validation set is scored; training stops
    when its accuracy has failed to rise six times, in a row or not.

    Args:
        train, validation, test: a function from row numbers to features `(rows, F)`, and all rows' classes.
        seeds: seeds of the initial weights, the order of examples and dropout.
        hidden_units: int. Sigmoid units of the hidden layer; 0 for a logistic regression.
        dropout: float. Dropout rate, before the sigmoid.
        strengths: weights of the L2 penalty ‖W‖² / 2, to choose from.
        passes: int. Passes over the training set between two validations.
        looks: int. Maximum number of validations.

    Returns:
        `"accuracy"`: percent, one per seed.
    """
    classes = int(max(labels.max() for _, labels in (train, validation, test))) + 1
    accuracies = []
    for seed in seeds:
        best = -1.0
        for strength in strengths:
            model = _network(classes, hidden_units, dropout, strength, seed)
            looked = _Looks()
            model.fit(
                _Batches(train, seed=seed, passes=passes),
                validation_data=_Batches(validation),
                epochs=looks,
                callbacks=[looked],
                shuffle=False,
                verbose=0,
            )
            if looked.best > best:
                best = looked.best
                accuracy = model.evaluate(_Batches(test), verbose=0, return_dict=True)["accuracy"]
        accuracies.append(100 * float(accuracy))
    return {"accuracy": accuracies}


def _network(classes: int, hidden_units: int, dropout: float, strength: float, seed: int) -> keras.Model:
    def dense(units: int, offset: int) -> keras.layers.Dense:
        # Keras's penalty is not halved. It includes the biases, as Adam's weight decay does in SentEval.
        penalty = keras.regularizers.L2(strength / 2)
        initial = keras.initializers.GlorotUniform(seed=seed + offset)
        return keras.layers.Dense(
            units, kernel_initializer=initial, kernel_regularizer=penalty, bias_regularizer=penalty
        )

    layers = [dense(classes, 1)]
    if hidden_units:
        noise = keras.layers.Dropout(dropout, seed=seed)
        layers = [dense(hidden_units, 0), noise, keras.layers.Activation("sigmoid"), *layers]
    model = keras.Sequential(layers)
    model.compile(
        optimizer=keras.optimizers.Adam(),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


class _Looks(keras.callbacks.Callback):
    """Stops training after `PROBE_MISSES` misses, in a row or not, and keeps the best weights."""

    def __init__(self):
        super().__init__()
        self.best, self.misses = -1.0, 0

    def on_epoch_end(self, epoch, logs=None):
        if logs["val_accuracy"] > self.best:
            self.best, self.weights = logs["val_accuracy"], self.model.get_weights()
        else:
            self.misses += 1
            self.model.stop_training = self.misses >= PROBE_MISSES

    def on_train_end(self, logs=None):
        self.model.set_weights(self.weights)


class _Batches(keras.utils.PyDataset):
    """Batches of features and classes. With a seed, each pass is shuffled; without, passes are in order."""

    def __init__(self, split: LazySplit, seed: int | None = None, passes: int = 1):
        super().__init__()
        self.features, self.labels = split
        self.passes = passes
        self.random = None if seed is None else np.random.default_rng(seed)
        self.on_epoch_end()

    def on_epoch_end(self):
        rows = np.arange(len(self.labels))
        orders = [rows if self.random is None else self.random.permutation(rows) for _ in range(self.passes)]
        self.batches = [
            order[i : i + BATCH_SIZE] for order in orders for i in range(0, len(rows), BATCH_SIZE)
        ]

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int):
        rows = self.batches[index]
        return self.features(rows), self.labels[rows].astype("int32")  # JAX warns about int64
