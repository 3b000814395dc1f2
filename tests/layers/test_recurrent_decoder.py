"""The recurrent decoder against NumPy written from Luong's equations, and its steps against the whole."""

import keras
import numpy as np
import pytest
from check_layer import check_layer
from keras import ops
from test_recurrent_encoder import lstm_cell

from kzoo.layers import RecurrentDecoder

UNITS = (3, 5)
MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], bool)


def decoded(target, memory, initial, weights, kept=()):
    """Return a_t at each word of one sentence (Luong et al. 2015, Eq. 5 and 7, Section 3.3).

    Args:
        target: `(T, E)`. Words.
        memory: `(n, d)`. What is attended to, without padding.
        initial: pairs of h and c.
        weights: those of the LSTMs, three each, then W_a and W_c, transposed as Keras has them.
        kept: dropout's factors `(T, units)`: of the features between one LSTM and the next; perhaps of a_t.
    """
    *cells, keys, combine = weights
    a, found, pairs = np.zeros(combine.shape[1]), [], list(initial)
    for t, word in enumerate(target):
        h = np.concatenate([word, a])
        for i, (h_i, c_i) in enumerate(pairs):
            pairs[i] = lstm_cell(h, h_i, c_i, cells[3 * i : 3 * i + 3])
            h = pairs[i][0] * kept[i][t] if kept and i < len(initial) - 1 else pairs[i][0]
        scores = np.array([h @ (m @ keys) for m in memory])
        weights = np.exp(scores) / np.exp(scores).sum()
        a = np.tanh(np.concatenate([weights @ memory, h]) @ combine)
        a = a * kept[-1][t] if len(kept) == len(initial) else a
        found.append(a)
    return np.array(found)


def made(random, **settings):
    """Return a decoder with random weights, and its inputs."""
    layer = RecurrentDecoder(UNITS, **settings)
    layer.build((2, 6, 4), (2, 4, 7))
    for weight in layer.trainable_weights:  # not dropout's state
        weight.assign(random.normal(size=weight.shape))
    target, memory = random.normal(size=(2, 6, 4)), random.normal(size=(2, 4, 7))
    initial = [tuple(random.normal(size=(2, units)).astype("float32") for _ in "hc") for units in UNITS]
    return layer, target.astype("float32"), memory.astype("float32"), initial


def test_equals_luong_s_equations(random):
    layer, target, memory, initial = made(random)
    found = ops.convert_to_numpy(layer(target, memory, initial, memory_mask=MASK))
    for b in range(2):
        first = [(h[b], c[b]) for h, c in initial]
        expected = decoded(target[b], memory[b, MASK[b]], first, layer.get_weights())
        np.testing.assert_allclose(found[b], expected, atol=1e-5)
    everything = ops.convert_to_numpy(layer(target, memory, initial))
    np.testing.assert_allclose(everything[0], found[0], atol=1e-6)
    assert np.abs(everything[1] - found[1]).max() > 1e-3


def test_training_drops_the_same_features_at_all_tokens(random):
    layer, target, memory, initial = made(random, dropout=0.5)
    calm = ops.convert_to_numpy(layer(target, memory, initial))
    np.testing.assert_array_equal(ops.convert_to_numpy(layer(target, memory, initial, training=False)), calm)
    (dropout,), kept = layer._dropouts, []
    dropout.call = lambda x, training, call=dropout.call: kept.append(call(x, training)) or kept[-1]
    found = ops.convert_to_numpy(layer(target, memory, initial, training=True))
    (factors,) = (ops.convert_to_numpy(part)[:, 0] for part in kept)  # (B, units)
    assert factors.shape == (2, UNITS[0]) and set(factors.ravel()) == {0, 2}
    for b in range(2):
        first = [(h[b], c[b]) for h, c in initial]
        expected = decoded(target[b], memory[b], first, layer.get_weights(), [[factors[b]] * len(target[b])])
        np.testing.assert_allclose(found[b], expected, atol=1e-5)


def test_given_factors_drop_between_lstms_and_what_is_fed_back(random):
    """Others at every token; the attentional vectors are dropped before the next token reads them."""
    layer, target, memory, initial = made(random)
    kept = [2.0 * random.integers(0, 2, (2, 6, units)).astype("float32") for units in UNITS]
    found = ops.convert_to_numpy(layer(target, memory, initial, memory_mask=MASK, kept=kept))
    for b in range(2):
        first, factors = [(h[b], c[b]) for h, c in initial], [part[b] for part in kept]
        expected = decoded(target[b], memory[b, MASK[b]], first, layer.get_weights(), factors)
        np.testing.assert_allclose(found[b], expected, atol=1e-5)


def test_given_factors_work_for_every_length_in_one_compiled_model(random):
    layer, h = RecurrentDecoder(UNITS), [keras.Input((units,)) for units in UNITS]
    inputs = [keras.Input((None, 4)), *(keras.Input((None, units)) for units in UNITS)]
    memory = keras.Input((3, 6))
    outputs = layer(inputs[0], memory, [(part, part) for part in h], kept=inputs[1:])
    model = keras.Model([*inputs, memory, *h], outputs)
    for length in (5, 6):
        target, *kept = (random.normal(size=(2, length, n)).astype("float32") for n in (4, *UNITS))
        rest = [
            random.normal(size=shape).astype("float32") for shape in ((2, 3, 6), *((2, n) for n in UNITS))
        ]
        expected = layer(target, rest[0], [(part, part) for part in rest[1:]], kept=kept)
        found = model.predict_on_batch([target, *kept, *rest])
        np.testing.assert_allclose(found, ops.convert_to_numpy(expected), atol=1e-5)


