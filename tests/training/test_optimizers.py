"""The optimizers that recipes name."""

import dataclasses
import warnings

import keras
import numpy as np
import pytest
from message_of import message_of

from kzoo.errors import UserError
from kzoo.layers import GlyphCharEncoder, GlyphEmbedding
from kzoo.models import SGD, Adagrad, Adam, CharacterTagger, TransformerBackbone, Translator
from kzoo.training.checkpoints import Checkpoints
from kzoo.training.optimizer import halved_rate, make_optimizer, rate_callbacks
from kzoo.training.recipe import Recipe
from kzoo.training.recipe_checks import check_recipe
from kzoo.training.run import too_long_a_warm_up

RECIPE = Recipe(preset="pope_tiny", corpus="scenes", source="en", target="de", clip_norm=5.0, rate=0.5)


@pytest.mark.parametrize(
    ("values", "updates"),
    [
        ({"epochs": 20}, "80"),
        ({"epochs": 600, "accumulate": 2}, "1,200"),
        ({"epochs": 600, "steps": 30}, "30"),
        ({"epochs": 500}, None),
        ({"epochs": 20, "warmup_steps": 80}, None),
        ({"epochs": 20, "optimizer": "adam"}, None),
    ],
)
def test_a_run_that_ends_in_its_warm_up_says_so(values, updates):
    recipe = dataclasses.replace(RECIPE, **{"warmup_steps": 2000, **values})
    advice = too_long_a_warm_up(recipe, batches=4)
    assert f"{updates} steps" in advice if updates else advice == ""
    assert advice.endswith("raise steps" if "steps" in values else "raise epochs") or not updates


def test_sgd_clips_the_norm_of_all_gradients_together():
    optimizer = make_optimizer(dataclasses.replace(RECIPE, optimizer="sgd"), width=8)
    weights = [keras.Variable(np.zeros(2, "float32")), keras.Variable(np.zeros(1, "float32"))]
    gradients = [keras.ops.convert_to_tensor(np.array(g, "float32")) for g in ([30.0, 0.0], [40.0])]
    optimizer.apply(gradients, weights)
    np.testing.assert_allclose(np.asarray(weights[0]), [-0.5 * 3.0, 0], rtol=1e-5)
    np.testing.assert_allclose(np.asarray(weights[1]), [-0.5 * 4.0], rtol=1e-5)


def test_adam_is_the_papers_algorithm(random):
    """Kingma and Ba 2015, in the form at the end of Section 2, which adds ε to √v before v is corrected."""
    weight, m, v = random.normal(size=5), 0, 0
    optimizer, variable = Adam(0.1, beta_1=0.9, beta_2=0.98, epsilon=0.1), keras.Variable(weight)
    for t in range(1, 5):
        g = random.normal(size=5)
        optimizer.apply([keras.ops.convert_to_tensor(g, "float32")], [variable])
        m, v = 0.9 * m + 0.1 * g, 0.98 * v + 0.02 * g**2
        weight = weight - 0.1 * np.sqrt(1 - 0.98**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 0.1)
        np.testing.assert_allclose(np.asarray(variable), weight, rtol=1e-5, atol=1e-6)


def test_adam_is_pytorch_s_with_a_larger_epsilon_at_first(random):
    """Kingma and Ba 2015, Algorithm 1, which corrects v before it adds ε; at gradients of the size of ε."""
    weight, m, v, sizes = random.normal(size=5), 0, 0, []
    optimizer, variable = Adam(0.1, epsilon=1e-8), keras.Variable(weight)
    for t in range(1, 5):
        g = 1e-7 * random.uniform(0.5, 2, size=5)
        optimizer.apply([keras.ops.convert_to_tensor(g, "float32")], [variable])
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        sizes.append(1 / np.sqrt(1 - 0.999**t))
        corrected = m / (1 - 0.9**t), v / (1 - 0.999**t)
        weight = weight - 0.1 * corrected[0] / (np.sqrt(corrected[1]) + 1e-8 * sizes[-1])
        np.testing.assert_allclose(np.asarray(variable), weight, rtol=1e-5, atol=1e-6)
    assert sizes[0] == pytest.approx(32, abs=0.5)


