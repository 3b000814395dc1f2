"""The scripts that a language is written in, and sentences in others."""

import functools
import re
from collections.abc import Callable

from kzoo.text.languages import TWO_LETTERS, main_code

# Languages by the scripts that they are written in, in ISO 15924's codes: those of Unicode CLDR 37,
# supplemental/languageData.json, that are not in Latin letters alone.
WRITTEN_IN = {
    "Arab": "aeb ar arq ary arz bal bej bgn bqi brh ckb dcc doi fa glk haz hno lah lrc luz mfa mzn prs ps "
    "rmt sdh skr ur wni zdj",
    "Arab Cyrl": "kk ug",
    "Arab Cyrl Latn": "az ku ky tg tk uz",
    "Arab Deva": "ks sd",
    "Arab Guru": "pa",
    "Arab Latn": "ha ms",
    "Arab Latn Tfng": "shi",
    "Armn": "hy",
    "Beng": "as bn mni rkt syl",
    "Beng Deva": "unr",
    "Cans": "oj",
    "Cans Latn": "cr iu",
    "Cyrl": "ab ady av ba be bg ce cu cv inh kbd koi krc kum kv lbe lez mdf mk mn myv os ru sah tt tyv "
    "udm uk",
    "Cyrl Latn": "bs sh sr",
    "Deva": "awa bgc bhb bhi bho bjj brx gbm gom hi hne hoc hoj kfy khn kok kru mag mai mr mtr mwr ne noe "
    "raj sa sck swv wbr wtm xnr",
    "Deva Latn": "hif",
    "Deva Sinh Thai": "pi",
    "Deva Telu": "gon",
    "Ethi": "am ti tig wal",
    "Geor": "ka",
    "Grek": "el",
    "Gujr": "gu",
    "Hani": "gan hak hsn wuu yue zh",
    "Hani Hira Kana": "ja",
    "Hani Hang": "ko",
    "Hebr": "he yi",
    "Khmr": "km",
    "Knda": "kn tcy",
    "Lana": "nod",
    "Laoo": "lo",
    "Latn Nkoo": "bm man",
    "Latn Tfng": "rif tzm",
    "Mlym": "ml",
    "Mymr": "my shn",
    "Olck": "sat",
    "Orya": "or",
    "Sinh": "si",
    "Taml": "ta",
    "Telu": "lmn te wbq",
    "Tfng": "zgh",
    "Thaa": "dv",
    "Thai": "kxm sou th tts",
    "Tibt": "bo dz",
    "Yiii": "ii",
}
SCRIPTS = {language: scripts.split() for scripts, codes in WRITTEN_IN.items() for language in codes.split()}
# Of those with a code of two letters, all others are in Latin letters alone, except Avestan.
SCRIPTS = {code: ["Latn"] for code in TWO_LETTERS.values() if code != "ae"} | SCRIPTS
# A language code may name a script that stands for several.
WITH_OTHERS = {
    "Hans": ["Hani"],
    "Hant": ["Hani"],
    "Jpan": ["Hani", "Hira", "Kana"],
    "Kore": ["Hani", "Hang"],
}


def scripts_of(code: str) -> list[str]:
    """Return the scripts of a language code, in ISO 15924's codes; none if they are not known.

    A script that the code names comes first: `sr-Latn` is in Latin letters.

    Example:

    >>> scripts_of("deu"), scripts_of("ja"), scripts_of("sr_Latn"), scripts_of("xx")
    (['Latn'], ['Hani', 'Hira', 'Kana'], ['Latn'], [])
    """
    named = [part.title() for part in re.split("[-_]", code)[1:] if re.fullmatch("[A-Za-z]{4}", part)]
    return WITH_OTHERS.get(named[0], named) if named else SCRIPTS.get(main_code(code), [])


@functools.cache
def in_another_script(code: str) -> Callable[[str], bool]:
    """Return a function that tells whether most letters of a sentence are in other scripts than a language's.

    If the language's scripts are not known, no sentence is.

    Example:

    >>> wrong = in_another_script("zh")
    >>> wrong("我用 iPhone 拍照。"), wrong("It rains."), wrong("2026!")
    (False, True, False)
    """
    import regex  # here, because it takes a fifth of the command line's time

    scripts = scripts_of(code)
    try:
        own = "".join(rf"\p{{Script={script}}}" for script in scripts)
        letters = regex.compile(rf"[\p{{L}}&&[{own}]]", regex.V1) if scripts else None
    except regex.error:  # the code names a script that is none
        letters = None
    if letters is None:
        return lambda text: False
    # Letters of all scripts, such as the Japanese sign for a long vowel, count for none.
    others = regex.compile(rf"[\p{{L}}--[{own}\p{{Script=Common}}\p{{Script=Inherited}}]]", regex.V1)
    latin = "Latn" in scripts

    def wrong(text: str) -> bool:
        if latin and text.isascii():
            return False
        return len(others.findall(text)) > len(letters.findall(text))

    return wrong
