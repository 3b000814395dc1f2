"""Training speed: target words a second of kzoo against JoeyNMT 2.3, in one run.

    KZOO_DATA=FOLDER python benchmarks/training_speed.py --sentences 6000 --rounds 3

Both train a Transformer of 4+4 layers (width 128, 4 heads, feed-forward 256, dropout 0.3, pre-norm, tied
embeddings) on the same sentences of Multi30k en-de in the same 4,000 joint subwords, in batches of about
2,048 tokens, with Adam and label smoothing 0.1, on the same two cores. A word is a target subword or an end
symbol; padding does not count. Each system makes its own batches: JoeyNMT draws sentences in random order
until the padded batch holds the tokens, kzoo groups them by length.

The two take turns. A round is one epoch of kzoo through `fit`, then two of JoeyNMT through `joeynmt train`
as its users start it, in a process of its own; its own log gives words and seconds. Left out as warm-up:
kzoo's first epoch, in which every batch shape is compiled, and the first epoch of each JoeyNMT process.

JoeyNMT runs in a virtual environment of its own: `--joeynmt-python`, or one that is made (once, 1 GB) in
kzoo's cache folder. Prints a table of the rounds with medians, the ratio, and what the warm-up took.
"""

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

JOEYNMT_PACKAGES = (
    "torch==2.13.0",
    "joeynmt==2.3.0",
    "sentencepiece==0.2.0",
    "setuptools<81",
    "importlib_metadata",
)
SIZE = {"num_layers": 4, "width": 128, "num_heads": 4, "feedforward_dim": 256, "dropout": 0.3, "norm": "pre"}
VOCABULARY_SIZE = 4000
LABEL_SMOOTHING = 0.1
EPOCH_IN_LOG = re.compile(r"Epoch +(\d+), total training loss: .*num\. of tokens: (\d+), ([\d.]+)\[sec\]")


def main():
    options = parse_arguments()
    use_cores(options.threads)
    with tempfile.TemporaryDirectory() as scratch:
        corpus = Subset(Path(scratch), options.sentences)
        joeynmt_python = options.joeynmt_python or make_joeynmt_environment()
        config = write_joeynmt_config(Path(scratch), corpus, options.tokens)
        kzoo = KzooTraining(corpus, options.tokens)
        size = f"{len(corpus.source):,} sentence pairs, {kzoo.words:,} target words"
        print(f"{size}, {options.threads} threads", flush=True)
        warm_up = kzoo.epoch()
        rounds = []
        for number in range(1, options.rounds + 1):
            ours = kzoo.words / kzoo.epoch()
            theirs = joeynmt_words_per_second(joeynmt_python, config, options.threads, kzoo.words)
            rounds.append((ours, theirs))
            print(f"round {number}: kzoo {ours:,.0f}, JoeyNMT {theirs:,.0f}", flush=True)
    report(rounds, warm_up, options.json)


def parse_arguments() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--sentences", type=int, default=6000, help="training pairs of an epoch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=2048, help="words of a batch, padding included")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--joeynmt-python", type=Path, help="python of an environment with JoeyNMT 2.3")
    parser.add_argument("--json", type=Path, help="file for the figures")
    return parser.parse_args()


