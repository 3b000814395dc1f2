"""What a backbone's configuration says of its glyph encoder."""

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


OPTIONS = [
    ({}, ("cnn_fc_relu", 1024)),
    ({"architecture": "cnn_fc_relu", "num_features": 16}, ("cnn_fc_relu", 16)),
    ({"architecture": "cnn_softmax_fc"}, ("cnn_softmax_fc", 4096)),
    ({"architecture": "cnn_relu"}, ("cnn_relu", 8)),
    ({"architecture": "fc_2", "num_features": None}, ("fc_2", 512)),
]


# Both kinds write configurations in their base class: two cases show that the second does.
@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        *((RecurrentBackbone, *case) for case in OPTIONS),
        *((TransformerBackbone, *case) for case in OPTIONS[:2]),
    ],
)
def test_a_configuration_keeps_the_encoder_and_its_defaults(kind, options, expected):
    backbone = kind(12, 20, source_embedding="glyph", glyph_options=options, **SMALL[kind])
    saved = backbone.get_config()["glyph_options"]
    assert saved == dict(zip(("architecture", "num_features"), expected, strict=True))
    assert form(backbone) == form(kind.from_config(backbone.get_config())) == expected


@pytest.mark.parametrize("kind", SMALL)
def test_a_table_has_no_options(kind):
    assert kind(12, 20, **SMALL[kind]).get_config()["glyph_options"] == {}
