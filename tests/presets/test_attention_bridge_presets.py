"""The attention bridge paper's models: its numbers, counted by hand."""

import pytest
from message_of import message_of

from kzoo.errors import UserError
from kzoo.presets import attention_bridge_bilingual, attention_bridge_m2m, attention_bridge_m2m_tiny, build

pytestmark = pytest.mark.usefixtures("zeros")


def lstm(inputs: int, units: int) -> int:
    return 4 * (inputs + units + 1) * units


def parameters(languages: int, V: int, tables: int = 2, bridge: bool = True) -> int:
    """Count the base model of Section 3: two BiLSTMs, two LSTMs with Luong's attention and input feeding."""
    encoder = 2 * lstm(512, 256) + 2 * lstm(512, 256)
    decoder = lstm(512 + 512, 512) + lstm(512, 512) + 512 * 512 + (512 + 512) * 512
    language = tables * V * 512 + encoder + decoder + 512 * V + V
    return languages * language + bridge * (512 * 1024 + 1024 + 1024 * 10 + 10)


def test_languages_are_named_once_and_tokenizers_by_them():
    assert "de, de" in message_of(attention_bridge_m2m_tiny, languages=("en", "de", "de"))
    assert "'en'" in message_of(attention_bridge_m2m_tiny, languages="en")
    assert "list" in message_of(attention_bridge_m2m_tiny, ["en", "de"])


@pytest.mark.parametrize(
    ("settings", "counted"),
    [({}, {}), ({"bridge": False}, {"bridge": False}), ({"tied_embeddings": True}, {"tables": 1})],
)
def test_base_has_the_sizes_of_section_3(settings, counted):
    """Embeddings of source and target are separate tables (d_x, d_y), tied only on request."""
    model = attention_bridge_bilingual(languages=("en", "de"), vocabulary_size=50, **settings)
    assert model.backbone.count_params() == parameters(2, 50, **counted)


def test_of_four_languages_with_10_000_subwords_each_base_has_98_7_million_parameters():
    model = attention_bridge_m2m(vocabulary_size=7)
    assert model.backbone.count_params() == parameters(4, 7)
    assert parameters(4, 10_000) == 98_748_490


def test_base_drops_where_the_authors_toolkit_does():
    """The paper is silent; the toolkit's default is 0.3, between LSTMs and on the attentional vectors."""
    config = attention_bridge_bilingual(vocabulary_size=7).backbone.get_config()
    assert (config["dropout"], config["layer_dropout"]) == (0.0, 0.3)


@pytest.mark.parametrize("builder", [attention_bridge_bilingual, attention_bridge_m2m_tiny])
def test_the_penalty_is_the_authors_toolkit_s_unless_asked_for(builder):
    languages = {"languages": ("en", "de"), "vocabulary_size": 7, "hidden_dim": 8}
    bridge = builder(**languages).backbone.bridge
    assert (bridge.penalty_weight, bridge.use_bias, bridge.squared) == (1 / 64, True, True)
    bridge = builder(**languages, penalty_weight=1.0, use_bias=False).backbone.bridge
    assert (bridge.penalty_weight, bridge.use_bias, bridge.squared) == (1, False, True)


def test_the_optimizer_is_the_paper_s_sgd_with_its_toolkit_s_clipping():
    model = attention_bridge_m2m(vocabulary_size=50, embedding_dim=8, width=8, hidden_dim=8)
    assert model.languages == ["en", "de", "fr", "cs"]
    assert type(model.optimizer).__name__ == "SGD"
    assert float(model.optimizer.learning_rate) == 1.0
    assert model.optimizer.global_clipnorm == 5.0
    assert type(model.loss).__name__ == "SentenceCrossEntropy"


def test_overrides_and_unknown_arguments():
    model = attention_bridge_m2m_tiny(languages=("en", "id"), vocabulary_size=50, width=16)
    assert model.backbone.get_config()["width"] == 16
    with pytest.raises(UserError, match="attention_bridge_m2m "):
        build("attention_bridge_m2m", None, vocabulary_size=50, encoder="mamba")
