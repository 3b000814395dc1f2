"""The random field against brute force over all sequences of tags."""

import itertools
import warnings

import keras
import numpy as np
import pytest
from keras import ops
from scipy.special import log_softmax, logsumexp

from kzoo.layers import LinearChainCRF

LENGTHS = (4, 1, 3)
MASK = np.arange(4) < np.array(LENGTHS)[:, None]


@pytest.fixture
def crf(random):
    crf = LinearChainCRF(3)
    crf.set_weights([random.normal(size=w.shape) for w in crf.get_weights()])
    return crf


@pytest.fixture
def potentials(random):
    return (random.normal(size=(3, 4, 3)) * 2).astype("float32")


def all_scores(crf, potentials):
    """Return the score of every sequence of tags of one sentence, from the definition."""
    transitions, start, end = crf.get_weights()
    scores = {}
    for tags in itertools.product(range(crf.num_tags), repeat=len(potentials)):
        score = start[tags[0]] + end[tags[-1]] + sum(p[tag] for p, tag in zip(potentials, tags, strict=True))
        scores[tags] = score + sum(transitions[a, b] for a, b in itertools.pairwise(tags))
    return scores


def test_likelihood_equals_brute_force(crf, potentials, random):
    tags = random.integers(0, 3, (3, 4))
    loss = ops.convert_to_numpy(crf.negative_log_likelihood(potentials, tags, MASK))
    for row, length in enumerate(LENGTHS):
        scores = all_scores(crf, potentials[row, :length])
        expected = logsumexp(list(scores.values())) - scores[tuple(tags[row, :length])]
        np.testing.assert_allclose(loss[row], expected, rtol=1e-5, atol=1e-5)


def test_probabilities_sum_to_one(crf, potentials):
    tags = np.array(list(itertools.product(range(3), repeat=4)))
    same = np.repeat(potentials[:1], len(tags), axis=0)
    loss = ops.convert_to_numpy(crf.negative_log_likelihood(same, tags))
    np.testing.assert_allclose(np.exp(-loss).sum(), 1, rtol=1e-5)


def test_viterbi_equals_brute_force(crf, random):
    for _ in range(5):
        potentials = random.normal(size=(3, 4, 3)).astype("float32")
        tags = ops.convert_to_numpy(crf(potentials, mask=MASK))
        for row, length in enumerate(LENGTHS):
            scores = all_scores(crf, potentials[row, :length])
            assert tuple(tags[row, :length]) == max(scores, key=scores.get)
            assert not tags[row, length:].any()


def test_padding_changes_nothing(crf, potentials, random):
    tags = random.integers(0, 3, (3, 4))
    noise = np.where(MASK[..., None], 0, 7).astype("float32")
    noisy = crf.negative_log_likelihood(potentials + noise, np.where(MASK, tags, 7), MASK)  # no tag at all
    loss = crf.negative_log_likelihood(potentials, np.where(MASK, tags, 0), MASK)
    np.testing.assert_allclose(ops.convert_to_numpy(noisy), ops.convert_to_numpy(loss), atol=1e-5)
    empty = np.zeros((3, 4), bool)
    assert not np.any(ops.convert_to_numpy(crf.negative_log_likelihood(potentials, tags, empty)))
    assert not np.any(ops.convert_to_numpy(crf(potentials, mask=empty)))


def test_one_place(crf, potentials):
    transitions, start, end = crf.get_weights()
    scores = start + potentials[:, 0] + end
    np.testing.assert_array_equal(ops.convert_to_numpy(crf(potentials[:, :1]))[:, 0], scores.argmax(axis=-1))
    loss = ops.convert_to_numpy(crf.negative_log_likelihood(potentials[:, :1], np.zeros((3, 1), int)))
    np.testing.assert_allclose(loss, logsumexp(scores, axis=-1) - scores[:, 0], rtol=1e-5)


def test_says_the_shape_of_tags(crf):
    assert crf.compute_output_shape((2, 5, 3)) == (2, 5)


def test_compiled_for_any_length(crf, random):
    symbols = keras.Input((None, 3)), keras.Input((None,), dtype="bool")
    model = keras.Model(symbols, crf(symbols[0], mask=symbols[1]))
    for length in (4, 6, 9):  # from the second on, compiled with an unknown length
        potentials = random.normal(size=(2, length, 3)).astype("float32")
        mask = np.arange(length) < np.array([[length], [3]])
        expected = ops.convert_to_numpy(crf(potentials, mask=mask))
        np.testing.assert_array_equal(model.predict_on_batch((potentials, mask)), expected)


