"""M2M-100 at full shape, whole and trimmed: size, loading, memory and speed with Keras and CTranslate2.

    python benchmarks/many_languages.py --languages en,de

Makes a repository with random weights in the shape of M2M-100 418M, 1.9 GB. Its 128,000 pieces are those of
the corpus Scenes in English and German, and random words: 40 % in Latin letters, the others in other scripts.
It is then trimmed twice: by languages alone, and with Scenes as the text. Each row of the table is measured
in a process of its own. Memory, at its peak and after loading, is beyond that of the imported libraries.
Translations have 32 tokens, because random weights seldom end one; the first call, which compiles, is not
counted. With Keras, only float32 translates: compiling takes a minute. --folder is kept (15 GB), and used
again.

The least that loading can take is printed first: to read the weights, and to make variables of them.
"""

import argparse
import io
import json
import os
import random
import resource
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
LATIN = 0.4  # share of the pieces
# The first and last letters of other scripts.
OTHERS = "αω ая աֆ את اي अह কহ กฮ აჰ አፕ ぁん 一龠 가힣"
SIDES = {"layers": 12, "attention_heads": 16, "ffn_dim": 4096}
SHAPE = {"d_model": 1024, "max_position_embeddings": 1024, "pad_token_id": 1, "num_beams": 5}
SHAPE |= {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in SIDES.items()}
LEAST = {
    "read": "read the preset's weights",
    "variables": "read them into variables",
    "check": "read the preset's files with their checksums",
}
RUNS = [("keras", kind) for kind in ("float32", "bfloat16", "int8")]
RUNS += [("ctranslate2", kind) for kind in ("float32", "int8")]
TOKENS, BEAMS, SENTENCES = 32, 4, 16
PAIR = {"source_language": "en", "target_language": "de"}


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--folder", type=Path, default=Path("many_languages"))
    parser.add_argument("--languages", default="en,de")
    parser.add_argument("--layers", type=int, default=12, help="fewer, to try the command")
    parser.add_argument("--pieces", type=int, default=128_000, help="256000: as many as NLLB-200 has")
    parser.add_argument("--step", nargs="*", help=argparse.SUPPRESS)  # what a process of its own measures
    options = parser.parse_args()
    os.environ["KZOO_CACHE"] = str(options.folder / "cache")
    if options.step:
        name, *arguments = options.step
        print(json.dumps(globals()[name](*arguments)))
        return
    repository, text = options.folder / "m2m100", options.folder / "text.txt"

    def step(*arguments) -> dict:
        command = [sys.executable, __file__, "--folder", options.folder, "--step", *arguments]
        return json.loads(subprocess.check_output(list(map(str, command))).splitlines()[-1])

    if not repository.exists():
        step("make", repository, text, options.layers, options.pieces)
    found = step("convert", repository)
    print(f"convert to a preset, once: {seconds(found)}, {found['peak']:.2f} GB")
    for name, what in LEAST.items():
        print(f"{what}: {seconds(step(name, repository))}")
    presets = {"whole": repository}
    for name, files in (("languages", []), ("text", [text])):
        presets[name] = options.folder / f"trimmed_by_{name}"
        found = step("trim", repository, presets[name], options.languages, *files)
        print(f"trim by {name}: {seconds(found)}, {found['peak']:.2f} GB")
    print_row("model", "pieces", "on disk", "engine", "load", "processor", "peak", "then", "tokens/s")
    print_row("---", "---:", "---:", "---", *["---:"] * 5)
    for name, preset in presets.items():
        for engine, kind in RUNS:
            if (engine, kind) == ("ctranslate2", "float32"):
                step("load", preset, engine, kind)  # it is converted once
            found = step("load", preset, engine, kind)
            size = f"{found['pieces']:,}", f"{found['disk']:.2f} GB"
            loaded = f"{found['wall']:.1f} s", f"{found['processor']:.1f} s"
            memory = f"{found['peak']:.2f} GB", f"{found['resident']:.2f} GB"
            speed = f"{found['speed']:.0f}" if found["speed"] else "–"
            print_row(name, *size, f"{engine}, {kind}", *loaded, *memory, speed)


def print_row(*cells: str):
    print(f"| {' | '.join(cells)} |", flush=True)


def seconds(measured: dict) -> str:
    return f"{measured['wall']:.1f} s ({measured['processor']:.1f} s of processor time)"


def measured(function) -> dict:
    """Return the seconds, processor seconds, peak and resident memory (GB) of a function, and its result."""
    first, wall, processor = resident(), time.perf_counter(), time.process_time()
    result = function()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    return {
        "wall": wall,
        "processor": processor,
        "peak": peak - first,
        "resident": resident() - first,
        "result": result,
    }


def resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e9


