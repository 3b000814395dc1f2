"""An OPUS-MT model of base size through kzoo, against CTranslate2's own conversion of the same repository.

    python benchmarks/marian_speed.py --rounds 5

Makes a repository with random weights (6+6 layers, width 512, some 58,000 pieces), which needs torch and
transformers. Prints the seconds of loading it, then, in turns, float32, beam 4, the median seconds of both
from text to text and of their ratios. Translations have at most 32 tokens: random weights seldom end one.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

os.environ.setdefault("KERAS_BACKEND", "jax")
import ctranslate2
from ctranslate2.converters import TransformersConverter
from engine_speed import seconds

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/models"))
import marian_repositories as repositories

from kzoo.data import open_corpus
from kzoo.decoding.search_settings import SearchSettings
from kzoo.engine.translator import BATCH, CTranslate2Translator
from kzoo.presets import load
from kzoo.presets.shelf import locate

TOKENS = 32


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KZOO_CACHE"] = f"{folder}/cache"
        repository = repositories.make(Path(folder) / "opus-mt-en-de", **repositories.BASE)
        compare(repository, f"{folder}/converted", options.rounds, options.sentences)


def compare(repository: Path, output: str, rounds: int, count: int):
    print(f"first load, with the conversion: {seconds(lambda: load(repository)):.1f} s")
    print(f"second load: {seconds(lambda: load(repository)):.1f} s")
    sentences = open_corpus("scenes").sentences("test", "en")[:count]
    engine = CTranslate2Translator(locate(repository))
    engine.search = SearchSettings(4, 1.0, max_length=TOKENS)
    theirs_tokenizer = repositories.tokenizer(repository)
    TransformersConverter(str(repository)).convert(output)
    theirs = ctranslate2.Translator(output, inter_threads=engine.threads, intra_threads=1)

    def translate():
        rows = [theirs_tokenizer.convert_ids_to_tokens(theirs_tokenizer.encode(text)) for text in sentences]
        found = theirs.translate_batch(
            rows,
            beam_size=4,
            max_batch_size=BATCH,
            min_decoding_length=0,  # by default 1: another search than ours
            max_decoding_length=TOKENS - 1,  # without the end symbol
            return_end_token=False,
        )
        tokens = [theirs_tokenizer.convert_tokens_to_ids(one.hypotheses[0]) for one in found]
        return [theirs_tokenizer.decode(row, skip_special_tokens=True) for row in tokens]

    ours, other = [], []
    for _ in range(rounds + 1):
        ours.append(seconds(lambda: engine.translate(sentences)))
        other.append(seconds(translate))
    ours, other = ours[1:], other[1:]  # whatever is slow once
    ratio = median(their / our for our, their in zip(ours, other, strict=True))
    print(f"{count} sentences: kzoo {median(ours):.2f} s, CTranslate2 {median(other):.2f} s, {ratio:.2f}")


if __name__ == "__main__":
    main()
