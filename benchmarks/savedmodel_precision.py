"""SavedModels with float32, float16 and int8 weights: size on disk, BLEU and speed, in one run.

    python benchmarks/savedmodel_precision.py --preset pope_small_multi30k_en_de

Each precision is exported and called in its own process, on the first sentences of Multi30k's
test_2016_flickr, from text to text with beam 5. After a pass that compiles, they take turns.

Prints the size of each folder and of the weights in it, BLEU with its signature, the share of translations
that are the same as float32's, and the speed relative to float32's: the median, minimum and maximum of the
rounds.
"""

import argparse
import statistics
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from decoding_speed import SPLIT, Job, Turn, Worker, keep_to, take_turns
from serving_speed import BEAM, SavedModelSide

PRECISIONS = ("float32", "float16", "int8")  # all others are compared with the first


class PrecisionSide(SavedModelSide):
    """A SavedModel with weights of one precision."""

    def __init__(self, job: Job, precision: str):
        from kzoo.export import export_saved_model
        from kzoo.presets import load

        export_saved_model(load(job.preset), Path(job.folder) / "saved_model", precision, beam_size=BEAM)
        super().__init__(job)


def main():
    options = parse_arguments()
    keep_to(options.cores)
    with tempfile.TemporaryDirectory() as folder:
        job = Job(options.preset, options.sentences, BEAM, None, folder)
        report(passes(job, options.rounds, options.cores), job)


def parse_arguments() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--preset", default="pope_small_multi30k_en_de", help="name or folder, en to de")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cores", type=int, default=2)
    return parser.parse_args()


def passes(job: Job, rounds: int, cores: int) -> dict[str, list[Turn]]:
    """Return each precision's passes over all sentences, after one that compiles."""
    with ExitStack() as processes:
        systems = {}
        for name in PRECISIONS:
            side, place = partial(PrecisionSide, precision=name), Path(job.folder) / name
            place.mkdir()
            worker = processes.enter_context(Worker(side, replace(job, folder=str(place)), cores, name))
            worker.translate(cores, None)
            systems[name] = (worker, (cores, None))
        return take_turns(systems, rounds)


def report(turns: dict[str, list[Turn]], job: Job):
    from rich.console import Console
    from rich.table import Table

    from kzoo.data import open_corpus
    from kzoo.evaluation.scores import score_translations

    references = open_corpus("multi30k").sentences(SPLIT, "de")[: job.sentences]
    expected = turns[PRECISIONS[0]][0].texts
    table = Table("weights", "their MB", "folder's MB", "BLEU", "same text", "speed", "by processor time")
    for name, found in turns.items():
        texts = found[0].texts
        same = sum(x == y for x, y in zip(texts, expected, strict=True)) / len(texts)
        scores = score_translations(SPLIT, texts, references, "de")
        pairs = list(zip(turns[PRECISIONS[0]], found, strict=True))
        speed = spread([before.seconds / turn.seconds for before, turn in pairs])
        core_speed = spread([before.core_seconds / turn.core_seconds for before, turn in pairs])
        whole = Path(job.folder) / name / "saved_model"
        sizes = (f"{megabytes(folder):.1f}" for folder in (whole / "variables", whole))
        table.add_row(name, *sizes, f"{scores.bleu:.2f}", f"{same:.1%}", speed, core_speed)
    Console(width=110).print(table)
    print(f"BLEU: {scores.signatures['bleu']}")


def megabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


if __name__ == "__main__":
    main()
