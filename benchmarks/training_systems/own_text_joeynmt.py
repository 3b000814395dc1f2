"""JoeyNMT's side of `benchmarks/own_text.py`: trains until its time is over, then translates the test set."""

import json
import sys
import time
from pathlib import Path

import torch
from bleu_joeynmt import load, schedule, translate
from joeynmt.__main__ import main as joeynmt
from joeynmt.training import TrainManager
from train_joeynmt import configuration

# How configs/iwslt14_deen_sp.yaml of JoeyNMT 2.3.0 trains.
DOCUMENTED = {
    "optimizer": "adamw",
    "adam_betas": [0.9, 0.999],
    "scheduling": "warmupinversesquareroot",
    "learning_rate_warmup": 4000,
    "learning_rate": 0.0002,
    "learning_rate_min": 1e-8,
    "batch_multiplier": 4,
}
SAMPLING = 0.1  # of SentencePiece, in the same file


def main(folder: Path):
    settings = json.loads((folder / "settings.json").read_text())
    torch.set_num_threads(settings["threads"])
    source, target = (Path(path).suffix[1:] for path in settings["train"])
    values = configuration(folder, settings) | {"random_seed": settings["seed"]}
    for side, code in (("src", source), ("trg", target)):
        values["data"][side]["lang"] = code
        if not settings["tuned"]:
            values["data"][side]["tokenizer_cfg"]["alpha"] = SAMPLING
    values["data"] |= {"train": without_suffix(settings["train"]), "dev": without_suffix(settings["val"])}
    values["training"] |= schedule(settings) if settings["tuned"] else DOCUMENTED
    values["training"] |= {
        "validation_freq": settings["validate_every"],
        "early_stopping_metric": "bleu",
        "logging_freq": 50,
    }
    values["testing"] |= {"eval_metrics": ["bleu"], "max_output_length": 100, "batch_size": 32}
    stop_at(settings["until"])
    path = folder / "joeynmt.yaml"
    path.write_text(json.dumps(values))  # JSON is YAML
    sys.argv = ["joeynmt", "train", str(path), "--skip-test"]
    joeynmt()
    best, last = folder / "joeynmt" / "best.ckpt", folder / "joeynmt" / "latest.ckpt"
    load(values, best if best.exists() else last, settings)
    translate(folder, values, Path(settings["test"][0]), folder / "test.translated")


def without_suffix(paths: list[str]) -> str:
    return str(Path(paths[0]).with_suffix(""))


def stop_at(seconds: float):
    """Interrupt training at this time, as Ctrl-C does: JoeyNMT then saves its last weights."""
    step = TrainManager._train_step

    def timed(self, batch):
        if time.time() >= seconds:
            raise KeyboardInterrupt
        return step(self, batch)

    TrainManager._train_step = timed


if __name__ == "__main__":
    main(Path(sys.argv[1]))
