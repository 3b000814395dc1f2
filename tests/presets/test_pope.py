"""The builders: the papers' numbers, compiled."""

import pytest
from message_of import message_of

from kzoo.presets import (
    attention_bridge_m2m_tiny,
    build,
    learned_tiny,
    list_presets,
    load,
    lookup_zh_en_tiny,
    pope_base,
    pope_big,
    pope_tiny,
    rope_tiny,
    sine_big,
    sine_tiny,
)
from kzoo.presets.pope import BIG


@pytest.mark.usefixtures("zeros")
def test_base_is_vaswani_s_transformer():
    model = pope_base(source_vocabulary_size=100)
    config = model.backbone.get_config()
    assert (config["num_layers"], config["width"], config["num_heads"]) == (6, 512, 8)
    assert (config["feedforward_dim"], config["norm"], config["position_encoding"]) == (2048, "post", "pope")
    assert config["position_options"] == {}
    # Vaswani et al. 2017, Table 3: 65 million with 37,000 joint subwords; 44.1 million without embeddings.
    assert model.count_params() - 100 * 512 == 44_138_496
    assert model.compiled


@pytest.mark.usefixtures("zeros")
@pytest.mark.parametrize("builder", [pope_big, sine_big])
def test_big_is_vaswani_s(builder):
    """Vaswani et al. 2017, Table 3, row "big": 213 million parameters with 37,000 joint subwords."""
    model = builder(source_vocabulary_size=100, num_layers=1)
    config = model.backbone.get_config()
    assert (config["width"], config["num_heads"], config["feedforward_dim"]) == (1024, 16, 4096)
    assert (config["dropout"], config["norm"]) == (0.3, "post")
    assert config["position_encoding"] == builder.__name__.removesuffix("_big")
    layers = BIG["num_layers"] * (model.count_params() - 100 * 1024)
    assert (layers + 37_000 * 1024) / 1e6 == pytest.approx(213, rel=0.01)


@pytest.mark.parametrize("builder", [pope_tiny, rope_tiny, sine_tiny, learned_tiny])
def test_tiny(builder):
    config = builder().backbone.get_config()
    assert (config["num_layers"], config["width"], config["num_heads"], config["feedforward_dim"]) == (
        4,
        128,
        4,
        256,
    )
    assert config["dropout"] == 0.3
    assert config["position_encoding"] == builder.__name__.removesuffix("_tiny")


def test_overrides_and_names():
    assert build("pope_tiny", num_layers=1).backbone.get_config()["num_layers"] == 1
    assert {"pope_base", "pope_tiny"} <= set(list_presets("pope*"))
    assert "sine_base" not in list_presets("pope*")


@pytest.mark.parametrize(
    ("call", "arguments", "name"),
    [
        (build, {"name": "pope_tny"}, "pope_tiny"),
        (load, {"preset": "pope_small_multi30k_en_dee"}, "pope_small_multi30k_en_dee"),
        (build, {"name": "pope_tiny", "depth": 3}, "'depth'"),
        (pope_tiny, {"num_layer": 2}, "num_layers"),
        (lookup_zh_en_tiny, {"dropot": 2}, "dropout"),
        (attention_bridge_m2m_tiny, {"vocabulary_sizes": 2}, "vocabulary_size"),
    ],
)
def test_unknown_names_are_answered_with_the_nearest(call, arguments, name):
    assert name in message_of(call, **arguments)
