"""The languages that a translator translates between, on Keras and on CTranslate2."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kzoo.errors import UserError
from kzoo.text.texts import Hypothesis


class TwoLanguages:
    """Mixin for a translator with a `source_language`, a `target_language` and a `source_tokenizer`."""

    @property
    def target_language(self) -> str | None:
        """The code of the target language.

        If the vocabulary names languages, as that of an OPUS-MT model with several targets does, you can set
        it to any of `target_languages`.
        """
        return self._target_language

    @target_language.setter
    def target_language(self, code: str | None):
        self._target_language = code
        if code in self.target_languages:
            self.source_tokenizer.language = code

    @property
    def target_languages(self) -> list[str]:
        """The codes of the target languages that the vocabulary names; empty for most models."""
        return getattr(self.source_tokenizer, "languages", [])

    @property
    def languages(self) -> list[str | None]:
        """The codes of the source and the target language."""
        return [self.source_language, self.target_language]

    def direction(
        self, source_language: str | None = None, target_language: str | None = None
    ) -> tuple[str | None, str | None]:
        """Return the source and the target language of a call: those given, or else the translator's own.

        Raises:
            UserError: the translator does not translate between these languages.
        """
        source, target = self.languages
        if target_language in self.target_languages:
            target = target_language
        for side, given, own in (("from", source_language, source), ("to", target_language, target)):
            if given != own and None not in (given, own):
                targets = ", ".join(self.target_languages) or target
                raise UserError(f"the model translates from {source} to {targets}, not {side} {given!r}")
        return source or source_language, target or target_language

    def between(
        self, source_language: str | None = None, target_language: str | None = None
    ) -> "OneDirection":
        """Return this translator in one direction, with the calls of a translator of that direction.

        Raises:
            UserError: the translator does not translate between these languages, or they are not known.
        """
        source, target = self.direction(source_language, target_language)
        if source is None or target is None:
            raise UserError(
                "the model does not name its languages: give source_language and target_language "
                "(--from and --to)"
            )
        return OneDirection(self, source, target)

    def source_tokenizer_for(self, target: str | None):
        """Return the tokenizer of sentences to be translated into a language that `direction` returned."""
        if target == self.target_language or target not in self.target_languages:
            return self.source_tokenizer
        return self.source_tokenizer.for_language(target)


@dataclass(frozen=True)
class OneDirection:
    """One direction of a translator, with the calls of a translator of that direction."""

    translator: Any
    source_language: str
    target_language: str

    multilingual = False

    @property
    def image_shape(self) -> tuple[int, ...] | None:
        """As `Translator.image_shape`."""
        return self.translator.image_shape

    @property
    def extractor(self) -> dict | None:
        """As `Translator.extractor`."""
        return self.translator.extractor

    @property
    def _languages(self) -> dict[str, str]:
        return {"source_language": self.source_language, "target_language": self.target_language}

    def translate(self, texts, **options) -> list[str]:
        """Translate sentences, like `Translator.translate`."""
        return self.translator.translate(texts, **self._languages, **options)

    def n_best(self, texts, n: int | None = None, **options) -> list[list[Hypothesis]]:
        """Return the `n` best translations, like `Translator.n_best`."""
        return self.translator.n_best(texts, n=n, **self._languages, **options)

    def attention(
        self, text: str, translation: str | None = None, **options
    ) -> tuple[list[str], list[str], np.ndarray]:
        """Return the attention of a translation's tokens, like `Translator.attention`."""
        return self.translator.attention(text, translation=translation, **self._languages, **options)
