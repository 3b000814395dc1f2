"""A translator's languages, and the direction of each call: resolved once, before a text is read.

What is called with a direction takes the model's own codes.
"""

import itertools
from collections.abc import Sequence

from kzoo.errors import UserError
from kzoo.text.languages import GROUPS, Direction, matching_code, not_known
from kzoo.text.pieces import LanguageNames


class TwoLanguages:
    """Mixin for a translator of one direction: its languages and tokenizers are `source_…` and `target_…`.

    The vocabulary may name languages: the target's, as in OPUS-MT's models with several targets, or both, as
    in M2M-100. Then either can be chosen in each call.
    """

    multilingual = False
    _target_language: str | None = ""  # not set yet; a preset may set a group, such as "mul"

    @property
    def source_language(self) -> str | None:
        """The code of the source language.

        If the vocabulary names the source's languages, you can set it as `target_language`.
        """
        return self._source_language

    @source_language.setter
    def source_language(self, code: str | None):
        if code and (named := self.source_languages):
            code = _one_of(code, named, "from")
        for tokenizer in self._naming("source"):
            tokenizer.language = code
        self._source_language = code

    @property
    def target_language(self) -> str | None:
        """The code of the target language.

        If the vocabulary names languages, as in an OPUS-MT model with several targets, you can set it to any
        of `target_languages`, in any form that `matching_code` finds; another code is then a `UserError`.
        """
        return self._target_language

    @target_language.setter
    def target_language(self, code: str | None):
        named = self.target_languages
        if found := code and matching_code(code, named):
            code = found
            for tokenizer in self._naming("target"):
                tokenizer.language = code
        elif named and self._target_language not in ("", code):
            raise UserError(f"the model translates to {not_known(str(code), named)}")
        self._target_language = code

    @property
    def target_languages(self) -> list[str]:
        """The codes of the target languages that the vocabulary names; empty for most models."""
        return list(named_by(self.source_tokenizer).languages)

    @property
    def source_languages(self) -> list[str]:
        """The codes of the source languages that the vocabulary names; empty for most models."""
        return [] if self.codes_in_text else self.target_languages

    @property
    def codes_in_text(self) -> list[str]:
        """The codes of the target languages that a text may begin with, as in OPUS-MT's `>>fra<< A dog.`"""
        return list(named_by(self.source_tokenizer).codes_in_text)

    def _naming(self, side: str) -> list:
        """Return the tokenizers that put the token of the source's or the target's language before texts."""
        if not self.target_languages:
            return []
        if self.codes_in_text:
            return [self.source_tokenizer] if side == "target" else []
        both = self.source_tokenizer, self.target_tokenizer
        return [tokenizer for tokenizer in both if named_by(tokenizer).names == side]

    @property
    def languages(self) -> list[str | None]:
        """The codes of the source and the target language."""
        return [self.source_language, self.target_language]

    def direction(self, source_language: str | None = None, target_language: str | None = None) -> Direction:
        """Return the source and the target language of a call: the translator's own, or else those given.

        Those given may be written in another way, as in `matching_code`.

        Raises:
            UserError: the translator does not translate between these languages.
        """
        source, target = self.languages
        named = self.target_languages
        if sources := self.source_languages:
            source, target = source_language or source, target_language or target
            both = self._naming("source")
            if target is None or (source is None and both):
                missing = "source_language and target_language (--from and --to)"
                missing = missing if both else "target_language (--to)"
                raise UserError(f"the model translates among {len(named)} languages: give {missing}")
            source = _one_of(source, sources, "from") if source else source
            return source, _one_of(target, named, "to")
        sources, targets = (source or "").split("+"), named or [target or ""]  # OPUS-MT has deu+eng
        for side, given, own, known in (
            ("from", source_language, source, sources),
            ("to", target_language, target, targets),
        ):
            of_group = any(code in GROUPS.split() for code in known)
            if given not in (None, own) and any(known) and not of_group and not matching_code(given, known):
                raise UserError(f"the model translates {side} {not_known(given, known)}")
        if named and target_language not in (None, target):
            target = matching_code(target_language, named)
        if source_language:
            source = matching_code(source_language, sources) or source or source_language
        return source, target or target_language

    @property
    def directions(self) -> list[tuple[str, str]]:
        """The directions, as far as the languages are named: none of most models with unknown languages."""
        source, target = self.languages
        sources = self.source_languages or (source or "").split("+")
        targets = self.target_languages or [target]
        return [(one, end) for one in sources for end in targets if one and end and one != end]

    def named_direction(
        self, source_language: str | None = None, target_language: str | None = None
    ) -> tuple[str, str]:
        """Return the languages of a call as `direction` does; both must be known.

        Raises:
            UserError: the translator does not translate between these languages, or they are not known.
        """
        found = self.direction(source_language, target_language)
        if None in found:
            raise UserError(
                "the direction is not known: give source_language and target_language (--from and --to)"
            )
        return found

    def tokenizers_of(self, source: str | None, target: str | None) -> tuple:
        """Return the tokenizers of a direction's two languages."""
        return self.source_tokenizer, self.target_tokenizer

    def tokenizer_options(self, tokenizer, source: str | None, target: str | None) -> dict[str, str]:
        """Return options of one of the two tokenizers for a direction: the language that its token names."""
        for side, code in (("source", source), ("target", target)):
            if code in self.target_languages and any(one is tokenizer for one in self._naming(side)):
                return {"language": code}
        return {}

    def language_tokens(self, target: str | None) -> list[int]:
        """Return the tokens that translations into a language begin with: its own; none in most models."""
        return named_by(self.target_tokenizer).language_tokens(target)


class SeveralLanguages:
    """Mixin for a translator between any two of its `languages`."""

    multilingual = True
    languages: list[str]

    @property
    def directions(self) -> list[tuple[str, str]]:
        """The directions between different languages."""
        return list(itertools.permutations(self.languages, 2))

    def direction(
        self, source_language: str | None = None, target_language: str | None = None
    ) -> tuple[str, str]:
        """Return the model's codes of the source and the target language of a call; see `matching_code`.

        Raises:
            UserError: a language is missing, or the model lacks it.
        """
        if source_language is None or target_language is None:
            raise UserError(
                f"the model translates among {', '.join(self.languages)}: "
                "give source_language and target_language (--from and --to)"
            )
        return self.code_of(source_language), self.code_of(target_language)

    def code_of(self, language: str) -> str:
        """Return the model's code of a language. Raise `UserError` if the model lacks it."""
        if code := matching_code(language, self.languages):
            return code
        raise UserError(f"the model's languages are {not_known(language, self.languages)}")


def named_by(tokenizer) -> LanguageNames:
    """Return a tokenizer if it may name languages; what names none for others, such as keras-hub's own."""
    return tokenizer if isinstance(tokenizer, LanguageNames) else LanguageNames()


def _one_of(given: str, named: Sequence[str], side: str) -> str:
    if code := matching_code(given, named):
        return code
    raise UserError(f"the model translates {side} {not_known(given, named)}")
