"""The optimizers that a recipe can name."""

import keras

from kzoo.models import SGD, Adam, NoamSchedule
from kzoo.training.recipe import Recipe


def make_optimizer(recipe: Recipe, width: int) -> keras.optimizers.Optimizer:
    """Return the recipe's optimizer.

    Args:
        recipe: its `optimizer`, `rate`, `warmup_steps`, `rate_factor`, `clip_norm` and `accumulate` are used.
        width: int. D, which scales Noam's schedule.
    """
    shared = {
        "global_clipnorm": recipe.clip_norm or None,
        "gradient_accumulation_steps": recipe.accumulate if recipe.accumulate > 1 else None,
    }
    if recipe.optimizer == "noam":  # Vaswani et al. 2017, Section 5.3
        rate = NoamSchedule(width, recipe.warmup_steps, recipe.rate_factor, recipe.accumulate)
        return Adam(rate, beta_1=0.9, beta_2=recipe.beta_2, epsilon=1e-9, **shared)
    if (
        recipe.optimizer == "adam"
    ):  # Kingma and Ba 2014, Algorithm 1, whose ε is PyTorch's too; Keras's is 1e-7
        return Adam(recipe.rate, epsilon=1e-8, **shared)
    return SGD(recipe.rate, **shared)


def too_long_a_warm_up(recipe: Recipe, batches: int) -> str:
    """Return a line for the user whose training ends before its rate has reached the peak, else "".

    Args:
        recipe: the recipe.
        batches: int. Batches per epoch.
    """
    updates = recipe.epochs * batches // recipe.accumulate
    if recipe.steps:
        updates = min(updates, recipe.steps)
    if recipe.optimizer != "noam" or updates >= recipe.warmup_steps:
        return ""
    return (
        f"this run has {updates:,} steps, all of them in the warm-up of {recipe.warmup_steps:,}: "
        "its rate stays low; lower warmup_steps, or raise epochs"
    )


def rate_callbacks(recipe: Recipe) -> list[keras.callbacks.Callback]:
    """Return the callback that sets the rate of each epoch, if the recipe halves it."""
    if not recipe.halve_after:
        return []
    return [
        keras.callbacks.LearningRateScheduler(
            lambda epoch: halved_rate(recipe.rate, recipe.halve_after, epoch)
        )
    ]


def halved_rate(rate: float, halve_after: int, epoch: int) -> float:
    """Return the rate of an epoch, counted from 0: constant for `halve_after` epochs, then halved each time.

    It is at least 1e-5 (Broscheit et al. 2018, Section 4.2).
    """
    return max(rate * 0.5 ** max(0, epoch + 1 - halve_after), min(rate, 1e-5))
