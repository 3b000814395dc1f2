"""Test scores of one's own text after equal minutes: kzoo, JoeyNMT 2.3 and Eole 0.6, on the same two cores.

    python benchmarks/own_text.py --corpus multi30k_en_de --pairs 10000 --minutes 10 --seeds 1,2

kzoo gets the command of docs/data.md, `kzoo train train.en train.de --minutes 10`, and the corpus's own
validation and test sets. Its minutes count everything, from the command to the scored test set. The rivals'
begin with their training: their subwords are learned before, and their test sets are translated after it.
They train until the minutes are over, and translate with their best checkpoint, or the last if they came to
no validation. All search with beam 5.

A rival's settings are its own documentation's, or, with `_tuned`, the model's size, the subwords, the
batches, the dropout and the schedule that kzoo chooses for the text:

| system | settings |
| --- | --- |
| `joeynmt` | its `configs/iwslt14_deen_sp.yaml`, its smallest benchmark of real text, with capitals |
| `eole` | the default Transformer of its quickstart, with `recipes/wmt17/wmt17_ende_spm.yaml`'s training |
| `joeynmt_tuned`, `eole_tuned` | kzoo's choice; validated as often as the above |

Each system's scores are kept in `--scores`: what is there is not run again; what was stopped starts anew.
Prints the table of all scores with the same corpus and minutes, means and ranges over seeds. Run it on a
quiet machine.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from kzoo.data import open_corpus
from kzoo.data.text_files import read_lines
from kzoo.evaluation import score_translations
from kzoo.files import write_json
from training import MODELS, make_environment, run_in, use_cores

# Name: the corpus, its languages, its test set.
CORPORA = {
    "multi30k_en_de": ("multi30k", "en", "de", "test_2016_flickr"),
    "multi30k_en_fr": ("multi30k", "en", "fr", "test_2016_flickr"),
    "tatoeba_zh_en": ("tatoeba_zh_en", "zh", "en", "test"),
}
BASE = {"width": 512, "heads": 8, "feedforward": 2048, "dropout": 0.1}
# JoeyNMT's file; Eole's defaults, with its recipe's batches.
DOCUMENTED = {
    "joeynmt": {
        **BASE,
        "layers": 6,
        "tokens": 8192,
        "vocabulary_size": 32_000,
        "validate_every": 1_000,
        "precision": "float32",
    },
    "eole": {
        **BASE,
        "layers": 2,
        "tokens": 5_000,
        "vocabulary_size": 36_000,
        "validate_every": 500,
        "precision": "mixed_bfloat16",
    },
}
BEAM = 5


def main():
    options = parse_arguments()
    use_cores(options.threads)
    text = options.runs / f"{options.corpus}_{options.pairs}"
    write_text(text, options)
    for seed in map(int, options.seeds.split(",")):
        for system in options.systems.split(","):
            folder = options.runs / f"{text.name}_{options.minutes:g}min_{system}_{seed}"
            kept = options.scores / f"{folder.name}.json"
            if not kept.exists():
                print(
                    f"{system}, seed {seed}: {options.minutes:g} minutes; its output is in {folder}",
                    flush=True,
                )
                folder.mkdir(parents=True, exist_ok=True)
                train = with_kzoo if system == "kzoo" else with_rival
                train(system, seed, text, folder, options)
                kept.parent.mkdir(parents=True, exist_ok=True)
                write_json(kept, score(text, folder, options))
            found = json.loads(kept.read_text())
            print(f"{system}, seed {seed}: BLEU {found['BLEU']:.1f}, chrF2 {found['chrF2']:.1f}", flush=True)
    report(options)


def parse_arguments() -> argparse.Namespace:
    parser = text_parser(__doc__, Path("runs/own_text"))
    parser.add_argument("--seeds", default="1", help="with commas")
    parser.add_argument("--systems", default="kzoo,joeynmt,eole,joeynmt_tuned,eole_tuned", help="with commas")
    return parser.parse_args()


def text_parser(description: str, folder: Path) -> argparse.ArgumentParser:
    """Return a parser of the text, the minutes and the threads of runs, which are kept in a folder."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=raw)
    parser.add_argument("--corpus", choices=CORPORA, default="multi30k_en_de")
    parser.add_argument("--pairs", type=int, default=10_000, help="drawn from the training text, at most")
    parser.add_argument("--minutes", type=float, default=10, help="of each run")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=Path, default=folder, help="folder of the runs")
    parser.add_argument("--scores", type=Path, default=folder / "scores", help="folder of the scores")
    return parser


def write_text(folder: Path, options: argparse.Namespace):
    """Write the training pairs, the validation and the test set, one file for each language."""
    name, *languages, test = CORPORA[options.corpus]
    corpus = open_corpus(name)
    folder.mkdir(parents=True, exist_ok=True)
    sides = corpus.sides("train", languages)
    chosen = random.Random(0).sample(range(len(sides[0])), min(options.pairs, len(sides[0])))
    for code, side in zip(languages, sides, strict=True):
        write_lines(folder / f"train.{code}", [side[row] for row in chosen])
        write_lines(folder / f"val.{code}", corpus.sentences("val", code))
        write_lines(folder / f"test.{code}", corpus.sentences(test, code))


