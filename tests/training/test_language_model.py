"""A decoder's training as a language model: what it learns, and that nothing stops it for good."""

import json
import os
import shutil
import signal
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from message_of import message_of

from kzoo.data import Batches
from kzoo.presets import lookup_zh_en_tiny
from kzoo.text import CharacterTokenizer
from kzoo.training.checkpoints import Checkpoints
from kzoo.training.language_model import train_language_model
from kzoo.training.resuming import Preemption
from kzoo.training.strategies import Strategy

OFTEN = 1e-9  # minutes between checkpoints: after every batch
SMALL = {
    "target_vocabulary_size": 20,
    "embedding_dim": 8,
    "bidirectional": (8,),
    "unidirectional": (),
    "decoder_units": (8,),
    "dropout": 0.2,
}


def translator():
    keras.utils.set_random_seed(1)
    return lookup_zh_en_tiny(CharacterTokenizer(list("学生我看书")), **SMALL)


def batches(lines: int = 60) -> Batches:
    """Return sentences in which 5 follows 4, 6 follows 5 and so on."""
    random = np.random.default_rng(2)
    targets = [list(range(4, 4 + length)) for length in random.integers(3, 9, lines)]
    return Batches([[4]] * lines, targets, tokens=64, num_shapes=1)


def train(model, folder, epochs: int = 2, data: str = "text"):
    run = Checkpoints(folder / "checkpoints", minutes=OFTEN, data=data)
    preemption = Preemption(Strategy())
    with preemption.listening(), preemption.saving(run):
        train_language_model(model, batches(), batches(20), epochs, folder, preemption, verbose=0)
        assert preemption.checkpoints is run


def trained(folder, epochs: int = 2):
    """Return the decoder's weights, and what is written about it."""
    model = translator()
    train(model, folder, epochs)
    result = json.loads((folder / "language_model" / "language_model.json").read_text())
    return model.backbone.language_model().get_weights(), result


def equal(first, second):
    for ours, theirs in zip(first, second, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    return folder, *trained(folder)


def test_perplexity_falls_and_is_written(unbroken, tmp_path):
    folder, _, result = unbroken
    assert result["epochs"] == 2
    assert trained(tmp_path, epochs=6)[1]["perplexity"] < result["perplexity"] < 20
    assert os.listdir(folder) == ["language_model"]


def test_a_run_that_goes_on_takes_what_is_trained(unbroken):
    folder, weights, _ = unbroken
    equal(trained(folder)[0], weights)
    assert "changed" in message_of(train, translator(), folder, data="other text")


def test_a_damaged_language_model_is_named(unbroken, tmp_path):
    shutil.copytree(unbroken[0] / "language_model", tmp_path / "language_model")
    (tmp_path / "language_model" / "language_model.json").write_text("{")
    assert "language_model" in message_of(train, translator(), tmp_path)


def stopped(folder, step: int, monkeypatch):
    real = Checkpoints.on_train_batch_end

    def stop(self, batch, logs=None):
        real(self, batch, logs)
        if self.step == step:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patched, pytest.raises(SystemExit) as ended:
        patched.setattr(Checkpoints, "on_train_batch_end", stop)
        trained(folder)
    assert ended.value.code == 0


@pytest.mark.parametrize("step", [3, 9])
def test_a_stopped_training_goes_on_to_the_same_weights(unbroken, tmp_path, monkeypatch, capsys, step):
    stopped(tmp_path, step, monkeypatch)
    assert "saved" in capsys.readouterr().out
    assert os.listdir(tmp_path) == ["language_model_checkpoints"]
    equal(trained(tmp_path)[0], unbroken[1])
    assert os.listdir(tmp_path) == ["language_model"]


def test_a_damaged_checkpoint_is_left_out(unbroken, tmp_path, monkeypatch, capsys):
    stopped(tmp_path, 4, monkeypatch)
    *_, last = sorted((tmp_path / "language_model_checkpoints").glob("epoch_*"))
    weights = last / "checkpoint.weights.h5"
    weights.write_bytes(weights.read_bytes()[:-1])
    equal(trained(tmp_path)[0], unbroken[1])
    assert f"{last.name} is damaged" in capsys.readouterr().out


def test_a_worker_that_is_told_in_it_stops_later(tmp_path):
    """Several workers leave together at a 16th step, which may be one of the translator's."""
    preemption = Preemption(SimpleNamespace(workers=2))
    with preemption.listening(), preemption.saving(Checkpoints(tmp_path / "checkpoints")):
        os.kill(os.getpid(), signal.SIGTERM)
        preemption.on_train_end()
        assert preemption._received == signal.SIGTERM


def test_a_loss_that_is_not_a_number_stops_it(tmp_path):
    model = translator()
    decoder = model.backbone.language_model()
    decoder.set_weights([np.full_like(weights, np.nan) for weights in decoder.get_weights()])
    assert "step 1 " in message_of(train, model, tmp_path)
    assert not (tmp_path / "language_model").exists()
