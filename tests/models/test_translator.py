"""The translator: text in, text out, fit and evaluate as any Keras model."""

import inspect
import subprocess
import sys

import h5py
import keras
import numpy as np
import pytest
from keras import ops

from kzoo.data import Batches, open_corpus
from kzoo.decoding import GNMT, SearchSettings
from kzoo.errors import UserError
from kzoo.models import Adam, LabelSmoothedCrossEntropy, NoamSchedule
from kzoo.presets import load, pope_tiny
from kzoo.text import CharacterTokenizer, SubwordTokenizer, train_subwords

SMALL = {"num_layers": 1, "width": 32, "num_heads": 2, "feedforward_dim": 64, "max_length": 40}


@pytest.fixture(scope="module")
def trained():
    """A small translator after a little training on Scenes: bad, but not random."""
    keras.utils.set_random_seed(1)
    pairs = zip(*open_corpus("scenes").pairs("train", "en", "de"), strict=True)
    english, german = zip(*[pair for pair in pairs if max(map(len, pair)) < 60][:1500], strict=True)
    tokenizer = SubwordTokenizer(train_subwords(english + german, 500))
    translator = pope_tiny(tokenizer, **SMALL)
    translator.source_language, translator.target_language = "en", "de"
    optimizer = Adam(NoamSchedule(32, 50, 0.5), beta_2=0.98, epsilon=1e-9)
    translator.compile(optimizer, loss=LabelSmoothedCrossEntropy())
    batches = Batches(tokenizer(english), tokenizer(german), tokens=1024, num_shapes=1)
    before = translator.evaluate(batches, verbose=0)
    translator.fit(batches, epochs=2, shuffle=False, verbose=0)
    assert translator.evaluate(batches, verbose=0) < before - 1
    return translator


SENTENCES = ["A man is sleeping.", "", "A woman in a red coat is sitting on the beach.", "Two dogs."]


def test_translations_come_in_order_and_empty_stays_empty(trained):
    together = trained.translate(SENTENCES)
    assert together[1] == ""
    assert all(together[i] for i in (0, 2, 3))
    assert together == [trained.translate([sentence])[0] for sentence in SENTENCES]
    assert trained.translate([]) == []


def test_translation_is_the_contract_s_greedy_search(trained):
    """Against the whole model called anew on the growing target."""
    tokenizer = trained.source_tokenizer
    source = np.array([[*tokenizer([SENTENCES[2]])[0], 3]], "int32")
    words = [2]
    while words[-1] != 3 and len(words) < 40:  # the fortieth must end
        target = np.array([words + [0] * (40 - len(words))], "int32")  # of one shape, compiled once
        logits = ops.convert_to_numpy(trained({"source": source, "target": target}))[0, len(words) - 1].copy()
        logits[[0, 2]] = -np.inf
        words.append(int(logits.argmax()))
    expected = tokenizer.detokenize([w for w in words if w > 3])
    assert trained.translate([SENTENCES[2]], beam_size=1, max_length=40) == [expected]


def test_without_weights_padding_does_not_count(random):
    """Neither in the loss nor in metrics, against NumPy."""
    translator = pope_tiny(source_vocabulary_size=20, **SMALL, dropout=0.0)
    translator.set_weights([w + random.normal(size=w.shape) * 0.3 for w in translator.get_weights()])
    optimizer = keras.optimizers.SGD(0.0)
    translator.compile(optimizer, LabelSmoothedCrossEntropy(0.0), weighted_metrics=["accuracy"])
    inputs, labels, weights = Batches([[5, 6, 7], [8]], [[9], [7, 6, 5, 4]], tokens=12, num_shapes=1)[0]
    logits = ops.convert_to_numpy(translator(inputs))
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    lost = -np.take_along_axis(log_p, labels[..., None], -1)[..., 0]
    assert abs(lost.mean() - (lost * weights).sum() / weights.sum()) > 0.5
    loss, accuracy = translator.evaluate(inputs, labels, verbose=0)
    assert loss == pytest.approx((lost * weights).sum() / weights.sum(), rel=1e-5)
    assert accuracy == pytest.approx(((logits.argmax(-1) == labels) * weights).sum() / weights.sum())
    assert translator.fit(inputs, labels, verbose=0).history["loss"] == [pytest.approx(loss, rel=1e-5)]


