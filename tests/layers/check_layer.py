"""What every layer must do, in one helper: one line of a layer's test calls it."""

import inspect
import warnings

import keras
import numpy as np
from keras import ops


def check_layer(layer, inputs: dict[str, np.ndarray], path):
    """Check a layer's config, shapes, compilation, precision, saving, freezing, gradients and masks.

    Args:
        layer: a fresh layer.
        inputs: what it is called with, by argument name; what is bool is a mask, of the first input or of the
            one that it is named after.
        path: a folder for the saved model.
    """
    arrays = {name: np.asarray(value) for name, value in inputs.items()}
    symbols = {name: keras.Input(a.shape[1:], dtype=str(a.dtype), name=name) for name, a in arrays.items()}

    # A call on shapes alone, a call on numbers and a compiled call agree (torch's compiler needs one of C++).
    model = keras.Model(symbols, layer(**symbols))
    eager = ops.convert_to_numpy(layer(**arrays))
    assert model.output.shape[1:] == eager.shape[1:]
    shapes = [a.shape for a in arrays.values() if a.dtype != bool]
    assert tuple(layer.compute_output_shape(*shapes)) == eager.shape
    model.compile(
        optimizer=keras.optimizers.SGD(0.1), loss="mse", jit_compile=keras.backend.backend() != "torch"
    )
    np.testing.assert_allclose(model.predict_on_batch(arrays), eager, atol=1e-5)

    # Its configuration makes the same layer again.
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert type(again) is type(layer)
    assert again.get_config() == layer.get_config()
    assert {*inspect.signature(type(layer).__init__).parameters} <= {*layer.get_config(), "self", "kwargs"}

    # A saved model is the same model.
    model.save(path / "layer.keras")
    loaded = keras.saving.load_model(path / "layer.keras")
    np.testing.assert_allclose(ops.convert_to_numpy(loaded(arrays)), eager, atol=1e-6)

    # A frozen layer trains nothing, although its own layers are made later; nor does it when it is loaded.
    frozen = type(layer).from_config({**layer.get_config(), "trainable": False})
    assert not keras.Model(symbols, frozen(**symbols)).trainable_variables

    # Half precision computes in half precision, near the same numbers.
    half = type(layer).from_config(in_half_precision(layer.get_config()))
    halved = keras.Model(symbols, half(**symbols))
    half.set_weights(layer.get_weights())
    halved.compile(run_eagerly=keras.backend.backend() != "jax")  # which compiles one operation after another
    output = halved.predict_on_batch(arrays)
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16", "not the layer's compute_dtype"
    np.testing.assert_allclose(output.astype("float32"), eager, atol=0.1)

    # One step of training moves every weight that learns to a finite value.
    before = [np.array(w) for w in layer.get_weights()]
    if before:
        model.train_on_batch(arrays, eager + np.random.default_rng(2).normal(size=eager.shape))
        for variable, old, new in zip(layer.weights, before, layer.get_weights(), strict=True):
            assert np.isfinite(new).all(), variable.path
            assert (new != old).any() or not variable.trainable, f"no gradient reaches {variable.path}"

    assert_takes_keras_masks(layer, arrays)


def in_half_precision(config):
    """Return a layer's configuration with the precision of the layer, and of those within, made half."""
    if isinstance(config, dict):
        return {k: "mixed_bfloat16" if k == "dtype" else in_half_precision(v) for k, v in config.items()}
    return [in_half_precision(v) for v in config] if isinstance(config, list) else config


def assert_takes_keras_masks(layer, arrays: dict[str, np.ndarray]):
    """Check that a mask which Keras carries with a tensor does what the same mask does as an argument.

    `keras.layers.Masking` sets it, at padding of zeros.
    """
    for name in [name for name, array in arrays.items() if array.dtype == bool]:
        owner = next(iter(arrays)) if name == "mask" else name.removesuffix("_mask")
        padded = {**arrays, owner: arrays[owner] * arrays[name][..., None]}
        given = ops.convert_to_numpy(layer(**padded))
        del padded[name]
        without = ops.convert_to_numpy(layer(**padded))
        masked = keras.layers.Masking()(padded[owner])
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # Keras's, if the layer does not carry the mask on
            carried = layer(**{**padded, owner: masked})
        np.testing.assert_allclose(ops.convert_to_numpy(carried), given, atol=1e-5)
        assert np.abs(without - given).max() > 1e-4, f"{name} changes nothing"


def assert_ignores_padding(call, inputs: np.ndarray, mask: np.ndarray, outputs_masked: bool):
    """Check that what stands at masked places changes nothing elsewhere.

    Args:
        call: function of inputs `(B, L, D)` and mask `(B, L)`.
        inputs: `(B, L, D)`.
        mask: bool `(B, L)`, `False` at padding.
        outputs_masked: whether the outputs have the masked axis too, so that only unmasked ones count.
    """
    noise = np.where(mask[..., None], 0, 5).astype("float32")
    clean, noisy = (ops.convert_to_numpy(call(x, mask)) for x in (inputs, inputs + noise))
    if outputs_masked:
        clean, noisy = clean[mask], noisy[mask]
    np.testing.assert_allclose(clean, noisy, atol=1e-5)
