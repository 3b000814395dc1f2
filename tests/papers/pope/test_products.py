"""Products of positions against Eq. 4 and 6 to 10 written out, by hand-made weights and in a model."""

import numpy as np
import pytest
from keras import ops
from PIL import Image
from typer.testing import CliRunner

from kzoo.errors import UserError
from kzoo.positions import pope_table, sine_table
from kzoo.presets import pope_tiny, rope_tiny, sine_tiny
from kzoo.text import SubwordTokenizer, train_subwords
from training.pope.figures import app
from training.pope.positions import correlation, first_high_dimension, position_products
from training.pope.products import (
    entering_encodings,
    plot_products,
    product_table,
    trained_products,
)

SIZES = {"num_layers": 1, "width": 16, "num_heads": 2, "feedforward_dim": 16, "source_vocabulary_size": 30}


def test_products_are_equations_4_and_10():
    """p_mᵀ W p_n with W = W_qᵀ W_k / √d, element by element, in low, high and mixed dimensions."""
    random = np.random.default_rng(1)
    p, query, key = random.normal(size=(4, 6)), random.normal(size=(6, 2, 3)), random.normal(size=(6, 2, 3))
    found = position_products(p, query, key, first_high=4)
    for head in range(2):
        W = query[:, head] @ key[:, head].T / np.sqrt(3)
        for m in range(4):
            for n in range(4):
                whole = low = high = 0.0
                for i in range(6):
                    for j in range(6):
                        term = p[m, i] * W[i, j] * p[n, j]
                        whole += term
                        low += term if i < 4 and j < 4 else 0
                        high += term if i >= 4 and j >= 4 else 0
                expected = {"all": whole, "low": low, "high": high, "low × high": whole - low - high}
                assert {k: v[head, m, n] for k, v in found.items()} == pytest.approx(expected, abs=1e-12)


def test_scores_of_attention_are_equation_4_s_four_terms(random):
    """Without biases, those of tokens and positions together are the products and the three other terms."""
    from kzoo.layers import MultiHeadAttention

    tokens, p = random.normal(size=(5, 8)), sine_table(5, 8)
    layer = MultiHeadAttention(2, 4)
    x = (tokens + p).astype("float32")[None]
    _, weights = layer(x, return_attention_scores=True)
    query, key, _ = np.moveaxis(ops.convert_to_numpy(layer.kernel).reshape(8, 3, 2, 4), 1, 0)
    scores = position_products(p, query, key, first_high=4)["all"]
    for left, right in ((tokens, tokens), (tokens, p), (p, tokens)):
        scores = scores + np.einsum("mi,ihd,jhd,nj->hmn", left, query, key, right) / 2
    expected = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    np.testing.assert_allclose(ops.convert_to_numpy(weights)[0], expected, atol=1e-5)


def test_the_high_dimensions_are_those_whose_positions_correlate():
    encodings = sine_table(40, 16)
    first = first_high_dimension(encodings, 0.9)
    for start in range(first + 1):
        between = correlation(encodings[:, start:])[np.triu_indices(40, 1)]
        assert (np.abs(between).mean() >= 0.9) == (start == first)
    # Section 2.2: near-perfect correlation of positions 2 and 299, of sine alone.
    first = first_high_dimension(sine_table(300, 512), 0.99)
    sine, pope = (correlation(e(300, 512)[:, first:])[2, 299] for e in (sine_table, pope_table))
    assert (sine > 0.94, abs(pope) < 0.1) == (True, True)
    with pytest.raises(UserError, match="0.999"):
        first_high_dimension(pope_table(40, 16), 0.999)


def test_post_norm_attention_is_entered_by_the_encodings_themselves():
    model = pope_tiny(**SIZES, norm="post", max_length=32)
    np.testing.assert_allclose(
        entering_encodings(model.backbone, 300), pope_table(300, 16, normalize=True), atol=1e-5
    )


def test_pre_norm_attention_is_entered_by_normalized_encodings(random):
    """The deviation is the root mean square over every token of the vocabulary, at each position."""
    backbone = sine_tiny(**SIZES).backbone
    gamma = random.normal(size=16)
    norm = backbone.encoder_layers[0].attention_residual.layer_norm
    norm.gamma.assign(gamma)
    tokens, p = 4 * ops.convert_to_numpy(backbone.source_embedding.embeddings), sine_table(20, 16)
    expected = np.empty_like(p)
    for position in range(20):
        deviations = [(token + p[position]).std() for token in tokens]
        deviation = np.sqrt(np.mean(np.square(deviations)) + 1e-5)
        expected[position] = gamma * (p[position] - p[position].mean()) / deviation
    np.testing.assert_allclose(entering_encodings(backbone, 20), expected, atol=1e-4)


def test_a_model_s_products_have_its_own_weights(random, tmp_path):
    models = {}
    for name, build in (("pope", pope_tiny), ("sine", sine_tiny)):
        model = build(**SIZES, norm="post")
        models[name] = trained_products(model, threshold=0.9)
        kernel = ops.convert_to_numpy(model.backbone.encoder_layers[0].attention.kernel)
        q, k = (
            models[name].encodings @ kernel[:, start : start + 8] for start in (8, 24)
        )  # of the second head
        np.testing.assert_allclose(models[name].parts["all"][1], q @ k.T / np.sqrt(8), atol=1e-5)
    assert models["pope"].first_high == models["sine"].first_high

    table = product_table(models, num_positions=50).splitlines()
    assert table[0].endswith("| size, 2 and 299 | correlation, 2 and 299 |")
    high = next(line.split(" | ") for line in table if line.startswith("| sine | high"))
    values, features = models["sine"].parts["high"], sine_table(300, 16)[:, models["sine"].first_high :]
    learned = values[:, :50, :50]
    expected = [np.abs(learned).mean(), np.mean([[row.std() for row in head] for head in learned])]
    expected += [np.abs(values[:, 2, 299]).mean(), np.corrcoef(features[2], features[299])[0, 1]]
    assert [float(cell.rstrip(" |")) for cell in high[2:]] == pytest.approx(expected, abs=0.0051)
    plot_products(models, tmp_path / "products.png")
    with Image.open(tmp_path / "products.png") as picture:
        assert len(picture.convert("RGB").getcolors(100_000)) > 100


def test_the_command_draws_and_prints(tmp_path):
    words = SubwordTokenizer(train_subwords(["a man walks.", "two dogs run."] * 5, 25))
    sizes = {name: size for name, size in SIZES.items() if name != "source_vocabulary_size"}
    pope_tiny(words, **sizes).save_to_preset(tmp_path / "model")
    asked = ["products", str(tmp_path / "products.svg"), str(tmp_path / "model")]
    printed = CliRunner().invoke(app, [*asked, "--threshold", "0.9"], catch_exceptions=False).stdout
    assert f"| {tmp_path / 'model'} | high |" in printed
    assert (tmp_path / "products.svg").exists()


def test_models_without_such_products_are_refused():
    per_head = pope_tiny(**SIZES, position_options={"per_head": True})
    for model in (rope_tiny(**SIZES), per_head):
        with pytest.raises(UserError, match="PoPE"):
            trained_products(model)
