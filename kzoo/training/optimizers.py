"""The optimizers that a recipe can name."""

import keras

from kzoo.models import NoamSchedule
from kzoo.training.recipe import Recipe


def make_optimizer(recipe: Recipe, width: int) -> keras.optimizers.Optimizer:
    """Return the recipe's optimizer.

    Args:
        recipe: its `optimizer`, `rate`, `warmup_steps`, `rate_factor` and `clip_norm` count.
        width: int. D, which scales Noam's schedule.
    """
    return OPTIMIZERS[recipe.optimizer](recipe, width, recipe.clip_norm or None)


def _noam(recipe, width, clip_norm):
    """Vaswani et al. 2017, Section 5.3."""
    rate = NoamSchedule(width, recipe.warmup_steps, recipe.rate_factor)
    return keras.optimizers.Adam(rate, beta_1=0.9, beta_2=0.98, epsilon=1e-9, global_clipnorm=clip_norm)


def _adam(recipe, width, clip_norm):
    return keras.optimizers.Adam(recipe.rate, global_clipnorm=clip_norm)


def _sgd(recipe, width, clip_norm):
    return keras.optimizers.SGD(recipe.rate, global_clipnorm=clip_norm)


OPTIMIZERS = {"noam": _noam, "adam": _adam, "sgd": _sgd}
