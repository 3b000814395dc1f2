"""JoeyNMT's side of `benchmarks/bleu.py`: `joeynmt train`, then `joeynmt translate` of each test."""

import json
import subprocess
import sys
from pathlib import Path

from train_joeynmt import configuration


def main(folder: Path):
    settings = json.loads((folder / "settings.json").read_text())
    values = configuration(folder, settings)
    values["random_seed"] = settings["seed"]
    values["training"] |= {
        "epochs": settings["epochs"],
        "learning_rate_factor": settings["rate_factor"],
        "learning_rate_warmup": settings["warmup_steps"],
        "clip_grad_norm": settings["clip_norm"],
        "logging_freq": 100,
    }
    run("train", values, folder, "--skip-test")
    values["testing"] = {
        "load_model": str(folder / "joeynmt" / "latest.ckpt"),
        "beam_size": settings["beam_size"],
        "beam_alpha": 1.0,
        "batch_type": "sentence",
        "batch_size": 32,
    }
    for test in settings["tests"]:
        with open(folder / f"{test}.en", "rb") as source, open(folder / f"{test}.de", "wb") as result:
            run("translate", values, folder, stdin=source, stdout=result)  # its option -o fails


def run(mode: str, values: dict, folder: Path, *options: str, **streams):
    path = folder / "joeynmt.yaml"
    path.write_text(json.dumps(values))  # JSON is YAML
    subprocess.run([sys.executable, "-m", "joeynmt", mode, str(path), *options], **streams, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
