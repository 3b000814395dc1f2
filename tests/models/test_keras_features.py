"""What Keras does with any model it does with a translator: clones, int8, LoRA, frozen layers, files.

The same on every backend, so tested on one.
"""

import inspect
import threading
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest
from keras import ops

from kzoo.errors import UserError
from kzoo.presets import pope_tiny
from kzoo.text import CharacterTokenizer, SubwordTokenizer, train_subwords

SMALL = {"num_layers": 1, "width": 32, "num_heads": 2, "feedforward_dim": 64, "max_length": 40}
SENTENCES = ["A man is sleeping.", "", "A woman in a red coat is sitting on the beach.", "Two dogs."]


@pytest.fixture(scope="module")
def translator():
    """A model that has learned nothing, with weights large enough that words matter."""
    keras.utils.set_random_seed(1)
    tokenizer, random = SubwordTokenizer(train_subwords(SENTENCES * 20, 60)), np.random.default_rng(1)
    model = pope_tiny(tokenizer, **SMALL)
    model.set_weights([w + random.normal(size=w.shape) * 0.1 for w in model.get_weights()])
    return model


def test_what_keras_exports_in_other_ways_is_refused(translator, tmp_path):
    with pytest.raises(UserError, match="saved_model.*'onnx'"):
        translator.export(tmp_path / "model", "onnx")
    with pytest.raises(UserError, match="input_signature"):
        translator.export(tmp_path / "model", input_signature=[keras.InputSpec(shape=(None, 4))])
    keras_own = list(inspect.signature(keras.Model.export).parameters)[:-1]  # without **kwargs
    assert list(inspect.signature(type(translator).export).parameters)[: len(keras_own)] == keras_own


def test_a_copy_made_from_the_configuration_says_what_it_lacks(translator, tmp_path):
    characters = pope_tiny(CharacterTokenizer(list("abcdef")), **SMALL)
    for copy in map(keras.models.clone_model, (translator, characters)):
        with pytest.raises(UserError, match="vocabulary"):
            copy.translate(["A man."])
        with pytest.raises(UserError, match="vocabulary"):
            copy.save_to_preset(tmp_path)
    with pytest.raises(UserError, match="vocabulary"):
        keras.models.clone_model(translator).save(tmp_path / "copy.keras")


@pytest.mark.filterwarnings("ignore:.*does not have a `quantize` method")
@pytest.mark.parametrize(
    "positions", [{}, {"position_options": {"per_head": True}}], ids=["added", "per head"]
)
def test_quantized_without_having_been_called(positions, translator):
    tokenizers = SubwordTokenizer(translator.source_tokenizer.proto), CharacterTokenizer(list("abcdef"))
    exact, quantized = (pope_tiny(*tokenizers, **positions, **SMALL) for _ in range(2))
    quantized.set_weights(exact.get_weights())
    quantized.quantize("int8")
    assert "int8" in {weight.dtype for weight in quantized.weights}
    words = {"source": np.array([[5, 6, 3]]), "target": np.array([[2, 4]])}
    logits = [ops.convert_to_numpy(model(words)).ravel() for model in (exact, quantized)]
    assert np.corrcoef(*logits)[0, 1] > 0.99


@pytest.mark.filterwarnings("ignore:.*does not have a `quantize` method")
def test_quantized_after_having_translated(translator, tmp_path):
    """What was compiled before must not be used with weights that are gone."""
    texts, models = ["A man sees a dog."], [pope_tiny(translator.source_tokenizer, **SMALL) for _ in range(2)]
    models[1].set_weights(models[0].get_weights())
    exact = models[0].n_best(texts, beam_size=2, n=2)[0]
    exact_attention = models[0].attention(texts[0], "Ein Hund.")[2]
    for model in models:
        model.quantize("int8")
    used, fresh = (
        [
            *(found.score for found in model.n_best(texts, beam_size=2, n=2)[0]),
            *model.attention(texts[0], "Ein Hund.")[2].ravel(),
        ]
        for model in models
    )
    np.testing.assert_allclose(used, fresh, atol=1e-6)
    assert np.abs(used[:2] - np.array([found.score for found in exact])).max() > 1e-5
    assert np.abs(used[2:] - exact_attention.ravel()).max() > 1e-5
    with pytest.raises(UserError, match="save"):
        models[0].save_to_preset(tmp_path / "preset")
    assert not (tmp_path / "preset").exists()


@pytest.mark.filterwarnings("ignore:.*does not have a `quantize` method")
@pytest.mark.parametrize("mode", ["int8", "int4"])
def test_a_quantized_translator_is_loaded_as_it_was_saved(mode, translator, tmp_path):
    model = pope_tiny(translator.source_tokenizer, **SMALL)
    model.set_weights(translator.get_weights())
    model.quantize(mode)
    model.save(tmp_path / "model.keras")
    words = {"source": np.array([[5, 6, 3]]), "target": np.array([[2, 4]])}
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(*(ops.convert_to_numpy(each(words)) for each in (loaded, model)))


