"""The CTranslate2 engine, from text to text, against CTranslate2's search of the same tokens alone.

    KZOO_DATA=FOLDER python benchmarks/engine_speed.py --rounds 5

Both in turns, float32, beam 5, a worker per core; prints the median seconds of each and of their ratios.
"""

import argparse
import time
from statistics import median

import ctranslate2

from kzoo.data import open_corpus
from kzoo.engine.conversion import converted
from kzoo.engine.translator import BATCH, CTranslate2Translator
from kzoo.presets import locate


def seconds(function) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", default="pope_small_multi30k_en_de")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    sentences = 3 * open_corpus("multi30k").sentences("test_2016_flickr", "en")
    preset = locate(options.preset)
    engine = CTranslate2Translator(preset)
    search = ctranslate2.Translator(str(converted(preset)), inter_threads=engine.threads, intra_threads=1)
    vocabulary = engine.source_tokenizer.vocabulary
    pieces = [[vocabulary[token] for token in row] for row in engine.source_tokenizer(sentences)]
    searched = {"beam_size": 5, "max_batch_size": BATCH, "length_penalty": 1, "min_decoding_length": 0}
    engine.translate(sentences[:100])  # whatever is slow once
    ours, theirs = [], []
    for _ in range(options.rounds):
        ours.append(seconds(lambda: engine.translate(sentences, beam_size=5, length_penalty=1)))
        theirs.append(seconds(lambda: search.translate_batch(pieces, **searched)))
    ratio = median(their / our for our, their in zip(ours, theirs, strict=True))
    print(
        f"{len(sentences)} sentences: engine {median(ours):.2f} s, search {median(theirs):.2f} s, {ratio:.2f}"
    )


if __name__ == "__main__":
    main()
