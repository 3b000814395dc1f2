"""Which of Keras's own export formats hold the models of the shelf: sizes, differences and speed.

    pip install onnx onnxruntime tf2onnx openvino ai-edge-litert
    KERAS_BACKEND=tensorflow python benchmarks/keras_exports.py

Exports each preset by `keras.Model.export`: the model that maps token ids to logits, without its search. Then
runs it in the format's own runtime, on batches of two shapes, and prints the file's size, the largest
difference from Keras's logits, and the time of a call relative to Keras's; or the error. `--quantize int8`
exports the quantized model. Each cell is measured in a process of its own, as some runtimes end the process.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
PRESETS = (
    "pope_small_multi30k_en_de",
    "image_text_tiny_scenes_en_de",
    "attention_bridge_m2m_tiny_multi30k",
    "glyph_tiny_tatoeba_zh_en",
)
ENDINGS = {"onnx": "onnx", "openvino": "xml", "litert": "tflite"}
SHAPES = (8, 20), (4, 33)  # rows, tokens
CALLS = 20


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--presets", default=",".join(PRESETS), help="with commas")
    parser.add_argument("--formats", default=",".join(ENDINGS), help="with commas")
    parser.add_argument("--quantize", choices=("int8", "int4", "float8"))
    parser.add_argument("--cell", nargs=2, help=argparse.SUPPRESS)  # what a process of its own measures
    options = parser.parse_args()
    if options.cell:
        print(json.dumps(cell(*options.cell, options.quantize)))
        return
    print("| preset | format | MB | largest difference | time, Keras = 1 |")
    print("| --- | --- | ---: | ---: | ---: |")
    for preset in options.presets.split(","):
        for form in options.formats.split(","):
            print(
                f"| {preset} | {form} | {' | '.join(measured(preset, form, options.quantize))} |", flush=True
            )


def measured(preset: str, form: str, mode: str | None) -> list[str]:
    """Return the cells of a row, from a process of its own."""
    command = [sys.executable, __file__, "--cell", preset, form, *(["--quantize", mode] if mode else [])]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode < 0:
        return ["", f"the process ends with signal {-done.returncode}", ""]
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if not line.startswith(" ") and "Error" in line.split(":")[0]]
        return ["", (errors or lines or ["no error"])[-1][:150].replace("|", "\\|"), ""]
    found = json.loads(done.stdout.splitlines()[-1])
    return [f"{found['size']:.1f}", f"{found['difference']:.0e}", f"{found['time']:.2f}"]


def cell(preset: str, form: str, mode: str | None) -> dict:
    """Export a preset's model, and compare the runtime's logits with Keras's."""
    warnings.simplefilter("ignore")
    import keras
    import numpy as np

    from kzoo.presets import load

    translator = load(preset)
    if mode:
        translator.backbone.quantize(mode)
    model = keras.Model(translator.backbone.input, translator.backbone.output)
    batches = [batch(model, *shape) for shape in SHAPES]
    expected = [keras.ops.convert_to_numpy(model(inputs)) for inputs in batches]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model.{ENDINGS[form]}"
        model.export(str(path), format=form, verbose=False)
        run = RUNTIMES[form](path)
        size = sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e6
        found = [run(inputs) for inputs in batches]
        speed = seconds(lambda: run(batches[0])) / seconds(lambda: model.predict_on_batch(batches[0]))
    differences = [np.abs(a - b).max() for a, b in zip(expected, found, strict=True)]
    return {"size": size, "difference": float(max(differences)), "time": speed}


def batch(model, rows: int, tokens: int) -> dict:
    """Return random inputs of a model, by name."""
    import numpy as np

    draw, inputs = np.random.default_rng(1), {}
    for name, tensor in model.input.items():
        if tensor.dtype == "int32":
            shape = [rows, *(tokens for _ in tensor.shape[1:])]
            inputs[name] = (
                draw.integers(4, 100, shape, "int32") if len(shape) > 1 else np.zeros(shape, "int32")
            )
        else:
            inputs[name] = draw.random((rows, *tensor.shape[1:]), "float32")
    return inputs


def seconds(call) -> float:
    call()
    began = time.perf_counter()
    for _ in range(CALLS):
        call()
    return time.perf_counter() - began


def run_onnx(path: Path):
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path))
    return lambda inputs: session.run(None, {node.name: inputs[node.name] for node in session.get_inputs()})[
        0
    ]


def run_openvino(path: Path):
    import openvino

    compiled = openvino.Core().compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return lambda inputs: compiled({port: inputs[port.any_name] for port in compiled.inputs})[0]


def run_litert(path: Path):
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path))
    runner = interpreter.get_signature_runner()
    return lambda inputs: next(iter(runner(**inputs).values()))


RUNTIMES = {"onnx": run_onnx, "openvino": run_openvino, "litert": run_litert}


if __name__ == "__main__":
    main()
