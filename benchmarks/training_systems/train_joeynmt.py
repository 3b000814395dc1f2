"""JoeyNMT's side of `benchmarks/training.py`: `joeynmt train` until it is stopped, one line per step."""

import itertools
import json
import sys
import time
from pathlib import Path

import torch
from joeynmt.__main__ import main
from joeynmt.training import TrainManager

WARM_UP = 10  # steps
NEVER = 10**9


def configuration(folder: Path, settings: dict) -> dict:
    """Return what `joeynmt train` reads: no validation, no progress lines, nothing but training."""

    def language(code):
        return {
            "lang": code,
            "level": "bpe",
            "voc_file": str(folder / "vocabulary.txt"),
            "tokenizer_type": "sentencepiece",
            "tokenizer_cfg": {"model_file": str(folder / "subwords.model")},
        }

    return {
        "name": "training_speed",
        "joeynmt_version": "2.3.0",
        "model_dir": str(folder / "joeynmt"),
        "use_cuda": False,
        "data": {
            "train": str(folder / "train"),
            "dev": str(folder / "dev"),
            "dataset_type": "plain",
            "src": language("en"),
            "trg": language("de"),
        },
        "testing": {"beam_size": 1},
        "training": {
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            "scheduling": "noam",
            "learning_rate_warmup": 4000,
            "learning_rate_min": 0.0,
            "label_smoothing": 0.1,
            "normalization": "tokens",
            "loss": "crossentropy",
            "batch_type": "token",
            "batch_size": settings["tokens"],
            "epochs": NEVER,
            "logging_freq": NEVER,
            "validation_freq": NEVER,
            "overwrite": True,
        },
        "model": recurrent(settings) if settings["model"] == "lstm" else transformer(settings),
    }


def transformer(settings: dict) -> dict:
    half = {
        "type": "transformer",
        "num_layers": settings["layers"],
        "num_heads": settings["heads"],
        "embeddings": {"embedding_dim": settings["width"], "scale": True, "dropout": settings["dropout"]},
        "hidden_size": settings["width"],
        "ff_size": settings["feedforward"],
        "dropout": settings["dropout"],
        "layer_norm": "pre",
        "activation": "relu",
    }
    xavier = {"initializer": "xavier_uniform", "embed_initializer": "xavier_uniform"}
    return {**xavier, "tied_embeddings": True, "tied_softmax": True, "encoder": half, "decoder": half}


def recurrent(settings: dict) -> dict:
    """Return Luong's model: a bidirectional encoder of half the width a direction, input feeding."""
    shared = {
        "type": "recurrent",
        "rnn_type": "lstm",
        "num_layers": settings["layers"],
        "embeddings": {"embedding_dim": settings["width"], "dropout": settings["dropout"]},
        "dropout": settings["dropout"],
    }
    attention = {"attention": "luong", "input_feeding": True, "init_hidden": "bridge"}
    return {
        "encoder": {**shared, "hidden_size": settings["width"] // 2, "bidirectional": True},
        "decoder": {**shared, "hidden_size": settings["width"], **attention},
    }


def print_steps():
    """Print a line after each step of training."""
    step, numbers = TrainManager._train_step, itertools.count(1)

    def printing(self, batch):
        result = step(self, batch)
        if next(numbers) == WARM_UP:
            print("warm", flush=True)
        print("step", time.perf_counter(), int(batch.ntokens), flush=True)
        return result

    TrainManager._train_step = printing


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    settings = json.loads((folder / "settings.json").read_text())
    torch.set_num_threads(settings["threads"])
    path = folder / "joeynmt.yaml"
    path.write_text(json.dumps(configuration(folder, settings)))  # JSON is YAML
    print_steps()
    sys.argv = ["joeynmt", "train", str(path), "--skip-test"]
    main()
