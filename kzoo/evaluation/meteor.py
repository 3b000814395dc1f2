"""METEOR, computed by its authors' Java program if it is installed."""

import importlib.util
import itertools
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_char import TokenizerChar
from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh

from kzoo.errors import UserError
from kzoo.text.languages import has_spaces, is_chinese

LEFT_OUT = "METEOR is left out: to compute it, install Java and pip install pycocoevalcap"
# METEOR's word matchers by language; the package has synonyms and paraphrases for English only.
MATCHING = {
    "cs": "exact",
    "de": "exact stem",
    "en": "exact stem synonym paraphrase",
    "es": "exact stem",
    "fr": "exact stem",
    "ru": "exact stem",
}


def find_meteor() -> Path | None:
    """Return the path of METEOR's jar, from the package pycocoevalcap; `None` without it or Java."""
    found = importlib.util.find_spec("pycocoevalcap")
    if found is None or shutil.which("java") is None:
        return None
    jar = Path(found.submodule_search_locations[0]) / "meteor" / "meteor-1.5.jar"
    return jar if jar.is_file() else None


def meteor_score(
    translations: Sequence[str],
    references: Sequence[str],
    language: str,
    more_references: Sequence[Sequence[str]] = (),
) -> float:
    """Return METEOR 1.5 of translations against one or more references, in percent.

    English words match by form, stem, synonym and paraphrase; German, French, Spanish and Russian words by
    form and stem; words of other languages by form only; text without spaces by characters. Case is ignored.
    Scores are lower than with METEOR's own paraphrase tables.

    Args:
        translations: one for each reference.
        references: true translations.
        language: target language.
        more_references: further true translations, each a list like `references`.

    Raises:
        UserError: Java or the jar is missing, or the program fails, as for too few translations.

    Reference:
        Denkowski and Lavie 2014, "Meteor Universal". https://aclanthology.org/W14-3348
    """
    jar = find_meteor()
    if jar is None:
        raise UserError("METEOR needs Java and pycocoevalcap: install Java, then pip install pycocoevalcap")
    known = language in MATCHING
    other = Tokenizer13a if has_spaces(language) else TokenizerChar
    split = str if known else TokenizerZh() if is_chinese(language) else other()
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("translations", "references")]
        # A sentence's references follow each other.
        all_references = list(itertools.chain.from_iterable(zip(references, *more_references, strict=True)))
        for file, sentences in zip(files, (translations, all_references), strict=True):
            lines = [split(sentence) for sentence in sentences]
            file.write_text("".join(" ".join(line.split()) + "\n" for line in lines), "utf-8")
        command = ["java", "-Xmx2G", "-jar", str(jar), *map(str, files)]
        command += ["-r", str(1 + len(more_references)), "-m", MATCHING.get(language, "exact")]
        command += ["-l", language, "-norm"] if known else ["-l", "other", "-lower"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    final = [line.split()[-1] for line in done.stdout.splitlines() if line.startswith("Final score:")]
    if done.returncode or not final:
        output = (done.stderr or done.stdout).strip().splitlines() or ["it wrote nothing"]
        reasons = [line for line in output if "rror" in line or "xception" in line]
        raise UserError(f"METEOR failed: {(reasons or output)[0]}")
    return 100 * float(final[0])
