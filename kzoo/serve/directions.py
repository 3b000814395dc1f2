"""Which model translates which direction, and which language a text is in, for clients that name no model."""

import importlib.util
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from kzoo.errors import UserError
from kzoo.serve.messages import Detected
from kzoo.serve.served import Served
from kzoo.text.languages import Direction, common_codes, main_code, matching_code

CANDIDATES = 3  # languages that a text may be in, as LibreTranslate lists them
TOLD = 50  # percent: of a few words, a language that is found with less confidence is mostly wrong


class ServedPair(NamedTuple):
    """A model, and its codes of a direction."""

    served: Served
    direction: Direction


class Directions:
    """The directions that presets translate, with the codes that clients use: see `common_codes`.

    Each language can be "translated" to itself, as with LibreTranslate: the text stays as it is.

    Args:
        models: the presets. Of those with a direction, the first one translates it.
    """

    def __init__(self, models: Sequence[Served]):
        readers = [served for served in models if served.translator.image_shape is None]
        pairs = {served: served.translator.directions for served in readers}
        # Those that do not name their languages take any.
        self._models = sorted(readers, key=lambda served: not pairs[served])
        targets, named = {}, list(itertools.chain(*pairs.values()))
        common = common_codes(dict.fromkeys(itertools.chain(*named)))
        for one, other in named:
            start, end = common[one], common[other]
            targets.setdefault(start, {start}).add(end)
            targets.setdefault(end, {end})
        self._own = {}  # by a listed code, the models'
        for own, code in common.items():
            self._own.setdefault(code, []).append(own)
        self.targets = {code: sorted(targets[code]) for code in sorted(targets)}

    def resolved(self, source: str, target: str) -> ServedPair | None:
        """Return the model of a direction, with its codes; `None` if both languages are the same.

        Raises:
            UserError: no model translates the direction, or all read images.
        """
        if not self._models:
            raise UserError("the model reads an image with each text: POST to /v1/models/… instead")
        known = list(self.targets)
        if self._same(source, target):
            return None
        errors = []
        for served in self._models:
            try:
                return ServedPair(served, served.translator.direction(source, target))
            except UserError as error:
                errors.append(error)
        if len(errors) == 1:
            raise errors[0]
        # Not all directions: of a hundred languages, there are ten thousand.
        start = matching_code(source, known)
        listed = f"{start} to {', '.join(self.targets[start])}" if start else f"from {', '.join(known)}"
        raise UserError(f"no model translates {source:.40} to {target:.40}; known: {listed}")

    def _same(self, source: str, target: str) -> bool:
        """Return whether both are one language, in a script that a model has."""
        found, end = (matching_code(code, list(self.targets)) for code in (source, target))
        # A code that is listed may lack its script: sr, for a model's srp_Cyrl, is not sr-Latn.
        own = self._own.get(found, ()) if found == end else ()
        return any(matching_code(source, [code]) and matching_code(target, [code]) for code in own)

    def told(self, texts: list[str], candidates: list[list[Detected]], target: str) -> list[Detected]:
        """Return the language that each text of a list is translated from.

        LibreTranslate takes one language for all texts. Here, it is only that of those that do not tell
        theirs, such as "OK", and of those in a language that no model translates to the target.

        Args:
            texts: those of the list.
            candidates: the languages that each may be in, best first.
            target: the language to translate to.
        """
        end, shares = matching_code(target, list(self.targets)), Counter()
        likely = [list(filter(_is_told, some)) or some for some in candidates]
        for text, some in zip(texts, likely, strict=True):
            for one in some:
                if end in self.targets[one.language]:
                    shares[one.language] += one.confidence * len(text)
        common = [language for language, _ in shares.most_common(1)]
        found = []
        for own in candidates:
            is_served = _is_told(own[0]) and end in self.targets[own[0].language]
            (language,) = [own[0].language] if is_served or not common else common
            confidence = (one.confidence for one in own if one.language == language)
            found.append(Detected(next(confidence, 0.0), language))
        return found

    @cached_property
    def identifier(self) -> "Identifier":
        """What identifies the language of a text, among those served."""
        return Identifier(self.targets)


def _is_told(candidate: Detected) -> bool:
    return candidate.confidence > TOLD


class Identifier:
    """Identifies which of some languages a text is in, with py3langid.

    Args:
        codes: the languages. Those that py3langid does not know are never found.

    Raises:
        UserError: py3langid is not installed, or knows none of the languages.
    """

    def __init__(self, codes: Iterable[str]):
        if not importlib.util.find_spec("py3langid"):
            raise UserError(
                "the server cannot identify languages, because py3langid is not installed: name the source"
            )
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        self._codes = {}
        for code in codes:
            self._codes.setdefault(main_code(code), code)
        known = self._codes.keys() & set(self._identifier.labels)
        if not known:
            raise UserError("the server cannot identify any of its languages: name the source")
        self._identifier.set_languages(known)

    def __call__(self, text: str) -> list[Detected]:
        """Return the most likely languages of a text, best first."""
        found = self._identifier.rank(text)
        percent = [Detected(float(round(100 * share)), self._codes[code]) for code, share in found]
        # LibreTranslate takes a text that tells nothing as English.
        percent.sort(key=lambda one: (-one.confidence, main_code(one.language) != "en"))
        return [percent[0], *(other for other in percent[1:CANDIDATES] if other.confidence)]
