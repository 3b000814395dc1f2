"""SentEval's classifier in Keras: a network with one hidden layer for the probing tasks, none for SNLI."""

from collections.abc import Callable

import keras
import numpy as np

STRENGTHS = [1e-5, 1e-4, 1e-3, 1e-2]
BATCH_SIZE = 64
PASSES = 4  # over the training set between two validations
MISSES = 6  # validations without a better accuracy, in a row or not

# Rows' features, computed on demand, and the classes of all rows.
Split = tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]


def probe(
    train: Split,
    validation: Split,
    test: Split,
    seeds: list[int],
    hidden_units: int = 200,
    dropout: float = 0.1,
    strengths: list[float] = STRENGTHS,
    passes: int = PASSES,
    looks: int = 200 // PASSES + 1,
) -> dict[str, list[float]]:
    """Train SentEval's classifier; the validation set chooses when to stop and the regularization.

    Adam with 64 examples per batch; after every `passes` passes the validation set is scored, until its
    accuracy has failed to rise six times, in a row or not.

    Args:
        train: a function from row numbers to features `(rows, F)`, and the classes of all rows.
        validation: the same.
        test: the same.
        seeds: seeds of the initial weights, the order of examples and dropout.
        hidden_units: int. Sigmoid units of the hidden layer; 0 for a logistic regression.
        dropout: float. Dropout rate, before the sigmoid.
        strengths: the weights of the L2 penalty, ‖W‖² / 2 times it, to choose from.
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
        # Keras's penalty is not halved. The biases are included, as with Adam's weight decay in SentEval.
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
    """Stops training after so many misses, which a better score does not reset; keeps the best weights."""

    def __init__(self):
        super().__init__()
        self.best, self.misses = -1.0, 0

    def on_epoch_end(self, epoch, logs=None):
        if logs["val_accuracy"] > self.best:
            self.best, self.weights = logs["val_accuracy"], self.model.get_weights()
        else:
            self.misses += 1
            self.model.stop_training = self.misses >= MISSES

    def on_train_end(self, logs=None):
        self.model.set_weights(self.weights)


class _Batches(keras.utils.PyDataset):
    """Batches of features and classes: shuffled passes with a seed, one pass in order without a seed."""

    def __init__(self, split: Split, seed: int | None = None, passes: int = 1):
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
        return self.features(rows), self.labels[rows].astype("int32")  # JAX would warn of others
