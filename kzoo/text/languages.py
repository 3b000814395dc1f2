"""Language codes: how each language is written, Chinese characters, and a translator's languages."""

import re

from kzoo.errors import UserError

# Not nan, which is often in Latin letters.
CHINESE_CODES = {"zh", "cmn", "yue", "cjy", "gan", "hak", "hsn", "lzh", "wuu"}
OTHERS_WITHOUT_SPACES = {"ja", "th", "lo", "km", "my"}
# Moses's rules, sentencex and METEOR know these languages by two letters alone. OPUS-MT has jap, zhs and zht.
THREE_LETTERS = (
    "ara:ar arm:hy asm:as aze:az ben:bn bul:bg bur:my cat:ca ces:cs chi:zh cze:cs dan:da deu:de "
    "dut:nl ell:el eng:en est:et fin:fi fra:fr fre:fr geo:ka ger:de gle:ga gre:el guj:gu hin:hi hun:hu "
    "hye:hy ice:is isl:is ita:it jap:ja jpn:ja kan:kn kat:ka kaz:kk khm:km kor:ko lao:lo lav:lv "
    "lit:lt mal:ml mar:mr mya:my nld:nl ori:or pan:pa pol:pl por:pt ron:ro rum:ro rus:ru slk:sk slo:sk "
    "slv:sl spa:es swe:sv tam:ta tel:te tha:th tur:tr ukr:uk zho:zh zhs:zh zht:zh"
)
TWO_LETTERS = dict(pair.split(":") for pair in THREE_LETTERS.split())

# Regular expression character ranges: Chinese and full-width punctuation; the same with Han characters.
CHINESE_MARKS = "\u3001-\u303f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
CHINESE = f"{CHINESE_MARKS}\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
BETWEEN_CHINESE = re.compile(f"(?<=[{CHINESE}]) +(?=[{CHINESE}])")  # spaces

# Ranges of codes, end excluded: GB 2312's 6,763 simplified characters, and 5,401 frequent traditional
# characters of Big5.
COMMON_CHINESE = {"gb2312": (b"\xb0", b"\xf8"), "big5": (b"\xa4", b"\xc7")}


def is_chinese(code: str | None) -> bool:
    """Return whether a language code is Chinese, such as `zh`, `zh-CN`, `zh_Hant` or `cmn`."""
    return main_code(code) in CHINESE_CODES


def has_spaces(code: str | None) -> bool:
    """Return whether a language has spaces between words, as most do."""
    return main_code(code) not in CHINESE_CODES | OTHERS_WITHOUT_SPACES


def is_chinese_or_japanese(code: str | None) -> bool:
    """Return whether a language has no spaces between sentences; Thai has none between words, but these."""
    return is_chinese(code) or main_code(code) == "ja"


def has_two_kinds_of_i(code: str | None) -> bool:
    """Return whether a language has both ı and i, with the capitals I and İ."""
    return main_code(code) in {"tr", "az", "azj", "crh"}


def lower_case(text: str, code: str | None) -> str:
    """Return a text in a language's lower case."""
    if has_two_kinds_of_i(code):
        text = text.replace("I\u0307", "i").replace("İ", "i").replace("I", "ı")
    return text.lower()


def main_code(code: str | None) -> str:
    """Return a code without region and script, of two letters if known: `fr` for `fr-CA` and `fra`."""
    main = re.split("[-_]", (code or "").lower())[0]
    return TWO_LETTERS.get(main, main)


def common_chinese_characters() -> list[str]:
    """Return the characters of GB 2312, then the other characters of Big5's frequent plane.

    A glyph model can have them in its vocabulary in addition to those of its training text, because it needs
    only their bitmaps.

    Example:

    >>> len(common_chinese_characters())
    8836
    """
    found = []
    for encoding, (first, end) in COMMON_CHINESE.items():
        codes = {chr(c).encode(encoding, "ignore"): chr(c) for c in range(0x4E00, 0xA000)}
        found += [codes[code] for code in sorted(codes) if first <= code < end]
    return list(dict.fromkeys(found))


class TwoLanguages:
    """Mixin for a translator of one direction: its languages and tokenizers are `source_…` and `target_…`."""

    @property
    def target_language(self) -> str | None:
        """The code of the target language.

        If the vocabulary names languages, as in an OPUS-MT model with several targets, you can set it to any
        of `target_languages`; another code is then a `UserError`.
        """
        return self._target_language

    @target_language.setter
    def target_language(self, code: str | None):
        if code in self.target_languages:
            self.source_tokenizer.language = code
        elif self.target_languages and code != getattr(self, "_target_language", code):
            raise UserError(f"the model translates to {', '.join(self.target_languages)}, not {code!r}")
        self._target_language = code

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
        named = self.target_languages
        sides = ("from", source_language, source, ()), ("to", target_language, target, named)
        for side, given, own, known in sides:
            if given not in (None, own) and (own or known):
                ways = ("from", source), ("to", ", ".join(named) or target)
                way = " ".join(f"{word} {code}" for word, code in ways if code)
                raise UserError(f"the model translates {way}, not {side} {given!r}")
        return source or source_language, target or target_language

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
                "the model does not name its languages: give source_language and target_language "
                "(--from and --to)"
            )
        return found

    def tokenizers_of(self, source: str | None, target: str | None) -> tuple:
        """Return the tokenizers of a direction's two languages."""
        return self.source_tokenizer, self.target_tokenizer

    def tokenizer_options(self, target: str | None) -> dict[str, str]:
        """Return options of the source tokenizer for translating into a language."""
        return {"language": target} if target in self.target_languages else {}
