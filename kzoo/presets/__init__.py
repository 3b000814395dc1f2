"""Named models: builders of fresh ones (`pope_base()`), and the shelf of trained ones (`load(NAME)`).

Finding and listing needs no deep-learning library: that is imported when a model is built or loaded.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "attention_bridge": [
            "attention_bridge_bilingual",
            "attention_bridge_bilingual_tiny",
            "attention_bridge_m2m",
            "attention_bridge_m2m_tiny",
        ],
        "glyph": [
            "glyph_zh_en",
            "glyph_zh_en_tiny",
            "lookup_zh_en",
            "lookup_zh_en_tiny",
        ],
        "pope": [
            "learned_base",
            "learned_tiny",
            "pope_base",
            "pope_tiny",
            "rope_base",
            "rope_tiny",
            "sine_base",
            "sine_tiny",
        ],
        "shelf": ["build", "builder", "list_presets", "load"],
    },
)