def test_several_threads_may_call_a_translator(translator, tmp_path):
    """On JAX, Keras donates the weights during a call; and progress is reported in the caller's thread."""
    expected = translator.translate(SENTENCES, beam_size=1, max_length=6)
    reported = []

    def both(_):
        own = threading.get_ident()
        translator.attention(SENTENCES[0], "Two dogs.")
        return translator.translate(
            SENTENCES,
            beam_size=1,
            max_length=6,
            progress=lambda _: reported.append(threading.get_ident() == own),
        )

    with ThreadPoolExecutor(4) as pool:
        found = pool.map(both, range(12))
        for _ in range(3):
            translator.save(tmp_path / "translator.keras")
            translator.save_weights(tmp_path / "translator.weights.h5")
        assert list(found) == [expected] * 12
    assert all(reported) and len(reported) >= 12


def test_an_input_that_the_model_does_not_read_is_named(translator):
    words = {"source": np.array([[5, 6, 3]]), "target": np.array([[2, 4]])}
    with pytest.raises(ValueError, match="alignment"):
        translator({**words, "alignment": words["target"]})


def test_frozen_layers_stay_frozen(translator, tmp_path):
    """In a saved file, whose optimizer has state for the others alone, and in a clone."""
    model = pope_tiny(translator.source_tokenizer, **SMALL)
    model.backbone.encoder_layers[0].trainable = False
    model.backbone.decoder_layers[0].trainable = False
    model.backbone.decoder_layers[0].feedforward.trainable = True
    model.compile("adam", model.loss)
    inputs = {"source": np.array([[5, 6, 3]], "int32"), "target": np.array([[2, 7]], "int32")}
    model.train_on_batch(inputs, np.array([[7, 3]], "int32"))
    learning = [weight.path for weight in model.trainable_weights]
    assert 0 < len(learning) < len(model.weights)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for other in (loaded, keras.models.clone_model(model)):
        assert [weight.path for weight in other.trainable_weights] == learning
    assert not loaded.backbone.encoder_layers[0].trainable
    for ours, theirs in zip(model.optimizer.variables, loaded.optimizer.variables, strict=True):
        np.testing.assert_array_equal(ops.convert_to_numpy(theirs), ops.convert_to_numpy(ours))


def test_lora_adapts_the_maps_of_all_layers(translator, tmp_path):
    model = pope_tiny(translator.source_tokenizer, **SMALL)
    model.set_weights(translator.get_weights())
    texts = SENTENCES[:1]  # one shape to compile
    expected = model.translate(texts, beam_size=2)
    model.backbone.enable_lora(2)
    assert model.translate(texts, beam_size=2) == expected  # it begins with zeros
    fixed = [weight.path for weight in model.non_trainable_weights]
    model.compile(keras.optimizers.SGD(1.0), model.loss)
    before = {weight.path: ops.convert_to_numpy(weight) for weight in model.weights}
    inputs = {"source": np.array([[5, 6, 3]], "int32"), "target": np.array([[2, 7]], "int32")}
    for _ in range(2):  # at first one of the two factors is zero
        model.train_on_batch(inputs, np.array([[7, 3]], "int32"))
    moved = {w.path for w in model.weights if (ops.convert_to_numpy(w) != before[w.path]).any()}
    assert moved and not moved & set(fixed)
    assert {path.split("/")[-1] for path in moved} == {"lora_kernel_a", "lora_kernel_b", "bias"}
    kernels = {path.rpartition("/")[0] for path in before if path.endswith("/kernel")}
    assert {path.rpartition("/")[0] for path in moved if path.endswith("lora_kernel_b")} == kernels
    logits = ops.convert_to_numpy(model(inputs))
    model.save_weights(tmp_path / "best.weights.h5")
    model.load_weights(tmp_path / "best.weights.h5")
    np.testing.assert_allclose(ops.convert_to_numpy(model(inputs)), logits, atol=1e-4)
    model.train_on_batch(inputs, np.array([[7, 3]], "int32"))
    factors = [w for w in model.trainable_weights if w.name == "lora_kernel_b"]
    assert all(ops.convert_to_numpy(w).any() for w in factors)  # they learn, though Keras loads zeros
    model.save(tmp_path / "model.keras")  # the factors' product is added to the kernels
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        ops.convert_to_numpy(loaded(inputs)), ops.convert_to_numpy(model(inputs)), atol=1e-4
    )
    loaded.save_to_preset(tmp_path / "preset")


def test_predict_gives_logits(translator):
    inputs = {"source": np.array([[5, 6, 3]], "int32"), "target": np.array([[2, 7]], "int32")}
    np.testing.assert_allclose(
        translator.predict(inputs, verbose=0), ops.convert_to_numpy(translator(inputs)), atol=1e-4
    )
