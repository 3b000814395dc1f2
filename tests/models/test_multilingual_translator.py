"""The multilingual translator: text in any language in, text in any other out; sentence embeddings."""

import keras
import numpy as np
import pytest
from keras import ops
from message_of import message_of

from kzoo.data import PairBatches, open_corpus
from kzoo.data.language_pairs import language_pairs
from kzoo.errors import UserError
from kzoo.models import AttentionBridgeBackbone, MultilingualTranslator, SentenceCrossEntropy
from kzoo.presets import load
from kzoo.text import SubwordTokenizer, train_subwords

LANGUAGES = ["en", "de", "fr"]
SIZES = {"en": 200, "de": 230, "fr": 220}
SENTENCES = ["A man is sleeping.", "", "A woman in a red coat is sitting on the beach.", "Two dogs."]


class Traced(SentenceCrossEntropy):
    """The loss; counts how often its Python code runs."""

    runs = 0

    def call(self, y_true, y_pred):
        Traced.runs += 1
        return super().call(y_true, y_pred)


@pytest.fixture(scope="module")
def text():
    """Short aligned sentences of Scenes."""
    sides = [open_corpus("scenes").sentences("train", code)[:1500] for code in LANGUAGES]
    short = [line for line in zip(*sides, strict=True) if max(map(len, line)) < 45]
    return dict(zip(LANGUAGES, zip(*short[:100], strict=True), strict=True))


@pytest.fixture(scope="module")
def tokenizers(text):
    return {
        code: SubwordTokenizer(train_subwords(text[code], size), config_file=f"{code}_tokenizer.json")
        for code, size in SIZES.items()
    }


@pytest.fixture(scope="module")
def learned(text, tokenizers):
    """A small translator after a little training in all directions: bad, but not random."""
    keras.utils.set_random_seed(1)
    backbone = AttentionBridgeBackbone(
        list(SIZES.values()),
        encoder="cnn",  # which is compiled sooner than the paper's LSTMs
        embedding_dim=16,
        width=16,
        num_decoder_layers=1,
        num_heads=3,
        hidden_dim=16,
        max_length=60,
    )
    translator = MultilingualTranslator(backbone, tokenizers)
    translator.compile(keras.optimizers.Adam(0.015), Traced())
    batches = PairBatches(
        {code: tokenizers[code](text[code]) for code in LANGUAGES},
        language_pairs(LANGUAGES, monolingual=True),
        LANGUAGES,
        tokens=1024,
        num_shapes=2,
    )
    translator.losses_by_epoch = translator.fit(batches, epochs=3, shuffle=False, verbose=0).history["loss"]
    return translator


@pytest.fixture
def trained(learned, one_shape):
    """The same; sentences are padded to the model's 60 tokens."""
    return learned


def test_another_pair_traces_nothing(learned):
    """Of nine pairs in two shapes: one trace; on JAX, Keras builds the loss once, then traces each shape."""
    assert learned.losses_by_epoch[-1] < learned.losses_by_epoch[0] - 5
    assert Traced.runs == (1 if keras.backend.backend() == "tensorflow" else 3)


def test_translations_come_in_order_and_empty_stays_empty(learned):
    """In several shapes."""
    together = learned.translate(SENTENCES, "en", "de", beam_size=2)
    assert together[1] == ""
    assert all(together[i] for i in (0, 2, 3))
    # A model trained so little may write one text for all, but with scores of its own.
    direction = {"source_language": "en", "target_language": "de", "beam_size": 2}
    best = [found[0] for found in learned.n_best(SENTENCES, 1, **direction)]
    alone = [learned.n_best([sentence], 1, **direction)[0][0] for sentence in SENTENCES]
    assert [found.text for found in best] == [found.text for found in alone] == together
    np.testing.assert_allclose([found.score for found in best], [found.score for found in alone], atol=1e-4)
    assert np.diff(sorted(best[i].score for i in (0, 2, 3))).min() > 1e-3
    assert learned.translate([], "en", "de") == []


