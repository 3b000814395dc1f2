"""XLA compiles the Transformer on TensorFlow, to the numbers that it has without; other tests do without."""

import keras
import numpy as np
import pytest

from kzoo.data import Batches, open_corpus
from kzoo.decoding import search_settings
from kzoo.export import graph_search
from kzoo.models import Adam, LabelSmoothedCrossEntropy, NoamSchedule
from kzoo.models.backbones import uses_xla
from kzoo.presets import pope_tiny
from kzoo.text import SubwordTokenizer, train_subwords

pytestmark = [
    pytest.mark.xla,
    pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="JAX always compiles with XLA"),
]
SMALL = {
    "num_layers": 1,
    "width": 32,
    "num_heads": 2,
    "feedforward_dim": 64,
    "max_length": 40,
    "dropout": 0.0,
}


@pytest.fixture(autouse=True)
def one_length():
    """The model's 40 tokens: a search of each length is compiled on its own."""
    with pytest.MonkeyPatch.context() as patch:  # the test undoes its own
        for module in (search_settings, graph_search):
            patch.setattr(module, "LENGTHS", (40,))
        yield


def trained(english, german, tokenizer):
    """Return a small translator after a little training."""
    keras.utils.set_random_seed(1)
    translator = pope_tiny(tokenizer, **SMALL)
    optimizer = Adam(NoamSchedule(32, 50, 0.5), beta_2=0.98, epsilon=1e-9)
    translator.compile(optimizer, loss=LabelSmoothedCrossEntropy())
    batches = Batches(tokenizer(english), tokenizer(german), tokens=512, num_shapes=1)
    translator.fit(batches, epochs=2, shuffle=False, verbose=0)
    return translator


def test_training_and_search_are_those_without_xla(monkeypatch, xla_backends, tmp_path):
    english, german = (side[:200] for side in open_corpus("scenes").pairs("train", "en", "de"))
    tokenizer = SubwordTokenizer(train_subwords(english + german, 500))
    compiled = trained(english, german, tokenizer)
    assert uses_xla(compiled.backbone)
    assert compiled.jit_compile
    xla_backends()
    plain = trained(english, german, tokenizer)
    assert not plain.jit_compile
    words = {name: np.array(tokenizer(side[:1])) for name, side in (("source", english), ("target", german))}
    logits = [model.predict_on_batch(words) for model in (compiled, plain)]
    np.testing.assert_allclose(*logits, atol=1e-3)  # weights without a gradient drift with Adam
    plain.set_weights(compiled.get_weights())
    translations = compiled.translate(english[:8], beam_size=3)
    assert translations == plain.translate(english[:8], beam_size=3)

    import tensorflow as tf

    monkeypatch.undo()
    monkeypatch.setattr(graph_search, "ROWS", (8,))  # one to compile
    compiled.export(tmp_path / "saved", beam_size=3)
    served = tf.saved_model.load(tmp_path / "saved").signatures["serving_default"](
        text=tf.constant(english[:8])
    )
    assert [text.decode() for text in served["translation"].numpy()] == translations
