"""Training from recipes: a preset, a corpus and hyperparameters become a trained model."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "checkpoints": ["Checkpoints"],
        "preparation": ["prepare"],
        "recipe": ["Recipe", "make_recipe", "read_recipe"],
        "train": ["train"],
        "translation_score": ["TranslationScore"],
    },
)
