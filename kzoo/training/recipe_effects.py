"""Keys that a recipe has no use for: they are refused, because somebody expects something of them."""

from kzoo.errors import UserError
from kzoo.presets.shelf import is_trained

OF_SEVERAL_LANGUAGES = (
    "centre",
    "left_out",
    "monolingual",
    "directions",
    "pair_weights",
    "batches_per_epoch",
    "validation_sentences",
    "sentences",
)
OF_TWO_LANGUAGES = (
    "source",
    "target",
    "joint_vocabulary",
    "source_characters",
    "language_model_epochs",
    "images",
    "consistency",
)
OF_NOAM = ("warmup_steps", "rate_factor", "beta_2")
OF_BUILDERS = ("text", "vocabulary_size", "joint_vocabulary", "source_characters", "language_model_epochs")


def check_has_effect(recipe, where: str):
    """Refuse a key whose value is not its default and would change nothing.

    Args:
        recipe: a `kzoo.training.Recipe`.
        where: its name in errors.
    """
    defaults = vars(type(recipe)(recipe.preset, recipe.corpus))
    changed = {key for key, value in vars(recipe).items() if value != defaults[key]}
    useless = {
        "a model of one direction": () if recipe.languages else OF_SEVERAL_LANGUAGES,
        "a multilingual model": OF_TWO_LANGUAGES if recipe.languages else (),
        # Not monolingual, which is true in recipes that directions narrow.
        "directions": ("centre", "left_out") if recipe.directions else (),
        "sentences, which is the batches' size": ("tokens",) if recipe.sentences else (),
        "optimizer noam, whose rate is rate_factor's": ("rate",) if recipe.optimizer == "noam" else (),
        f"optimizer {recipe.optimizer}": () if recipe.optimizer == "noam" else OF_NOAM,
        "source_characters": ("joint_vocabulary",) if recipe.source_characters else (),
        f"{recipe.preset}, which is trained and has its vocabularies": OF_BUILDERS
        if is_trained(recipe.preset)
        else (),
        'another corpus than "files"': ()
        if recipe.corpus == "files"
        else ("train", "val", "test", "columns"),
    }
    for of, keys in useless.items():
        if found := [key for key in keys if key in changed]:
            raise UserError(
                f"{where}: {', '.join(found)} would change nothing with {of}: leave it out, or at its default"
            )
