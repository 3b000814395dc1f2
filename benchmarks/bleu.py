"""BLEU after equal training: kzoo, JoeyNMT 2.3 and Eole 0.6, each with its own training and beam search.

    python benchmarks/bleu.py --epochs 10 --runs runs/bleu

All train the same Transformer (`tiny` of `benchmarks/training.py`, with sinusoidal positions) on all of
Multi30k en-de, in the same subwords, with Adam, the same schedule, label smoothing and clipping as
the recipe `pope_multi30k`, and for as many passes over the corpus; then they translate its test sets with
beam 5, each normalizing by length in its own way. Each makes its own batches of about as many tokens; fewer
words in a batch are more updates in a pass. The weights after the last pass are taken, without averaging
or choosing.

Prints each system's scores, and for each test set how they compare with the first system's: 95 % of draws
of the sentences, and p by approximate randomization. A system that has translated is not run again; kzoo
also resumes a stopped training. How long the trainings took is printed, but compare speed with
`benchmarks/training.py`, which lets the systems take turns.
"""

import argparse
import json
import time
from pathlib import Path

from kzoo.data import open_corpus
from kzoo.data.text_files import read_lines
from kzoo.evaluation import compare_bleu, comparison_table, score_table, score_translations
from kzoo.files import write_json
from kzoo.training import Recipe, read_recipe
from training import python_of, run_in, use_cores, write_corpus

TESTS = ["test_2016_flickr", "test_2017_flickr", "test_2017_mscoco"]


def main():
    options = parse_arguments()
    use_cores(options.threads)
    overrides = ["preset=sine_tiny", "average=1", f"epochs={options.epochs}", f"seed={options.seed}"]
    recipe = read_recipe("pope_multi30k", overrides)
    references = {test: open_corpus(recipe.corpus).sentences(test, "de") for test in TESTS}
    translated = {}
    for name in options.systems.split(","):
        folder = options.runs / f"{name}_{options.epochs}_{options.seed}"
        result = folder / "translations.json"
        if not result.exists():
            python = python_of(name, options)
            print(f"{name}: training; its output is in {folder}", flush=True)
            folder.mkdir(parents=True, exist_ok=True)
            start = time.perf_counter()
            if name == "kzoo":
                translations = with_kzoo(recipe, folder)
            else:
                write_task(folder, recipe, options.threads)
                translations = with_peer(name, python, folder)
            write_json(result, {"translations": translations, "seconds": time.perf_counter() - start})
        found = json.loads(result.read_text())
        scores = [
            score_translations(test, found["translations"][test], references[test], "de") for test in TESTS
        ]
        print(f"\n{name}, {found['seconds'] / 60:.0f} minutes\n{score_table(scores)}", flush=True)
        translated[name] = found["translations"]
    if len(translated) > 1:
        for test in TESTS:
            each = [(name, translations[test]) for name, translations in translated.items()]
            print(f"\n{test}\n{comparison_table(*compare_bleu(each, references[test], 'de'))}", flush=True)


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
    """Train as `kzoo train` does; return the translations of each test by the weights of the last epoch."""
    from kzoo.training import train
    from kzoo.training.checkpoints import WEIGHTS
    from kzoo.training.run_folder import saved_in

    translator = train(recipe, folder / "run")
    *_, last = saved_in(folder / "run" / "checkpoints")[-1]
    translator.load_weights(last / WEIGHTS)
    corpus = open_corpus(recipe.corpus)
    search = {"beam_size": recipe.beam_size, "length_penalty": recipe.length_penalty}
    return {test: translator.translate(corpus.sentences(test, "en"), **search) for test in TESTS}


def with_peer(name: str, python: Path, folder: Path) -> dict[str, list[str]]:
    """Train and translate in the system's environment; return the translations of each test."""
    run_in(python, f"bleu_{name}.py", folder)
    return {test: read_lines(folder / f"{test}.de").sentences for test in TESTS}


def write_task(folder: Path, recipe: Recipe, threads: int):
    """Write what `benchmarks/training.py` writes, with all pairs, and the tests' sources and the schedule."""
    from kzoo.text import SubwordTokenizer

    corpus = open_corpus(recipe.corpus)
    german = corpus.sentences("train", "de")
    settings = {"model": "tiny", "precision": "float32", "tokens": recipe.tokens, "threads": threads}
    whole = argparse.Namespace(**settings, sentences=len(german))
    write_corpus(folder, whole)
    for test in TESTS:
        lines = corpus.sentences(test, "en")
        (folder / f"{test}.en").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    tokenizer = SubwordTokenizer((folder / "subwords.model").read_bytes())
    settings = folder / "settings.json"
    keys = ("epochs", "seed", "warmup_steps", "rate_factor", "clip_norm", "beam_size")
    values = {
        **json.loads(settings.read_text()),
        "tests": TESTS,
        # Every word, and an end symbol for every sentence.
        "words": sum(len(sentence) + 1 for sentence in tokenizer(german)),
        **{key: getattr(recipe, key) for key in keys},
    }
    settings.write_text(json.dumps(values))


if __name__ == "__main__":
    main()