def test_n_best_is_sorted_and_begins_with_the_translation(trained):
    hypotheses = trained.n_best([SENTENCES[2]], n=3, beam_size=4)[0]
    scores = [h.score for h in hypotheses]
    assert len(hypotheses) == 3
    assert scores == sorted(scores, reverse=True)
    assert trained.translate([SENTENCES[2]], beam_size=4) == [hypotheses[0].text]


def test_the_length_penalty_favours_short_or_long_translations(trained):
    short, long = (trained.translate([SENTENCES[2]], length_penalty=alpha)[0] for alpha in (-2, 2))
    assert len(short) < len(long)


def test_what_a_call_leaves_out_is_the_translator_s_own(trained, tmp_path):
    other = SearchSettings(2, GNMT(-2.0), 6)
    expected = trained.n_best(SENTENCES, beam_size=2, length_penalty=GNMT(-2.0), max_length=6)
    assert expected != trained.n_best(SENTENCES, 2)
    model = pope_tiny(trained.source_tokenizer, **SMALL)
    model.set_weights(trained.get_weights())
    model.search = other
    assert model.n_best(SENTENCES) == expected
    assert model.translate(SENTENCES) == [best[0].text for best in expected]
    assert model.n_best(SENTENCES, beam_size=5, length_penalty=1, max_length=40) == trained.n_best(
        SENTENCES, max_length=40
    )
    model.save(tmp_path / "model.keras")
    assert keras.saving.load_model(tmp_path / "model.keras").search == other
    assert keras.models.clone_model(model).search == other


def test_progress_counts_the_sentences_that_are_searched(trained):
    counted = []
    trained.translate(SENTENCES, progress=counted.append)
    assert sum(counted) == 3  # an empty one is not searched


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n": 0}, "n must be a whole number of at least 1, not 0"),
        ({"n": 6}, "6 best translations need a beam_size of at least 6, not 5"),
        ({"beam_size": 2.0}, "beam_size must be a whole number of at least 1, not 2.0"),
        ({"beam_size": "5"}, "beam_size must be a whole number of at least 1, not '5'"),
        ({"max_length": 0}, "max_length must be a whole number of at least 1, not 0"),
        ({"max_length": 3.5}, "max_length must be a whole number of at least 1, not 3.5"),
        ({"threads": 0}, "threads must be a whole number of at least 1, not 0"),
        ({"length_penalty": "x"}, "length_penalty must be a finite number, or a function .*, not 'x'"),
        ({"length_penalty": np.nan}, "length_penalty must be a finite number, or a function .*, not nan"),
    ],
)
def test_a_wrong_argument_of_the_search_is_named(trained, wrong, message):
    with pytest.raises(UserError, match=message):
        trained.n_best(["A man."], **wrong)


def test_what_is_no_text_is_named(trained):
    with pytest.raises(UserError, match="a sentence must be a str, not int: 3"):
        trained.translate([3])
    with pytest.raises(UserError, match="a sentence must be a str, not list"):
        trained.attention(["A dog."])
    with pytest.raises(UserError, match="sentence 2 is not text: it has half of a surrogate pair"):
        trained.translate(["A dog.", "A \ud800 dog."])


SEVERAL = ["A man is sleeping. Two dogs.", SENTENCES[2], "", "A man.\nA dog. A man."]


def test_several_sentences_are_translated_one_by_one_and_joined(trained):
    dogs, man, dog = (trained.translate([text])[0] for text in ("Two dogs.", "A man.", "A dog."))
    sleeping, coat = trained.translate([SENTENCES[0], SENTENCES[2]])
    expected = [f"{sleeping} {dogs}", coat, "", f"{man}\n{dog} {man}"]
    assert trained.translate(SEVERAL, split_sentences=True) == expected
    first, second = (trained.n_best([text], n=2)[0] for text in (SENTENCES[0], "Two dogs."))
    joined = trained.n_best(SEVERAL[:1], n=2, split_sentences=True)[0]
    assert [one.text for one in joined] == [f"{a.text} {b.text}" for a, b in zip(first, second, strict=True)]
    np.testing.assert_allclose(
        [one.score for one in joined],
        [(a.score + b.score) / 2 for a, b in zip(first, second, strict=True)],
        rtol=1e-5,
    )


