"""What a recipe for the user's own text leaves out: the model, its vocabulary, the batches and the schedule.

`read_recipe` asks for it. `SIZES` and `MANY_LANGUAGES` hold all numbers; docs/data.md shows what they reach.
"""

import itertools
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kzoo.data.corpora import Corpus
from kzoo.data.held_out import selected
from kzoo.data.own_files import is_table
from kzoo.data.text_files import unpacked_name
from kzoo.errors import UserError
from kzoo.presets.builders import BUILDERS, reads_pictures
from kzoo.training.capitals import with_capitals
from kzoo.training.corpus import own_text
from kzoo.training.processor import multiplies_bfloat16_fast
from kzoo.training.recipe import Recipe

DROPOUT = "model.dropout"
MANY_EPOCHS = 1_000
CAPITALS = 0.05
COOLDOWN = 0.2
# Minutes, or pairs. Longer runs have seven batch shapes, which gain more time than they take to compile, 10 s
# each: on 10,000 pairs of Multi30k en-de, 17 % of the tokens are padding, with three shapes 31 %.
SHORT, FEW = 5, 2_000
# More text than a run can read ten times takes the settings of less: 29,000 pairs of Multi30k en-de reach
# 31.0 BLEU in 10 minutes with those of 20,000, with their own 30.3 (pope_tiny, test_2016_flickr, one seed).
PAIRS_PER_MINUTE = 2_000  # which two cores read ten times
# A run that reads the text less often than this gets less dropout, and no rows in capitals: after 5,000
# updates on 5,000 pairs, BLEU is 40.6 with these rows, 41.3 without (training/own_text/RESULTS.md).
OFTEN = 80
# Of a new tiny model, by the times that two cores read the text in the minutes, at most; beyond, the preset's
# own, 0.3. On one core, 10 minutes of 29,000 pairs reach 31.7 BLEU with 0.1, 28.0 with 0.3. After 20 epochs,
# 0.2 passes 0.1 (the same page).
DROPOUTS = ((25, 0.1), (OFTEN, 0.2))
SAMPLE = 200_000  # sentences of each language in which words and characters are counted
# A language whose characters are more than a third of the subwords shares none. Of 3,000 joint subwords for
# 10,000 pairs of Tatoeba zh-en, 2,383 are Chinese and 471 English, so that English would be spelled.
CHARACTERS = 3


class Size(NamedTuple):
    """The settings for up to `pairs` sentence pairs.

    Small text takes few subwords and small batches (Sennrich and Zhang 2019, "Revisiting Low-Resource Neural
    Machine Translation"), and a warm-up much shorter than the run. Rotary positions translate better than
    PoPE's in equal time. Dropout 0.4, BPE-dropout and R-Drop learn too slowly, even for half an hour of 5,000
    pairs. Both: training/own_text/RESULTS.md.
    """

    pairs: float
    preset: str
    vocabulary_size: int
    tokens: int
    warmup_steps: int
    rate_factor: float
    epochs: int
    patience: int


SIZES = (
    Size(2_000, "rope_tiny", 1_000, 512, 300, 1.0, 60, 20),
    Size(8_000, "rope_tiny", 2_000, 512, 400, 1.0, 40, 10),
    Size(20_000, "rope_tiny", 3_000, 1_024, 1_000, 1.5, 40, 10),
    Size(100_000, "rope_tiny", 4_000, 2_048, 2_000, 2.0, 33, 8),  # as the recipe pope_multi30k
    Size(1_000_000, "rope_small", 8_000, 2_048, 4_000, 2.0, 20, 5),
    Size(float("inf"), "rope_small", 16_000, 4_096, 4_000, 2.0, 10, 3),
)
# Several languages: the recipe attention_bridge_m2m_tiny.
MANY_LANGUAGES = {
    "preset": "attention_bridge_m2m_tiny",
    "optimizer": "adam",
    "rate": 1.4e-3,
    "clip_norm": 5.0,
}
# Their runs are long enough for bfloat16, which compiles for half a minute a batch shape. Then a step of
# pope_small takes 0.71 of the time (benchmarks/training_step.py, AMD EPYC with avx512_bf16).
WIDE_TRANSFORMERS = re.compile(r"(pope|rope|sine|learned|text_only)_(small|base|big)")
LONG = 60  # minutes


class Tuning(NamedTuple):
    """The settings to fine-tune a trained preset with up to `pairs` sentence pairs.

    Few pairs take small batches and many epochs: with 100 of Scenes, pope_small_multi30k_en_de reaches 86.4
    BLEU with the settings for up to 500, with the others 83.8 (training/own_text/RESULTS.md).
    """

    pairs: float
    epochs: int
    patience: int
    tokens: int


