"""From sentences to word numbers and back."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "tokenizers": ["END", "PAD", "START", "UNKNOWN", "SubwordTokenizer", "train_subwords"],
    },
)
