"""The losses, written out in NumPy; and that a model with them is trained as Keras would."""

import math

import keras
import numpy as np
import pytest
from keras import ops
from scipy.special import log_softmax
from scipy.stats import entropy

from kzoo.data import Batches, TwiceEachRow
from kzoo.models import ConsistentCrossEntropy, LabelSmoothedCrossEntropy, SentenceCrossEntropy
from kzoo.models.losses import never
from kzoo.models.recurrent import LanguageModel


def test_equals_cross_entropy_with_the_smoothed_distribution(random):
    labels = random.integers(0, 9, (2, 5))
    logits = random.normal(size=(2, 5, 9)).astype("float32") * 3
    weights = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], "float32")
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    wanted = 0.9 * np.eye(9)[labels] + 0.1 / 9
    expected = (-(wanted * log_p).sum(-1) * weights).sum() / weights.sum()
    loss = LabelSmoothedCrossEntropy(0.1)(labels, logits, sample_weight=weights)
    np.testing.assert_allclose(ops.convert_to_numpy(loss), expected, rtol=1e-5)
    again = LabelSmoothedCrossEntropy.from_config(LabelSmoothedCrossEntropy(0.2).get_config())
    assert again.label_smoothing == 0.2


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("mixed_bfloat16", 8e-3)])
@pytest.mark.parametrize("kind", [LabelSmoothedCrossEntropy, SentenceCrossEntropy])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_and_gradient_are_the_formula_s(kind, smoothing, dtype, tolerance, random):
    """Of one sentence of six tokens; the sum of the losses has the gradient p − (1 − ε) true − ε uniform."""
    labels, logits = random.integers(4, 40, (1, 6)), random.normal(size=(6, 40)).astype("float32") * 3
    present = np.ones(40)
    if kind is SentenceCrossEntropy:  # the others get no share of ε
        present[-9:], labels = 0, labels % 30 + 1
        logits[:, -9:] = never("bfloat16")
    rows = np.arange(6)[None]
    layer = keras.layers.Embedding(6, 40, dtype=dtype)
    model = keras.Sequential([keras.Input((6,), dtype="int32"), layer])
    layer.set_weights([logits])
    model.compile(keras.optimizers.SGD(1.0), kind(smoothing), jit_compile=False)
    found = model.train_on_batch(rows, labels)
    seen = np.array(ops.cast(ops.cast(logits, layer.compute_dtype), "float32"), "float64")
    shares = (1 - smoothing) * np.eye(40)[labels[0]] + smoothing * present / present.sum()
    scale = 1 if kind is SentenceCrossEntropy else 1 / 6
    assert float(found) == pytest.approx(-scale * (shares * log_softmax(seen, -1)).sum(), rel=1e-5)
    expected = scale * (np.exp(log_softmax(seen, -1)) - shares)
    moved = (logits - layer.get_weights()[0])[:, present > 0]
    np.testing.assert_allclose(moved, expected[:, present > 0], atol=tolerance)


@pytest.mark.parametrize(
    "loss", [LabelSmoothedCrossEntropy(0.0), SentenceCrossEntropy(0.0), SentenceCrossEntropy(0.1)]
)
def test_a_token_with_a_logit_of_minus_infinity_counts_as_absent(loss, random):
    logits, labels = random.normal(size=(1, 2, 5)).astype("float32"), np.array([[1, 2]])
    with_absent = np.concatenate([logits, np.full((1, 2, 2), -np.inf, "float32")], axis=-1)
    assert float(loss(labels, with_absent)) == pytest.approx(float(loss(labels, logits)), rel=1e-6)


def uniform_but_at_padding(copies=1):
    """Return labels of three and one words, and logits: all 10 words alike; padding where it is improbable.

    A word loses ln 10 = 2.30; the mean over padding too would be 5.61.
    """
    labels = np.array([[5, 7, 9, 0], [3, 0, 0, 0]], "int32")
    logits = np.zeros((2, 4, 10), "float32")
    logits[labels == 0, 0] = -8.9155 + np.log(9)
    return np.repeat(labels, copies, 0), np.repeat(logits, copies, 0)


def test_without_weights_label_0_does_not_count():
    labels, logits = uniform_but_at_padding()
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    lost = -np.take_along_axis(log_p, labels[..., None], -1)[..., 0]
    assert lost.mean() == pytest.approx(5.61, abs=0.01)
    assert float(LabelSmoothedCrossEntropy(0.0)(labels, logits)) == pytest.approx(math.log(10))
    assert float(LabelSmoothedCrossEntropy(0.1)(labels, logits)) == pytest.approx(math.log(10))
    assert float(SentenceCrossEntropy()(labels, logits)) == pytest.approx((3 + 1) / 2 * math.log(10))
    twice = ConsistentCrossEntropy(0.0)(*uniform_but_at_padding(2))
    assert float(twice) == pytest.approx(math.log(10))