def test_a_prefix_begins_the_first_sentence_of_its_text(trained):
    prefixes = ["Zwei", "", "", "Ein"]
    sleeping, man = (
        trained.translate([text], prefixes=prefix)[0]
        for text, prefix in ((SENTENCES[0], "Zwei"), ("A man.", "Ein"))
    )
    found = trained.translate(SEVERAL, prefixes=prefixes, split_sentences=True)
    assert found[0] == f"{sleeping} {trained.translate(['Two dogs.'])[0]}"
    assert found[3].split("\n")[0] == man
    with pytest.raises(UserError, match="6 prefixes but 4 texts"):  # as many as the sentences of all texts
        trained.translate(SEVERAL, prefixes=[""] * 6, split_sentences=True)


def test_several_sentences_in_one_give_a_warning(trained, recwarn):
    trained.translate(SENTENCES)
    trained.translate(SEVERAL, split_sentences=False)
    trained.attention("A man. A dog.")
    assert not [one for one in recwarn if "several sentences" in str(one.message)]
    with pytest.warns(UserWarning, match="several sentences.*split_sentences"):
        trained.translate(SEVERAL)


def test_a_translator_of_one_direction_takes_its_own_languages(trained):
    expected = trained.translate(SENTENCES, 1)
    assert trained.translate(SENTENCES, 1, source_language="en", target_language="de") == expected
    with pytest.raises(UserError, match="from en to de, not with 'fr'"):
        trained.translate(SENTENCES, target_language="fr")


def test_what_keras_exports_in_other_ways_is_refused(trained, tmp_path):
    with pytest.raises(UserError, match="tf_saved_model.*not 'onnx'"):
        trained.export(tmp_path / "model", "onnx")
    with pytest.raises(UserError, match="input_signature"):
        trained.export(tmp_path / "model", input_signature=[keras.InputSpec(shape=(None, 4))])
    keras_own = list(inspect.signature(keras.Model.export).parameters)[:-1]  # without **kwargs
    assert list(inspect.signature(type(trained).export).parameters)[: len(keras_own)] == keras_own


def test_without_a_tokenizer_it_says_so():
    with pytest.raises(UserError, match="this model has no tokenizer"):
        pope_tiny(num_layers=1, width=16, num_heads=2).translate(["A man."])


def test_a_copy_made_from_the_configuration_says_what_it_lacks(trained):
    with pytest.raises(UserError, match="the tokenizer has no vocabulary"):
        keras.models.clone_model(trained).translate(["A man."])


@pytest.mark.filterwarnings("ignore:.*does not have a `quantize` method")
def test_quantized_without_having_been_called(trained):
    tokenizers = SubwordTokenizer(trained.source_tokenizer.proto), CharacterTokenizer(list("abcdef"))
    exact, quantized = (pope_tiny(*tokenizers, **SMALL) for _ in range(2))
    quantized.set_weights(exact.get_weights())
    quantized.quantize("int8")
    assert "int8" in {weight.dtype for weight in quantized.weights}
    words = {"source": np.array([[5, 6, 3]]), "target": np.array([[2, 4]])}
    logits = [ops.convert_to_numpy(model(words)).ravel() for model in (exact, quantized)]
    assert np.corrcoef(*logits)[0, 1] > 0.99


@pytest.mark.filterwarnings("ignore:.*does not have a `quantize` method")
def test_quantized_after_having_translated(trained, tmp_path):
    """What was compiled before must not be used with weights that are gone."""
    texts, models = ["A man sees a dog."], [pope_tiny(trained.source_tokenizer, **SMALL) for _ in range(2)]
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
    with pytest.raises(UserError, match="quantized model or one with LoRA: save it as a .keras file"):
        models[0].save_to_preset(tmp_path / "preset")
    assert not (tmp_path / "preset").exists()


def test_an_input_that_the_model_does_not_read_is_named(trained):
    words = {"source": np.array([[5, 6, 3]]), "target": np.array([[2, 4]])}
    with pytest.raises(ValueError, match="the model reads source, target, not alignment"):
        trained({**words, "alignment": words["target"]})


def test_too_long_a_sentence_is_named_or_cut(trained):
    long = "man " * 59 + "dog"
    with pytest.raises(UserError, match="sentence 2 has 60 subwords, the model reads at most 39: .*'man man"):
        trained.translate(["A man.", long])
    assert len(trained.tokenize_source(["man " * 39])[0]) == 39
    assert trained.tokenize_source([long], truncate=True) == [trained.source_tokenizer([long])[0][:39]]
    assert trained.translate([long], truncate=True)[0]


