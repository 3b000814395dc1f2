"""Eole's side of `benchmarks/own_text.py`: trains until its time is over, then translates the test set."""

import contextlib
import json
import sys
import time
from pathlib import Path

import torch
from bleu_eole import run, schedule, translate
from eole.trainer import Trainer
from train_eole import configuration, split_text

# How recipes/wmt17/wmt17_ende_spm.yaml of Eole 0.6.4 trains.
DOCUMENTED = {
    "accum_count": [10],
    "accum_steps": [0],
    "optim": "adamw",
    "learning_rate": 2,
    "warmup_steps": 4000,
    "decay_method": "noam",
    "adam_beta2": 0.998,
    "max_grad_norm": 0,
}


class TimeOver(Exception):
    """What Eole, which counts updates alone, is stopped with."""


def main(folder: Path):
    settings = json.loads((folder / "settings.json").read_text())
    torch.set_num_threads(settings["threads"])
    train, val = (split_text(folder, settings[split]) for split in ("train", "val"))
    values = configuration(folder, settings, *train)
    values |= {"seed": settings["seed"], "report_every": 50, "valid_metrics": ["BLEU"]}
    values["inference"] = {"max_length": 100}  # of validation, which is greedy
    values["data"]["valid"] = dict(zip(("path_src", "path_tgt"), val, strict=True))
    values["training"] |= schedule(settings) if settings["tuned"] else DOCUMENTED
    values["training"] |= dict.fromkeys(("valid_steps", "save_checkpoint_steps"), settings["validate_every"])
    scores = stop_at(settings["until"])
    with contextlib.suppress(TimeOver):
        run("train", folder, values)
    best = folder / "eole" / f"step_{max(scores, key=scores.get)}"
    [test] = split_text(folder, settings["test"][:1])
    translate(folder, best, test, folder / "test.translated", settings)


def stop_at(seconds: float) -> dict[int, float]:
    """Stop training at this time; return where each validation BLEU will be, or 0 of the last update."""
    scores, step, validate = {}, Trainer._train_step, Trainer.validate

    def timed(self, *args, **kwargs):
        if time.time() >= seconds:
            self.model_saver.save(kwargs["step"])
            if not scores:
                scores[kwargs["step"]] = 0.0
            raise TimeOver
        return step(self, *args, **kwargs)

    def recorded(self, *args, **kwargs):
        stats = validate(self, *args, **kwargs)
        scores[self.optim.training_step - 1] = stats.computed_metrics["BLEU"]
        return stats

    Trainer._train_step, Trainer.validate = timed, recorded
    return scores


if __name__ == "__main__":
    main(Path(sys.argv[1]))
