"""Runs from before the glyph encoders were those of Table 1: refused where the encoder changed."""

import pytest
from message_of import message_of

from kzoo.presets import glyph_zh_en_tiny
from kzoo.training.checkpoints import Checkpoints

SMALL = {
    "source_vocabulary_size": 12,
    "target_vocabulary_size": 20,
    "embedding_dim": 8,
    "bidirectional": (8,),
    "unidirectional": (),
    "decoder_units": (8,),
}


def checkpoints(folder, architecture, num_features=None):
    options = {"num_features": num_features} if num_features else {}
    found = Checkpoints(folder)
    found.set_model(glyph_zh_en_tiny(architecture=architecture, glyph_options=options, **SMALL))
    found.model.optimizer.build(found.model.trainable_variables)
    return found


@pytest.mark.parametrize(("before", "now"), [(("fc_1",), ("cnn_relu",)), (("fc_2", 1024), ("fc_2",))])
def test_a_run_of_another_network_is_refused(before, now, tmp_path):
    run = checkpoints(tmp_path, *before)
    run.batch = 3
    run.save()
    assert "another" in message_of(checkpoints(tmp_path, *now).restore)
    again = checkpoints(tmp_path, *before)
    again.restore()
    assert again.batch == 3
