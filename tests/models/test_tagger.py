"""The tagger: its convolutions against Keras's, its loss against the random field, learning, and files."""

import keras
import numpy as np
import pytest
from keras import ops

from kzoo.errors import UserError
from kzoo.layers import GlyphCharEncoder, GlyphEmbedding
from kzoo.models.segments import tags_to_segments
from kzoo.models.tagger import CharacterTagger
from kzoo.text import CharacterTokenizer

LETTERS = "abcdefghij"
TAGS = ["B-N", "I-N", "B-V"]


def make(embedding=None, **settings):
    tokenizer = CharacterTokenizer(LETTERS)
    embedding = embedding or keras.layers.Embedding(tokenizer.vocabulary_size(), 8)
    return CharacterTagger(embedding, TAGS, tokenizer, **settings)


def glyph_embedding(random):
    glyphs = (random.random((4 + len(LETTERS), 22, 22)) > 0.7).astype("uint8")
    glyphs[:4] = 0
    return GlyphEmbedding(glyphs, GlyphCharEncoder(8, "fc_1"))


def sentences(random, count):
    """Words of two letters are N, of one letter V; which letters stand in which word is fixed."""
    words = [("ab", "N"), ("cd", "N"), ("ea", "N"), ("f", "V"), ("g", "V"), ("b", "V")]
    return [[words[i] for i in random.integers(0, len(words), random.integers(1, 6))] for _ in range(count)]


def test_the_network_is_dilated_convolutions(random):
    tagger = make()
    ids = np.zeros((2, 9), "int32")
    ids[0, :9] = random.integers(4, 14, 9)
    ids[1, :5] = random.integers(4, 14, 5)
    x = ops.convert_to_numpy(tagger.embedding(ids))
    for dilation, layer in zip((1, 2, 4), tagger.convolutions, strict=True):
        peer = keras.layers.Conv1D(8, 3, padding="same", dilation_rate=dilation, activation="relu")
        peer.build((None, None, 8))
        kernel, bias = layer.get_weights()
        peer.set_weights([kernel.reshape(3, 8, 8), bias])
        x = np.where(ids[..., None] > 0, x, 0)
        x = x + ops.convert_to_numpy(peer(x))
    kernel, bias = tagger.potentials.get_weights()
    potentials = ops.convert_to_numpy(tagger(ids)["potentials"])
    np.testing.assert_allclose(potentials[ids > 0], (x @ kernel + bias)[ids > 0], atol=1e-5)


def test_what_ends_a_line_is_not_tagged():
    tagger = make()
    assert tagger.tag(["abc\r\n", "\nab\r\nc"]) == tagger.tag(["abc", "ab c"])
    assert tagger.tag("abc") == tagger.tag(["abc"])
    assert tagger.tag([" " * 40, "ab"]) == [[], *tagger.tag("ab")]


def test_padding_and_neighbours_change_nothing():
    tagger = make()
    texts = ["abcdefg", "bb", "", "ghi"]
    alone = [tagger.tag([text], batch_size=1)[0] for text in texts]
    assert tagger.tag(texts) == alone
    assert ["".join(word for word, _ in words) for words in alone] == texts


def test_the_best_tags_do_not_depend_on_padding(random):
    tagger = make()
    tagger.set_weights([random.normal(size=weight.shape) for weight in tagger.get_weights()])
    ids = random.integers(4, 10, (20, 5)).astype("int32")
    wider = np.pad(ids, ((0, 0), (0, 3)))
    tags, same = (ops.convert_to_numpy(tagger(words)["tags"])[:, :5] for words in (ids, wider))
    np.testing.assert_array_equal(tags, same)


