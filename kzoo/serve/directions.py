"""Which model translates which direction, and which language a text is in, for clients that name no model."""

import importlib.util
import itertools
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from kzoo.errors import UserError
from kzoo.serve.messages import Detected
from kzoo.serve.served import Served
from kzoo.text.languages import Direction, common_code, main_code, matching_code

CANDIDATES = 3  # languages that a text may be in, as LibreTranslate lists them
# Percent. Of one to three words of Multi30k in four languages, 2 % were in another language than the one
# found if its confidence was higher, else 62 %.
TOLD = 50


class ServedPair(NamedTuple):
    """A model, and its codes of a direction."""

    served: Served
    direction: Direction


class Directions:
    """The directions that presets translate, with the codes that clients use: of two letters if possible.

    Each language can be "translated" to itself, as with LibreTranslate: the text stays as it is.

    Args:
        models: the presets. Of those with a direction, the first one translates it.
    """

    def __init__(self, models: Sequence[Served]):
        readers = [served for served in models if served.translator.image_shape is None]
        pairs = {served: served.translator.directions for served in readers}
        # Those that do not name their languages take any.
        self._models = sorted(readers, key=lambda served: not pairs[served])
        targets = {}
        for one, other in itertools.chain(*pairs.values()):
            start, end = common_code(one), common_code(other)
            targets.setdefault(start, {start}).add(end)
            targets.setdefault(end, {end})
        self.targets = {code: sorted(targets[code]) for code in sorted(targets)}

    def resolved(self, source: str, target: str) -> ServedPair | None:
        """Return the model of a direction, with its codes; `None` if both languages are the same.

        Raises:
            UserError: no model translates the direction, or all read images.
        """
        if not self._models:
            raise UserError("the model reads an image with each text: POST to /v1/models/… instead")
        known = list(self.targets)
        if known and (found := matching_code(source, known)) and found == matching_code(target, known):
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

    def told(self, own: list[Detected], together: list[Detected], target: str) -> Detected:
        """Return the language that a text is translated from.

        LibreTranslate takes one language for all texts of a list. Here, it is only that of texts that do not
        tell theirs, such as "OK", and of those in a language that no model translates to the target.

        Args:
            own: the languages that the text may be in, best first.
            together: those that all texts of the list together may be in.
            target: the language to translate to.
        """
        end = matching_code(target, list(self.targets))
        likely = [*filter(_is_told, own), *(list(filter(_is_told, together)) or together)]
        for language in [one.language for one in likely]:
            if end in self.targets[language]:
                confidence = (one.confidence for one in own if one.language == language)
                return Detected(next(confidence, 0.0), language)
        return own[0]

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
