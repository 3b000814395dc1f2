"""METEOR, by its authors' Java program where that is installed."""

import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh

from kzoo.errors import UserError

LANGUAGES = ("en", "cs", "de", "es", "fr", "ru")  # all others are "other" to it: equal words count alone


def find_meteor() -> Path | None:
    """Return the path of METEOR's jar, which the package pycocoevalcap carries; `None` without it or Java."""
    found = importlib.util.find_spec("pycocoevalcap")
    if found is None or shutil.which("java") is None:
        return None
    jar = Path(found.submodule_search_locations[0]) / "meteor" / "meteor-1.5.jar"
    return jar if jar.is_file() else None


def meteor_score(translations: Sequence[str], references: Sequence[str], language: str) -> float:
    """Return METEOR 1.5 of translations against one reference each, in percent.

    Args:
        translations: one for each reference.
        references: true translations.
        language: the target; one that METEOR has no data of is scored by equal words alone, Chinese by its
            characters.

    Raises:
        UserError: unequally many, no Java, no jar, or a run that fails.

    Reference:
        Denkowski and Lavie 2014, "Meteor Universal". https://aclanthology.org/W14-3348
    """
    if len(translations) != len(references):
        raise UserError(f"{len(translations):,} translations but {len(references):,} references")
    jar = find_meteor()
    if jar is None:
        raise UserError("METEOR needs Java and its jar: install Java, then pip install pycocoevalcap")
    words = TokenizerZh() if language == "zh" else str  # METEOR knows words by the spaces between them
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("translations", "references")]
        for file, sentences in zip(files, (translations, references), strict=True):
            lines = [words(sentence) for sentence in sentences]
            file.write_text("".join(" ".join(line.split()) + "\n" for line in lines), "utf-8")
        code = language if language in LANGUAGES else "other"
        command = ["java", "-Xmx2G", "-jar", str(jar), *map(str, files), "-l", code, "-norm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    final = [line.split()[-1] for line in done.stdout.splitlines() if line.startswith("Final score:")]
    if done.returncode or not final:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it wrote nothing"]
        raise UserError(f"METEOR failed: {said[-1]}")
    return 100 * float(final[0])