def test_it_is_over_as_many_tokens_as_have_a_weight():
    assert LabelSmoothedCrossEntropy().count(ops.convert_to_tensor([[1.0, 1.0, 0.0]])) == 2


@pytest.mark.parametrize("loss", [LabelSmoothedCrossEntropy(), SentenceCrossEntropy()])
def test_weights_of_sentences_are_refused(loss):
    """Of three sentences of three tokens they would be taken for weights of places."""
    with pytest.raises(ValueError, match=r"\(B, T\).* \(3,\)"):
        loss(np.zeros((3, 3), "int32"), np.zeros((3, 3, 9), "float32"), sample_weight=np.ones(3, "float32"))


def test_weights_of_sentences_are_refused_by_name_in_a_model_too():
    model = keras.Sequential([keras.layers.Embedding(9, 9)])
    model.compile("sgd", LabelSmoothedCrossEntropy())
    words = np.ones((5, 3), "int32")
    with pytest.raises(ValueError, match=r"\(B, T\)"):
        model.fit(words, words, sample_weight=np.ones(5, "float32"), batch_size=2, verbose=0)


def test_is_minus_log_p_of_a_sentence_on_the_average(random):
    """The third row is no sentence."""
    labels = random.integers(0, 9, (3, 5))
    logits = random.normal(size=(3, 5, 9)).astype("float32") * 3
    weights = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]], "float32")
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    sentences = [np.prod([p[b, t, labels[b, t]] for t in range(n)]) for b, n in ((0, 5), (1, 2))]
    found = SentenceCrossEntropy()(labels, logits, sample_weight=weights)
    np.testing.assert_allclose(ops.convert_to_numpy(found), -np.mean(np.log(sentences)), rtol=1e-5)


def test_another_reduction_is_keras_s(random):
    labels, logits = random.integers(1, 9, (2, 5)), random.normal(size=(2, 5, 9)).astype("float32")
    each = -np.take_along_axis(log_softmax(logits, axis=-1), labels[..., None], -1)[..., 0]
    for reduction, expected in (("sum", each.sum()), (None, each)):
        found = SentenceCrossEntropy(reduction=reduction)(labels, logits)
        np.testing.assert_allclose(ops.convert_to_numpy(found), expected, rtol=1e-5)


def test_weights_of_zero_lose_nothing(random):
    labels = random.integers(1, 9, (2, 5))
    logits = random.normal(size=(2, 5, 9)).astype("float32")
    assert float(SentenceCrossEntropy()(labels, logits, np.zeros((2, 5)))) == 0


def test_smoothing_spreads_the_wanted_distribution(random):
    labels = random.integers(1, 9, (2, 5))
    logits = random.normal(size=(2, 5, 9)).astype("float32")
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    wanted = 0.8 * np.eye(9)[labels] + 0.2 / 9
    expected = -(wanted * log_p).sum() / 2
    loss = SentenceCrossEntropy(0.2)
    np.testing.assert_allclose(float(loss(labels, logits)), expected, rtol=1e-5)
    assert SentenceCrossEntropy.from_config(loss.get_config()).get_config() == loss.get_config()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_words_that_the_language_lacks_have_no_part(dtype, smoothing, random):
    labels = random.integers(1, 9, (2, 5))
    logits = ops.cast(random.normal(size=(2, 5, 9)) * 3, dtype)
    padded = ops.concatenate([logits, ops.full((2, 5, 4), never(dtype), dtype)], axis=-1)
    loss = SentenceCrossEntropy(smoothing)
    found, expected = (ops.convert_to_numpy(loss(labels, x)) for x in (padded, logits))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


DRAWS = np.random.default_rng(0)
LOGITS = DRAWS.normal(size=(4, 3, 7)).astype("float32")
LABELS = np.repeat(DRAWS.integers(1, 7, (2, 3)), 2, axis=0)
WEIGHTS = np.repeat([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]], 2, axis=0).astype("float32")


def test_is_half_the_sum_that_the_paper_minimizes():
    """Liang et al. 2021, Eq. 4: both passes' cross-entropy, plus α/2 times both divergences."""
    log_p = log_softmax(LOGITS, axis=-1)
    nll = -np.take_along_axis(log_p, LABELS[..., None], axis=-1)[..., 0]
    p = np.exp(log_p)
    total = 0.0
    for first, second in ((0, 1), (2, 3)):
        for t in range(3):
            both = entropy(p[first, t], p[second, t]) + entropy(p[second, t], p[first, t])
            total += WEIGHTS[first, t] * (nll[first, t] + nll[second, t] + 5.0 / 2 * both)
    found = float(ConsistentCrossEntropy(0.0, 5.0)(LABELS, LOGITS, WEIGHTS))
    assert found == pytest.approx(total / 2 / WEIGHTS[::2].sum(), rel=1e-5)


