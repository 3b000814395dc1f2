"""`kzoo prepare`: writes a recipe's training text as shards, in constant memory."""

import contextlib
import dataclasses
import functools
import hashlib
import os
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from kzoo.data.own_files import stream_pairs
from kzoo.data.shards import (
    FORMAT,
    PAIRS,
    Encoding,
    Index,
    Shards,
    write_shards,
)
from kzoo.engine import usable_cores
from kzoo.errors import UserError
from kzoo.files import atomic_folder, sha256
from kzoo.text import CharacterTokenizer
from kzoo.text.pieces import Subwords, character_tokens
from kzoo.training.capitals import rows_in_capitals
from kzoo.training.corpus import recipe_corpus
from kzoo.training.early_checks import check_preparation
from kzoo.training.recipe import Recipe, shard_settings
from kzoo.training.trained_rows import ROWS, recorded
from kzoo.training.vocabularies import learned_tokenizers

SAMPLE = 200_000  # pairs to learn subwords from
BLOCK = 10_000  # pairs between progress updates


def silent(what: str, total: int | None) -> contextlib.AbstractContextManager:
    """Show no progress."""
    return contextlib.nullcontext(lambda count: None)


def prepare(
    recipe: Recipe,
    folder: str | Path,
    processes: int | None = None,
    progress: Callable = silent,
    pairs_per_shard: int = PAIRS,
) -> Shards:
    """Write a recipe's training text as shards. To train on them, set the recipe's `shards` to their folder.

    The text is read twice: once to check it and to sample the pairs to learn subwords from, and once to
    tokenize it. With `source_characters`, it is read once more in between. Files are streamed; a named corpus
    is loaded whole. The folder appears complete or not at all.

    Args:
        recipe: has a `source` and a `target`.
        folder: folder to write; earlier shards there are replaced.
        processes: int. Number of processes that tokenize; one per core by default. The shards do not depend
            on it. With more than one, a script must call this under `if __name__ == "__main__":`.
        progress: `progress(what, total)` is a context manager that yields a function; it is called with the
            number of items done since its last call.
        pairs_per_shard: int.

    Raises:
        UserError: the text, the recipe or the folder cannot be used, or the disk is full.
    """
    folder = Path(os.path.expanduser(folder))
    recipe = check_preparation(recipe, folder)
    settings = shard_settings(recipe)
    read = training_pairs(recipe)
    with atomic_folder(folder) as unfinished:
        with progress("reading", None) as advance:
            count, sample = survey(read(), recipe, advance)
        source, target = ([pair[side] for pair in sample] for side in (0, 1))
        if recipe.source_characters:
            source = (pair[0] for pair in read())  # characters are learned from all pairs
        tokenizers = learned_tokenizers(recipe, unfinished, source, target)
        vocabularies = {path.name: sha256(path) for path in sorted(unfinished.iterdir())}
        shards = max(1, round(count / pairs_per_shard))
        encoding = make_encoding(tokenizers, shards, recipe.seed)
        digest, processes = hashlib.sha256(), processes or usable_cores()
        pairs = recorded(unfinished / ROWS, digested(read(), digest))
        rows, unknown = write_shards(unfinished, pairs, encoding, processes, progress, count)
        text = {
            "corpus": recipe.corpus,
            "files": [Path(file).name for file in recipe.train],
            "sha256": digest.hexdigest(),
        }
        pairs = sum(row.pairs for row in rows)
        lacking = any(side.lacking for side in unknown)
        unknown = [dataclasses.astuple(side) for side in unknown] if lacking else []
        index = Index(FORMAT, settings, text, pairs, vocabularies, encoding.dtype, rows, unknown)
        index.write(unfinished)
    return Shards(folder)


def training_pairs(recipe: Recipe) -> Callable[[], Iterator[tuple[str, str]]]:
    """Return a function that iterates over the recipe's training pairs, each followed by it in capitals."""
    corpus = recipe_corpus(dataclasses.replace(recipe, shards=""))
    languages = recipe.source, recipe.target
    if recipe.corpus == "files" and recipe.train:
        files = [Path(os.path.expanduser(file)) for file in recipe.train]
        read = functools.partial(stream_pairs, files, languages, recipe.columns, recipe.approved)
    else:
        read = functools.partial(zip, *corpus.pairs("train", *languages))
    return lambda: rows_in_capitals(read(), languages, recipe.capitals, recipe.seed, keep=True)


def survey(
    pairs: Iterable[tuple[str, str]], recipe: Recipe, advance: Callable[[int], None]
) -> tuple[int, list[tuple[str, str]]]:
    """Return the number of pairs, and a random sample of at most `SAMPLE` pairs.

    If all pairs are in the sample, they keep their order.

    Raises:
        UserError: a language has no sentence, or the text cannot be read.
    """
    draw, sample, count = random.Random(recipe.seed), [], 0
    for count, pair in enumerate(pairs, 1):
        if count <= SAMPLE:
            sample.append(pair)
        elif (place := int(draw.random() * count)) < SAMPLE:
            sample[place] = pair
        if count % BLOCK == 0:
            advance(BLOCK)
    for side, language in enumerate((recipe.source, recipe.target)):
        if not any(pair[side].strip() for pair in sample):
            raise UserError(f"the training text is empty: its {language} side has no sentence")
    return count, sample


def digested(pairs: Iterable[tuple[str, str]], digest) -> Iterator[tuple[str, str]]:
    """Yield sentence pairs, and update a digest of `hashlib` with each."""
    for source, target in pairs:
        digest.update(f"{source}\t{target}\n".encode())
        yield source, target


def make_encoding(tokenizers: list, shards: int, seed: int) -> Encoding:
    """Return functions that encode text like the tokenizers, but load no backend."""
    size = max(tokenizer.vocabulary_size() for tokenizer in tokenizers)
    source, target = map(_encoder, (tokenizers[0], tokenizers[-1]))
    return Encoding(source, target, "<u2" if size <= 1 << 16 else "<u4", shards, seed)


def _encoder(tokenizer) -> Callable[[list[str]], list[list[int]]]:
    if isinstance(tokenizer, CharacterTokenizer):
        return functools.partial(character_tokens, dict(tokenizer.ids))
    return Subwords(tokenizer.proto)
