"""How often Keras and CTranslate2 find the same translation, by length and kind of sentence.

    KZOO_DATA=FOLDER python benchmarks/engines_agree.py --preset pope_small_multi30k_en_de --sentences 50000

The sentences are Multi30k's and Tatoeba's (train, English) with up to three random changes each: numbers,
names, capitals, repeated words, rare characters, other punctuation, another sentence behind, an end cut off.
Keras and CTranslate2 in float32 translate all of them. CTranslate2 in int8 and Keras in bfloat16 translate
every eighth block. All are compared, by tokens, with CTranslate2 in float32. --folder keeps each block's
counts and different translations, and the next run goes on from there.

Why two translations differ is the first of these that holds:

- limit: one of them reaches the maximum length, where the engines end differently;
- tie: their scores are within 0.0001 of each other;
- search: CTranslate2 in float32 gives the other translation the score that it came with, so the model is the
  same, and a tie in the beam may have chosen another way;
- model: it does not.
"""

import argparse
import json
import os
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
BLOCK, PART = 10_000, 8  # sentences of a block; the other types translate every eighth block
TIE = 1e-4
REASONS = ("limit", "tie", "search", "model")
OTHERS = ("CTranslate2 int8", "Keras bfloat16")
LENGTHS = {5: "1–5", 10: "6–10", 20: "11–20", 40: "21–40", 1000: "over 40"}  # subwords
KINDS = ("unknown characters", "numbers", "repeated words", "capitals")
NAMES = ["Anna", "Björn", "Chloé", "Dvořák", "Gülşen", "İpek", "Jürgen", "Łukasz", "Nguyễn", "O’Brien", "Zoë"]
RARE = ["☃", "♞", "猫", "Ж", "ש", "☎", "∞", "ꙮ", "🦔", "Ⅻ"]
ENDS = ["?", "!", "…", " - ", ";", "", '"', ")", "?!", ". . ."]


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--preset", default="pope_small_multi30k_en_de", help="name or folder, from English")
    parser.add_argument("--sentences", type=int, default=100_000)
    parser.add_argument("--beam", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("engines_agree"))
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    from kzoo.data import open_corpus

    sentences = [
        sentence
        for name in ("multi30k", "tatoeba_zh_en")
        for sentence in open_corpus(name).sentences("train", "en")
    ]
    blocks = [options.folder / f"{number}.json" for number in range(-(-options.sentences // BLOCK))]
    compare = None
    for number, path in enumerate(blocks):
        if not path.exists():
            compare = compare or Comparison(options.preset, options.beam)
            found = compare(made_up(sentences, number), number % PART == 0)
            temporary = path.with_suffix(".part")
            temporary.write_text(json.dumps(found, ensure_ascii=False, indent=0), encoding="utf-8")
            temporary.replace(path)
    report([json.loads(path.read_text(encoding="utf-8")) for path in blocks])


def made_up(sentences: list[str], block: int) -> list[str]:
    """Return a block's sentences: each with up to three random changes."""
    chance = random.Random(block)

    def number(words):
        figure = chance.choice(["7", "42", "1,000", "3.5", "1998", "10%", "12:30", "€5", "007", "123456789"])
        return insert(words, figure)

    def insert(words, word):
        place = chance.randint(0, len(words))
        return [*words[:place], word, *words[place:]]

    def repeat(words):
        place = chance.randrange(len(words))
        return [*words[:place], *[words[place]] * chance.randint(2, 6), *words[place + 1 :]]

    changes = [
        number,
        repeat,
        lambda words: insert(words, chance.choice(NAMES)),
        lambda words: insert(words, chance.choice(RARE)),
        lambda words: " ".join(words).upper().split(),
        lambda words: [*words[:-1], words[-1].rstrip(".") + chance.choice(ENDS)],
        lambda words: [*words, *chance.choice(sentences).split()],
        lambda words: words[: chance.randint(1, len(words))],
    ]
    found = []
    for _ in range(BLOCK):
        words = chance.choice(sentences).split()
        for _ in range(chance.randint(0, 3)):
            words = chance.choice(changes)(words)
        found.append(" ".join(words))
    return found


class Comparison:
    """Translates with both engines.

    Args:
        preset: name or folder.
        beam: int. Size of the beam.
    """

    def __init__(self, preset: str, beam: int):
        import ctranslate2

        from kzoo.engine.conversion import converted
        from kzoo.engine.translator import CTranslate2Translator
        from kzoo.presets import load, locate

        place, (int8, bfloat16) = locate(preset), OTHERS
        self.engine = CTranslate2Translator(place)
        self.keras = load(place)
        self.others = {int8: CTranslate2Translator(place, "int8"), bfloat16: load(place, dtype="bfloat16")}
        self.scorer = ctranslate2.Translator(str(converted(place)), intra_threads=1)
        self.search = self.engine.search.changed(beam_size=beam)
        self.direction = self.engine.direction()

    def __call__(self, sentences: list[str], others: bool) -> dict:
        """Return the number of sentences of each length and kind, and the different translations.

        Args:
            sentences: of one block.
            others: whether to translate with the other types, too.
        """
        readings = self.engine.sentences_read(sentences, self.direction, truncate=True)
        marks = [
            [length_of(reading.tokens), *kinds(sentence, reading)]
            for sentence, reading in zip(sentences, readings, strict=True)
        ]
        compared = {"Keras": self.keras} | (self.others if others else {})
        expected, found = self.best(self.engine, readings), {}
        for name, translator in compared.items():
            given = self.best(translator, readings)
            different = [
                {
                    "marks": marks[row],
                    "sentence": sentences[row],
                    "expected": expected[row],
                    "given": given[row],
                    "reason": self.reason(readings[row].tokens, expected[row], given[row]),
                }
                for row in range(len(sentences))
                if given[row]["tokens"] != expected[row]["tokens"]
            ]
            found[name] = {"of": Counter(mark for some in marks for mark in some), "different": different}
        return found

    def best(self, translator, readings: list) -> list[dict]:
        """Return the best translation of each sentence: its text, score and token ids."""
        tokenizer = translator.target_tokenizer
        detokenize, rows = tokenizer.detokenize, []
        tokenizer.detokenize = lambda tokens: rows.extend(tokens) or detokenize(tokens)
        best = translator.n_best_of_readings(readings, 1, self.search, self.direction)
        tokenizer.detokenize = detokenize
        return [
            {"text": one.text, "score": one.score, "tokens": row}
            for (one,), row in zip(best, rows, strict=True)
        ]

    def reason(self, source: list[int], expected: dict, given: dict) -> str:
        """Return which of `REASONS` explains two different translations."""
        from kzoo.decoding.search_settings import output_limit, padded_length

        engine = self.engine
        limit = output_limit(self.search, padded_length(len(source), engine.max_length), engine.max_length)
        if max(len(one["tokens"]) for one in (expected, given)) >= limit - 1:
            return "limit"
        if abs(expected["score"] - given["score"]) <= TIE:
            return "tie"
        pieces = [engine.source_tokenizer.vocabulary[token] for token in source]
        words = [engine.target_tokenizer.vocabulary[token] for token in given["tokens"]]
        (result,) = self.scorer.score_batch([pieces], [words])
        score = sum(result.log_probs) / self.search.length_penalty(len(result.log_probs))
        return "search" if abs(score - given["score"]) <= TIE else "model"


def length_of(tokens: list[int]) -> str:
    return next(name for most, name in LENGTHS.items() if len(tokens) <= most)


def kinds(sentence: str, reading) -> list[str]:
    """Return the kinds of a sentence, with its `Reading`."""
    words = sentence.split()
    holds = [
        bool(reading.lacking),
        any(character.isdigit() for character in sentence),
        any(one == other for one, other in pairwise(words)),
        sentence.isupper(),
    ]
    found = [kind for kind, is_one in zip(KINDS, holds, strict=True) if is_one]
    return ["all", *(found or ["none of these"])]


def report(blocks: list[dict]):
    names = ["all", *LENGTHS.values(), *KINDS, "none of these"]
    print("| | sentences | number | different | share |", *(f"{reason} |" for reason in REASONS))
    print("| --- | --- | ---: | ---: | ---: |" + " ---: |" * len(REASONS))
    for name in ("Keras", *OTHERS):
        of, different = Counter(), Counter()
        for block in blocks:
            if name in block:
                of.update(block[name]["of"])
                rows = block[name]["different"]
                different.update((mark, row["reason"]) for row in rows for mark in row["marks"])
        for mark in names:
            reasons = [different[mark, reason] for reason in REASONS]
            share = sum(reasons) / max(of[mark], 1)
            print(f"| {name} | {mark} | {of[mark]:,} | {sum(reasons):,} | {share:.3%} |", end="")
            print(*(f" {count:,} |" for count in reasons), sep="")


if __name__ == "__main__":
    main()
