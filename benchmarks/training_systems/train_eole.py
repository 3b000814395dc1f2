"""Eole's side of `benchmarks/training.py`: `eole train` until it is stopped, one line per step."""

import itertools
import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import sentencepiece
import torch
from eole.bin.main import main
from eole.trainer import Trainer

WARM_UP = 10  # steps
NEVER = 10**9


def configuration(folder: Path, settings: dict, source: str, target: str) -> dict:
    """Return what `eole train` reads: no validation, no progress lines, nothing but training.

    Args:
        folder: for what Eole writes; the vocabulary is there.
        settings: what `benchmarks/training.py` writes.
        source, target: the text's files, in subwords.
    """
    with open(source, "rb") as file:
        sentences = sum(1 for _ in file)
    return {
        "seed": 1,
        "overwrite": True,
        "report_every": NEVER,
        "save_data": str(folder / "eole_data"),
        "src_vocab": str(folder / "vocabulary.txt"),
        "share_vocab": True,
        "data": {"train": {"path_src": source, "path_tgt": target}},
        "training": {
            "model_path": str(folder / "eole"),
            "bucket_size": sentences,  # of all lengths; more would be the same ones again
            "batch_type": "tokens",
            "batch_size": settings["tokens"],
            "normalization": "tokens",
            "optim": "adam",
            "adam_beta2": 0.98,
            "learning_rate": 1e-3,
            "label_smoothing": 0.1,
            "dropout": [settings["dropout"]],
            "attention_dropout": [settings["dropout"]],
            "param_init_method": "xavier_uniform",
            "log_attention_entropy": False,  # a figure for its log, which costs time
            "train_steps": NEVER,
            "save_checkpoint_steps": NEVER,
            "valid_steps": NEVER,
            "compute_dtype": {"float32": "fp32", "mixed_bfloat16": "bf16"}[settings["precision"]],
            "world_size": 0,
            "gpu_ranks": [],
        },
        "model": recurrent(settings) if settings["model"] == "lstm" else transformer(settings),
    }


def split_text(folder: Path, paths: Iterable[str | Path]) -> list[str]:
    """Write files in subwords, once: Eole would split them again for every epoch. Return where."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "subwords.model"))
    written = []
    for path in map(Path, paths):
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        written.append(str(folder / f"eole.{path.name}"))
        with open(written[-1], "w", encoding="utf-8") as file:
            file.writelines(" ".join(pieces) + "\n" for pieces in processor.encode(lines, out_type=str))
    return written


def transformer(settings: dict) -> dict:
    return {
        "architecture": "transformer",
        "layers": settings["layers"],
        "hidden_size": settings["width"],
        "heads": settings["heads"],
        "transformer_ff": settings["feedforward"],
        "add_qkvbias": True,
        # Eole 0.6.4 otherwise trains encoders without this bias and translates with one of no value.
        "add_final_linear_bias": True,
        "add_ffnbias": True,
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "embeddings": {"word_vec_size": settings["width"], "position_encoding_type": "SinusoidalInterleaved"},
    }


def recurrent(settings: dict) -> dict:
    """Return Luong's model: a bidirectional encoder of half the width a direction, input feeding."""
    sizes = {"rnn_type": "LSTM", "layers": settings["layers"], "hidden_size": settings["width"]}
    return {
        "architecture": "custom",
        "embeddings": {"word_vec_size": settings["width"]},
        "encoder": {"encoder_type": "brnn", **sizes},
        "decoder": {"decoder_type": "rnn", "global_attention": "general", **sizes},
        "input_feed": 1,
    }


def print_steps():
    """Print a line after each step of training."""
    step, numbers = Trainer._train_step, itertools.count(1)

    def printing(self, batches, normalization, total_stats, report_stats, **kwargs):
        before = total_stats.n_tokens
        step(self, batches, normalization, total_stats, report_stats, **kwargs)
        if next(numbers) == WARM_UP:
            print("warm", flush=True)
        print("step", time.perf_counter(), int(total_stats.n_tokens - before), flush=True)

    Trainer._train_step = printing


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    settings = json.loads((folder / "settings.json").read_text())
    torch.set_num_threads(settings["threads"])
    pieces = split_text(folder, (folder / "train.en", folder / "train.de"))
    path = folder / "eole.yaml"
    path.write_text(json.dumps(configuration(folder, settings, *pieces)))  # JSON is YAML
    print_steps()
    sys.argv = ["eole", "train", "-config", str(path)]
    main()
