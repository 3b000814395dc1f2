"""The wheels that a machine with Python and JAX lacks to train and score the zoo's models."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from kzoo.errors import UserError

PYTHONS = ("3.11", "3.12")
# All that training and scoring import, found by leaving each out; NumPy, SciPy and ml_dtypes come with JAX.
NEEDED = (
    "absl-py",
    "cloudpickle",
    "colorama",
    "h5py",
    "joblib",
    "keras",
    "keras-hub",
    "lazy-loader",
    "lxml",
    "namex",
    "optree",
    "packaging",
    "pillow",
    "portalocker",
    "regex",
    "rich",
    "sacrebleu",
    "sacremoses",
    "sentencepiece",
    "sentencex",
    "tabulate",
    "tokenizers",
    "tqdm",
    "typing-extensions",
)
# What the presets of a module in `kzoo.presets` need in addition: the font that characters are drawn in.
NEEDED_FOR = {"glyph": ("noto-cjk-sans-otc",)}
NEEDED_FOR_SHARDS = ("array-record",)
# For glibc 2.28 or later, which some of the packages need; pip accepts only the tags that it is given.
PLATFORMS = (
    *(f"manylinux_2_{version}_x86_64" for version in range(28, 4, -1)),
    "manylinux2014_x86_64",
    "manylinux2010_x86_64",
    "manylinux1_x86_64",
)


def read_pins(path: Path) -> dict[str, str]:
    """Return the versions that a constraints file pins, by the package's canonical name.

    Raises:
        UserError: there is no such file.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file; kzoo bundle reads the packages' versions from it")
    pairs = (line.split("==") for line in path.read_text(encoding="utf-8").split())
    return {canonicalize_name(name): version for name, version in pairs}


def collect_wheels(
    versions: dict[str, str], python: str, given: Path | None, scratch: Path
) -> dict[str, Path]:
    """Return a wheel for each package, from a folder or downloaded.

    Args:
        versions: the packages' versions, by name.
        python: the target's Python, such as `"3.12"`.
        given: folder whose wheels are used first.
        scratch: folder for the others, which pip downloads from its configured index.

    Raises:
        UserError: a wheel is neither there nor can be downloaded.
    """
    if given is not None and not given.is_dir():
        raise UserError(f"{given}: no such folder of wheels")
    tags = _tags(python)
    found = _matching(given.glob("*.whl"), versions, tags) if given else {}
    missing = [f"{name}=={version}" for name, version in versions.items() if name not in found]
    if missing:
        _download(missing, python, scratch)
        found |= _matching(scratch.glob("*.whl"), versions, tags)
    return found


def _tags(python: str) -> frozenset[Tag]:
    """Return the tags that a wheel for the target may have."""
    version = tuple(map(int, python.split(".")))
    interpreter = f"cp{version[0]}{version[1]}"
    return frozenset(
        (
            *cpython_tags(version, [interpreter], PLATFORMS),
            *compatible_tags(version, interpreter, PLATFORMS),
        )
    )


def _matching(paths: Iterable[Path], versions: dict[str, str], tags: frozenset[Tag]) -> dict[str, Path]:
    found = {}
    for path in sorted(paths):
        try:
            name, version, _, marked = parse_wheel_filename(path.name)
        except InvalidWheelFilename:
            continue
        if versions.get(name) == str(version) and marked & tags:
            found[name] = path
    return found


def _download(requirements: list[str], python: str, folder: Path):
    target = ["--python-version", python, "--implementation", "cp", "--only-binary", ":all:"]
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", str(folder)]
    done = subprocess.run([*command, *target, *platforms, *requirements], capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")] or [done.stderr]
        raise UserError(
            f"{len(requirements)} wheels cannot be downloaded ({errors[-1].removeprefix('ERROR:').strip()}): "
            f"give a folder that has them with --wheels: {', '.join(requirements)}"
        )
