"""A served preset's inputs and outputs: the signatures of the SavedModel that `export` writes from it."""

from dataclasses import dataclass

from kzoo.serve.served import Served


@dataclass(frozen=True)
class Tensor:
    """A named input or output: its TensorFlow type, and its shape, with -1 for any size."""

    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Signature:
    """A way to call a model."""

    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]


STRINGS, NUMBERS = Tensor("DT_STRING", (-1,)), Tensor("DT_FLOAT", (-1,))


def signatures(served: Served) -> dict[str, Signature]:
    """Return a served preset's signatures by name."""
    inputs = {"text": STRINGS}
    if served.multilingual:
        inputs |= {"source_language": STRINGS, "target_language": STRINGS}
    if served.image_shape is not None:
        pictures = len(served.image_shape) == 3
        inputs["image"] = STRINGS if pictures else Tensor("DT_FLOAT", (-1, *served.image_shape))
    K = served.beam_size
    several = {"translation": Tensor("DT_STRING", (-1, K)), "score": Tensor("DT_FLOAT", (-1, K))}
    found = {
        "serving_default": Signature(inputs, {"translation": STRINGS, "score": NUMBERS}),
        "n_best": Signature(inputs, several),
        "prefixed": Signature({**inputs, "prefix": STRINGS}, several),
    }
    backbone = served.translator.backbone
    if getattr(backbone, "bridge", None) is not None:
        k, D = backbone.matrix_shape
        embedding = {"embedding": Tensor("DT_FLOAT", (-1, k * D))}
        found["embed"] = Signature({"text": STRINGS, "language": STRINGS}, embedding)
    return found


def metadata(served: Served) -> dict:
    """Return what TensorFlow Serving's metadata interface answers."""
    described = {name: _described(name, signature) for name, signature in signatures(served).items()}
    return {
        "model_spec": {"name": served.name, "signature_name": "", "version": str(served.version)},
        "metadata": {"signature_def": {"signature_def": described}},
    }


def _described(name: str, signature: Signature) -> dict:
    return {
        "inputs": {key: _tensor_info(f"{name}_{key}:0", value) for key, value in signature.inputs.items()},
        # In a SavedModel all outputs are of one operation, in the order of their names.
        "outputs": {
            key: _tensor_info(f"{name}:{number}", signature.outputs[key])
            for number, key in enumerate(sorted(signature.outputs))
        },
        "method_name": "tensorflow/serving/predict",
        "defaults": {},
    }


def _tensor_info(name: str, tensor: Tensor) -> dict:
    dimensions = [{"size": str(size), "name": ""} for size in tensor.shape]
    return {
        "dtype": tensor.dtype,
        "tensor_shape": {"dim": dimensions, "unknown_rank": False},
        "name": name,
    }
