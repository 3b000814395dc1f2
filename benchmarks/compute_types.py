"""What CTranslate2 computes in: BLEU and speed of a preset with each type that this processor supports.

    KZOO_DATA=FOLDER python benchmarks/compute_types.py --preset pope_small_multi30k_en_de --rounds 5

From text to text, Multi30k's test_2016_flickr, beam 5, a worker per core, the types in turns; the ratio is
the median of the rounds', to float32 in the same round.
"""

import argparse
import time
from statistics import median

import ctranslate2
import sacrebleu

from kzoo.data import open_corpus
from kzoo.engine.translator import CTranslate2Translator
from kzoo.presets import locate

SPLIT = "test_2016_flickr"


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--preset", default="pope_small_multi30k_en_de")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    english, german = (open_corpus("multi30k").sentences(SPLIT, language) for language in ("en", "de"))
    kinds = sorted(ctranslate2.get_supported_compute_types("cpu"))
    engines = {kind: CTranslate2Translator(locate(options.preset), kind) for kind in kinds}
    seconds, core, scores = ({kind: [] for kind in engines} for _ in range(3))
    for engine in engines.values():
        engine.translate(english[:100])  # whatever is slow once
    for _ in range(options.rounds):
        for kind, engine in engines.items():
            began, before = time.perf_counter(), time.process_time()
            translations = engine.translate(english, beam_size=5)
            seconds[kind].append(time.perf_counter() - began)
            core[kind].append(time.process_time() - before)
            scores[kind] = sacrebleu.corpus_bleu(translations, [german]).score
    print("| type | BLEU | sentences per second | relative to float32 | CPU ms per sentence |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for kind, found in seconds.items():
        ratio = median(one / other for one, other in zip(seconds["float32"], found, strict=True))
        rate, each = len(english) / median(found), 1000 * median(core[kind]) / len(english)
        print(f"| {kind} | {scores[kind]:.1f} | {rate:.0f} | {ratio:.2f} | {each:.2f} |")


if __name__ == "__main__":
    main()
