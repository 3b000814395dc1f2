"""`kzoo bundle`: recipes, and all that they need, in one folder for a machine with JAX and no network."""

import hashlib
import json
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import kzoo
from kzoo.bundle.corpora import corpus_files
from kzoo.bundle.trained import check_trained
from kzoo.bundle.wheels import NEEDED, NEEDED_FOR, NEEDED_FOR_SHARDS, PYTHONS, collect_wheels, read_pins
from kzoo.errors import UserError
from kzoo.files import check_replaceable, whole_folder
from kzoo.hub.integrity import preset_files
from kzoo.hub.location import locate
from kzoo.presets.shelf import build, builder_module, is_builder
from kzoo.training.recipe import Recipe, read_recipe

PACKAGE = Path(__file__).resolve().parents[1]
CONSTRAINTS = PACKAGE.parent / "constraints.txt"
LIMIT = 60_000_000  # bytes
LONGEST = 80  # bytes of a recipe's name, which leaves room for longer file names
MADE = ("runs", "results")  # by run.sh, if it is called in the bundle's own folder
LISTING, SCRIPT = "bundle.json", Path(__file__).parent / "run.sh"


def bundle(words: list[str], folder: Path, python: str = "3.12", wheels: Path | None = None) -> int:
    """Pack recipes for a Linux machine (x86-64) that has Python, JAX and no network.

    The folder gets the zoo's code, the wheels that the machine lacks, what the recipes read, the recipes and
    `run.sh`, which trains and scores them there.

    Args:
        words: paths of recipes, each followed by its overrides, `KEY=VALUE`.
        folder: folder to write; it appears complete or not at all, and replaces an earlier bundle.
        python: the machine's Python: one of `PYTHONS`.
        wheels: folder whose wheels are used before any is downloaded.

    Returns:
        The bytes of the bundle.

    Raises:
        UserError: a recipe or corpus that cannot be read, a preset that the recipe cannot fine-tune, an
            argument that its model does not take, a wheel that cannot be found, a folder with runs or other
            contents, or a bundle larger than `LIMIT`; the message names its largest parts.
    """
    if python not in PYTHONS:
        raise UserError(f"Python {python!r}: kzoo runs on {' and '.join(PYTHONS)}")
    check_replaceable(folder, LISTING)
    if made := [name for name in MADE if (folder / name).exists()]:
        raise UserError(
            f"{folder} has {' and '.join(made)} of a bundle: move them away, or give another folder"
        )
    packed = read_packed(words)
    versions = _versions(packed)
    with tempfile.TemporaryDirectory() as scratch:
        files = _code() | _recipes(packed, python, versions)
        found = collect_wheels(versions, python, wheels, Path(scratch))
        files |= {f"wheels/{path.name}": path for path in found.values()}
        total = _check_size(files)
        with whole_folder(folder) as unfinished:
            for name, content in files.items():
                _write(unfinished / name, content)
            (unfinished / "run.sh").chmod(0o755)
    return total


@dataclass(frozen=True)
class Packed:
    """A recipe as it goes into a bundle.

    Args:
        name: its file's name, and its overrides.
        path: its file.
        overrides: its overrides, each `KEY=VALUE`.
        recipe: the whole recipe.
    """

    name: str
    path: Path
    overrides: list[str]
    recipe: Recipe


def read_packed(words: list[str]) -> list[Packed]:
    """Return the recipes of a command line, each with its overrides.

    Example:

    >>> [p.name for p in read_packed(["a.toml", "b.toml", "seed=2"])]
    ['a', 'b.seed-2']
    """
    given: list[tuple[Path, list[str]]] = []
    for word in words:
        if "=" not in word or word.endswith(".toml"):
            given.append((Path(word), []))
        elif given:
            given[-1][1].append(word)
        else:
            raise UserError(f"{word!r} changes a recipe: give it after the recipe's file")
    packed = [
        Packed(_name(path, changes), path, changes, read_recipe(path, changes)) for path, changes in given
    ]
    for number, one in enumerate(packed):
        if one.name in [other.name for other in packed[:number]]:
            raise UserError(f"two recipes would be called {one.name}: change one of them, or its file's name")
    return packed


