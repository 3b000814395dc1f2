"""The attention bridge paper's models: its numbers, counted by hand."""

import pytest

from kzoo.errors import UserError
from kzoo.presets import attention_bridge_bilingual, attention_bridge_m2m, attention_bridge_m2m_tiny, build

V = 10000


def lstm(inputs: int, units: int) -> int:
    return 4 * (inputs + units + 1) * units


def test_a_language_named_twice_is_refused():
    with pytest.raises(UserError, match="a language is named twice: en, de, de"):
        attention_bridge_m2m_tiny(languages=("en", "de", "de"))


def test_tokenizers_without_their_languages_are_refused():
    with pytest.raises(UserError, match="given by language, as {'en': tokenizer, …}, not in a list"):
        attention_bridge_m2m_tiny(["en", "de"])


def test_the_base_model_has_the_paper_s_size():
    model = attention_bridge_bilingual(languages=("en", "de"), vocabulary_size=V)
    encoder = 2 * lstm(512, 256) + 2 * lstm(512, 256)
    decoder = lstm(512 + 512, 512) + lstm(512, 512) + 512 * 512 + (512 + 512) * 512
    language = V * 512 + encoder + decoder + 512 * V + V
    bridge = 512 * 1024 + 1024 * 10
    assert model.backbone.count_params() == 2 * language + bridge
    without = attention_bridge_bilingual(languages=("en", "de"), vocabulary_size=V, bridge=False)
    assert without.backbone.count_params() == 2 * language


def test_the_recipe_is_the_paper_s():
    model = attention_bridge_m2m(vocabulary_size=50, embedding_dim=8, width=8, hidden_dim=8)
    assert model.languages == ["en", "de", "fr", "cs"]
    assert type(model.optimizer).__name__ == "SGD"
    assert float(model.optimizer.learning_rate) == 1.0
    assert model.optimizer.global_clipnorm == 5.0
    assert type(model.loss).__name__ == "SentenceCrossEntropy"


def test_overrides_and_unknown_arguments():
    model = attention_bridge_m2m_tiny(languages=("en", "id"), vocabulary_size=50, width=16)
    assert model.backbone.get_config()["width"] == 16
    with pytest.raises(UserError, match="attention_bridge_m2m with"):
        build("attention_bridge_m2m", None, vocabulary_size=50, encoder="mamba")
