"""From sentences to token ids and back."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "character_tokenizer": ["CharacterTokenizer", "learn_characters"],
        "chinese_characters": ["common_chinese_characters"],
        "glyphs": ["render_glyphs"],
        "moses_tokenizer": [
            "MosesSubwordTokenizer",
            "TruecasedSubwordTokenizer",
            "moses_text",
            "moses_tokens",
        ],
        "segment_tags": ["segments_to_tags", "tags_to_segments"],
        "tokenizers": ["END", "PAD", "START", "UNKNOWN", "SubwordTokenizer", "train_subwords"],
        "truecaser": ["Truecaser", "learn_forms"],
    },
)