def use_cores(threads: int):
    """Keep this process and those that it starts on `threads` cores, with as many threads."""
    os.environ |= {"TF_NUM_INTRAOP_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


class Subset:
    """A random part of Multi30k's training pairs, on disk for JoeyNMT, with subwords learned from all."""

    def __init__(self, folder: Path, sentences: int):
        from kzoo.data import open_corpus
        from kzoo.text import SubwordTokenizer, train_subwords

        source, target = open_corpus("multi30k").pairs("train", "en", "de")
        proto = train_subwords(source + target, VOCABULARY_SIZE)
        chosen = random.Random(0).sample(range(len(source)), min(sentences, len(source)))
        self.source, self.target = [source[i] for i in chosen], [target[i] for i in chosen]
        self.tokenizer = SubwordTokenizer(proto)
        self.subwords = folder / "subwords.model"
        self.subwords.write_bytes(proto)
        self.vocabulary = folder / "vocabulary.txt"
        words = [self.tokenizer.id_to_token(i) for i in range(VOCABULARY_SIZE)]
        # JoeyNMT puts its four special words first; the rest may stand in any order.
        special = {"<pad>", "<unk>", "<s>", "</s>"}
        self.vocabulary.write_text("".join(f"{word}\n" for word in words if word not in special))
        for name, count in (("train", len(chosen)), ("dev", 10)):
            (folder / f"{name}.en").write_text("".join(f"{line}\n" for line in self.source[:count]))
            (folder / f"{name}.de").write_text("".join(f"{line}\n" for line in self.target[:count]))


class KzooTraining:
    """kzoo's side: a model that trains an epoch at a time."""

    def __init__(self, corpus: Subset, tokens: int):
        import keras

        from kzoo.data import Batches
        from kzoo.presets import build

        keras.utils.set_random_seed(1)
        self.model = build("pope_tiny", corpus.tokenizer, **SIZE)
        source, target = corpus.tokenizer(corpus.source), corpus.tokenizer(corpus.target)
        self.batches = Batches(source, target, tokens)
        self.words = sum(len(sentence) + 1 for sentence in target)

    def epoch(self) -> float:
        """Train an epoch; return its seconds."""
        start = time.perf_counter()
        self.model.fit(self.batches, epochs=1, shuffle=False, verbose=0)
        return time.perf_counter() - start


def make_joeynmt_environment() -> Path:
    """Return the python of JoeyNMT's environment in the cache folder, made if it is not there."""
    from kzoo.data.download import cache_folder

    folder = cache_folder() / "joeynmt-2.3.0"
    python = folder / "bin" / "python"
    complete = folder / "complete"
    if not complete.exists():
        print(f"installing JoeyNMT into {folder}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *JOEYNMT_PACKAGES], check=True)
        complete.touch()
    return python


def write_joeynmt_config(folder: Path, corpus: Subset, tokens: int) -> Path:
    """Write the configuration of two epochs of JoeyNMT; JSON is YAML."""

    def language(code):
        return {
            "lang": code,
            "level": "bpe",
            "voc_file": str(corpus.vocabulary),
            "tokenizer_type": "sentencepiece",
            "tokenizer_cfg": {"model_file": str(corpus.subwords)},
        }

    half = {
        "type": "transformer",
        "num_layers": SIZE["num_layers"],
        "num_heads": SIZE["num_heads"],
        "embeddings": {"embedding_dim": SIZE["width"], "scale": True, "dropout": SIZE["dropout"]},
        "hidden_size": SIZE["width"],
        "ff_size": SIZE["feedforward_dim"],
        "dropout": SIZE["dropout"],
        "layer_norm": SIZE["norm"],
        "activation": "relu",
    }
    never = 10**9  # no validation, no progress lines: nothing but training
    config = {
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
            "label_smoothing": LABEL_SMOOTHING,
            "normalization": "tokens",
            "loss": "crossentropy",
            "batch_type": "token",
            "batch_size": tokens,
            "epochs": 2,
            "logging_freq": never,
            "validation_freq": never,
            "overwrite": True,
        },
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": half,
            "decoder": half,
        },
    }
    path = folder / "joeynmt.yaml"
    path.write_text(json.dumps(config, indent=1))
    return path


def joeynmt_words_per_second(python: Path, config: Path, threads: int, words: int) -> float:
    """Train two epochs with JoeyNMT; return the second's words a second, by its own log.

    Its "num. of tokens" is the target's without padding and with end symbols: as many as `words`, ours.
    """
    command = [str(python), "-m", "joeynmt", "train", str(config), "--skip-test"]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    run = subprocess.run(command, env=environment, cwd=config.parent, capture_output=True, text=True)
    epochs = EPOCH_IN_LOG.findall(run.stdout + run.stderr)
    if run.returncode or len(epochs) != 2:
        sys.exit(f"{' '.join(command)} failed with status {run.returncode}:\n{run.stderr[-3000:]}")
    _, counted, seconds = epochs[1]
    if int(counted) != words:
        sys.exit(f"JoeyNMT counts {counted} target words, kzoo {words}: they do not train on the same text")
    return words / float(seconds)


def report(rounds: list[tuple[float, float]], warm_up: float, path: Path | None):
    """Print the table and the ratio; write the figures if a path is given."""
    from rich.console import Console
    from rich.table import Table

    ours, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
    table = Table("target words a second", "kzoo", "JoeyNMT 2.3", "ratio")
    for number, (a, b) in enumerate(rounds, 1):
        table.add_row(f"round {number}", f"{a:,.0f}", f"{b:,.0f}", f"{a / b:.2f}")
    table.add_row("median", f"{ours:,.0f}", f"{theirs:,.0f}", f"{ours / theirs:.2f}")
    Console().print(table)
    print(f"ratio kzoo / JoeyNMT: {ours / theirs:.2f}")
    print(f"kzoo's first epoch, with compilation: {warm_up:.0f} s (not counted)")
    if path is not None:
        figures = {"rounds": rounds, "kzoo": ours, "joeynmt": theirs, "ratio": ours / theirs}
        path.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