def write_lines(path: Path, lines: list[str]):
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def files(text: Path, split: str, options: argparse.Namespace) -> list[str]:
    _, source, target, _ = CORPORA[options.corpus]
    return [str((text / f"{split}.{code}").absolute()) for code in (source, target)]


def with_kzoo(_, seed: int, text: Path, folder: Path, options: argparse.Namespace, settings: Sequence = ()):
    """Train by the command line, with what `settings` give, and translate with what it leaves."""
    kzoo = [sys.executable, "-m", "kzoo"]
    given = [f"{key}={json.dumps(files(text, key, options))}" for key in ("val", "test")]
    minutes, run = str(options.minutes), str(folder / "run")
    train = [*kzoo, "train", *files(text, "train", options), *given, f"seed={seed}", "--minutes", minutes]
    train += settings
    with open(folder / "log", "wb") as log:
        began = time.perf_counter()
        subprocess.run([*train, "-o", run], stdout=log, stderr=log, check=True)
        print(f"kzoo train ended after {(time.perf_counter() - began) / 60:.1f} minutes", flush=True)
        tested = ["--input", files(text, "test", options)[0], "-o", str(folder / "test.translated")]
        subprocess.run([*kzoo, "translate", run, *tested], stdout=log, stderr=log, check=True)


def with_rival(system: str, seed: int, text: Path, folder: Path, options: argparse.Namespace):
    """Train and translate in the rival's own environment."""
    name, _, tuned = system.partition("_")
    python = make_environment(name)
    settings = {
        "model": "transformer",
        "tuned": bool(tuned),
        "seed": seed,
        "threads": options.threads,
        "beam_size": BEAM,
        **{split: files(text, split, options) for split in ("train", "val", "test")},
    }
    settings |= DOCUMENTED[name]
    if tuned:
        settings |= kzoo_choice(settings["train"], options)
    learn_subwords(folder, settings)
    settings["until"] = time.time() + 60 * options.minutes
    write_json(folder / "settings.json", settings)
    run_in(python, f"own_text_{name}.py", folder)


def kzoo_choice(train: list[str], options: argparse.Namespace) -> dict:
    """Return what kzoo chooses for the text, under the names of `benchmarks/training.py`."""
    from kzoo.training.choice import choose, text_of
    from kzoo.training.recipe_files import text_values

    _, source, target, _ = CORPORA[options.corpus]
    values, recipe = text_values(train, source, target, [f"minutes={options.minutes}"])
    chosen = {key: choice.value for key, choice in choose(values, text_of(recipe)).items()}
    model = MODELS[chosen["preset"].partition("_")[2]]
    keys = ("vocabulary_size", "tokens", "warmup_steps", "rate_factor", "clip_norm")
    return {
        **{key: model[key] for key in ("layers", "width", "heads", "feedforward")},
        "dropout": chosen.get("model.dropout", model["dropout"]),
        **{key: chosen[key] for key in keys},
        "precision": "float32",
    }


def learn_subwords(folder: Path, settings: dict):
    """Learn at most `vocabulary_size` subwords from both sides; write the model and its vocabulary."""
    import sentencepiece

    prefix = folder / "subwords"
    sentencepiece.SentencePieceTrainer.train(
        input=settings["train"],
        model_prefix=str(prefix),
        vocab_size=settings["vocabulary_size"],
        hard_vocab_limit=False,  # small text does not carry as many as the documentations name
        character_coverage=1.0,
        minloglevel=2,
    )
    processor = sentencepiece.SentencePieceProcessor(model_file=f"{prefix}.model")
    pieces = [processor.id_to_piece(number) for number in range(processor.vocab_size())]
    write_lines(
        folder / "vocabulary.txt", [piece for piece in pieces if piece not in ("<unk>", "<s>", "</s>")]
    )


def score(text: Path, folder: Path, options: argparse.Namespace) -> dict:
    *_, target, test = CORPORA[options.corpus]
    references = read_lines(Path(files(text, "test", options)[1])).sentences
    translations = read_lines(folder / "test.translated").sentences
    found = score_translations(test, translations, references, target)
    signatures = {name: found.signatures[name] for name in ("bleu", "chrf2")}
    return {"BLEU": found.bleu, "chrF2": found.chrf2, "signatures": signatures}


def report(options: argparse.Namespace):
    """Print the mean and the range of each system, for every number of pairs that has been run."""
    lines = ["| pairs | system | seeds | BLEU | chrF2 |", "| ---: | --- | ---: | ---: | ---: |"]
    found: dict = {}
    for path in options.scores.glob(f"{options.corpus}_*_{options.minutes:g}min_*.json"):
        pairs, system = path.stem.removeprefix(f"{options.corpus}_").split(f"_{options.minutes:g}min_")
        found.setdefault((int(pairs), system.rpartition("_")[0]), []).append(json.loads(path.read_text()))
    for (pairs, system), results in sorted(found.items()):
        cells = []
        for metric in ("BLEU", "chrF2"):
            scores = [result[metric] for result in results]
            cells.append(f"{statistics.mean(scores):.1f} ({min(scores):.1f} to {max(scores):.1f})")
        lines.append(f"| {pairs:,} | {system} | {len(results)} | {' | '.join(cells)} |")
    print(f"\n{options.corpus}, {options.minutes:g} minutes\n\n" + "\n".join(lines))


if __name__ == "__main__":
    main()
