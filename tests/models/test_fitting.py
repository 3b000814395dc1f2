"""`fit` and `evaluate` on texts: the same as on the batches that a user would make of them."""

import keras
import numpy as np
import pytest
from message_of import message_of

from kzoo.data import Batches
from kzoo.models.fitting import adapted
from kzoo.presets import attention_bridge_bilingual_tiny
from kzoo.presets.assembly import transformer
from kzoo.text import SubwordTokenizer, train_subwords

pytestmark = pytest.mark.usefixtures("untraced")

ENGLISH = ["a dog runs", "the girl", "a man"] * 8
GERMAN = ["ein Hund rennt", "das Mädchen", "ein Mann"] * 8
SIZES = {
    "num_layers": 1,
    "width": 16,
    "num_heads": 2,
    "feedforward_dim": 24,
    "max_length": 16,
    "dropout": 0.0,
}


@pytest.fixture(scope="module")
def fitted():
    """Function of data that fits a model, of the same weights each time, and returns its losses, too."""
    keras.utils.set_random_seed(1)
    model = transformer(SubwordTokenizer(train_subwords(ENGLISH + GERMAN, 40)), **SIZES)
    model.compile(keras.optimizers.SGD(0.1), model.loss)  # traced in half of Adam's time, and without a state
    weights = model.get_weights()

    def fit(*data, **options):
        model.set_weights(weights)
        history = model.fit(*data, epochs=2, verbose=0, **options).history
        return model, history["loss"] + history.get("val_loss", [])

    return fit


@pytest.fixture(scope="module")
def expected(fitted):
    """The losses of the batches that `fit`'s documentation names."""
    tokenizer = SubwordTokenizer(train_subwords(ENGLISH + GERMAN, 40))
    sides = tokenizer(ENGLISH), tokenizer(GERMAN)
    batches, fixed = Batches(*sides, max_length=16), Batches(*sides, max_length=16, shuffle=False)
    model, history = fitted(batches, shuffle=False, validation_data=fixed)
    return history, model.evaluate(fixed, verbose=0)


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_lists_and_arrays_of_texts_are_tokenized(kind, fitted, expected):
    texts = kind(ENGLISH), kind(GERMAN)
    model, history = fitted(*texts, validation_data=texts)
    assert history == pytest.approx(expected[0], rel=1e-5)
    assert model.evaluate(*texts, verbose=0) == pytest.approx(expected[1], rel=1e-5)


@pytest.mark.parametrize("batch", [None, 5])
def test_a_dataset_of_pairs_is_tokenized(batch, fitted, expected):
    tensorflow = pytest.importorskip("tensorflow")
    data = tensorflow.data.Dataset.from_tensor_slices((ENGLISH, GERMAN))
    data = data.batch(batch) if batch else data
    model, history = fitted(data, validation_data=data)
    assert history == pytest.approx(expected[0], rel=1e-5)


def test_a_dataset_of_pairs_without_end_is_refused(fitted):
    tensorflow = pytest.importorskip("tensorflow")
    data = tensorflow.data.Dataset.from_tensor_slices((ENGLISH, GERMAN)).repeat()
    assert "repeat()" in message_of(fitted, data)


def test_what_texts_cannot_say_is_refused(fitted):
    assert "translations" in message_of(fitted, ENGLISH)
    assert "24 " in message_of(fitted, ENGLISH, GERMAN[1:])
    tokenizer = SubwordTokenizer(train_subwords(ENGLISH, 30))
    bridge = attention_bridge_bilingual_tiny({"en": tokenizer, "de": tokenizer})
    assert "PairBatches" in message_of(bridge.fit, ENGLISH, GERMAN)


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_fit_whose_first_batch_fails_leaves_all_as_it_was(error, fitted):
    class Failing(Batches):
        def __getitem__(self, index):
            raise error

    model, _ = fitted(ENGLISH, GERMAN, validation_data=(ENGLISH, GERMAN))
    before, expected = model.get_weights(), model.translate(["a dog runs"])
    sides = model.source_tokenizer(ENGLISH), model.target_tokenizer(GERMAN)
    with pytest.raises(error):
        model.fit(Failing(*sides), shuffle=False, verbose=0)
    for weight, old in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(weight, old)
    assert model.translate(["a dog runs"]) == expected
    fitted(ENGLISH, GERMAN)  # goes on with the same optimizer


def test_a_first_fit_that_is_stopped_leaves_the_optimizer_and_the_metrics_as_new():
    class Stopped(Batches):
        """Stops once Keras has read the first batch to learn its shapes."""

        read = False

        def __getitem__(self, index):
            if self.read:
                raise KeyboardInterrupt
            self.read = True
            return super().__getitem__(index)

    model = transformer(SubwordTokenizer(train_subwords(ENGLISH + GERMAN, 40)), **SIZES)
    sides = model.source_tokenizer(ENGLISH), model.target_tokenizer(GERMAN)
    with pytest.raises(KeyboardInterrupt):
        model.fit(Stopped(*sides), shuffle=False, verbose=0)
    assert model.optimizer.iterations == 0
    assert [metric.result() for metric in model.metrics] == [0]


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="only TensorFlow reads ahead by tf.data")
def test_the_end_of_an_epoch_waits_for_no_tuning():
    tokenizer = SubwordTokenizer(train_subwords(ENGLISH + GERMAN, 40))
    batches = Batches(tokenizer(ENGLISH), tokenizer(GERMAN), tokens=64)
    dataset = adapted(batches).get_tf_dataset()
    assert dataset.options().autotune.enabled is False
    read = list(dataset.as_numpy_iterator())
    keras.tree.map_structure(np.testing.assert_array_equal, read, [batches[i] for i in range(len(batches))])


def test_batches_have_their_labels():
    tokenizer = SubwordTokenizer(train_subwords(ENGLISH + GERMAN, 40))
    model = transformer(tokenizer, **SIZES)
    model.compile(keras.optimizers.SGD(0.1), model.loss)
    batches = Batches(tokenizer(ENGLISH), tokenizer(GERMAN))
    for method in (model.fit, model.evaluate):
        with pytest.raises(ValueError, match="`y`"):
            method(batches, np.zeros(len(ENGLISH)))
