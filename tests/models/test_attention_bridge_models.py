"""The attention bridge model: its decoding contract, its encoders, its vocabularies, its files."""

import keras
import numpy as np
import pytest
from keras import ops

from kzoo.decoding import BeamSearch
from kzoo.models import AttentionBridgeBackbone, SentenceCrossEntropy
from kzoo.text.vocabulary import END, PAD, START, UNKNOWN

SIZES = [12, 20, 16]
SETTINGS = {"embedding_dim": 6, "width": 8, "num_heads": 3, "hidden_dim": 10, "max_length": 32}


def make(sizes=SIZES, seed=3, scale=3, **settings):
    """Return a model with weights large enough that words matter."""
    keras.utils.set_random_seed(seed)
    model = AttentionBridgeBackbone(sizes, **{**SETTINGS, **settings})
    model.set_weights([w * scale for w in model.get_weights()])
    return model


def test_a_model_has_the_name_that_it_is_given():
    assert make(name="mine").name == "mine"


def batch(source=1, target=2, rows=3):
    """Return sentences of 6, 4 and 5 words in one language, and targets in another."""
    random = np.random.default_rng(5)
    words = random.integers(4, SIZES[source], (rows, 6)).astype("int32")
    words[1, 4:] = words[2, 5:] = PAD
    languages = {"source_language": source, "target_language": target}
    return {
        "source": words,
        "target": random.integers(4, SIZES[target], (rows, 5)).astype("int32"),
        **{name: np.full(rows, number, "int32") for name, number in languages.items()},
    }


@pytest.fixture(scope="module", params=[True, False], ids=["bridge", "plain"])
def model(request):
    return make(bridge=request.param)


@pytest.mark.usefixtures("untraced")
def test_step_by_step_equals_at_once(model):
    inputs = batch()
    at_once = model.predict_on_batch(inputs)
    assert at_once.shape == (3, 5, max(SIZES))
    memory = model.encode({name: words for name, words in inputs.items() if name != "target"})
    state = model.start(memory, beam_size=2, max_length=3)
    for step in range(3):
        tokens = np.repeat(inputs["target"][:, step : step + 1], 2, axis=1)
        logits, state = model.decode_step(tokens, step, memory, state)
        np.testing.assert_allclose(
            ops.convert_to_numpy(logits), at_once[:, [step, step]], rtol=1e-5, atol=1e-4
        )


@pytest.mark.parametrize("model", [True], indirect=True, ids=["bridge"])
def test_greedy_search_is_the_whole_model_called_anew(model):
    """In every pair of languages, by one compiled search."""
    length = 6
    search = BeamSearch(model, beam_size=1, max_length=length)
    search.compile(jit_compile=keras.backend.backend() == "jax")
    for source, target in ((0, 1), (2, 0), (1, 1)):
        inputs = batch(source, target)
        words = np.full((3, length), PAD, "int32")
        words[:, 0] = START
        expected = np.full((3, length), PAD, "int32")
        for step in range(length):
            logits = model.predict_on_batch({**inputs, "target": words})[:, step].copy()
            logits[:, [PAD, UNKNOWN, START]] = -np.inf
            chosen = logits.argmax(-1) if step < length - 1 else np.full(3, END)
            ended = (expected == END).any(1)
            expected[:, step] = np.where(ended, PAD, chosen)
            words[:, step + 1 : step + 2] = expected[:, step : step + 1]
        inputs.pop("target")
        found = search.predict_on_batch(inputs)["tokens"][:, 0]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.usefixtures("untraced")
def test_a_batch_s_padding_changes_nothing(model):
    inputs = batch()
    padded = {**inputs, "source": np.pad(inputs["source"], ((0, 0), (0, 3)))}
    np.testing.assert_allclose(
        model.predict_on_batch(padded), model.predict_on_batch(inputs), rtol=1e-5, atol=1e-4
    )