def test_step_by_step_equals_at_once(random):
    """Two hypotheses a sentence: the target, and the same with other words from the third on."""
    layer, target, memory, initial = made(random)
    other = target.copy()
    other[:, 2:] += 1
    whole = [ops.convert_to_numpy(layer(x, memory, initial, memory_mask=MASK)) for x in (target, other)]
    prepared = layer.prepare(memory, MASK)
    state = layer.start(initial, beam_size=2)
    for t in range(6):
        words = np.stack([target[:, t], other[:, t]], axis=1)
        found, state = layer.step(words, prepared, state)
        expected = np.stack([x[:, t] for x in whole], axis=1)
        np.testing.assert_allclose(ops.convert_to_numpy(found), expected, atol=1e-5)


def test_a_quantized_decoder_reads_a_whole_target_as_before_but_for_rounding(random):
    layer, target, memory, initial = made(random)
    exact = ops.convert_to_numpy(layer(target, memory, initial, memory_mask=MASK))
    layer.combine.quantize("int8")
    found = ops.convert_to_numpy(layer(target, memory, initial, memory_mask=MASK))
    assert 0 < np.abs(found - exact).max() < 0.05


class Steps(RecurrentDecoder):
    """A decoder that reads a target of six tokens by `step`, so that Keras's backend differentiates it."""

    def call(self, inputs, memory, initial, memory_mask=None, training=None, kept=()):
        prepared, state, found = self.prepare(memory, memory_mask), self.start(initial), []
        for t in range(6):
            at = slice(t, t + 1)
            a, state = self.step(inputs[:, at], prepared, state, [factors[:, at] for factors in kept])
            found.append(a)
        return ops.concatenate(found, axis=1)


@pytest.mark.parametrize("given", [0, 1, 2])
@pytest.mark.parametrize("units", [(5,), UNITS])
def test_the_gradient_is_the_backend_s_through_all_steps(units, given, random):
    """Of each weight and each input; after one step of gradient descent on the same numbers."""
    kept = [random.choice([0.0, 0.5, 2.0], (2, 6, n)).astype("float32") for n in units][:given]
    arrays = [random.normal(size=(2, n, 3)).astype("float32") for n in (6, 4)] + [MASK, *kept]
    goal, moved = random.normal(size=(2, 6, units[-1])), []
    for kind in (RecurrentDecoder, Steps):
        keras.utils.set_random_seed(1)
        inputs = [keras.Input(x.shape[1:], dtype=str(x.dtype)) for x in arrays]
        target, memory = keras.layers.Dense(4)(inputs[0]), keras.layers.Dense(7)(inputs[1])
        initial = [tuple(keras.layers.Dense(n)(memory[:, 0]) for _ in "hc") for n in units]
        outputs = kind(units)(target, memory, initial, memory_mask=inputs[2], kept=inputs[3:])
        model = keras.Model(inputs, outputs)
        model.compile(keras.optimizers.SGD(1.0), "mse", jit_compile=False)
        before = model.get_weights()
        model.train_on_batch(arrays, goal)
        moved.append([new - old for new, old in zip(model.get_weights(), before, strict=True)])
    for found, expected in zip(*moved, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_steps_compute_in_the_layer_s_precision(random):
    layer, target, memory, initial = made(random, dtype="mixed_bfloat16")
    prepared = layer.prepare(memory, MASK)
    found, state = layer.step(target[:, :1], prepared, layer.start(initial))
    computed = (prepared["keys"], prepared["values"], found, state["fed_back"])
    assert {keras.backend.standardize_dtype(x.dtype) for x in computed} == {"bfloat16"}


@keras.saving.register_keras_serializable("kzoo_tests")
class FromMean(RecurrentDecoder):
    """A decoder that begins with the memory's mean, so that all its inputs are arrays."""

    def call(self, inputs, memory, initial=None):
        mean = ops.mean(memory, axis=1)
        return super().call(inputs, memory, [(mean, mean)] * len(self.units))


def test_behaves_as_a_layer(random, tmp_path):
    target, memory = (random.normal(size=(2, n, 4)).astype("float32") for n in (6, 3))
    check_layer(FromMean((4, 4)), {"inputs": target, "memory": memory}, tmp_path)


def test_the_masks_of_embeddings_hold(random):
    """Of the memory, whose padding is not attended to; of the target, which goes on to what averages."""
    memory, target = np.array([[3, 1, 4], [5, 2, 0]], "int32"), np.array([[6, 7], [8, 0]], "int32")
    embedding = keras.layers.Embedding(9, 4, mask_zero=True, embeddings_initializer="normal")
    zeros, layer = np.zeros((2, 4), "float32"), RecurrentDecoder((4,))
    found = layer(embedding(target), embedding(memory), [(zeros, zeros)])
    plain = [ops.convert_to_numpy(embedding(ids)) for ids in (target, memory)]
    short = ops.convert_to_numpy(layer(plain[0][1:], plain[1][1:, :2], [(zeros[1:], zeros[1:])]))
    np.testing.assert_allclose(ops.convert_to_numpy(found)[1:], short, atol=1e-5)
    pooled = keras.layers.GlobalAveragePooling1D()(found)
    np.testing.assert_allclose(ops.convert_to_numpy(pooled)[1:], short[:, 0], atol=1e-5)