def _name(path: Path, overrides: list[str]) -> str:
    """Return a name that a file can have on any machine."""
    name = ".".join(re.sub(r"[^\w-]+", "-", word).strip("-") for word in (path.stem, *overrides))
    if len(name.encode()) <= LONGEST:
        return name
    different = hashlib.sha256(" ".join(overrides).encode()).hexdigest()[:8]
    return f"{name.encode()[:LONGEST].decode(errors='ignore')}-{different}"


def _versions(packed: list[Packed]) -> dict[str, str]:
    """Return the versions of the packages that the recipes need."""
    names = list(NEEDED)
    for one in packed:
        preset = one.recipe.preset
        if is_builder(preset):  # a trained one has its glyphs
            names += NEEDED_FOR.get("glyph" if _draws_glyphs(one.recipe) else builder_module(preset), ())
        names += NEEDED_FOR_SHARDS if one.recipe.shards else ()
    pins = read_pins(CONSTRAINTS)
    return {name: pins[name] for name in dict.fromkeys(names)}


def _code() -> dict[str, bytes | Path]:
    found = {path: path.relative_to(PACKAGE) for path in sorted(PACKAGE.rglob("*")) if path.is_file()}
    code = {path: part for path, part in found.items() if "__pycache__" not in part.parts}
    return {f"code/kzoo/{part.as_posix()}": path for path, part in code.items() if part.name[0] != "."}


def _recipes(packed: list[Packed], python: str, versions: dict[str, str]) -> dict[str, bytes | Path]:
    files, listed = {}, []
    for one in packed:
        data, changes = corpus_files(one.name, one.recipe)
        if not is_builder(one.recipe.preset):
            changes["preset"] = f"presets/{one.name}"
            folder = locate(one.recipe.preset)
            own = preset_files(folder)
            check_trained(one.recipe, folder)
            data |= {f"{changes['preset']}/{name}": path for name, path in own.items()}
        elif one.recipe.model:
            _check_model(one.recipe)
        paths = [f"{key}={json.dumps(value)}" for key, value in changes.items()]
        listed.append({"name": one.name, "overrides": [*one.overrides, *paths]})
        files |= data | {f"recipes/{one.name}.toml": one.path}
    # By it run.sh tells whether the packages that it has installed are this bundle's.
    listing = {"kzoo": kzoo.__version__, "python": python, "packages": versions, "recipes": listed}
    script = SCRIPT.read_text(encoding="utf-8").replace("PYTHON_VERSION", python)
    return files | {LISTING: (json.dumps(listing, indent=2) + "\n").encode(), "run.sh": script.encode()}


def _check_model(recipe: Recipe):
    """Refuse arguments that the recipe's model does not take: the other machine would find them too late."""
    # Glyphs are of the source alone; otherwise one vocabulary of a default size will do.
    sizes = {"target_vocabulary_size": recipe.vocabulary_size} if _draws_glyphs(recipe) else {}
    build(recipe.preset, **{**sizes, **recipe.model})


def _draws_glyphs(recipe: Recipe) -> bool:
    """Return whether a recipe asks a Transformer for glyphs, which other builders do by themselves."""
    return recipe.model.get("source_embedding") == "glyph"


def _check_size(files: dict[str, bytes | Path]) -> int:
    sizes = {name: _size(content) for name, content in files.items()}
    total = sum(sizes.values())
    if total > LIMIT:
        largest = sorted(sizes, key=sizes.get, reverse=True)[:4]
        named = ", ".join(f"{name} {sizes[name] / 1e6:.1f} MB" for name in largest)
        raise UserError(
            f"the bundle has {total / 1e6:.1f} MB, above {LIMIT / 1e6:.0f}; its largest parts: {named}"
        )
    return total


def _size(content: bytes | Path) -> int:
    return len(content) if isinstance(content, bytes) else content.stat().st_size


def _write(path: Path, content: bytes | Path):
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        shutil.copyfile(content, path)