@pytest.mark.parametrize(
    ("optimizer", "step"),
    [
        # Of g: Adam's first step has the size of the rate, less with ε; so has Adagrad's.
        (Adam(0.1, epsilon=1.0), lambda g: 0.1 * 0.1 * g * np.sqrt(0.001) / 0.1 / (np.sqrt(0.001) * g + 1.0)),
        (Adagrad(0.1, initial_accumulator_value=9.0), lambda g: 0.1 * g / np.sqrt(9.0 + g**2)),
        (SGD(0.1, global_clipnorm=1.0), lambda g: 0.1 * g / np.sqrt((g**2).sum())),
    ],
    ids=["adam", "adagrad", "sgd"],
)
def test_a_frequent_token_s_gradient_is_added_up_before_it_is_squared(optimizer, step):
    """A token that occurs four times with a gradient of 1, beside one that occurs once: g = (4, 1)."""
    table = keras.layers.Embedding(2, 1, "zeros")
    model = keras.Sequential([keras.Input((5,), dtype="int32"), table])
    model.compile(optimizer, lambda _, vectors: keras.ops.sum(vectors), jit_compile=False)
    model.train_on_batch(np.array([[0, 0, 0, 0, 1]]), np.zeros((1, 5, 1)))
    moved = -keras.ops.convert_to_numpy(table.embeddings)[:, 0]
    np.testing.assert_allclose(moved, step(np.array([4.0, 1.0])), rtol=1e-4)


def check_warning(model, optimizer, warned: bool):
    """Check whether `compile` warns of an optimizer; only TensorFlow gives gradients in parts."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.compile(optimizer)
    told = [str(one.message) for one in caught if "kzoo.models" in str(one.message)]
    assert len(told) == (warned and keras.backend.backend() == "tensorflow")


@pytest.mark.parametrize(
    ("optimizer", "warned"),
    [
        (keras.optimizers.Adam(), True),
        (keras.optimizers.LossScaleOptimizer(keras.optimizers.AdamW()), True),
        (keras.optimizers.SGD(global_clipnorm=1.0), True),
        (keras.optimizers.SGD(momentum=0.9), False),
        (Adam(clipnorm=1.0), False),
        (keras.optimizers.LossScaleOptimizer(Adagrad()), False),
    ],
)
def test_an_optimizer_that_takes_a_gradient_s_parts_is_warned_of(optimizer, warned):
    """Keras's step on parts: test_a_frequent_token_s_gradient_is_added_up_before_it_is_squared."""
    backbone = TransformerBackbone(
        10, 10, num_layers=1, width=8, num_heads=2, feedforward_dim=8, max_length=8
    )
    check_warning(Translator(backbone), optimizer, warned)


@pytest.mark.parametrize(
    ("embedding", "warned"),
    [
        (keras.layers.Embedding(10, 8), True),
        (GlyphEmbedding(10, GlyphCharEncoder(8, "fc_1")), False),  # its gradient is that of matrices
    ],
)
def test_a_tagger_is_warned_of_it_if_it_looks_up_vectors(embedding, warned):
    tagger = CharacterTagger(embedding, ["B-NOUN", "I-NOUN"], None)
    check_warning(tagger, keras.optimizers.Adam(), warned)


@pytest.mark.parametrize("options", [{"amsgrad": True}, {"weight_decay": 0.1}, {"use_ema": True}])
def test_adam_has_kerass_options(options, random):
    first = random.normal(size=5)
    variables = [keras.Variable(first), keras.Variable(first)]
    optimizers = Adam(0.1, **options), keras.optimizers.Adam(0.1, **options)
    for _ in range(3):
        gradient = keras.ops.convert_to_tensor(random.normal(size=5), "float32")
        for optimizer, variable in zip(optimizers, variables, strict=True):
            optimizer.apply([gradient], [variable])
    np.testing.assert_allclose(*map(np.asarray, variables), rtol=1e-5, atol=1e-6)


