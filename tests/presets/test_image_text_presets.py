"""The image-text builders and recipes: the paper's numbers, compiled."""

import keras
import pytest
from keras import ops

from kzoo.presets import image_text_base, image_text_tiny, pope_base, text_only_base, text_only_tiny


@pytest.mark.usefixtures("zeros")
def test_base_is_vaswani_s_transformer_with_the_features_of_vgg():
    model, text_only = (build(source_vocabulary_size=50) for build in (image_text_base, text_only_base))
    config = model.backbone.get_config()
    assert (config["num_layers"], config["width"], config["num_heads"]) == (6, 512, 8)
    assert (config["feedforward_dim"], config["norm"], config["position_encoding"]) == (2048, "post", "sine")
    assert config["dropout"] == 0.1
    assert model.image_shape == (4096,)
    own = {"name": config["name"], "image_shape": [4096]}
    assert text_only.backbone.get_config() | own == config
    # A layer more: the map of the image, those of the words, the map back, and a normalization.
    attention = 4096 * 512 + 512 + 2 * (512 * 512 + 512) + 512 * 512 + 512 + 2 * 512
    assert model.count_params() - text_only.count_params() == 6 * attention


def test_the_rate_is_vaswani_s_with_the_paper_s_warm_up():
    optimizer = text_only_base(source_vocabulary_size=10, num_layers=1).optimizer
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (0.9, 0.997, 1e-9)
    schedule = optimizer._learning_rate
    assert isinstance(schedule, keras.optimizers.schedules.LearningRateSchedule)
    peak = float(ops.convert_to_numpy(schedule(16_000 - 1)))
    assert peak == pytest.approx(512**-0.5 * 16_000**-0.5, rel=1e-3)


def test_the_loss_is_the_paper_s_log_likelihood():
    """Eq. 4, without label smoothing, which `pope`'s models have."""
    smoothing = [
        build(source_vocabulary_size=10, num_layers=1).loss.label_smoothing
        for build in (text_only_base, pope_base)
    ]
    assert smoothing == [0.0, 0.1]


def test_tiny_reads_small_pictures():
    assert image_text_tiny(source_vocabulary_size=20, num_layers=1).image_shape == (64, 64, 3)
    assert text_only_tiny(source_vocabulary_size=20, num_layers=1).image_shape is None
