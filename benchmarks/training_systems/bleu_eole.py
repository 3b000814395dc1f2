"""Eole's side of `benchmarks/bleu.py`: `eole train` for so many passes, then `eole predict` of each test."""

import contextlib
import json
import sys
from pathlib import Path

import sentencepiece
import torch
from eole.bin.main import main as eole
from eole.trainer import Trainer
from train_eole import configuration


class AllPassesOver(Exception):
    """What Eole, which counts updates alone, is stopped with."""


def main(folder: Path):
    settings = json.loads((folder / "settings.json").read_text())
    torch.set_num_threads(settings["threads"])
    values = configuration(folder, settings) | {"seed": settings["seed"], "report_every": 100}
    values["training"] |= {
        "decay_method": "noam",
        "learning_rate": settings["rate_factor"],
        "warmup_steps": settings["warmup_steps"],
        "max_grad_norm": settings["clip_norm"],
    }
    stop_after(settings["epochs"] * settings["words"])
    with contextlib.suppress(AllPassesOver):
        run("train", folder, values)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "subwords.model"))
    for test in settings["tests"]:
        source, result = folder / f"{test}.pieces.en", folder / f"{test}.pieces.de"
        lines = read(folder / f"{test}.en")
        write(source, (" ".join(pieces) for pieces in processor.encode(lines, out_type=str)))
        run(
            "predict",
            folder,
            {
                "model_path": str(folder / "eole"),
                "src": str(source),
                "output": str(result),
                "beam_size": settings["beam_size"],
                "world_size": 0,
                "gpu_ranks": [],
            },
        )
        write(folder / f"{test}.de", (processor.decode(line.split(" ")) for line in read(result)))


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


def read(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def write(path: Path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