def test_the_length_penalty_favours_short_or_long_translations(trained):
    short, long = (
        trained.translate(SENTENCES[:1], "en", "de", beam_size=3, length_penalty=alpha)[0]
        for alpha in (-5, 5)
    )
    assert len(short) < len(long)


def test_directions_differ_and_share_one_search(trained):
    found = {code: trained.translate(SENTENCES[:1], "en", code, beam_size=2)[0] for code in LANGUAGES}
    assert len(set(found.values())) == 3
    (best,) = trained.n_best(SENTENCES[:1], 2, source_language="en", target_language="fr", beam_size=2)
    assert [best] == trained.n_best(SENTENCES[:1], 2, direction=("en", "fr"), beam_size=2)
    assert best[0].text == found["fr"]
    assert best[0].score >= best[1].score


def test_translation_is_the_model_s_greedy_search(trained):
    """Against the whole model called anew on the growing target."""
    source = np.array([[*trained.tokenizers["en"]([SENTENCES[3]])[0], 3]], "int32")
    words = [2]
    while words[-1] != 3 and len(words) < 10:  # the tenth must end
        inputs = {
            "source": source,
            "target": np.array([words + [0] * (10 - len(words))], "int32"),
            "source_language": np.array([0], "int32"),
            "target_language": np.array([2], "int32"),
        }
        logits = trained.predict_on_batch(inputs)[0, len(words) - 1].copy()
        logits[[0, 2]] = -np.inf
        words.append(int(logits.argmax()))
    expected = trained.tokenizers["fr"].detokenize([word for word in words if word > 3])
    assert trained.translate([SENTENCES[3]], "en", "fr", beam_size=1, max_length=10) == [expected]


def test_embeddings_are_the_bridge_s_matrix(trained):
    flat, mean = (trained.embed(SENTENCES, "en", pooling) for pooling in ("flatten", "mean"))
    assert flat.shape == (4, 3 * 16)
    assert flat.dtype == np.float32
    np.testing.assert_allclose(flat.reshape(4, 3, 16).mean(1), mean, atol=1e-6)
    np.testing.assert_array_equal(flat[1], 0)
    for number, code in enumerate(LANGUAGES):
        source = np.array([[*trained.tokenizers[code]([SENTENCES[2]])[0], 3]], "int32")
        matrix, _ = trained.backbone.matrix({"source": source, "source_language": np.array([number])})
        found = trained.embed(SENTENCES[2:3], code)[0]
        np.testing.assert_allclose(found, ops.convert_to_numpy(matrix).reshape(-1), atol=1e-5)


def test_embedding_leaves_the_model_as_it_was(trained):
    trained.embed(SENTENCES, "en")
    assert [layer.name for layer in trained.layers if layer.name.startswith("backbone_method")] == []


def test_embeddings_do_not_depend_on_neighbours(trained):
    together = trained.embed(SENTENCES, "en")
    for sentence, embedding in zip(SENTENCES, together, strict=True):
        np.testing.assert_allclose(trained.embed(sentence, "en")[0], embedding, atol=1e-5)
    assert np.abs(together[0] - together[3]).max() > 0.01
    assert trained.embed([], "de").shape == (0, 48)


def test_bridge_attention_is_over_the_sentence_s_subwords(trained):
    pieces, scores = trained.bridge_attention("Two dogs.", "en")
    assert "".join(pieces) == "▁Two▁dogs.</s>"
    assert scores.shape == (3, len(pieces))
    np.testing.assert_allclose(scores.sum(1), 1, rtol=1e-5)


def test_too_long_a_sentence_is_cut(trained):
    long = "man " * 70
    words = trained.tokenizers["en"]([long])[0][:59]
    inputs = {"source": np.array([[*words, 3]], "int32"), "source_language": np.array([0])}
    found = trained.embed([long], "en", truncate=True)[0]
    np.testing.assert_allclose(found, np.ravel(trained.backbone.matrix(inputs)[0]), atol=1e-5)
    assert trained.translate([long], "en", "de", beam_size=1, truncate=True)[0]


