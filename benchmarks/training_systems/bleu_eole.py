"""Eole's side of `benchmarks/bleu.py`: `eole train` for so many passes, then `eole predict` of each test."""

import contextlib
import json
import sys
from pathlib import Path

import sentencepiece
import torch
from eole.bin.main import main as eole
from eole.trainer import Trainer
from train_eole import configuration, split_text


class AllPassesOver(Exception):
    """What Eole, which counts updates alone, is stopped with."""


def main(folder: Path):
    settings = json.loads((folder / "settings.json").read_text())
    torch.set_num_threads(settings["threads"])
    pieces = split_text(folder, (folder / "train.en", folder / "train.de"))
    values = configuration(folder, settings, *pieces) | {"seed": settings["seed"], "report_every": 100}
    values["training"] |= schedule(settings)
    stop_after(settings["epochs"] * settings["words"])
    with contextlib.suppress(AllPassesOver):
        run("train", folder, values)
    for test in settings["tests"]:
        [source] = split_text(folder, [folder / f"{test}.en"])
        translate(folder, folder / "eole", source, folder / f"{test}.de", settings)


def schedule(settings: dict) -> dict:
    return {
        "decay_method": "noam",
        "learning_rate": settings["rate_factor"],
        "warmup_steps": settings["warmup_steps"],
        "max_grad_norm": settings["clip_norm"],
    }


def translate(folder: Path, model: Path, source: str, result: Path, settings: dict):
    """Translate a file of subwords into a file of text."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "subwords.model"))
    pieces = folder / f"{result.name}.pieces"
    values = {
        "model_path": str(model),
        "src": source,
        "output": str(pieces),
        "beam_size": settings["beam_size"],
        "max_length": 100,  # not 250, of which a model that has hardly learned makes use
        "world_size": 0,
        "gpu_ranks": [],
    }
    run("predict", folder, values)
    lines = pieces.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    text = "".join(f"{processor.decode(line.split(' '))}\n" for line in lines)
    result.write_text(text, encoding="utf-8")


def stop_after(words: int):
    """Save the model and stop when training has seen so many target words."""
    step = Trainer._train_step

    def counting(self, batches, normalization, total_stats, report_stats, **kwargs):
        step(self, batches, normalization, total_stats, report_stats, **kwargs)
        if total_stats.n_tokens >= words:
            self.model_saver.save(kwargs["step"])
            raise AllPassesOver

    Trainer._train_step = counting


def run(mode: str, folder: Path, values: dict):
    path = folder / f"{mode}.yaml"
    path.write_text(json.dumps(values))  # JSON is YAML
    sys.argv = ["eole", mode, "-config", str(path)]
    eole()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
