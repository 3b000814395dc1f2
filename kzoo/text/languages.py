"""How a language is written, by its code; Chinese characters."""

import re

CHINESE_CODES = {"zh", "zho", "chi", "cmn", "yue"}
OTHERS_WITHOUT_SPACES = {"ja", "jpn", "th", "tha", "lo", "lao", "km", "khm", "my", "mya"}

# Regular expression character ranges: Chinese and full-width punctuation; the same with Han characters.
CHINESE_MARKS = "\u3001-\u303f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
CHINESE = f"{CHINESE_MARKS}\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
BETWEEN_CHINESE = re.compile(f"(?<=[{CHINESE}]) +(?=[{CHINESE}])")  # spaces

# Ranges of two-byte codes: 6,763 simplified characters in GB 2312, 5,401 frequent traditional ones in Big5.
GB2312 = (range(0xB0, 0xF8), range(0xA1, 0xFF))
BIG5_FREQUENT = (range(0xA4, 0xC7), [*range(0x40, 0x7F), *range(0xA1, 0xFF)])


def is_chinese(code: str | None) -> bool:
    """Return whether a language code is Chinese, such as `zh`, `zh-CN`, `zh_Hant` or `cmn`."""
    return main_code(code) in CHINESE_CODES


def has_spaces(code: str | None) -> bool:
    """Return whether a language has spaces between words, as most do."""
    return main_code(code) not in CHINESE_CODES | OTHERS_WITHOUT_SPACES


def has_two_kinds_of_i(code: str | None) -> bool:
    """Return whether a language has both ı and i, with the capitals I and İ."""
    return main_code(code) in {"tr", "tur", "az", "aze", "azj", "crh"}


def lower_case(text: str, code: str | None) -> str:
    """Return a text in a language's lower case."""
    if has_two_kinds_of_i(code):
        text = text.replace("I\u0307", "i").replace("İ", "i").replace("I", "ı")
    return text.lower()


def main_code(code: str | None) -> str:
    """Return a code without region and script: `fr` for `fr-CA`, `zh` for `zh_Hant`."""
    return re.split("[-_]", (code or "").lower())[0]


def common_chinese_characters() -> list[str]:
    """Return the characters of GB 2312, then the other characters of Big5's frequent plane.

    A glyph model can have them in its vocabulary beside those of its training text, because it needs only
    their bitmaps.

    Example:

    >>> len(common_chinese_characters())
    8836
    """
    codes = [("gb2312", *GB2312), ("big5", *BIG5_FREQUENT)]
    characters = [
        bytes((first, second)).decode(encoding, errors="ignore")
        for encoding, firsts, seconds in codes
        for first in firsts
        for second in seconds
    ]
    return list(dict.fromkeys(c for c in characters if len(c) == 1 and "\u4e00" <= c <= "\u9fff"))