def make(folder: str, text: str, layers: str, number: str):
    """Write the repository, and Scenes as a text."""
    import numpy as np
    from safetensors.numpy import save_file

    from kzoo.data import open_corpus
    from kzoo.presets.hugging_face_weights import _shapes
    from kzoo.presets.m2m import FAIRSEQ, M2M_LANGUAGES, Config

    folder = Path(folder)
    folder.mkdir(parents=True)
    lines = [line for side in open_corpus("scenes").pairs("train", "en", "de") for line in side]
    Path(text).write_text("\n".join(lines) + "\n")
    proto, pieces = sentence_piece_model(lines, int(number))
    (folder / "sentencepiece.bpe.model").write_bytes(proto)
    pieces = [*FAIRSEQ, *pieces]
    (folder / "vocab.json").write_text(json.dumps({piece: number for number, piece in enumerate(pieces)}))
    sizes = {**SHAPE, "vocab_size": len(pieces) + len(M2M_LANGUAGES) + 8}
    sizes |= {"encoder_layers": int(layers), "decoder_layers": int(layers)}
    entries = {"model_type": "m2m_100", "decoder_start_token_id": 2, "eos_token_id": 2}
    entries["activation_function"] = "relu"
    (folder / "config.json").write_text(json.dumps({**entries, **sizes}))
    shapes, _ = _shapes(Config(**sizes, decoder_start_token_id=2, eos_token_id=2), {"norm": "pre"})
    draw = np.random.default_rng(1)
    tensors = {}
    for name, shape in shapes.items():
        values = draw.standard_normal(shape, "float32") * SHAPE["d_model"] ** -0.5
        tensors[name] = np.ones(shape, "float32") if name.endswith("norm.weight") else values
    save_file(tensors, folder / "model.safetensors")


def sentence_piece_model(lines: list[str], number: int) -> tuple[bytes, list[str]]:
    """Return a SentencePiece model of lines, with random words up to a number, and its pieces."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    trained, draw = io.BytesIO(), random.Random(1)
    settings = {"model_type": "bpe", "vocab_size": 1000, "num_threads": 1, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=trained, hard_vocab_limit=False, **settings
    )
    model = sentencepiece_model_pb2.ModelProto.FromString(trained.getvalue())
    latin, others = list(map(chr, range(ord("a"), ord("z") + 1))), OTHERS.split()
    known = {piece.piece for piece in model.pieces}
    while len(known) < number:
        letters = latin
        if draw.random() > LATIN:
            first, last = draw.choice(others)
            letters = range(ord(first), ord(last) + 1)
        word = "".join(
            c if isinstance(c, str) else chr(c) for c in draw.choices(letters, k=draw.randint(3, 8))
        )
        word = draw.choice(["▁", ""]) + word
        if word not in known:
            known.add(word)
            model.pieces.add(piece=word, score=-float(len(known)))
    return model.SerializeToString(), [piece.piece for piece in model.pieces][3:]


def convert(repository: str) -> dict:
    import kzoo.presets.m2m  # noqa: F401, which imports Keras
    from kzoo.presets import locate

    return measured(lambda: str(locate(repository).folder))


def weights_of(repository: str) -> list[Path]:
    from kzoo.presets import locate

    return sorted(locate(repository).folder.glob("*.weights.h5"))


def read(repository: str) -> dict:
    paths = weights_of(repository)
    return measured(lambda: sum(len(path.read_bytes()) for path in paths))


def variables(repository: str) -> dict:
    """Read the weights as a program must that only makes the backend's variables of them."""
    import h5py
    import keras

    paths, made = weights_of(repository), [keras.Variable(0.0)]  # the backend is ready before

    def make(_, item):
        if isinstance(item, h5py.Dataset):
            made.append(keras.Variable(item[()]))

    def make_them():
        for path in paths:
            with h5py.File(path) as file:
                file.visititems(make)
        return len(made)

    return measured(make_them)


def check(repository: str) -> dict:
    from kzoo.presets import locate

    return measured(lambda: locate(repository).check())


def trim(repository: str, output: str, languages: str, *files: str) -> dict:
    import kzoo.models  # noqa: F401, as its import is not counted
    from kzoo.presets import trim as trim_preset

    def trimmed():
        texts = [line for file in files for line in Path(file).read_text().splitlines()]
        trim_preset(repository, languages.split(","), texts or None).save_to_preset(output, dtype="float32")

    return measured(trimmed)


def load(preset: str, engine: str, kind: str) -> dict:
    """Load a preset, and translate with it."""
    from kzoo.data import open_corpus
    from kzoo.engine.translator import CTranslate2Translator
    from kzoo.presets import locate

    located = locate(preset)
    texts = open_corpus("scenes").sentences("test", "en")[:SENTENCES]
    if engine == "keras":
        import kzoo.models  # noqa: F401, as its import is not counted

        found = measured(lambda: loaded_with_keras(located, kind))
    else:
        found = measured(lambda: CTranslate2Translator(located, kind))
    translator = found.pop("result")
    speed = None if engine == "keras" and kind != "float32" else tokens_per_second(translator, texts)
    disk = sum((located.folder / file).stat().st_size for file in located.files) / 1e9
    pieces = located.backbone["config"]["source_vocabulary_size"]
    return {**found, "speed": speed, "disk": disk, "pieces": pieces}


def tokens_per_second(translator, texts: list[str]) -> float:
    search = {"beam_size": BEAMS, "max_length": TOKENS}
    translator.translate(texts, **PAIR, **search)
    began = time.perf_counter()
    translator.translate(texts, **PAIR, **search)
    return len(texts) * TOKENS / (time.perf_counter() - began)


def loaded_with_keras(located, kind: str):
    from kzoo.presets import load

    if kind != "int8":
        return load(located, dtype=kind)
    translator = load(located)
    translator.backbone.quantize("int8")
    return translator


if __name__ == "__main__":
    main()
