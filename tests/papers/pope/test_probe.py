"""The probe of distances: vectors of which a linear read-out finds all or nothing, by construction."""

import numpy as np
import pytest
from keras import ops

from kzoo.presets import sine_tiny
from kzoo.text import SubwordTokenizer, train_subwords
from kzoo.text.vocabulary import END
from training.pope.probe import FARTHEST, encoder_states, found_distances, pairs_of_tokens, table

EACH = (*range(-FARTHEST, 0), *range(1, FARTHEST + 1))


def test_pairs_stand_in_their_sentence_and_have_every_distance():
    pairs = pairs_of_tokens([12, 3, 20], each=5, seed=1)
    assert sorted(distance for *_, distance in pairs) == sorted(EACH * 5)
    assert len(set(pairs)) == len(pairs)
    for sentence, place, distance in pairs:
        assert 0 <= place < (12, 3, 20)[sentence] > place + distance >= 0


def test_positions_on_a_line_are_found_and_noise_is_not(random):
    """A read-out linear in both vectors finds j - i if they hold i and j; else one of 16, by chance."""

    def sentences(number, with_positions):
        made = []
        for _ in range(number):
            vectors = random.normal(size=(20, 4))
            if with_positions:
                vectors[:, 0] = np.arange(20)
            made.append(vectors)
        return made

    found = found_distances(sentences(120, True), sentences(60, True))
    assert list(found) == list(range(1, FARTHEST + 1)) and min(found.values()) > 0.9
    nothing = found_distances(sentences(120, False), sentences(60, False))
    assert np.mean(list(nothing.values())) == pytest.approx(1 / 16, abs=0.02)


def test_states_are_those_of_the_encoder_without_padding():
    """Depth 0 is tokens and positions; the last depth, normalized, is what the decoder attends to."""
    tokenizer = SubwordTokenizer(train_subwords(["a dog runs in the grass.", "a cat"] * 5, 25))
    translator = sine_tiny(tokenizer, num_layers=2, width=16, num_heads=2, feedforward_dim=16)
    texts = ["a dog runs", "a cat"]
    depths = encoder_states(translator, texts)
    backbone = translator.backbone
    assert len(depths) == 3
    for row, text in enumerate(texts):
        tokens = np.array([[*tokenizer([text])[0], END]])
        embedded = backbone.embedded_source({"source": tokens}) * 4.0
        embedded = embedded + backbone.source_positions(embedded)
        np.testing.assert_allclose(depths[0][row], ops.convert_to_numpy(embedded)[0], atol=1e-5)
        alone = encoder_states(translator, [text])
        assert depths[2][row].shape == (tokens.shape[1], 16)
        np.testing.assert_allclose(depths[2][row], alone[2][0], atol=1e-5)


def test_the_table_has_a_row_for_each_depth():
    shares = dict.fromkeys(range(1, FARTHEST + 1), 0.5)
    assert table({"a": [shares, shares]}).count("| 50 | 50 | 50 | 50 | 50 | 50 | 50.0 |") == 2
