"""BLEU after equal training: kzoo, JoeyNMT 2.3 and Eole 0.6, each with its own training and beam search.

    python benchmarks/bleu.py --epochs 10 --runs runs/bleu

All train the same Transformer (`tiny` of `benchmarks/training.py`, with sinusoidal positions) on all of
Multi30k en-de, in the same subwords, with Adam, the same schedule, label smoothing and clipping as
`training/pope_multi30k.toml`, and for as many passes over the corpus; then they translate its test sets with
beam 5, each normalizing by length in its own way. Each makes its own batches of about as many tokens; fewer
words in a batch are more updates in a pass. The last weights are taken, without averaging or choosing.

A system that has translated is not run again; kzoo also resumes a stopped training. How long the trainings
took is printed, but compare speed with `benchmarks/training.py`, which lets the systems take turns.
"""

import argparse
import json
import subprocess
import time
from pathlib import Path

from kzoo.data import open_corpus
from kzoo.data.text_files import read_lines
from kzoo.evaluation import score_table, score_translations
from kzoo.files import write_json
from kzoo.training import Recipe, read_recipe
from training import MODELS, SYSTEMS, python_of, use_cores

TESTS = ["test_2016_flickr", "test_2017_flickr", "test_2017_mscoco"]
RECIPE = Path(__file__).parents[1] / "training" / "pope_multi30k.toml"


def main():
    options = parse_arguments()
    use_cores(options.threads)
    overrides = ["preset=sine_tiny", "average=1", f"epochs={options.epochs}", f"seed={options.seed}"]
    recipe = read_recipe(RECIPE, overrides)
    references = {test: open_corpus(recipe.corpus).pairs(test, "en", "de")[1] for test in TESTS}
    rows = []
    for name in options.systems.split(","):
        folder = options.runs / f"{name}_{options.epochs}_{options.seed}"
        result = folder / "translations.json"
        if not result.exists():
            python = python_of(name, options)
            print(f"{name}: training; its output is in {folder}", flush=True)
            folder.mkdir(parents=True, exist_ok=True)
            start = time.perf_counter()
            translations = (
                with_kzoo(recipe, folder)
                if name == "kzoo"
                else with_peer(name, python, recipe, folder, options)
            )
            write_json(result, {"translations": translations, "seconds": time.perf_counter() - start})
        found = json.loads(result.read_text())
        scores = [
            score_translations(test, found["translations"][test], references[test], "de") for test in TESTS
        ]
        print(f"\n{name}, {found['seconds'] / 60:.0f} minutes\n{score_table(scores)}", flush=True)
        rows.append((name, scores))
    print("\n" + table(rows))


def parse_arguments() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--systems", default="kzoo,joeynmt,eole", help="with commas")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=Path, default=Path("runs/bleu"), help="folder of the runs")
    parser.add_argument("--joeynmt-python", type=Path, help="python of an environment with JoeyNMT 2.3")
    parser.add_argument("--eole-python", type=Path, help="python of an environment with Eole 0.6")
    return parser.parse_args()


def with_kzoo(recipe: Recipe, folder: Path) -> dict[str, list[str]]:
    """Train as `kzoo train` does; return the translations of each test."""
    from kzoo.presets import load
    from kzoo.training import train

    train(recipe, folder / "run")
    translator = load(folder / "run")
    corpus = open_corpus(recipe.corpus)
    return {
        test: translator.translate(corpus.pairs(test, "en", "de")[0], beam_size=recipe.beam_size)
        for test in TESTS
    }


def with_peer(name: str, python: Path, recipe: Recipe, folder: Path, options) -> dict[str, list[str]]:
    """Train and translate in the system's environment; return the translations of each test."""
    write_corpus(folder, recipe, options)
    with open(folder / "log", "wb") as log:
        subprocess.run(
            [str(python), str(SYSTEMS / f"bleu_{name}.py"), str(folder.absolute())],
            cwd=folder,
            stdout=log,
            stderr=log,
            check=True,
        )
    return {test: read_lines(folder / f"{test}.de").sentences for test in TESTS}


def write_corpus(folder: Path, recipe: Recipe, options):
    """Write training text and tests' sources, the recipe's subwords, and what to train with them."""
    from kzoo.text import SubwordTokenizer, train_subwords

    corpus = open_corpus(recipe.corpus)
    training = dict(zip(("en", "de"), corpus.pairs("train", "en", "de"), strict=True))
    proto = train_subwords(training["en"] + training["de"], recipe.vocabulary_size)
    tokenizer = SubwordTokenizer(proto)
    words = [tokenizer.id_to_token(i) for i in range(recipe.vocabulary_size)]
    ordinary = [word for word in words if word not in ("<pad>", "<unk>", "<s>", "</s>")]
    (folder / "subwords.model").write_bytes(proto)
    (folder / "vocabulary.txt").write_text("".join(f"{word}\n" for word in ordinary), "utf-8")
    texts = {f"train.{code}": text for code, text in training.items()}
    texts |= {f"dev.{code}": text[:10] for code, text in training.items()}  # JoeyNMT insists on a dev set
    texts |= {f"{test}.en": corpus.pairs(test, "en", "de")[0] for test in TESTS}
    for name, text in texts.items():
        (folder / name).write_text("".join(f"{line}\n" for line in text), "utf-8")
    settings = {
        **MODELS["tiny"],
        "model": "tiny",
        "threads": options.threads,
        "tests": TESTS,
        # Every word, and an end symbol for every sentence.
        "words": sum(len(sentence) + 1 for sentence in tokenizer(training["de"])),
        **{
            key: getattr(recipe, key)
            for key in ("tokens", "epochs", "seed", "warmup_steps", "rate_factor", "clip_norm", "beam_size")
        },
    }
    (folder / "settings.json").write_text(json.dumps(settings))


def table(rows: list[tuple[str, list]]) -> str:
    """Return the Markdown table: BLEU of each system on each test."""
    lines = [f"| system | {' | '.join(TESTS)} |", "| --- |" + " ---: |" * len(TESTS)]
    lines += [f"| {name} | {' | '.join(f'{score.bleu:.1f}' for score in scores)} |" for name, scores in rows]
    return "\n".join([*lines, "", f"bleu: `{rows[0][1][0].signatures['bleu']}`"])


if __name__ == "__main__":
    main()