def test_noam_is_the_paper_s_adam():
    """Vaswani et al. 2017, Section 5.3, but for what the recipe says."""
    recipe = dataclasses.replace(RECIPE, warmup_steps=20, rate_factor=3.0, beta_2=0.98, accumulate=2)
    optimizer = make_optimizer(recipe, width=64)
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (0.9, 0.98, 1e-9)
    rate = keras.saving.deserialize_keras_object(optimizer.get_config()["learning_rate"])
    np.testing.assert_allclose(float(rate(2 * 4)), 3 / 8 * 5 * 20**-1.5, rtol=1e-5)  # the fifth update's


@pytest.mark.parametrize("kind", ["adam", "sgd"])
def test_other_optimizers_have_the_recipe_s_rate(kind):
    optimizer = make_optimizer(dataclasses.replace(RECIPE, optimizer=kind), width=8)
    assert float(optimizer.learning_rate) == RECIPE.rate
    assert optimizer.global_clipnorm == RECIPE.clip_norm


@pytest.mark.parametrize("precision", ["float32", "mixed_float16"])
@pytest.mark.parametrize(("kind", "rate"), [("sgd", 0.5), ("noam", 8**-0.5 * 4000**-1.5)])
def test_a_loss_that_is_not_finite_is_named_with_its_step_s_rate(kind, rate, precision, tmp_path):
    model = keras.Sequential([keras.layers.Dense(1)])
    optimizer = make_optimizer(dataclasses.replace(RECIPE, optimizer=kind), width=8)
    if precision == "mixed_float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    model.compile(optimizer, "mse")
    checkpoints = Checkpoints(tmp_path)
    checkpoints.set_model(model)
    checkpoints.set_params({"steps": 9})
    checkpoints.on_epoch_begin(0)
    with pytest.raises(UserError, match=f" step 7 .* {rate:.3g}:"):
        for batch in range(9):
            checkpoints.on_train_batch_end(batch, {"loss": 1.0 if batch < 6 else float("nan")})


@pytest.mark.parametrize("kind", ["sgd", "noam"])
def test_accumulated_batches_make_one_update_of_their_mean_gradient(kind, random):
    recipe = dataclasses.replace(RECIPE, optimizer=kind, clip_norm=0.5)
    whole = make_optimizer(recipe, width=8)
    accumulating = make_optimizer(dataclasses.replace(recipe, accumulate=3), width=8)
    one, other = (keras.Variable(np.zeros(4, "float32")) for _ in range(2))
    for update in range(2):
        gradients = random.normal(size=(3, 4)).astype("float32")
        whole.apply([keras.ops.convert_to_tensor(gradients.mean(axis=0))], [one])
        for gradient in gradients:
            assert int(accumulating.iterations) == update
            accumulating.apply([keras.ops.convert_to_tensor(gradient)], [other])
        np.testing.assert_allclose(np.asarray(other), np.asarray(one), rtol=1e-4, atol=1e-9)
    assert int(accumulating.iterations) == int(whole.iterations) == 2


def test_halving_is_the_paper_s_schedule():
    rates = [halved_rate(1e-3, 4, epoch) for epoch in range(12)]
    assert rates[:4] == [1e-3] * 4
    assert rates[4:7] == pytest.approx([5e-4, 2.5e-4, 1.25e-4])
    assert rates[11] == 1e-5
    assert len(rate_callbacks(dataclasses.replace(RECIPE, optimizer="adam", halve_after=4))) == 1
    (callback,) = rate_callbacks(dataclasses.replace(RECIPE, optimizer="sgd", halve_after=2))
    assert [callback.schedule(epoch) for epoch in range(4)] == [0.5, 0.5, 0.25, 0.125]
    assert rate_callbacks(RECIPE) == []
    assert "halve_after" in message_of(check_recipe, dataclasses.replace(RECIPE, rate=1e-3, halve_after=4))
