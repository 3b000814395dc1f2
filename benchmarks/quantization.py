"""What Keras's quantization does to presets: size of the weights, BLEU and changed translations.

    python benchmarks/quantization.py --sentences 300

Each preset is loaded afresh, quantized with `translator.quantize(mode)`, and translates the first test
sentences of its corpus greedily. GPTQ and AWQ need a `quantization_layer_structure`, which no model of kzoo
gives.

Prints, for each preset and mode, the megabytes of the backbone's weights, BLEU with its signature, the share
of translations that are the same as in float32, and the seconds of processor time, with compilation.
"""

import argparse
import time

import keras

from kzoo.data import open_corpus
from kzoo.evaluation.scores import score_translations
from kzoo.presets import load

PRESETS = {  # corpus, split, source, target
    "pope_small_multi30k_en_de": ("multi30k", "test_2016_flickr", "en", "de"),
    "attention_bridge_m2m_tiny_multi30k": ("multi30k", "test_2016_flickr", "en", "de"),
    "glyph_tiny_tatoeba_zh_en": ("tatoeba_zh_en", "test", "zh", "en"),
    "image_text_tiny_scenes_en_de": ("scenes", "test", "en", "de"),
}
MODES = ("float32", "int8", "int4", "float8")  # all others are compared with the first


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--presets", nargs="+", default=list(PRESETS), choices=PRESETS)
    parser.add_argument("--sentences", type=int, default=300)
    options = parser.parse_args()
    for name in options.presets:
        report(name, options.sentences)


def report(name: str, sentences: int):
    corpus, split, source, target = PRESETS[name]
    corpus, exact = open_corpus(corpus), None
    texts, references = (side[:sentences] for side in corpus.pairs(split, source, target))
    for mode in MODES:
        translator = load(name)
        others = {"images": corpus.images(split)[:sentences]} if translator.image_shape else {}
        if translator.multilingual:
            others |= {"source_language": source, "target_language": target}
        if mode != MODES[0]:
            translator.quantize(mode)
        started = time.process_time()
        found = translator.translate(texts, beam_size=1, **others)
        seconds, exact = time.process_time() - started, exact or found
        size = sum(keras.ops.convert_to_numpy(weight).nbytes for weight in translator.backbone.weights) / 1e6
        same = sum(x == y for x, y in zip(found, exact, strict=True)) / len(found)
        scores = score_translations(split, found, references, target)
        line = f"{name} {mode}: {size:.1f} MB, BLEU {scores.bleu:.1f}, {same:.0%} the same, {seconds:.0f} s"
        print(line, scores.signatures["bleu"], flush=True)


if __name__ == "__main__":
    main()
