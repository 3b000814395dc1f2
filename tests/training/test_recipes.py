"""The recipes in training/: all of them are read, and those of the papers' own sizes have their numbers."""

import dataclasses
import inspect
from pathlib import Path

import pytest

from kzoo.decoding import GNMT, SearchSettings
from kzoo.presets.shelf import is_builder
from kzoo.training import Recipe, read_recipe
from kzoo.training.run import halved_rate
from kzoo.training.tasks import make_optimizer

FOLDER = Path(__file__).parents[2] / "training"
RECIPES = [path for path in sorted(FOLDER.glob("*/*.toml")) if path.stem != "paper"]


def values(recipe, *names):
    return tuple(getattr(recipe, name) for name in names)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_is_read(path):
    recipe = read_recipe(path)
    earlier = path.with_stem(Path(recipe.preset).name)  # of the run that is trained further
    assert is_builder(recipe.preset) or earlier.exists()
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# Reproduces: ")
    assert f" kzoo train {path.stem}" in text


def test_pope_has_the_paper_s_steps_and_vaswani_s_rate():
    """Aggarwal 2024, Table 1; what it does not say is Vaswani et al. 2017, Sections 5.3 and 5.4."""
    recipe = read_recipe("pope_multi30k_base")
    assert (recipe.preset, recipe.model) == ("pope_base", {})
    assert values(recipe, "corpus", "source", "target") == ("multi30k", "en", "de")
    assert values(recipe, "steps", "accumulate") == (10_000, 1)
    assert values(recipe, "optimizer", "warmup_steps", "rate_factor") == ("noam", 4000, 1.0)
    assert values(recipe, "beta_2", "clip_norm", "label_smoothing") == (0.98, 0.0, 0.1)


def test_attention_bridge_has_the_paper_s_text_and_sgd():
    """Vázquez et al. 2019, Section 3; the gradients' norm is that of the toolkit it was made with."""
    recipe = read_recipe("attention_bridge_m2m")
    assert (recipe.preset, recipe.model) == ("attention_bridge_m2m", {})
    assert (recipe.corpus, sorted(recipe.languages)) == ("multi30k", ["cs", "de", "en", "fr"])
    assert values(recipe, "monolingual", "centre", "left_out") == (True, "", "")
    assert values(recipe, "text", "vocabulary_size") == ("lowercased", 10_000)
    assert values(recipe, "optimizer", "rate", "halve_after", "sentences") == ("sgd", 1.0, 0, 64)
    assert values(recipe, "clip_norm", "label_smoothing", "accumulate") == (5.0, 0.0, 1)


def test_glyph_has_the_paper_s_schedule_and_search():
    """Broscheit et al. 2018, Section 4.2 and Table 3; what they leave open are PyTorch's defaults."""
    recipe = read_recipe("glyph_zh_en")
    assert (recipe.preset, recipe.model) == ("glyph_zh_en", {})
    assert values(recipe, "corpus", "source", "target") == ("wmt17_zh_en", "zh", "en")
    assert values(recipe, "source_characters", "vocabulary_size") == ("common", 32_413)
    assert values(recipe, "language_model_epochs", "epochs", "steps") == (20, 10, 0)
    assert (recipe.optimizer, recipe.accumulate) == ("adam", 1)
    optimizer = make_optimizer(recipe, width=512)
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (0.9, 0.999, 1e-8)
    rates = [halved_rate(recipe.rate, recipe.halve_after, epoch) for epoch in range(10)]
    assert rates == pytest.approx([1e-3] * 4 + [1e-3 / 2**n for n in range(1, 7)])
    assert values(recipe, "beam_size", "length_penalty") == (10, 0.9)


def test_image_text_has_the_paper_s_loss_search_and_warm_up():
    """Ma et al. 2020, Section III.B, Eq. 4; the schedule is Vaswani's: its rate peaks after the warm-up."""
    recipe = read_recipe("image_text_base")
    assert (recipe.preset, recipe.model) == ("image_text_base", {})
    assert values(recipe, "corpus", "source", "target") == ("multi30k", "en", "de")
    assert values(recipe, "text", "beam_size") == ("truecased", 10)
    assert values(recipe, "label_smoothing", "average") == (0.0, 1)
    optimizer = make_optimizer(recipe, width=512)
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (0.9, 0.997, 1e-9)
    rates = [float(optimizer._learning_rate(step)) for step in (8_000, 16_000, 64_000)]
    highest = 512**-0.5 * 16_000**-0.5
    assert rates == pytest.approx([highest / 2, highest, highest / 2], rel=1e-3)


def test_the_search_of_a_recipe():
    recipe = read_recipe("demo_scenes", ["gnmt=0.6", "max_length=40", "beam_size=3"])
    assert SearchSettings().changed(**recipe.search_settings()) == SearchSettings(3, GNMT(0.6), 40)
    given = read_recipe("demo_scenes", ["length_penalty=0.5"]).search_settings()
    assert SearchSettings(7, GNMT(0.6)).changed(**given) == SearchSettings(7, 0.5)


def test_every_key_is_documented():
    documented = inspect.getdoc(Recipe)
    assert all(f"{field.name}: " in documented for field in dataclasses.fields(Recipe))
