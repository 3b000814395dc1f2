"""A recipe's data as files of a bundle: only its own splits and languages, in the zoo's own layout."""

import gzip
from pathlib import Path

from kzoo.data.corpora import Corpus
from kzoo.data.features import FeatureFile
from kzoo.errors import UserError
from kzoo.training.recipe import Recipe
from kzoo.training.recipe_corpus import recipe_corpus

GENERATED = ("scenes",)  # generated on the target, as here
INDEX = "index.json"  # of `kzoo.data.shards`, which is not imported because that would start the backend


def corpus_files(name: str, recipe: Recipe) -> tuple[dict[str, bytes | Path], dict]:
    """Return a recipe's text or shards, and features of pictures.

    Args:
        name: the recipe's name, for its own files.
        recipe: the recipe.

    Returns:
        For each path in the bundle, its contents or the file that has them; and the recipe's fields that
        name these paths instead of the original ones.

    Raises:
        UserError: the corpus lacks something.
    """
    corpus = recipe_corpus(recipe)
    files, changes = {}, {}
    if recipe.corpus == "files":
        for split in splits(recipe, corpus):
            texts = _text(corpus, split, corpus.languages, f"data/{name}")
            for number, text in enumerate(corpus.more_references(split, corpus.languages[-1]), 2):
                texts[f"data/{name}/{split}.reference{number}.gz"] = _packed(text)
            changes[split], changes["columns"] = list(texts), []
            files |= texts
    elif recipe.corpus not in GENERATED:
        for split in splits(recipe, corpus):
            files |= _text(corpus, split, languages(recipe, corpus, split), f"data/{recipe.corpus}")
    if recipe.shards:
        changes |= {"shards": f"data/{name}.shards", "train": []}
        files |= _shards(Path(recipe.shards).expanduser(), changes["shards"])
    if recipe.images:
        changes["images"] = f"data/{name}.images"
        for split in splits(recipe, corpus):
            files |= _features(corpus.images(split), split, changes["images"])
    return files, changes


def splits(recipe: Recipe, corpus: Corpus) -> list[str]:
    """Return the splits whose text is read to train a recipe and score its model."""
    training = () if recipe.shards else ("train",)
    return list(dict.fromkeys((*training, recipe.validation, *test_splits(recipe, corpus))))


def test_splits(recipe: Recipe, corpus: Corpus) -> list[str]:
    """Return the test splits that have at least two of the recipe's languages."""
    tests = [split for split in corpus.splits if split.startswith("test")]
    return [split for split in tests if len(languages(recipe, corpus, split)) > 1]


def languages(recipe: Recipe, corpus: Corpus, split: str) -> list[str]:
    """Return the recipe's languages that a split has."""
    wanted = recipe.languages or (recipe.source, recipe.target)
    return [code for code in wanted if code in corpus.languages_in(split)]


def _text(corpus: Corpus, split: str, codes: list[str], folder: str) -> dict[str, bytes]:
    for code in codes[1:]:
        corpus.pairs(split, codes[0], code)  # raises an error that names both if not aligned
    return {f"{folder}/{split}.{code}.gz": _packed(corpus.sentences(split, code)) for code in codes}


def _packed(lines: list[str]) -> bytes:
    return gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)


def _shards(folder: Path, to: str) -> dict[str, Path]:
    if not (folder / INDEX).is_file():
        raise UserError(f"{folder}: has no shards (no {INDEX}): make them with kzoo prepare")
    return {f"{to}/{path.name}": path for path in sorted(folder.iterdir()) if path.is_file()}


def _features(features: FeatureFile, split: str, folder: str) -> dict[str, bytes | Path]:
    """Return a split's features, with the names of its lines' pictures."""
    path = Path(features.array.filename)
    names = "".join(f"{features.names[row]}\n" for row in features.order)
    return {
        f"{folder}/{split}.npy": path,
        f"{folder}/{split}.json": path.with_suffix(".json"),
        f"{folder}/{split}.txt": names.encode(),
    }
