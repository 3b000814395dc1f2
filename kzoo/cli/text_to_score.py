"""The text to score a trained preset on: what the options of `kzoo evaluate` and `kzoo report` choose.

By default, it is the corpus that the preset was trained or scored on.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path

from kzoo.data import open_corpus, open_files
from kzoo.data.corpora import CORPORA, Corpus
from kzoo.data.parallel_files import is_parallel_file
from kzoo.errors import UserError
from kzoo.hub.preset import Preset
from kzoo.presets.builders import BUILDERS
from kzoo.text.languages import matching_code
from kzoo.training.corpus import recipe_corpus, recipe_directions, recorded_held_out, text_digest
from kzoo.training.recipe import Recipe
from kzoo.training.run_folder import recipe_of_text

Directions = list[tuple[str, str]]


def files_to_score(files: Sequence[Path] | None, corpus: str | None, splits: list[str]) -> Corpus | None:
    """Return the user's own text and its references, as the split `"test"`; `None` without files.

    Raises:
        UserError: files together with a corpus or splits; files that cannot be used.
    """
    if not files:
        return None
    for option, given in (("--corpus", corpus), ("--split", splits)):
        if given:
            raise UserError(f"--files and {option} exclude each other: give one of them")
    data = open_files(test=files)
    if not any(map(is_parallel_file, map(Path, files))):  # these have their own languages: not known yet
        data.pairs("test", *data.languages)
        data.more_references("test", data.languages[-1])
    return data


def corpus_to_score(preset: Preset, corpus: str | None, splits: list[str]) -> Corpus:
    """Return the text to score a preset on, checked before a model is loaded.

    Args:
        preset: the preset.
        corpus: a corpus's name.
        splits: the requested splits; if empty, `splits_to_score` chooses them.

    Raises:
        UserError: an unknown corpus or split; or nothing is given and the preset does not name a corpus.
    """
    data = open_corpus(corpus) if corpus else own_corpus(preset, splits)
    for split in splits:
        data.languages_in(split)
    return data


def codes_of_text(direction: tuple[str, str], source: str | None, target: str | None) -> tuple[str, str]:
    """Return the codes of the text that a model translates in a direction, which has the model's own codes.

    They are the direction's; but for a model of a group of languages, such as `roa`, the language given.
    """
    pairs = zip((source, target), direction, strict=True)
    return tuple(code if code and not matching_code(code, [own]) else own for code, own in pairs)


def text_under(data: Corpus, files: Sequence[Path] | None, languages: tuple[str, str]) -> Corpus:
    """Return the text under the codes that `codes_of_text` returns."""
    return open_files(test=files, languages=languages) if files else data.renamed(*languages)


def own_corpus(preset: Preset, splits: list[str]) -> Corpus:
    """Return the corpus of a preset's run; without a run, the corpus of its scores.

    Raises:
        UserError: the preset names no corpus, or it cannot be used.
    """
    folder = preset.folder
    try:
        if recipe := _recipe_of(folder):
            if recipe.corpus == "files":
                if not recipe.test and not {*splits} & {"train", "val"}:
                    raise UserError(f"the recipe of {folder.parent} has no test set")
                # Files of other splits may no longer exist.
                recipe = replace(recipe, **{name: [] for name in _not_needed(recipe, splits or ["test"])})
            corpus = recipe_corpus(recipe)
            held_out = recorded_held_out(folder.parent)
            for split in splits or ["test"]:
                # Otherwise, a run could be scored on rows that it was trained on: after a change of the text,
                # other rows are drawn. Or on another project's file of the same name.
                if split in held_out and held_out[split] != text_digest(corpus, split):
                    raise UserError(f"the {split} text of {folder.parent} is not that of its training")
            return corpus
    except UserError as error:
        raise UserError(f"{error}; give --corpus, or --files") from None
    own = preset.scores.get("corpus")
    if own not in CORPORA:  # none, or "files"
        raise UserError(f"{preset} does not name a corpus to score it on: give --corpus, or --files")
    return open_corpus(own)


def check_same_held_out(first: Path, second: Path, split: str):
    """Raise `UserError` if the second run may have been trained on rows that the first holds out."""
    recipe = _recipe_of(first)
    if not (recipe and _is_drawn(recipe, split)):
        return
    other, runs = _recipe_of(second), (first.parent, second.parent)
    one, another = (recorded_held_out(run).get(split) for run in runs)
    if other and other.corpus == "files" and one != another:
        raise UserError(
            f"{runs[1]} may have been trained on the {split} rows that {runs[0]} holds out: give a text that "
            "neither has seen, with --files"
        )


def _is_drawn(recipe: Recipe, split: str) -> bool:
    """Return whether a split is rows of the training text."""
    return not isinstance(getattr(recipe, split, []), list)


def _not_needed(recipe: Recipe, splits: list[str]) -> list[str]:
    """Return the splits whose files need not be read for others."""
    names = "train", "val", "test"
    drawn = {"train", *(name for name in names if _is_drawn(recipe, name))}
    needed = {*names} & {*splits} or {"test"}  # an unknown split is reported with those that there are
    needed |= drawn if drawn & needed else set()
    return [name for name in names if name not in needed]


def splits_to_score(data: Corpus, source: str, target: str) -> list[str]:
    """Return the test splits that have both languages.

    Raises:
        UserError: no test split has both.
    """
    splits = [name for name in _tests(data) if {source, target} <= set(data.languages_in(name))]
    if not splits:
        raise UserError(
            f"corpus {data.name} has no test split in {source} and {target}; "
            f"it has {', '.join(data.languages)}: give another with --corpus, or --files"
        )
    return splits


def directions_to_score(
    folder: Path, data: Corpus, splits: list[str], languages: list[str]
) -> tuple[str, Directions, Directions | None]:
    """Return the split and the directions to score a multilingual preset on, and the untrained directions.

    The directions are the recipe's `directions`, or else all between the split's languages. The untrained
    ones are `None` for a preset outside a run and for a fine-tuned one.

    Args:
        folder: the preset.
        data: the corpus.
        splits: the requested split; if empty, the first test set with two of the languages.
        languages: the model's languages.

    Raises:
        UserError: several splits, or a split with fewer than two of the languages.
    """
    if len(splits) > 1:
        raise UserError("all directions are scored on one split: give --split once, or --from and --to")
    tests = splits or _tests(data)
    shared = {name: [code for code in languages if code in data.languages_in(name)] for name in tests}
    split = next((name for name, codes in shared.items() if len(codes) > 1), None)
    if split is None:
        raise UserError(
            f"corpus {data.name} has fewer than two of {', '.join(languages)} "
            f"in {', '.join(tests)}: give another with --corpus, or --files"
        )
    every, named, unseen = list(permutations(shared[split], 2)), [], None
    with contextlib.suppress(UserError):  # scores do not depend on the recipe
        if recipe := _recipe_of(folder):
            seen = set(recipe_directions(recipe))
            named = [direction for direction in every if direction in seen] if recipe.directions else []
            if recipe.preset in BUILDERS:  # else the fine-tuned preset may know others already
                unseen = [direction for direction in permutations(languages, 2) if direction not in seen]
    return split, named or every, unseen


def _tests(data: Corpus) -> list[str]:
    return [name for name in data.splits if name.startswith("test")]


def _recipe_of(folder: Path) -> Recipe | None:
    """Return the recipe with the text of a preset's run; `None` for a preset outside a run."""
    return recipe_of_text(folder.parent) if folder.name == "preset" else None