@pytest.mark.parametrize("kind", ["lookup", "glyph"])
def test_it_learns_words_and_tags(kind, random):
    keras.utils.set_random_seed(1)
    tagger = make(glyph_embedding(random) if kind == "glyph" else None, output_dropout=0.1)
    tagger.compile(keras.optimizers.Adagrad(0.1))
    train, test = sentences(random, 128), sentences(random, 20)
    history = tagger.fit(*tagger.arrays(train), batch_size=32, epochs=6, verbose=0)
    assert history.history["loss"][-1] < history.history["loss"][0] / 3
    ids, tags = tagger.arrays(test)
    loss, accuracy = tagger.evaluate(ids, tags, batch_size=32, verbose=0)
    predicted = tagger.predict(ids, verbose=0)["tags"]
    assert accuracy == pytest.approx((predicted == tags)[ids > 0].mean()) and accuracy > 0.9
    potentials = tagger(ids)["potentials"]
    expected = ops.mean(tagger.crf.negative_log_likelihood(potentials, tags, mask=ids > 0))
    assert loss == pytest.approx(float(expected), rel=1e-3, abs=1e-4)
    texts = ["".join(word for word, _ in words) for words in test]
    names = [[TAGS[tag] for tag in row[: len(text)]] for row, text in zip(predicted, texts, strict=True)]
    expected = [tags_to_segments(text, row) for text, row in zip(texts, names, strict=True)]
    assert tagger.tag(texts) == expected