def test_a_mask_carried_by_the_potentials_is_the_mask(crf, potentials):
    padded = potentials * MASK[..., None]
    masked = keras.layers.Masking()(padded)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # Keras's, if the tags do not carry the mask on
        carried = crf(masked)
    np.testing.assert_array_equal(ops.convert_to_numpy(carried), ops.convert_to_numpy(crf(padded, mask=MASK)))
    assert (ops.convert_to_numpy(crf(padded)) != ops.convert_to_numpy(carried)).any()


def test_a_saved_model_gives_the_same_tags(crf, potentials, tmp_path):
    symbols = keras.Input((4, 3)), keras.Input((4,), dtype="bool")
    keras.Model(symbols, crf(symbols[0], mask=symbols[1])).save(tmp_path / "crf.keras")
    found = keras.saving.load_model(tmp_path / "crf.keras")([potentials, MASK])
    np.testing.assert_array_equal(
        ops.convert_to_numpy(found), ops.convert_to_numpy(crf(potentials, mask=MASK))
    )


def test_half_precision_computes_in_single(crf, potentials, random):
    """Sums over a sentence are in float32 whatever the policy: rounded potentials lose nothing more."""
    half, tags = LinearChainCRF(3, dtype="mixed_bfloat16"), random.integers(0, 3, (3, 4))
    half.set_weights(crf.get_weights())
    rounded = ops.cast(potentials, "bfloat16")
    single = ops.convert_to_numpy(ops.cast(rounded, "float32"))
    np.testing.assert_allclose(
        ops.convert_to_numpy(half.negative_log_likelihood(rounded, tags, MASK)),
        ops.convert_to_numpy(crf.negative_log_likelihood(single, tags, MASK)),
        rtol=1e-6,
    )
    np.testing.assert_array_equal(
        ops.convert_to_numpy(half(rounded, mask=MASK)), ops.convert_to_numpy(crf(single, mask=MASK))
    )


def test_potentials_in_single_precision_stay_so():
    """2,048 and 2,049 are one number in float16."""
    potentials = np.tile(np.array([2048, 2049], "float32"), (1, 2, 1))
    found = LinearChainCRF(2, dtype="mixed_float16")(potentials)
    np.testing.assert_array_equal(ops.convert_to_numpy(found), [[1, 1]])


@keras.saving.register_keras_serializable("kzoo_tests")
class Likelihood(LinearChainCRF):
    """Returns the likelihoods of tags all 0, which a loss can be made of."""

    def call(self, potentials):
        return self.negative_log_likelihood(potentials, ops.zeros_like(potentials[..., 0], dtype="int32"))

    def compute_output_spec(self, potentials):
        return keras.KerasTensor(potentials.shape[:1])


def test_gradients_are_expected_minus_true_counts(potentials):
    """Of -log p: how often tags begin, follow one another and end in expectation, less how often they do."""
    crf = Likelihood(3)
    model = keras.Sequential([keras.Input((4, 3)), crf])
    xla = keras.backend.backend() != "torch"  # on TensorFlow, the layer declines it
    model.compile(keras.optimizers.SGD(1.0), lambda true, found: ops.sum(found), jit_compile=xla)
    model.train_on_batch(potentials[:1], np.zeros(1, "float32"))
    counts = [np.zeros((3, 3)), np.zeros(3), np.zeros(3)]
    sequences = list(itertools.product(range(3), repeat=4))
    scores = np.array([sum(p[tag] for p, tag in zip(potentials[0], tags, strict=True)) for tags in sequences])
    shares = dict(zip(sequences, np.exp(scores - logsumexp(scores)), strict=True))
    shares[0, 0, 0, 0] -= 1
    for tags, share in shares.items():
        counts[1][tags[0]] += share
        counts[2][tags[-1]] += share
        for pair in itertools.pairwise(tags):
            counts[0][pair] += share
    for moved, count in zip(crf.get_weights(), counts, strict=True):
        np.testing.assert_allclose(moved, -count, atol=1e-5)


def test_a_configuration_and_weights_make_it_again(crf, potentials):
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(crf))
    again.set_weights(crf.get_weights())
    np.testing.assert_array_equal(again(potentials), crf(potentials))
    assert again.get_config() == crf.get_config()
    assert crf(keras.KerasTensor((None, 7, 3))).shape == (None, 7)


def test_the_loss_may_come_before_the_first_call(potentials):
    crf = LinearChainCRF(3)
    loss = crf.negative_log_likelihood(potentials, np.zeros((3, 4), "int32"), MASK)
    np.testing.assert_allclose(
        ops.convert_to_numpy(loss),
        [-log_softmax(row[:length], -1)[:, 0].sum() for row, length in zip(potentials, LENGTHS, strict=True)],
        rtol=1e-5,
    )  # its transitions are zero: tags are independent
