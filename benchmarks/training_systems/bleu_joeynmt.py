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
    values["training"] |= {"epochs": settings["epochs"], "logging_freq": 100, **schedule(settings)}
    run("train", values, folder, "--skip-test")
    load(values, folder / "joeynmt" / "latest.ckpt", settings)
    for test in settings["tests"]:
        translate(folder, values, folder / f"{test}.en", folder / f"{test}.de")


def schedule(settings: dict) -> dict:
    return {
        "learning_rate_factor": settings["rate_factor"],
        "learning_rate_warmup": settings["warmup_steps"],
        "clip_grad_norm": settings["clip_norm"],
    }


def load(values: dict, weights: Path, settings: dict):
    """Let JoeyNMT translate with these weights."""
    values["testing"] = {
        "load_model": str(weights),
        "beam_size": settings["beam_size"],
        "beam_alpha": 1.0,
        "max_output_length": 100,  # without a limit, a model that has hardly learned takes ten minutes
        "batch_type": "sentence",
        "batch_size": 32,
    }


def translate(folder: Path, values: dict, source: Path, result: Path):
    with open(source, "rb") as text, open(result, "wb") as translations:
        run("translate", values, folder, stdin=text, stdout=translations)  # its option -o fails


def run(mode: str, values: dict, folder: Path, *options: str, **streams):
    path = folder / "joeynmt.yaml"
    path.write_text(json.dumps(values))  # JSON is YAML
    subprocess.run([sys.executable, "-m", "joeynmt", mode, str(path), *options], **streams, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
