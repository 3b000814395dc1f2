"""A recipe's optimizer and its learning rate."""

import functools

import keras

from kzoo.models import SGD, Adam, NoamSchedule
from kzoo.training.cooldown import CoolingAdam, CoolingSGD
from kzoo.training.recipe import Recipe


def make_optimizer(recipe: Recipe, width: int) -> keras.optimizers.Optimizer:
    """Return the recipe's optimizer. Noam's schedule depends on the model's width D."""
    shared = {
        "global_clipnorm": recipe.clip_norm or None,
        "gradient_accumulation_steps": recipe.accumulate if recipe.accumulate > 1 else None,
    }
    adam, sgd = (CoolingAdam, CoolingSGD) if recipe.cooldown else (Adam, SGD)
    if recipe.optimizer == "noam":  # Vaswani et al. 2017, Section 5.3
        rate = NoamSchedule(width, recipe.warmup_steps, recipe.rate_factor, recipe.accumulate)
        return adam(rate, beta_1=0.9, beta_2=recipe.beta_2, epsilon=1e-9, **shared)
    if recipe.optimizer == "adam":
        # PyTorch's ε, which Keras adds at another place (`Adam`); Keras's default is 1e-7.
        return adam(recipe.rate, epsilon=1e-8, **shared)
    return sgd(recipe.rate, **shared)


def rate_callbacks(recipe: Recipe) -> list[keras.callbacks.Callback]:
    """Return the callback that halves the learning rate, if the recipe does so."""
    rate = functools.partial(halved_rate, recipe.rate, recipe.halve_after)
    return [keras.callbacks.LearningRateScheduler(rate)] if recipe.halve_after else []


def halved_rate(rate: float, halve_after: int, epoch: int) -> float:
    """Return the learning rate of an epoch, counted from 0.

    It is constant for `halve_after` epochs, then halved every epoch, down to 1e-5 (Broscheit et al. 2018,
    Section 4.2).
    """
    return max(rate * 0.5 ** max(0, epoch + 1 - halve_after), min(rate, 1e-5))