@pytest.mark.usefixtures("untraced")
def test_sources_and_languages_matter(model):
    inputs = batch(2, 2)
    turned = {**inputs, "source": inputs["source"][[1, 2, 0]]}
    elsewhere = {**inputs, "source_language": np.full(3, 1, "int32")}
    for other in (turned, elsewhere):
        difference = model.predict_on_batch(other) - model.predict_on_batch(inputs)
        assert np.abs(difference[..., : SIZES[2]]).max() > 1e-3


@pytest.mark.usefixtures("untraced")
def test_absent_words_are_never_predicted(model):
    for target, size in enumerate(SIZES):
        logits = model.predict_on_batch(batch(target=target))
        p = ops.convert_to_numpy(ops.softmax(logits))
        assert (p[..., size:] == 0).all()
        np.testing.assert_allclose(p[..., :size].sum(-1), 1, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16"])
def test_absent_words_have_no_part_in_the_loss(dtype):
    """Their outputs do not move, and the loss is that of the words that there are."""
    model = make(SIZES[:2], encoder="cnn", dtype=dtype, scale=1, dropout=0.0)
    model.compile(
        keras.optimizers.SGD(1.0),
        SentenceCrossEntropy(0.1),
        run_eagerly=keras.backend.backend() == "tensorflow",
    )  # one step
    inputs = batch(target=0)
    labels = inputs["target"] = inputs["target"] % SIZES[0]
    output = model.outputs_by_language.layers[0]
    before = output.get_weights()
    expected = SentenceCrossEntropy(0.1)(labels, model.predict_on_batch(inputs)[..., : SIZES[0]])
    model(inputs)
    expected = float(expected) + sum(map(float, model.losses))
    np.testing.assert_allclose(model.train_on_batch(inputs, labels), expected, rtol=2e-3)
    for old, new in zip(before, output.get_weights(), strict=True):
        np.testing.assert_array_equal(new[..., SIZES[0] :], old[..., SIZES[0] :])
        assert not np.array_equal(new[..., : SIZES[0]], old[..., : SIZES[0]])


@pytest.mark.usefixtures("untraced")
def test_a_transformer_reads_as_many_words_as_the_model():
    model = make(encoder="transformer", max_length=300)
    inputs = batch()
    inputs["source"] = np.resize(inputs["source"][0], (3, 300))
    assert model.predict_on_batch(inputs).shape == (3, 5, max(SIZES))


def test_each_language_has_words_of_its_own(model):
    """The same number is another word in another language: another row of the table."""
    table = model.embedding
    for language in range(3):
        words = np.arange(SIZES[language], dtype="int32")[None]
        found = ops.convert_to_numpy(model._embed(table, words, np.array([language], "int32")))[0]
        first = sum(SIZES[:language])
        np.testing.assert_array_equal(found, table.get_weights()[0][first : first + SIZES[language]])


def test_matrix_is_the_bridge_s():
    model, inputs = make(), batch()
    matrix, scores = (ops.convert_to_numpy(x) for x in model.matrix(inputs))
    assert matrix.shape == (3, *model.matrix_shape) == (3, 3, 8)
    np.testing.assert_allclose(scores.sum(-1), 1, rtol=1e-5)
    np.testing.assert_array_equal(scores.transpose(0, 2, 1)[inputs["source"] == PAD], 0)
    with pytest.raises(ValueError, match="matrix"):
        make(bridge=False).matrix(inputs)


@pytest.mark.parametrize("bridge", [True, False])
def test_decoders_begin_with_the_mean_of_what_they_attend_to(bridge):
    model, inputs = make(bridge=bridge), batch()
    inputs.pop("target")
    memory = model.encode(inputs)
    values, mask = (ops.convert_to_numpy(memory["prepared"][name]) for name in ("values", "mask"))
    expected = [rows[words].mean(0) for rows, words in zip(values, mask, strict=True)]
    assert mask.sum() == (9 if bridge else 15)
    for h, c in memory["initial"]:
        np.testing.assert_allclose(ops.convert_to_numpy(h), expected, atol=1e-5)
        np.testing.assert_allclose(ops.convert_to_numpy(c), expected, atol=1e-5)


@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize("encoder", ["gru", "cnn", "transformer"])
def test_other_encoders(encoder):
    """Both languages give finite logits that padding does not change."""
    model = make(SIZES[:2], scale=1, encoder=encoder, num_decoder_layers=1)
    for source in (0, 1):
        inputs = batch(source, 1 - source)
        padded = {**inputs, "source": np.pad(inputs["source"], ((0, 0), (0, 3)))}
        found = model.predict_on_batch(inputs)
        assert np.isfinite(found).all()
        np.testing.assert_allclose(model.predict_on_batch(padded), found, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"encoder": "rnn"}, "gru, cnn"),
        ({"sizes": []}, "vocabulary_sizes"),
        ({"encoder": "lstm", "width": 9}, "width"),
        ({"encoder": "gru", "width": 9}, "width"),
        ({"encoder": "transformer", "width": 12}, "num_heads=8"),
        ({"num_decoder_layers": 0}, "num_decoder_layers"),
        ({"max_length": 0}, "max_length"),
        ({"dropout": 1.0}, "dropout"),
    ],
)
def test_bad_settings_are_named(wrong, name):
    with pytest.raises(ValueError, match=name):
        make(**wrong)