def test_bad_input_is_named(trained):
    for call, arguments, settings, name in (
        (trained.translate, ["it", "en"], {}, "en, de, fr, not 'it'"),
        (trained.translate, ["en", "it"], {}, "en, de, fr, not 'it'"),
        (trained.embed, ["it"], {}, "en, de, fr, not 'it'"),
        (trained.translate, [], {}, "source_language"),
        (trained.translate, ["en"], {}, "source_language"),
        (trained.embed, ["en"], {"pooling": "max"}, "flatten, mean"),
        (trained.n_best, [6], {"source_language": "en", "target_language": "de"}, "6 best"),
        (trained.translate, ["en", "de"], {"threads": 0}, "threads"),
        (trained.translate, ["en", "de"], {"length_penalty": np.inf}, "length_penalty"),
    ):
        assert name in message_of(call, SENTENCES, *arguments, **settings)
    assert "'it'" in message_of(trained.embed_tokens, [[5]], "it")
    assert "'it'" in message_of(trained.tokenizers_of, "en", "it")
    assert "'it'" in message_of(trained.direction, "en", "it")
    assert "sentence 2" in message_of(trained.translate, ["A man.", "man " * 70], "en", "de")


def test_codes_may_be_written_in_another_way(trained):
    assert trained.direction("ENG", "fr-CA") == ("en", "fr")
    assert trained.translate(SENTENCES, "en-GB", "ger") == trained.translate(SENTENCES, "en", "de")
    embedded, tokens = trained.embed(SENTENCES, "en"), trained.tokenizers["en"](SENTENCES)
    np.testing.assert_array_equal(trained.embed(SENTENCES, "EN"), embedded)
    np.testing.assert_array_equal(trained.embed_tokens(tokens, "eng"), embedded)
    assert trained.tokenizers_of("eng", "fra") == trained.tokenizers_of("en", "fr")


def test_an_embedding_is_of_the_sentence_as_translate_reads_it(trained):
    np.testing.assert_array_equal(trained.embed(["A MAN."], "en"), trained.embed(["A man."], "en"))


def test_without_a_bridge_there_are_no_embeddings(tokenizers):
    backbone = AttentionBridgeBackbone(
        list(SIZES.values()), embedding_dim=4, width=4, num_decoder_layers=1, bridge=False
    )
    with pytest.raises(UserError, match=r"\(bridge=False\)"):
        MultilingualTranslator(backbone, tokenizers).embed(SENTENCES, "en")


def test_saved_and_loaded(trained, tmp_path):
    trained.save(tmp_path / "translator.keras")
    loaded = keras.saving.load_model(tmp_path / "translator.keras", {"Traced": Traced})
    assert loaded.languages == LANGUAGES
    np.testing.assert_allclose(loaded.embed(SENTENCES, "en"), trained.embed(SENTENCES, "en"), atol=1e-6)
    assert loaded.translate(SENTENCES, "en", "de", beam_size=2) == trained.translate(
        SENTENCES, "en", "de", beam_size=2
    )


def test_a_preset_holds_float16_weights_tokenizers_and_languages(trained, tmp_path):
    trained.save_to_preset(tmp_path / "preset")
    loaded = load(tmp_path / "preset")
    assert type(loaded) is MultilingualTranslator
    assert loaded.languages == LANGUAGES
    for ours, theirs in zip(trained.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_array_equal(np.float32(np.float16(ours)), theirs)
    for code in LANGUAGES:
        assert loaded.tokenizers[code](["Leo."]) == trained.tokenizers[code](["Leo."])
    np.testing.assert_allclose(loaded.embed(SENTENCES, "en"), trained.embed(SENTENCES, "en"), atol=0.01)


def test_a_bridge_takes_no_terms(trained):
    """Its decoder attends to the bridge's rows, not to the words."""
    direction = {"source_language": "en", "target_language": "de"}
    assert "bridge" in message_of(trained.translate, ["a man"], terms={"man": "Mann"}, **direction)
