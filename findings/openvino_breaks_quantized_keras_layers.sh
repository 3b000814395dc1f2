#!/usr/bin/env bash
# OpenVINO computes Keras's int8 layers in 8 bits and returns almost nothing, without an error.
#
# An expert expects: `quantize("int8")`, then `export(format="openvino")`, gives outputs as near to Keras's as rounding
# allows. The product of two int8 matrices is added up in 32 bits, as everywhere.
# What happens: on TensorFlow, Keras asks for this product as int32 (`BatchMatMulV3` with `Tout`). OpenVINO's reader makes
# it a MatMul from int8 to int8, and converts the result to int32 afterwards. The sums, which are thousands, are cut off
# at ±127 before they are scaled back. All outputs are about 200 times too small and of nearly one size; only signs are
# kept. No step prints anything. The float model is right in OpenVINO, and the int8 model is right in TensorFlow.
# Why it matters: OpenVINO is the way to a fast int8 model on Intel's processors, and Keras documents the format. In a
# translator, the projection to words is such a layer: all words get about the same score. Export the float model and
# let NNCF quantize it. int4 layers are multiplied as floats, and come out right.
#
# Versions: keras 3.15.1, tensorflow 2.21.0, openvino 2026.4.1. Source: keras/src/backend/tensorflow/numpy.py, `matmul`;
# openvino, src/frontends/tensorflow_common/src/op/matmul.cpp, `translate_batch_mat_mul_with_type_op`.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras==3.15.1 tensorflow==2.21.0 openvino==2026.4.1 scipy==1.17.1

cd "$folder"
KERAS_BACKEND=tensorflow TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" -W ignore - <<'PYTHON' 2> log || { cat log; exit 1; }
from importlib.metadata import version

import keras
import numpy as np
import openvino
from keras import layers

print(*(f"{name} {version(name)}" for name in ("keras", "tensorflow", "openvino")))
states = np.random.default_rng(0).normal(size=(4, 64)).astype("float32")
for mode in (None, "int8", "int4"):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((64,)), layers.Dense(8, use_bias=False)])
    if mode:
        model.quantize(mode)
    expected = model.predict(states, verbose=0)
    model.export("model.xml", format="openvino", verbose=False)
    graph = openvino.Core().read_model("model.xml")
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    found = openvino.Core().compile_model(graph, "CPU", exact)(states)[0]
    product = next(node for node in graph.get_ordered_ops() if node.get_type_name() == "MatMul")
    types = [str(end.get_element_type()) for end in (*product.inputs(), *product.outputs())]
    print(f"\n{mode or 'not quantized'}: MatMul of {' and '.join(types[:2])} gives {types[2]}")
    for name, values in (("keras", expected), ("openvino", found)):
        print(f"    {name:8}", *(f"{value:8.4f}" for value in values[0]))
    if mode == "int8":
        assert all("int8" in kind for kind in types)
        assert np.abs(expected).max() > 1 and np.abs(found).max() < 0.02
        assert (np.sign(found) == np.sign(expected)).all()
    else:
        np.testing.assert_allclose(found, expected, atol=1e-4)
PYTHON