TUNINGS = (Tuning(500, 60, 20, 256), Tuning(float("inf"), 10, 5, 1_024))
TUNING_MANY_LANGUAGES = Tuning(float("inf"), 40, 5, 512)
TUNING_RATE = {"optimizer": "adam", "rate": 5e-4}  # small steps


class Choice(NamedTuple):
    """A key's chosen value, and the reason in a few words."""

    value: Any
    why: str


def languages_of(files: Sequence[str | Path]) -> list[str]:
    """Return the languages that text files name by their endings: en and de of train.en and train.de.gz.

    Raises:
        UserError: an ending is no language code.
    """
    endings = [Path(unpacked_name(Path(file))).suffix.lstrip(".") for file in files]
    for file, ending in zip(files, endings, strict=True):
        named = re.fullmatch(r"[a-z]{2,3}([-_]\w+)?", ending) and not is_table(Path(file))
        if not named or ending in ("txt", "src", "tgt", "trg"):
            raise UserError(f"{file}: the ending is not a language code, such as .en: give --from and --to")
    return endings


def text_of(recipe: Recipe) -> Corpus | None:
    """Return the user's own text for which `choose` chooses, as `own_text`; `None` for another recipe."""
    return own_text(recipe) if recipe.train and recipe.corpus == "files" and not recipe.shards else None


