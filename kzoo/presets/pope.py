"""The Transformers of the PoPE paper: Legendre positions, and the encodings it compares them with."""

from kzoo.models import Translator
from kzoo.presets.assembly import Vocab, transformer

# Vaswani et al. 2017, Table 3, row "base": the paper's models.
BASE = {
    "num_layers": 6,
    "width": 512,
    "num_heads": 8,
    "feedforward_dim": 2048,
    "dropout": 0.1,
    "norm": "post",
}
# Its row "big".
BIG = {**BASE, "width": 1024, "num_heads": 16, "feedforward_dim": 4096, "dropout": 0.3}
# For corpora as small as Multi30k: Wu et al. 2021, "Good for Misconceived Reasons" (their Tiny).
TINY = {
    "num_layers": 4,
    "width": 128,
    "num_heads": 4,
    "feedforward_dim": 256,
    "dropout": 0.3,
    "norm": "pre",
}
# As deep as TINY and twice as wide; two CPU cores train it in two hours.
SMALL = {**TINY, "width": 256, "feedforward_dim": 512}

POPE = {"position_encoding": "pope"}
ORTHONORMAL = {**POPE, "position_options": {"normalize": True}}
SINE = {"position_encoding": "sine"}
ROPE = {"position_encoding": "rope"}
LEARNED = {"position_encoding": "learned"}


def pope_base(source_tokenizer: Vocab = None, target_tokenizer: Vocab = None, **overrides) -> Translator:
    """Transformer base with Legendre positions as in the paper (Aggarwal 2024, Eq. 14, Table 1)."""
    return transformer(source_tokenizer, target_tokenizer, **{**BASE, **POPE, **overrides})


def sine_base(source_tokenizer: Vocab = None, target_tokenizer: Vocab = None, **overrides) -> Translator:
    """Transformer base with sinusoids (Vaswani et al. 2017, Section 3.5): the paper's baseline."""
    return transformer(source_tokenizer, target_tokenizer, **{**BASE, **SINE, **overrides})


def rope_base(source_tokenizer: Vocab = None, target_tokenizer: Vocab = None, **overrides) -> Translator:
    """Transformer base with rotary positions (Su et al. 2021) in both self-attentions."""
    return transformer(source_tokenizer, target_tokenizer, **{**BASE, **ROPE, **overrides})


def learned_base(source_tokenizer: Vocab = None, target_tokenizer: Vocab = None, **overrides) -> Translator:
    """Transformer base with a learned vector for each position (Gehring et al. 2017)."""
    return transformer(source_tokenizer, target_tokenizer, **{**BASE, **LEARNED, **overrides})


def pope_big(source_tokenizer: Vocab = None, target_tokenizer: Vocab = None, **overrides) -> Translator:
    """Transformer big (Vaswani et al. 2017, Table 3) with Legendre positions: not in Aggarwal 2024."""
    return transformer(source_tokenizer, target_tokenizer, **{**BIG, **POPE, **overrides})


def sine_big(source_tokenizer: Vocab = None, target_tokenizer: Vocab = None, **overrides) -> Translator:
    """Transformer big with sinusoids (Vaswani et al. 2017, Table 3; "big" in Aggarwal 2024, Table 1)."""
    return transformer(source_tokenizer, target_tokenizer, **{**BIG, **SINE, **overrides})


def pope_small(source_tokenizer: Vocab = None, target_tokenizer: Vocab = None, **overrides) -> Translator:
    """Transformer between tiny and base with orthonormal Legendre positions, pre-norm."""
    return transformer(source_tokenizer, target_tokenizer, **{**SMALL, **ORTHONORMAL, **overrides})


def sine_small(source_tokenizer: Vocab = None, target_tokenizer: Vocab = None, **overrides) -> Translator:
    """Transformer between tiny and base with sinusoids, pre-norm."""
    return transformer(source_tokenizer, target_tokenizer, **{**SMALL, **SINE, **overrides})


def rope_small(source_tokenizer: Vocab = None, target_tokenizer: Vocab = None, **overrides) -> Translator:
    """Transformer between tiny and base with rotary positions, pre-norm."""
    return transformer(source_tokenizer, target_tokenizer, **{**SMALL, **ROPE, **overrides})


def pope_tiny(source_tokenizer: Vocab = None, target_tokenizer: Vocab = None, **overrides) -> Translator:
    """Small Transformer with orthonormal Legendre positions, pre-norm."""
    return transformer(source_tokenizer, target_tokenizer, **{**TINY, **ORTHONORMAL, **overrides})


def sine_tiny(source_tokenizer: Vocab = None, target_tokenizer: Vocab = None, **overrides) -> Translator:
    """Small Transformer with sinusoids, pre-norm."""
    return transformer(source_tokenizer, target_tokenizer, **{**TINY, **SINE, **overrides})


def rope_tiny(source_tokenizer: Vocab = None, target_tokenizer: Vocab = None, **overrides) -> Translator:
    """Small Transformer with rotary positions, pre-norm."""
    return transformer(source_tokenizer, target_tokenizer, **{**TINY, **ROPE, **overrides})


def learned_tiny(source_tokenizer: Vocab = None, target_tokenizer: Vocab = None, **overrides) -> Translator:
    """Small Transformer with a learned vector for each position, pre-norm."""
    return transformer(source_tokenizer, target_tokenizer, **{**TINY, **LEARNED, **overrides})
