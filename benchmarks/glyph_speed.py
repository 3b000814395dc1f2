"""The cost of reading glyphs: a glyph model against the same model with a lookup embedding.

    KZOO_DATA=FOLDER python benchmarks/glyph_speed.py --size base --rounds 3

Both train on the same batches of Tatoeba's Chinese characters, then translate the same sentences, in turn, in
one process. For translation the lookup model takes over the glyph model's weights, with the baked table as
its table, so that both write the same words. Prints target tokens per second, sentences per second, and both
ratios.
"""

import argparse
import os
import statistics
import time


def main():
    options = parse_arguments()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras

    text = sentences(options)
    models = {name: build(name, text, options) for name in ("lookup", "glyph")}
    print(
        f"backend {keras.backend.backend()}, {options.size}, {options.architecture}, {options.tokens} tokens"
    )
    compare("training", "words", models, lambda model: model.train(), options.rounds)
    share_weights(models["lookup"].translator, models["glyph"].translator)
    translations = compare(
        "translating", "sentences", models, lambda model: model.translate(), options.rounds
    )
    if translations["lookup"] != translations["glyph"]:
        print("the two wrote different sentences: their times say little")


def parse_arguments() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--size", choices=("tiny", "base"), default="tiny")
    parser.add_argument("--architecture", default="cnn_fc_relu")
    parser.add_argument("--tokens", type=int, default=2048, help="of a batch")
    parser.add_argument("--steps", type=int, default=4, help="of each model a round")
    parser.add_argument("--sentences", type=int, default=32, help="translated a round")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def sentences(options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Return as many Chinese and English sentences as the steps need, of middling length."""
    from kzoo.data import open_corpus

    pairs = zip(*open_corpus("tatoeba_zh_en").pairs("train", "zh", "en"), strict=True)
    chosen = [pair for pair in pairs if 8 <= len(pair[0]) <= 15]
    return tuple(zip(*chosen[: options.steps * (options.tokens // 16)], strict=True))


def build(name: str, text, options: argparse.Namespace) -> "Model":
    from kzoo.data import open_corpus
    from kzoo.presets import build
    from kzoo.text import CharacterTokenizer, SubwordTokenizer, learn_characters, train_subwords

    chinese, english = open_corpus("tatoeba_zh_en").pairs("train", "zh", "en")
    size = 8000 if options.size == "base" else 4000
    words = SubwordTokenizer(train_subwords(english, size), config_file="target_tokenizer.json")
    preset = f"{name}_zh_en" + ("" if options.size == "base" else "_tiny")
    settings = {"architecture": options.architecture} if name == "glyph" else {}
    characters = CharacterTokenizer(learn_characters(chinese), config_file="source_tokenizer.json")
    return Model(build(preset, characters, words, **settings), text, options)


class Model:
    """A translator, and the batches and sentences that it takes."""

    def __init__(self, translator, text, options: argparse.Namespace):
        from kzoo.data import Batches

        self.translator = translator
        shape = (options.tokens // 16, 16)
        source = [words[:15] for words in translator.source_tokenizer(list(text[0]))]
        target = [words[:15] for words in translator.target_tokenizer(list(text[1]))]
        self.batches = Batches(source, target, shapes=[shape], shuffle=False)
        self.words = self.batches.num_tokens
        self.sentences = list(text[0][: options.sentences])
        self.amount = {"training": self.words, "translating": len(self.sentences)}

    def train(self):
        """Train on every batch."""
        for number in range(len(self.batches)):
            self.translator.train_on_batch(*self.batches[number])

    def translate(self) -> list[str]:
        """Translate the sentences."""
        return self.translator.translate(self.sentences, beam_size=5)


def compare(what: str, unit: str, models: dict[str, Model], work, rounds: int) -> dict:
    """Let the models work in turn; print the rates and the median ratio; return what the last round gave."""
    results = {name: work(model) for name, model in models.items()}  # compiles
    ratios = []
    for number in range(rounds):
        seconds = {}
        for name in sorted(models, reverse=bool(number % 2)):
            start = time.perf_counter()
            results[name] = work(models[name])
            seconds[name] = time.perf_counter() - start
        ratios.append(seconds["lookup"] / seconds["glyph"])
        rates = [models[name].amount[what] / seconds[name] for name in ("lookup", "glyph")]
        print(f"{what}, round {number + 1}: lookup {rates[0]:,.1f}, glyph {rates[1]:,.1f} {unit} a second")
    print(f"{what}: glyphs have {statistics.median(ratios):.2f} of the lookup's speed (median of {rounds})")
    return results


def share_weights(lookup, glyph):
    """Give the lookup model all weights of the glyph model, and its baked vectors as its table."""
    table = glyph.backbone.source_embedding.bake()
    theirs = {weight.path: weight for weight in glyph.backbone.weights}
    for weight in lookup.backbone.weights:
        if weight.path in theirs:
            weight.assign(theirs[weight.path])
    lookup.backbone.source_embedding.embeddings.assign(table)


if __name__ == "__main__":
    main()
