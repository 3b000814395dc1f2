"""Is kzoo's choice for one's own text a good one? A random search of recipes, of equal minutes each.

    python benchmarks/recipe_search.py --corpus multi30k_en_fr --pairs 5000 --minutes 10 --recipes 20

Recipe 0 is what kzoo chooses. The others are drawn from `SPACE`, a recipe's number being its seed; what is
not drawn, kzoo chooses. Each is trained by the command of docs/data.md, `kzoo train train.en train.fr
--minutes 10`, with its settings; the minutes count everything, from the command to the scored test set. No
compiled program is kept from one recipe to the next.

Each recipe's scores are kept in `--scores`: what is there is not run again, what was stopped starts anew.
Prints all of them, the best first. To search on each of two cores, give one program the even numbers and
the other the odd ones (`--first 0 --step 2`, `--first 1 --step 2`), each on its core (`taskset -c 1 python
... --threads 1`).
"""

import argparse
import json
import os
import random
from pathlib import Path

from own_text import score, text_parser, with_kzoo, write_text

from kzoo.files import write_json
from training import use_cores

SPACE = {
    "vocabulary_size": (1_000, 2_000, 4_000),
    "tokens": (512, 1_024),
    "num_shapes": (3, 7),
    "rate_factor": (1.0, 1.5, 2.0, 3.0),
    "warmup_steps": (200, 400, 800),
    "label_smoothing": (0.05, 0.1, 0.2),
    "model.dropout": (0.1, 0.2, 0.3),
    "model.width": (128, 192),
    "layers": ((2, 2), (3, 3), (4, 2), (4, 4), (6, 2)),  # of the encoder and the decoder
}
SEED = 1  # of each training


def main():
    options = parse_arguments()
    use_cores(options.threads)
    os.environ["KZOO_KEEP_COMPILED"] = "0"
    text = options.runs / f"{options.corpus}_{options.pairs}"
    write_text(text, options)
    for number in range(options.first, options.recipes + 1, options.step):
        folder = options.runs / f"{text.name}_{options.minutes:g}min_recipe_{number}"
        kept = options.scores / f"{folder.name}.json"
        if not kept.exists():
            folder.mkdir(parents=True, exist_ok=True)
            settings = drawn(number)
            given = [f"{key}={value}" for key, value in settings.items()]
            with_kzoo("kzoo", SEED, text, folder, options, given)
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_json(kept, {"settings": settings, **score(text, folder, options)})
        print(number, f"{json.loads(kept.read_text())['BLEU']:.1f}", flush=True)
    report(options)


def parse_arguments() -> argparse.Namespace:
    parser = text_parser(__doc__, Path("runs/recipe_search"))
    parser.add_argument("--recipes", type=int, default=20, help="drawn at random")
    parser.add_argument("--first", type=int, default=0, help="the first recipe's number; 0: kzoo's choice")
    parser.add_argument("--step", type=int, default=1, help="from one number to the next")
    return parser.parse_args()


def drawn(number: int) -> dict:
    """Return the settings of a recipe, as `kzoo train` takes them."""
    if number == 0:
        return {}
    settings = {key: random.Random(f"{number} {key}").choice(values) for key, values in SPACE.items()}
    encoder, decoder = settings.pop("layers")
    settings |= {"model.num_layers": encoder, "model.decoder_layers": decoder}
    return settings | {"model.feedforward_dim": 2 * settings["model.width"]}


def report(options: argparse.Namespace):
    """Print a table of all recipes that have been run, the best first."""
    name = f"{options.corpus}_{options.pairs}_{options.minutes:g}min_recipe_"
    found = {
        int(path.stem.removeprefix(name)): json.loads(path.read_text())
        for path in options.scores.glob(f"{name}*.json")
    }
    print("\n| recipe | settings | BLEU | chrF2 |\n| ---: | --- | ---: | ---: |")
    for number in sorted(found, key=lambda number: -found[number]["BLEU"]):
        one = found[number]
        settings = " ".join(f"{key}={value}" for key, value in one["settings"].items()) or "kzoo's choice"
        print(f"| {number} | {settings} | {one['BLEU']:.1f} | {one['chrF2']:.1f} |")


if __name__ == "__main__":
    main()