def test_sentences_count_by_their_weights(random):
    """In the loss of a training step, and in its gradient: of weight 0 they teach nothing."""
    ids, tags = make().arrays(sentences(random, 3))
    # A row of padding; ten places hold the longest sentence, and an eager step goes place by place.
    ids, tags = (np.pad(part[:, :10], ((0, 1), (0, 0))) for part in (ids, tags))

    def trained(rows, weights):
        keras.utils.set_random_seed(1)
        tagger = make(dropout=0, output_dropout=0)
        tagger.compile(
            keras.optimizers.SGD(0.5), run_eagerly=keras.backend.backend() == "tensorflow"
        )  # one step
        loss = tagger.train_on_batch(ids[rows], tags[rows], sample_weight=weights)[0]
        return float(loss), tagger.get_weights()

    everything = slice(None)
    losses = [trained(slice(i, i + 1), None)[0] for i in range(3)]
    assert trained(everything, None)[0] == pytest.approx(np.mean(losses), rel=1e-5)
    weights = np.array([2.0, 0.5, 0.0, 1.0], "float32")
    loss, after = trained(everything, weights)
    assert loss == pytest.approx((2 * losses[0] + 0.5 * losses[1]) / 2.5, rel=1e-5)
    for one, other in zip(after, trained(slice(0, 2), weights[:2])[1], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    assert trained(everything, np.zeros(4, "float32"))[0] == 0


def test_penalties_of_its_layers_are_in_the_loss():
    ids, tags = make().arrays([[("a", "V")]])
    losses = []
    for penalty in (None, "l2"):
        keras.utils.set_random_seed(1)
        tagger = make(keras.layers.Embedding(14, 8, embeddings_regularizer=penalty))
        tagger.compile("sgd")
        losses.append(tagger.test_on_batch(ids, tags)[0])
    assert losses[1] - losses[0] == pytest.approx(0.01 * np.sum(tagger.embedding.get_weights()[0] ** 2), 1e-3)


def test_the_paper_s_dropout_is_the_default():
    """Broscheit et al. 2018, Section 4.3: 0.1 for the encoder, 0.5 for the output classifier."""
    tagger = make()
    assert [layer.rate for layer in tagger.dropouts] == [0.1, 0.1, 0.1]
    assert tagger.output_dropout.rate == 0.5


@pytest.mark.parametrize("where", ["dropout", "output_dropout"])
def test_where_dropout_is(where, random):
    """Of a tagger whose potentials are three of the features: each is dropped, or doubled."""
    rates = {"dropout": 0.0, "output_dropout": 0.0, where: 0.5}
    tagger = make(num_layers=1, **rates)
    tagger.potentials.set_weights([np.eye(8, 3), np.zeros(3)])
    tagger.convolutions[0].set_weights(
        [np.concatenate([np.zeros((8, 8)), np.eye(8), np.zeros((8, 8))]), np.ones(8)]
    )
    ids = random.integers(4, 14, (20, 9)).astype("int32")
    embedded = ops.convert_to_numpy(tagger.embedding(ids))[..., :3]
    convolved = np.maximum(embedded + 1, 0)  # kept apart from 0
    found = ops.convert_to_numpy(tagger(ids, training=True)["potentials"])
    kept, dropped = {
        "dropout": (embedded + 2 * convolved, embedded),
        "output_dropout": (2 * (embedded + convolved), np.zeros_like(embedded)),
    }[where]
    is_kept, is_dropped = np.isclose(found, kept, atol=1e-5), np.isclose(found, dropped, atol=1e-5)
    assert (is_kept | is_dropped).all()
    assert 0.4 < is_dropped.mean() < 0.6


def test_a_fixed_encoder_stays_and_an_adapted_one_moves(random):
    for trainable in (False, True):
        embedding = glyph_embedding(random)
        embedding.trainable = trainable
        tagger = make(embedding)
        # For a single step, TensorFlow is faster without a graph.
        tagger.compile(keras.optimizers.Adagrad(0.1), run_eagerly=keras.backend.backend() == "tensorflow")
        before = [np.array(w) for w in embedding.encoder.get_weights()]
        potentials = tagger.potentials.get_weights()[0]
        tagger.train_on_batch(*tagger.arrays(sentences(random, 8)))
        moved = [(a != b).any() for a, b in zip(before, embedding.encoder.get_weights(), strict=True)]
        assert all(moved) if trainable else not any(moved)
        assert (potentials != tagger.potentials.get_weights()[0]).any()


def test_a_saved_tagger_is_the_same(random, tmp_path):
    tagger = make(glyph_embedding(random))
    tagger.save(tmp_path / "tagger.keras")
    loaded = keras.saving.load_model(tmp_path / "tagger.keras")
    ids, _ = tagger.arrays(sentences(random, 3))
    expected = ops.convert_to_numpy(tagger(ids)["potentials"])
    np.testing.assert_allclose(ops.convert_to_numpy(loaded(ids)["potentials"]), expected, atol=1e-5)
    assert loaded.tag(["abf"]) == tagger.tag(["abf"])


def test_weighted_metrics_leave_padding_out(random):
    tagger = make()
    ids, tags = tagger.arrays([[("a", "V")], [("ab", "N"), ("g", "V")]])
    tagger.compile("sgd", weighted_metrics=[keras.metrics.SparseCategoricalAccuracy()], run_eagerly=True)
    chosen = ops.convert_to_numpy(tagger(ids)["potentials"]).argmax(-1)
    for weights in (None, np.array([1.0, 3.0])):
        found = tagger.evaluate(ids, tags, sample_weight=weights, return_dict=True, verbose=0)
        inside = (ids > 0) * (1 if weights is None else weights[:, None])
        expected = np.average(chosen == tags, weights=inside)
        assert found["sparse_categorical_accuracy"] == pytest.approx(expected)


def test_frozen_layers_stay_frozen_and_int8_is_refused(tmp_path):
    tagger = make()
    for layer in tagger.convolutions:
        layer.trainable = False
    tagger.save(tmp_path / "tagger.keras")
    loaded = keras.saving.load_model(tmp_path / "tagger.keras")
    assert [w.path for w in loaded.trainable_weights] == [w.path for w in tagger.trainable_weights]
    with pytest.raises(UserError, match="quantized"):
        tagger.quantize("int8")


def test_a_loaded_tagger_is_compiled_as_a_new_one(tmp_path):
    """Whatever the backend was that saved it."""
    tagger = make()
    tagger.compile("sgd")
    new = tagger.jit_compile
    tagger.compile("sgd", jit_compile=not new)
    tagger.save(tmp_path / "tagger.keras")
    assert keras.saving.load_model(tmp_path / "tagger.keras").jit_compile is new


def test_a_summary_has_all_its_weights(random):
    lines, tagger = [], make(glyph_embedding(random))
    tagger.summary(print_fn=lines.append)
    assert f"Total params: {tagger.count_params():,}" in "\n".join(lines)


def test_an_unknown_tag_is_named():
    with pytest.raises(UserError, match="B-X"):
        make().arrays([[("a", "V")], [("b", "X")]])


def test_a_line_end_in_a_word_is_named():
    with pytest.raises(UserError, match=r"\('a\\r\\nbc'\)"):
        make().arrays([[("a", "V")], [("a\r\nb", "N"), ("c", "V")]])


def test_no_sentences_are_no_arrays():
    ids, tags = make().arrays([])
    assert len(ids) == len(tags) == 0


def test_a_frozen_encoder_stays_fixed_when_loaded(random, tmp_path):
    embedding = glyph_embedding(random)
    embedding.trainable = False
    tagger = make(embedding)
    tagger.tag(["ab"])
    learning = len(tagger.trainable_variables)
    tagger.save(tmp_path / "tagger.keras")
    assert len(keras.saving.load_model(tmp_path / "tagger.keras").trainable_variables) == learning
