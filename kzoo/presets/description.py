"""Descriptions of trained presets, read from the small files beside the weights."""

from pathlib import Path

from kzoo.decoding.search_settings import SearchSettings
from kzoo.files import read_object, write_json
from kzoo.hub.integrity import METADATA_FILE, SEARCH_FILE, own_search


def describe(folder: Path) -> list[str]:
    """Return lines about a trained preset: its languages, size, score and licence.

    Args:
        folder: the preset. The score and the licence are in its `scores.json`, written by `kzoo evaluate`.

    Raises:
        UserError: one of its files cannot be read.
    """
    scores = _scores(folder)
    return [
        _languages(read_object(folder / "translator.json")),
        _size(folder),
        _score(scores.get("scores", [])),
        f"licence: {scores.get('licence', 'not given')}",
    ]


def scored_corpus(folder: Path) -> str | None:
    """Return the name of the corpus that a trained preset was scored on; `None` if it was not."""
    return _scores(folder).get("corpus")


def direction_key(source: str | None, target: str | None) -> str:
    """Return the key of a direction in a preset's metadata, such as `"en-de"`."""
    return f"{source}-{target}"


def write_low_scores(folder: Path, scores: dict[str, float]):
    """Write into a preset's metadata the score below which a translation is unusual, by `direction_key`.

    It is the 5th percentile of the validation set's scores.
    """
    metadata = read_object(folder / METADATA_FILE)
    write_json(folder / METADATA_FILE, {**metadata, "low_scores": scores})


def scored_search(folder: Path) -> SearchSettings:
    """Return the search settings of a trained preset's final scores.

    They are the preset's own. For a preset without any, they are in its run's recipe or, outside a run, in
    its scores.

    Raises:
        UserError: a file cannot be read or has an invalid setting.
    """
    if (folder / SEARCH_FILE).exists():
        return own_search(folder)
    recipe = folder.parent / "recipe.json"
    in_run = folder.name == "preset" and recipe.is_file()
    source, where = (read_object(recipe), recipe) if in_run else (_scores(folder), folder / "scores.json")
    found = {
        name: source[name] for name in ("beam_size", "length_penalty", "gnmt") if source.get(name) is not None
    }
    return SearchSettings.from_entries(found, where)


def _scores(folder: Path) -> dict:
    return read_object(folder / "scores.json") if (folder / "scores.json").is_file() else {}


def _languages(settings: dict) -> str:
    several = settings.get("languages")
    return ", ".join(several) if several else f"{settings['source_language']} → {settings['target_language']}"


def _size(folder: Path) -> str:
    parameters = read_object(folder / METADATA_FILE)["parameter_count"]
    stored = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return f"{parameters / 1e6:.1f} M parameters, {stored / 1e6:.1f} MB"


def _score(rows: list[dict]) -> str:
    if not rows:
        return "not scored"
    if "source" in rows[0]:  # by direction
        return f"BLEU {sum(row['bleu'] for row in rows) / len(rows):.1f}, mean of {len(rows)} directions"
    return f"BLEU {rows[0]['bleu']:.1f} on {rows[0]['split']}"
