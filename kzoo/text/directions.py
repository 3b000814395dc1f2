"""The languages that a translator translates between, on Keras and on CTranslate2."""

from kzoo.errors import UserError


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

    def named_direction(
        self, source_language: str | None = None, target_language: str | None = None
    ) -> tuple[str, str]:
        """Return the languages of a call as `direction` does, for what needs to know both.

        Raises:
            UserError: the translator does not translate between these languages, or they are not known.
        """
        found = self.direction(source_language, target_language)
        if None in found:
            raise UserError(
                "the model does not name its languages: give source_language and target_language "
                "(--from and --to)"
            )
        return found

    def tokenizer_options(self, target: str | None) -> dict[str, str]:
        """Return options of the source tokenizer for translating into a language."""
        return {"language": target} if target in self.target_languages else {}