def test_parameter_counts():
    """Counted by hand from Section 2: two BiLSTMs, two LSTMs with input feeding, the bridge's two maps."""
    E, D, k, d_w, V = 6, 8, 3, 10, 20

    def lstm(inputs, units):
        return 4 * units * (inputs + units + 1)

    encoder = 2 * lstm(E, D // 2) + 2 * lstm(D, D // 2)
    decoder = lstm(E + D, D) + lstm(D, D) + D * D + 2 * D * D
    language = encoder + decoder + (D + 1) * V
    assert make().count_params() == 3 * language + sum(SIZES) * E + d_w * D + k * d_w
    assert make(bridge=False).count_params() == 3 * language + sum(SIZES) * E


@pytest.mark.parametrize("model", [True], indirect=True, ids=["bridge"])
def test_the_penalty_is_a_loss_of_the_model(model):
    """The paper adds it without a weight."""
    inputs = batch()
    for penalized, weight in ((model, 1), (make(penalty_weight=2.0), 2)):
        scores = ops.convert_to_numpy(penalized.matrix(inputs)[1])
        expected = np.mean([np.linalg.norm(A @ A.T - np.eye(3)) ** 2 for A in scores])
        penalized(inputs)
        losses = [float(loss) for loss in penalized.losses]
        np.testing.assert_allclose(losses, [weight * expected], rtol=1e-5)


@pytest.mark.usefixtures("untraced")
def test_saved_and_loaded(model, tmp_path):
    inputs = batch()
    expected = model.predict_on_batch(inputs)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    np.testing.assert_array_equal(loaded.predict_on_batch(inputs), expected)
    model.save_weights(tmp_path / "model.weights.h5")
    loaded.set_weights([w * 0 for w in loaded.get_weights()])
    loaded.load_weights(tmp_path / "model.weights.h5")
    for ours, theirs in zip(model.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_mixed_precision_is_near_and_decodes():
    inputs, model = batch(target=0), make(SIZES[:2], scale=1, num_decoder_layers=1)
    half = AttentionBridgeBackbone.from_config({**model.get_config(), "dtype": "mixed_bfloat16"})
    half.set_weights(model.get_weights())
    found = half(inputs)
    assert keras.backend.standardize_dtype(found.dtype) == "bfloat16"
    found, expected = ops.convert_to_numpy(ops.cast(found, "float32")), ops.convert_to_numpy(model(inputs))
    np.testing.assert_allclose(found[..., : SIZES[0]], expected[..., : SIZES[0]], atol=0.1)
    inputs.pop("target")
    search = BeamSearch(half, beam_size=2, max_length=5)
    search.compile(jit_compile=keras.backend.backend() == "jax")
    assert (search.predict_on_batch(inputs)["scores"] > -1e8).all()
