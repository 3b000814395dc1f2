"""The translator: text in, text out, its loss and its files."""

from types import SimpleNamespace

import h5py
import keras
import numpy as np
import pytest
from keras import ops
from keras_hub.tokenizers import SentencePieceTokenizer
from message_of import message_of

from kzoo.data import Batches, open_corpus
from kzoo.decoding import GNMT, SearchSettings
from kzoo.errors import UserError
from kzoo.models import Adam, LabelSmoothedCrossEntropy, NoamSchedule, Translator
from kzoo.models.backbones import uses_xla
from kzoo.presets import load, pope_tiny
from kzoo.text import SubwordTokenizer, train_subwords

SMALL = {"num_layers": 1, "width": 32, "num_heads": 2, "feedforward_dim": 64, "max_length": 40}


@pytest.fixture(scope="module")
def learned():
    """A small translator after a little training on Scenes: bad, but not random."""
    keras.utils.set_random_seed(1)
    pairs = zip(*open_corpus("scenes").pairs("train", "en", "de"), strict=True)
    english, german = zip(*[pair for pair in pairs if max(map(len, pair)) < 60][:750], strict=True)
    tokenizer = SubwordTokenizer(train_subwords(english + german, 500))
    translator = pope_tiny(tokenizer, **SMALL)
    translator.source_language, translator.target_language = "en", "de"
    optimizer = Adam(NoamSchedule(32, 50, 0.5), beta_2=0.98, epsilon=1e-9)
    translator.compile(optimizer, loss=LabelSmoothedCrossEntropy())
    batches = Batches(tokenizer(english), tokenizer(german), tokens=512, num_shapes=1)
    few = Batches(tokenizer(english[:50]), tokenizer(german[:50]), tokens=1024, num_shapes=1)
    before = translator.evaluate(few, verbose=0)
    translator.fit(batches, epochs=2, shuffle=False, verbose=0)
    assert translator.evaluate(few, verbose=0) < before - 1
    return translator


@pytest.fixture
def trained(learned, one_shape):
    """The same; sentences are padded to the model's 40 tokens."""
    return learned


SENTENCES = ["A man is sleeping.", "", "A woman in a red coat is sitting on the beach.", "Two dogs."]


def test_translations_come_in_order_and_empty_stays_empty(learned):
    """In several shapes."""
    together = learned.translate(SENTENCES)
    assert together[1] == ""
    assert all(together[i] for i in (0, 2, 3))
    assert together == [learned.translate([sentence])[0] for sentence in SENTENCES]
    assert learned.translate([]) == []


def test_translation_is_the_contract_s_greedy_search(trained):
    """Against the whole model called anew on the growing target."""
    tokenizer = trained.source_tokenizer
    source = np.array([[*tokenizer([SENTENCES[2]])[0], 3]], "int32")
    words = [2]
    while words[-1] != 3 and len(words) < 40:  # the fortieth must end
        target = np.array([words + [0] * (40 - len(words))], "int32")  # of one shape, compiled once
        logits = trained.predict_on_batch({"source": source, "target": target})[0, len(words) - 1].copy()
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


def test_progress_counts_the_sentences_that_are_searched(learned):
    counted = []
    learned.translate(SENTENCES, progress=counted.append)
    assert sum(counted) == 3  # an empty one is not searched


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"n": 0}, "n must"),
        ({"n": 6}, "6 best"),
        ({"beam_size": 2.0}, "beam_size"),
        ({"beam_size": "5"}, "beam_size"),
        ({"max_length": 0}, "max_length"),
        ({"max_length": 3.5}, "max_length"),
        ({"threads": 0}, "threads"),
        ({"length_penalty": "x"}, "length_penalty"),
        ({"length_penalty": np.nan}, "length_penalty"),
    ],
)
def test_a_wrong_argument_of_the_search_is_named(trained, wrong, name):
    assert name in message_of(trained.n_best, ["A man."], **wrong)


def test_what_is_no_text_is_named(trained):
    assert "int: 3" in message_of(trained.translate, [3])
    assert "list" in message_of(trained.attention, ["A dog."])
    assert "sentence 2" in message_of(trained.translate, ["A dog.", "A \ud800 dog."])


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
    with pytest.raises(UserError, match="6 .* 4 "):  # as many as the sentences of all texts
        trained.translate(SEVERAL, prefixes=[""] * 6, split_sentences=True)