def test_equal_passes_leave_label_smoothed_cross_entropy():
    twice = np.repeat(LOGITS[::2], 2, axis=0)
    found = ConsistentCrossEntropy(0.1, 5.0)(LABELS, twice, WEIGHTS)
    plain = LabelSmoothedCrossEntropy(0.1)(LABELS, twice, WEIGHTS)
    assert float(found) == pytest.approx(float(plain), rel=1e-6)


@pytest.mark.parametrize("rows", [2, 3])
def test_rows_that_are_no_copies_have_no_divergence(rows):
    labels = np.array([[1, 2, 3], [4, 5, 6], [1, 1, 2]])[:rows]
    found = ConsistentCrossEntropy(0.1, 5.0)(labels, LOGITS[:rows])
    plain = LabelSmoothedCrossEntropy(0.1)(labels, LOGITS[:rows])
    assert float(found) == pytest.approx(float(plain), rel=1e-5)


def test_rows_stand_twice():
    batches = Batches([[5], [6, 7]], [[8, 9], [4]], tokens=6, num_shapes=1)
    inputs, labels, weights = TwiceEachRow(batches)[0]
    once_inputs, once_labels, once_weights = batches[0]
    for twice, once in [(inputs[name], once_inputs[name]) for name in inputs] + [
        (labels, once_labels),
        (weights, once_weights),
    ]:
        np.testing.assert_array_equal(twice[0::2], once)
        np.testing.assert_array_equal(twice[1::2], once)


def test_survives_its_configuration():
    loss = ConsistentCrossEntropy(0.2, 3.0)
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert (again.label_smoothing, again.consistency) == (0.2, 3.0)


WORDS, NEXT = np.array([[1, 2, 3], [4, 5, 0]], "int32"), np.array([[2, 3, 1], [5, 1, 0]], "int32")
PLAIN = "sparse_categorical_crossentropy"


def trained(kind, loss, weights=None) -> tuple[float, np.ndarray]:
    """Return the loss of a small model, and its first weights after a step."""
    keras.utils.set_random_seed(1)
    x = keras.Input((None,), dtype="int32")
    model = kind(x, keras.layers.Dense(6, "softmax")(keras.layers.Embedding(6, 4)(x)))
    model.compile(keras.optimizers.SGD(1.0), loss, jit_compile=False)
    return float(model.train_on_batch(WORDS, NEXT, weights)), model.get_weights()[0]


@pytest.mark.parametrize(
    "loss",
    [
        PLAIN,
        [PLAIN],
        keras.losses.SparseCategoricalCrossentropy(),
        [keras.losses.SparseCategoricalCrossentropy()],
        keras.losses.sparse_categorical_crossentropy,
        LabelSmoothedCrossEntropy(),
    ],
    ids=["name", "names", "object", "objects", "function", "ours"],
)
def test_on_one_device_every_loss_is_what_keras_makes_of_it(loss):
    (loss_, weights), (expected, expected_weights) = (trained(k, loss) for k in (LanguageModel, keras.Model))
    assert loss_ == pytest.approx(expected, rel=1e-6) and loss_ > 0
    np.testing.assert_allclose(weights, expected_weights, atol=1e-6)


def test_weights_count_as_in_keras():
    weights = np.array([[1, 3, 0], [2, 0, 0]], "float32")
    (loss, _), (expected, _), (unweighted, _) = (
        trained(kind, LabelSmoothedCrossEntropy(), given)
        for kind, given in ((LanguageModel, weights), (keras.Model, weights), (LanguageModel, None))
    )
    assert loss == pytest.approx(expected, rel=1e-6)
    assert abs(loss - unweighted) > 1e-4


@pytest.mark.parametrize("label", [-1, 9])
def test_a_label_outside_the_vocabulary_makes_the_loss_nan(label):
    labels = np.array([[1, label], [2, 0]])
    for loss in (LabelSmoothedCrossEntropy(), SentenceCrossEntropy(), ConsistentCrossEntropy()):
        assert math.isnan(float(loss(labels, np.zeros((2, 2, 9), "float32"))))


@pytest.mark.parametrize("kind", [LabelSmoothedCrossEntropy, SentenceCrossEntropy])
def test_labels_stay_whole_where_keras_s_float_type_has_no_257(kind, random):
    labels, logits = np.array([[257, 299]]), random.normal(size=(1, 2, 300)).astype("float32")
    expected, before = float(kind()(labels, logits)), keras.config.floatx()
    keras.config.set_floatx("bfloat16")
    try:
        found = float(kind()(labels, logits))
    finally:
        keras.config.set_floatx(before)
    assert found == pytest.approx(expected, rel=1e-5)