def choose(values: Mapping[str, Any], text: Corpus | None, begun: Recipe | None = None) -> dict[str, Choice]:
    """Return the keys that a recipe for the user's own text leaves out, with a value that suits the text.

    Args:
        values: the recipe's own values, which are kept.
        text: the text, as `text_of` returns it; `None`: nothing is chosen.
        begun: the recipe of a run that has begun: its values are taken, and the text is not read.

    Raises:
        UserError: the training text cannot be read.
    """
    if text is None:
        return {}
    trained = values.get("preset", "pope_tiny") not in BUILDERS
    chosen = {"corpus": Choice("files", "your own text")}
    if not values.get("images"):
        chosen["clean"] = Choice(True, "rows not worth training on are left out")
    clean = values.get("clean", "clean" in chosen) is True
    sides = [[] for _ in text.languages]
    if begun is None:
        sides = selected(text, {}, clean).sides("train", text.languages)
    pairs = len(sides[0])
    if "val" not in values:
        held_out = max(1, min(1_000, pairs // (20 if pairs >= 2_000 else 10)))
        chosen["val"] = Choice(held_out, "rows held out to choose the best epochs")
        if "test" not in values:
            chosen["test"] = Choice(held_out, "rows held out to score the result")
    pictures = values.get("images") or reads_pictures(values.get("preset", ""), values.get("model", {}))
    if not (trained or pictures or values.get("text") == "lowercased"):
        usual = CAPITALS if _times(values, pairs) >= OFTEN else 0.0
        share, several = values.get("capitals", usual), bool(values.get("languages"))
        sides = with_capitals(sides, text.languages, share, values.get("seed", 1), several)
        if begun or len(sides[0]) > pairs:
            chosen["capitals"] = Choice(CAPITALS, "of the rows, again in capitals and in title case")
    chosen |= (_tuning if trained else _training)(values, sides, pairs)
    short = trained or pairs <= FEW or 0 < values.get("minutes", 0) < SHORT
    if short or values.get("languages"):
        chosen["num_shapes"] = Choice(3, "few shapes to compile")
    if values.get("minutes"):
        chosen["epochs"] = Choice(MANY_EPOCHS, "at most: the minutes end the run")
    chosen["cooldown"] = Choice(COOLDOWN, "of the run, at its end: the learning rate falls to zero")
    if not values.get("cooldown", chosen["cooldown"].value):
        # After a cooldown, one epoch is better: 28.6 BLEU, the mean of three 27.9, of five without one 26.7
        # (5,000 pairs of Multi30k en-fr, 12 epochs, test_2016_flickr, one seed).
        chosen["average"] = Choice(5, "best epochs, whose weights are averaged")
    if begun:
        chosen.pop(DROPOUT, None)
        keys = {*chosen, "precision"}  # another machine may have chosen it
        if values.get("minutes"):
            keys.remove("epochs")  # the minutes end the run, with whatever epochs it began
        began = {key: getattr(begun, key) for key in keys}
        if "dropout" in begun.model:
            began[DROPOUT] = begun.model["dropout"]
        chosen |= {key: Choice(value, "as this run began") for key, value in began.items()}
    given = values.keys() | {f"model.{name}" for name in values.get("model", {})}
    return {key: choice for key, choice in chosen.items() if key not in given}


def _times(values: Mapping[str, Any], pairs: int) -> float:
    """Return how often two cores read the text in the minutes."""
    minutes = values.get("minutes")
    return 10 * PAIRS_PER_MINUTE * minutes / max(1, pairs) if minutes else math.inf


def _training(values: Mapping[str, Any], sides: list[list[str]], pairs: int) -> dict[str, Choice]:
    """Return what suits a new model. `pairs` does not count the rows in capitals of `sides`."""
    amount, minutes, times = f"for {pairs:,} pairs", values.get("minutes"), _times(values, pairs)
    if times < 10:
        pairs, amount = PAIRS_PER_MINUTE * minutes, f"{amount} in {minutes:g} minutes"
    size, chosen = next(size for size in SIZES if pairs <= size.pairs), {}
    if values.get("languages"):
        chosen |= {key: Choice(value, "several languages") for key, value in MANY_LANGUAGES.items()}
    else:
        chosen["preset"] = Choice(size.preset, amount)
        dropout = next((dropout for most, dropout in DROPOUTS if times < most), None)
        if dropout and size.preset == "rope_tiny" and "preset" not in values:
            chosen[DROPOUT] = Choice(dropout, "for so few minutes; in longer runs, more")
        if values.get("optimizer", "noam") == "noam":
            chosen["warmup_steps"] = Choice(size.warmup_steps, amount)
            chosen["rate_factor"] = Choice(size.rate_factor, "of Noam's schedule")
        chosen["clip_norm"] = Choice(1.0, "against steps that are too large")
    if _fast_in_bfloat16(values, size.preset):
        chosen["precision"] = Choice("mixed_bfloat16", "this processor is fast at it")
    if values.get("source_characters"):
        sides = sides[1:]
    counted, given = [_counted(side) for side in sides], values.get("vocabulary_size")
    vocabularies = [_subwords([one], size.vocabulary_size) for one in counted]
    if not (values.get("languages") or values.get("source_characters")):
        least, most = max(one[0] for one in vocabularies), min(one[2] for one in vocabularies)
        many = CHARACTERS * least > (given or size.vocabulary_size) and least <= (given or least) <= most
        why = "one language has many characters" if many else "for both languages"
        chosen["joint_vocabulary"] = Choice(not many, why)
        if values.get("joint_vocabulary", not many):
            vocabularies = [_subwords(counted, size.vocabulary_size)]
    least, enough, most = zip(*vocabularies, strict=True)
    chosen["vocabulary_size"] = Choice(max(*least, min(*most, max(enough))), amount)
    if "sentences" not in values:
        chosen["tokens"] = Choice(size.tokens, f"per batch, {amount}")
    chosen["epochs"] = Choice(size.epochs, "at most")
    chosen["patience"] = Choice(size.patience, "epochs without a better score begin the cooldown")
    return chosen


def _fast_in_bfloat16(values: Mapping[str, Any], preset: str) -> bool:
    """Return whether a new model is trained much faster in bfloat16 on this machine."""
    if os.environ.get("KERAS_BACKEND", "tensorflow") != "tensorflow" or not multiplies_bfloat16_fast():
        return False
    if values.get("languages"):
        # A step of the preset takes 0.67 of the processor time (AMD EPYC with avx512_bf16). After 1,600
        # batches of Multi30k en-de, validation BLEU was 16.0, in float32 13.8 (one seed).
        return True
    long = (values.get("minutes") or LONG) >= LONG
    return long and bool(WIDE_TRANSFORMERS.fullmatch(values.get("preset", preset)))


def _tuning(values: Mapping[str, Any], _, pairs: int) -> dict[str, Choice]:
    """Return what suits a trained preset, which has its own vocabulary."""
    tuning, chosen = next(tuning for tuning in TUNINGS if pairs <= tuning.pairs), {}
    if values.get("languages"):
        tuning = TUNING_MANY_LANGUAGES
    if values.get("optimizer", "adam") == "adam":
        chosen |= {key: Choice(value, "to fine-tune") for key, value in TUNING_RATE.items()}
    if "sentences" not in values:
        chosen["tokens"] = Choice(tuning.tokens, f"per batch, for {pairs:,} pairs")
    chosen["epochs"] = Choice(tuning.epochs, "at most")
    chosen["patience"] = Choice(tuning.patience, "epochs without a better score begin the cooldown")
    return chosen


def _counted(side: Sequence[str]) -> tuple[set[str], set[str]]:
    """Return the characters and the words of one language."""
    sample = side[:SAMPLE]
    return set().union(*sample), set(itertools.chain.from_iterable(map(str.split, sample)))


def _subwords(counted: Sequence[tuple[set[str], set[str]]], wanted: int) -> tuple[int, int, int]:
    """Return the fewest subwords that can be learned from some languages, a good number, and the most."""
    characters, words = (len(set().union(*both)) for both in zip(*counted, strict=True))
    # Each character has a subword; SentencePiece has five more; each word can have one.
    return characters + 6, max(wanted, int(1.25 * characters)), int(0.9 * (words + characters + 5))