def test_several_sentences_in_one_give_a_warning(trained, recwarn):
    trained.translate(SENTENCES)
    trained.translate(SEVERAL, split_sentences=False)
    trained.attention("A man. A dog.")
    assert not [one for one in recwarn if "split_sentences" in str(one.message)]
    with pytest.warns(UserWarning, match="split_sentences"):
        trained.translate(SEVERAL)


def test_a_translator_of_one_direction_takes_its_own_languages(trained):
    expected = trained.translate(SENTENCES)
    for source, target in (("en", "de"), ("en-GB", "DE"), ("eng", "deu"), (None, "ger"), ("en_US", None)):
        assert trained.translate(SENTENCES, source, target) == expected
    with pytest.raises(UserError, match="'fr'"):
        trained.translate(SENTENCES, target_language="fr")
    to_any = Translator(trained.backbone, trained.source_tokenizer, source_language="en")
    with pytest.raises(UserError, match="'de'"):
        to_any.translate(SENTENCES, "de")


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"text": ["A dog runs."]}, ["dict", "column"]),
        (SimpleNamespace(columns=["text"]), ["SimpleNamespace", "column"]),  # as a DataFrame has
        (b"A dog runs.", ["bytes"]),
        (None, ["NoneType"]),
        (5, ["int"]),
        (["A dog runs.", float("nan")], ["row 1", "float", "nan"]),
        (["A dog runs.", "", None], ["row 2", "NoneType"]),
        ([b"A dog runs."], ["row 0", "bytes"]),
        ([{"text": "A dog runs."}], ["row 0", "dict"]),
    ],
)
def test_what_is_no_text_is_named_by_row_and_type(trained, texts, words):
    message = message_of(trained.translate, texts)
    assert all(word in message for word in words), message


def test_without_a_tokenizer_it_says_so():
    with pytest.raises(UserError, match="tokenizer"):
        pope_tiny(num_layers=1, width=16, num_heads=2).translate(["A man."])


def test_too_long_a_sentence_is_named_or_cut(trained):
    long = "man " * 59 + "dog"
    for call in (trained.translate, trained.n_best):
        with pytest.raises(UserError, match="sentence 2 .* 60 .* 39"):
            call(["A man.", long])
    assert trained.translate([long], truncate=True) == trained.translate(["man " * 39])


def test_weights_that_are_not_finite_are_named(trained):
    broken = pope_tiny(trained.source_tokenizer, **SMALL)
    broken.set_weights([np.full_like(weight, np.nan) for weight in broken.get_weights()])
    with pytest.raises(UserError, match="1 .*finite") as refused:
        broken.translate(SENTENCES[2:3], beam_size=2, max_length=4)
    assert "\n" not in str(refused.value)


def test_keras_hubs_own_tokenizer_translates_alike(trained):
    tokenizer = SentencePieceTokenizer(trained.source_tokenizer.proto)
    translator = Translator(trained.backbone, tokenizer, search=trained.search)
    assert translator.translate(SENTENCES) == trained.translate(SENTENCES)


def test_saved_and_loaded(trained, tmp_path):
    expected = trained.translate(SENTENCES)
    trained.save(tmp_path / "translator.keras")
    assert keras.saving.load_model(tmp_path / "translator.keras").translate(SENTENCES) == expected


def test_arguments_of_compile_may_have_no_names():
    translator = pope_tiny()
    translator.compile("sgd", "mse", None, None, None, True)
    assert (translator.run_eagerly, translator.jit_compile) == (True, False)
    translator.compile("sgd", "mse")
    assert translator.jit_compile is uses_xla(translator.backbone)


@pytest.mark.parametrize("saved", [True, False])
def test_a_file_does_not_say_whether_xla_compiles(trained, saved, tmp_path, xla_backends):
    """Its backend may be another than the one that loads it."""
    backends = {True: (keras.backend.backend(),), False: ()}
    translator = pope_tiny(trained.source_tokenizer, **SMALL)
    xla_backends(*backends[saved])
    translator.compile("adam", translator.loss)
    assert translator.jit_compile is saved
    translator.save(tmp_path / "translator.keras")
    xla_backends(*backends[not saved])
    assert keras.saving.load_model(tmp_path / "translator.keras").jit_compile is not saved


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


def test_training_drops_out_and_nothing_else_does(trained):
    words = {"source": np.array([[5, 6, 3]], "int32"), "target": np.array([[2, 7]], "int32")}
    once, again = (
        [ops.convert_to_numpy(trained(words, training=training)) for training in (True, False)]
        for _ in range(2)
    )
    assert np.abs(once[0] - again[0]).max() > 1e-3
    np.testing.assert_array_equal(once[1], again[1])
