"""What a backbone's configuration says of its glyph encoder, and what older configurations mean."""

import pytest

from kzoo.models import RecurrentBackbone, TransformerBackbone

SMALL = {
    RecurrentBackbone: {
        "embedding_dim": 8,
        "bidirectional": (8,),
        "unidirectional": (),
        "decoder_units": (8,),
    },
    TransformerBackbone: {"num_layers": 1, "width": 8, "num_heads": 2, "feedforward_dim": 8},
}


def form(backbone):
    encoder = backbone.source_embedding.encoder
    return encoder.architecture, encoder.num_features


MEANT = [
    ({}, ("cnn_bn_fc_relu", 1024)),
    ({"architecture": "cnn_fc_relu", "num_features": 16}, ("cnn_bn_fc_relu", 16)),
    ({"architecture": "cnn_softmax_fc"}, ("cnn_bn_softmax_fc", 4096)),
    ({"architecture": "cnn_relu"}, ("cnn_relu", 8)),
    ({"architecture": "fc_1"}, ("fc_bn", 8)),
    ({"architecture": "fc_2"}, ("fc_2", 1024)),
    ({"architecture": "fc_2", "num_features": None}, ("fc_2", 1024)),
]


# Both kinds read configurations in their base class: two cases show that the second does.
@pytest.mark.parametrize(
    ("kind", "saved", "meant"),
    [
        *((RecurrentBackbone, *case) for case in MEANT),
        *((TransformerBackbone, *case) for case in MEANT[:2]),
    ],
)
def test_a_configuration_keeps_what_it_meant(kind, saved, meant):
    """One without a format is from before the architectures were those of the paper's Table 1."""
    new = kind(12, 20, source_embedding="glyph", glyph_options=saved, **SMALL[kind])
    old = kind.from_config({**new.get_config(), "glyph_options": saved})
    assert form(old) == meant
    for backbone in (old, new):
        assert form(kind.from_config(backbone.get_config())) == form(backbone)
    assert form(new)[0] == saved.get("architecture", "cnn_fc_relu")


@pytest.mark.parametrize("kind", SMALL)
def test_a_table_has_no_options(kind):
    assert kind(12, 20, **SMALL[kind]).get_config()["glyph_options"] == {}