def test_weights_that_are_not_finite_are_named(trained):
    broken = pope_tiny(trained.source_tokenizer, **SMALL)
    broken.set_weights([np.full_like(weight, np.nan) for weight in broken.get_weights()])
    with pytest.raises(UserError, match="the scores of sentence 1 are not finite: .*a lower rate") as refused:
        broken.translate(SENTENCES[2:3], beam_size=2, max_length=4)
    assert "\n" not in str(refused.value)


def test_saved_and_loaded(trained, tmp_path):
    expected = trained.translate(SENTENCES)
    trained.save(tmp_path / "translator.keras")
    assert keras.saving.load_model(tmp_path / "translator.keras").translate(SENTENCES) == expected


def test_frozen_layers_stay_frozen(trained, tmp_path):
    """In a saved file, whose optimizer has state for the others alone, and in a clone."""
    model = pope_tiny(trained.source_tokenizer, **SMALL)
    model.backbone.encoder_layers[0].trainable = False
    model.backbone.decoder_layers[0].trainable = False
    model.backbone.decoder_layers[0].feedforward.trainable = True
    model.compile("adam", model.loss, jit_compile=False)
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


def test_lora_adapts_dense_layers_alone(trained, tmp_path):
    model = pope_tiny(trained.source_tokenizer, **SMALL)
    model.set_weights(trained.get_weights())
    expected = model.translate(SENTENCES, beam_size=2)
    model.backbone.enable_lora(2)
    assert model.translate(SENTENCES, beam_size=2) == expected  # it begins with zeros
    fixed = [weight.path for weight in model.non_trainable_weights]
    model.compile(keras.optimizers.SGD(1.0), model.loss, jit_compile=False)
    before = {weight.path: ops.convert_to_numpy(weight) for weight in model.weights}
    inputs = {"source": np.array([[5, 6, 3]], "int32"), "target": np.array([[2, 7]], "int32")}
    for _ in range(2):  # at first one of the two factors is zero
        model.train_on_batch(inputs, np.array([[7, 3]], "int32"))
    moved = {w.path for w in model.weights if (ops.convert_to_numpy(w) != before[w.path]).any()}
    assert moved and not moved & set(fixed)
    assert {path.split("/")[-1] for path in moved} == {"lora_kernel_a", "lora_kernel_b", "bias"}
    model.save(tmp_path / "model.keras")  # the factors' product is added to the kernels
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        ops.convert_to_numpy(loaded(inputs)), ops.convert_to_numpy(model(inputs)), atol=1e-4
    )
    loaded.save_to_preset(tmp_path / "preset")


def test_a_preset_holds_float16_weights_tokenizers_and_languages(trained, tmp_path):
    trained.save_to_preset(tmp_path / "preset")
    loaded = load(tmp_path / "preset")
    assert (loaded.source_language, loaded.target_language) == ("en", "de")
    for ours, theirs in zip(trained.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_array_equal(np.float32(np.float16(ours)), theirs)
    stored = []
    with h5py.File(tmp_path / "preset" / "model.weights.h5") as file:
        file.visititems(lambda _, item: stored.append(item) if isinstance(item, h5py.Dataset) else None)
        assert {str(item.dtype) for item in stored} == {"float16"}
    assert all(loaded.translate(SENTENCES)[i] for i in (0, 2, 3))


def test_a_fresh_process_loads_both(trained, tmp_path):
    """Nothing is imported there but what the first line says."""
    trained.save(tmp_path / "translator.keras")
    trained.save_to_preset(tmp_path / "preset")
    program = (
        "import kzoo.models, keras, kzoo.presets;"
        f"a = keras.saving.load_model({str(tmp_path / 'translator.keras')!r});"
        f"b = kzoo.presets.load({str(tmp_path / 'preset')!r});"
        "assert a.count_params() == b.count_params()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_training_drops_out_and_nothing_else_does(trained):
    words = {"source": np.array([[5, 6, 3]], "int32"), "target": np.array([[2, 7]], "int32")}
    once, again = (
        [ops.convert_to_numpy(trained(words, training=training)) for training in (True, False)]
        for _ in range(2)
    )
    assert np.abs(once[0] - again[0]).max() > 1e-3
    np.testing.assert_array_equal(once[1], again[1])


def test_predict_gives_logits(trained):
    inputs = {"source": np.array([[5, 6, 3]], "int32"), "target": np.array([[2, 7]], "int32")}
    np.testing.assert_allclose(
        trained.predict(inputs, verbose=0), ops.convert_to_numpy(trained(inputs)), atol=1e-4
    )
