"""Exports a package for Argos Translate, which LibreTranslate serves; imports no Keras.

https://github.com/argosopentech/argos-translate
"""

import json
import os
import re
import tempfile
import zipfile
from pathlib import Path

from kzoo.engine.choice import check_supported
from kzoo.engine.conversion import as_preset, convert
from kzoo.errors import UserError
from kzoo.export_formats import check_precision
from kzoo.files import atomic_write, check_writable, read_object
from kzoo.hub.preset import Preset
from kzoo.text.languages import GROUPS, common_code, english_name

SUFFIX = ".argosmodel"
VERSIONS = {"package_version": "1.0", "argos_version": "1.11"}
# Argos's codes that are not the usual ones.
CODES = {"zh-hans": "zh", "zh-hant": "zt", "zh-cn": "zh", "zh-tw": "zt", "pt-br": "pb"}
FOLDER = "translate-{}_{}-1_0"  # in which Argos keeps the package
FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)  # of a card on Hugging Face
# Argos leaves CTranslate2's defaults: sentences are cut at 1,024 tokens, translations at 256. A model with
# fewer positions would end the translation of a whole text with an error.
POSITIONS = 1024
MODEL = ("model.bin", "config.json", "*vocabulary.json")


def export_argos(translator, path: str | os.PathLike, precision: str = "float32", **search):
    """Write a translator as a package that `argostranslate.package.install_from_path` takes.

    The package holds the CTranslate2 model, the SentencePiece model, the languages, and a README with the
    preset's licence, scores and card. Argos searches with its own settings.

    Args:
        translator: a `Translator`; or a preset of one, as `kzoo.presets.locate` returns it, for which Keras
            is not imported.
        path: file to write, completely or not at all; its name ends with `.argosmodel`.
        precision: of the weights: `"float32"`, `"float16"` or `"int8"`.
        **search: must be `None`.

    Raises:
        UserError: another name; search settings; the translator has several directions, does not name its
            languages, or needs more than CTranslate2 and one SentencePiece model; the preset is damaged; the
            file cannot be written.
    """
    check_precision(precision)
    path = Path(path)
    if path.suffix.lower() != SUFFIX:
        raise UserError(f"{path}: the name of a package for Argos Translate must end with {SUFFIX}")
    if name := next((name for name, value in search.items() if value is not None), None):
        raise UserError(f"Argos Translate searches with its own settings: leave {name} out")
    check_writable(path)
    with as_preset(translator) as preset:
        check_supported(preset)
        _check_tokenizers(preset)
        codes = _codes(preset)
        preset.check()
        _write(preset, path, precision, codes)


def _write(preset: Preset, path: Path, precision: str, codes: list[str]):
    about = dict(zip(("from_code", "to_code"), codes, strict=True))
    about |= dict(zip(("from_name", "to_name"), map(english_name, codes), strict=True))
    with tempfile.TemporaryDirectory() as place:
        model = Path(place) / "model"
        convert(preset, model, precision, positions=POSITIONS)
        listed = read_object(model / "source.json")["vocabulary"] if (model / "source.json").exists() else []
        if code := next((piece for piece in listed if piece.startswith(">>")), None):
            raise UserError(f"Argos Translate cannot name the target language, which {preset} needs: {code}")
        with atomic_write(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as package:
            written = {f"model/{part.name}": part for kind in MODEL for part in sorted(model.glob(kind))}
            written["sentencepiece.model"] = model / "source.spm"
            written["metadata.json"] = json.dumps(VERSIONS | about, indent=2).encode() + b"\n"
            written["README.md"] = readme(preset, about).encode()
            for name, content in written.items():
                content = content.read_bytes() if isinstance(content, Path) else content
                # With a date of its own, the same preset gives the same package.
                entry = zipfile.ZipInfo(f"{FOLDER.format(*codes)}/{name}")
                entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                package.writestr(entry, content)


def _codes(preset: Preset) -> list[str]:
    """Return Argos's codes of a preset's source and target language."""
    codes = [preset.settings.get(f"{side}_language") for side in ("source", "target")]
    if None in codes:
        raise UserError(f"{preset} does not name its languages, which a package for Argos Translate needs")
    if several := [code for code in codes if "+" in code or code in GROUPS.split()]:
        raise UserError(
            f"a package for Argos Translate has one source and one target language, but {preset} has "
            f"{several[0]}, which are several"
        )
    usual = map(common_code, codes)
    return [CODES.get(code.lower(), code) for code in usual]


def _check_tokenizers(preset: Preset):
    """Raise `UserError` for tokenizers that do more than SentencePiece, which is all that Argos knows."""
    for name in preset.settings["tokenizers"]:
        options = preset.object(name)["config"]
        for key in ("language", "normalize_punctuation"):
            if options.get(key):
                raise UserError(
                    f"Argos Translate takes plain SentencePiece, but the tokenizer of {preset} has "
                    f"{key}={options[key]!r}"
                )


def readme(preset: Preset, about: dict[str, str]) -> str:
    """Return the package's README: the direction, the licence, the scores, the preset's own card."""
    scores = preset.scores
    lines = [
        f"# {about['from_name']} → {about['to_name']}",
        "",
        f"{preset.name}, exported by kzoo for Argos Translate.",
        "",
        f"Licence: {scores.get('licence', 'not given')}.",
    ]
    if rows := [row for row in scores["scores"] if "split" in row]:
        lines += [
            "",
            "Scores with kzoo's search, not with Argos's:",
            "",
            "| test set | sentences | BLEU | chrF2 |",
            "| --- | ---: | ---: | ---: |",
        ]
        for row in rows:
            cells = row["split"], row.get("sentences", ""), _score(row, "bleu"), _score(row, "chrf2")
            lines.append("| {} | {} | {} | {} |".format(*cells))
    card = FRONT_MATTER.sub("", preset.card or "").strip()
    return "\n".join([*lines, *(["", card] if card else []), ""])


def _score(row: dict, name: str) -> str:
    return f"{row[name]:.1f}" if isinstance(row.get(name), int | float) else ""
