"""How a language is written, from its code."""

import re

CHINESE = {"zh", "zho", "chi", "cmn", "yue"}
OTHERS_WITHOUT_SPACES = {"ja", "jpn", "th", "tha", "lo", "lao", "km", "khm", "my", "mya"}


def is_chinese(code: str | None) -> bool:
    """Return whether a code is Chinese, such as `zh`, `zh-CN`, `zh_Hant` or `cmn`."""
    return main_code(code) in CHINESE


def has_spaces(code: str | None) -> bool:
    """Return whether the language of a code has spaces between words, as most languages do."""
    return main_code(code) not in CHINESE | OTHERS_WITHOUT_SPACES


def has_two_kinds_of_i(code: str | None) -> bool:
    """Return whether a language has the letters ı and i, with the capitals I and İ."""
    return main_code(code) in {"tr", "tur", "az", "aze", "azj", "crh"}


def lower_case(text: str, code: str | None) -> str:
    """Return a text in a language's lower case."""
    if has_two_kinds_of_i(code):
        text = text.replace("I\u0307", "i").replace("İ", "i").replace("I", "ı")
    return text.lower()


def main_code(code: str | None) -> str:
    """Return a code without its region and script: `fr` of `fr-CA`, `zh` of `zh_Hant`."""
    return re.split("[-_]", (code or "").lower())[0]
