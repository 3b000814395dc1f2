"""Language codes: which mean the same, how each language is written, and Chinese characters."""

import functools
import importlib.util
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from kzoo.errors import nearest

SHOWN = 12  # the most known languages that an error lists when some are likely
Direction = tuple[str | None, str | None]  # source and target language; `None` if a preset names none

# Not nan, which is often in Latin letters.
CHINESE_CODES = {"zh", "cmn", "yue", "cjy", "gan", "hak", "hsn", "lzh", "wuu"}
OTHERS_WITHOUT_SPACES = {"ja", "th", "lo", "km", "my", "shn", "bo", "dz"}
# ISO 639's codes of three letters for languages with one of two (https://iso639-3.sil.org), some of a
# macrolanguage's main language, as in FLORES, and OPUS-MT's jap, zhs and zht.
# Moses's rules, sentencex and METEOR know languages by two letters alone.
THREE_LETTERS = (
    "aar:aa abk:ab afr:af aka:ak alb:sq als:sq amh:am ara:ar arb:ar arg:an arm:hy asm:as ava:av ave:ae "
    "aym:ay ayr:ay aze:az azj:az bak:ba bam:bm baq:eu bel:be ben:bn bis:bi bod:bo bos:bs bre:br bul:bg "
    "bur:my cat:ca ces:cs cha:ch che:ce chi:zh chu:cu chv:cv cmn:zh cor:kw cos:co cre:cr cym:cy cze:cs "
    "dan:da deu:de div:dv dut:nl dzo:dz ekk:et ell:el eng:en epo:eo est:et eus:eu ewe:ee fao:fo fas:fa "
    "fij:fj fil:tl fin:fi fra:fr fre:fr fry:fy ful:ff fuv:ff gaz:om geo:ka ger:de gla:gd gle:ga glg:gl "
    "glv:gv gre:el grn:gn guj:gu hat:ht hau:ha hbs:sh heb:he her:hz hin:hi hmo:ho hrv:hr hun:hu hye:hy "
    "ibo:ig ice:is ido:io iii:ii iku:iu ile:ie ina:ia ind:id ipk:ik isl:is ita:it jap:ja jav:jv jpn:ja "
    "kal:kl kan:kn kas:ks kat:ka kau:kr kaz:kk khk:mn khm:km kik:ki kin:rw kir:ky kmr:ku knc:kr kom:kv "
    "kon:kg kor:ko kua:kj kur:ku lao:lo lat:la lav:lv lim:li lin:ln lit:lt ltz:lb lub:lu lug:lg lvs:lv "
    "mac:mk mah:mh mal:ml mao:mi mar:mr may:ms mkd:mk mlg:mg mlt:mt mon:mn mri:mi msa:ms mya:my nau:na "
    "nav:nv nbl:nr nde:nd ndo:ng nep:ne nld:nl nno:nn nob:nb nor:no npi:ne nya:ny oci:oc oji:oj "
    "ori:or orm:om ory:or oss:os pan:pa pbt:ps per:fa pes:fa pli:pi plt:mg pol:pl por:pt pus:ps que:qu "
    "quy:qu roh:rm ron:ro rum:ro run:rn rus:ru sag:sg san:sa sin:si slk:sk slo:sk slv:sl sme:se smo:sm "
    "sna:sn snd:sd som:so sot:st spa:es sqi:sq srd:sc srp:sr ssw:ss sun:su swa:sw swe:sv swh:sw tah:ty "
    "tam:ta tat:tt tel:te tgk:tg tgl:tl tha:th tib:bo tir:ti ton:to tsn:tn tso:ts tuk:tk tur:tr twi:tw "
    "uig:ug ukr:uk urd:ur uzb:uz uzn:uz ven:ve vie:vi vol:vo wel:cy wln:wa wol:wo xho:xh ydd:yi yid:yi "
    "yor:yo zha:za zho:zh zhs:zh zht:zh zsm:ms zul:zu"
)
TWO_LETTERS = dict(pair.split(":") for pair in THREE_LETTERS.split())
# Withdrawn from ISO 639-1, but still written by Java and by Google's interfaces.
WITHDRAWN = {"in": "id", "iw": "he", "ji": "yi", "jw": "jv"}

# A code, and that of a known language which it may mean. Norwegian is mostly Bokmål; M2M-100 has ns for nso.
MAY_MEAN = {("no", "nb"), ("no", "nn"), ("nb", "no"), ("nso", "ns"), ("ns", "nso")}

# The scripts of Chinese by region.
CHINESE_SCRIPTS = {"cn": "hans", "sg": "hans", "hk": "hant", "mo": "hant", "tw": "hant"}

# ISO 639-5's codes of groups of languages, which some models' sources are, and mul, several languages
# (https://www.loc.gov/standards/iso639-5/id.php).
GROUPS = (
    "aav afa alg alv apa aqa aql art ath auf aus awd azc bad bai bat ber bih bnt btk cai cau cba ccn "
    "ccs cdc cdd cel cmc cpe cpf cpp crp csu cus day dmn dra egx esx euq fiu fox gem gme gmq gmw grk "
    "hmx hok hyx iir ijo inc ine ira iro itc jpx kar kdo khi kro map mkh mno mul mun myn nah nai ngf "
    "nic nub omq omv oto paa phi plf poz pqe pqw pra qwe roa sai sal sdv sem sgn sio sit sla smi son "
    "sqj ssa syd tai tbq trk tup tut tuw urj wak wen xgn xnd ypk zhx zle zls zlw znd"
)

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


def upper_case(text: str, code: str | None) -> str:
    """Return a text in a language's capitals."""
    return (text.replace("i", "İ") if has_two_kinds_of_i(code) else text).upper()


def main_code(code: str | None) -> str:
    """Return a code without region and script, of two letters if known: `fr` for `fr-CA` and `fra`."""
    main = re.split("[-_]", (code or "").lower())[0]
    return TWO_LETTERS.get(main) or WITHDRAWN.get(main, main)


def common_code(code: str) -> str:
    """Return a code as most programs write it: `fr` for `fra`, `zh-Hans` for `cmn_Hans`."""
    return "-".join([main_code(code), *re.split("[-_]", code)[1:]])


def common_codes(codes: Iterable[str]) -> dict[str, str]:
    """Return several codes as `common_code` does, but without a script that only one of a language has.

    Chinese keeps its script.

    Example:

    >>> common_codes(["eng_Latn", "kas_Arab", "kas_Deva", "zho_Hant"])
    {'eng_Latn': 'en', 'kas_Arab': 'ks-Arab', 'kas_Deva': 'ks-Deva', 'zho_Hant': 'zh-Hant'}
    """
    common = {code: common_code(code) for code in codes}
    written = {code: usual for code, usual in common.items() if _has_only_script(code)}
    counts = Counter(map(main_code, {*written.values()}))
    return common | {code: main_code(code) for code in written if counts[main_code(code)] == 1}


def _has_only_script(code: str) -> bool:
    """Return whether a code names a script and no region; Chinese is left out."""
    return not is_chinese(code) and [len(part) for part in re.split("[-_]", code)[1:]] == [4]


def english_name(code: str) -> str:
    """Return a language's English name by Unicode's CLDR; the code if it has none, or without Babel."""
    if not importlib.util.find_spec("babel"):
        return code
    from babel import Locale

    english = Locale("en")
    if whole := english.languages.get(code.replace("-", "_")):
        return whole
    name = english.languages.get(main_code(code))
    scripts = [english.scripts.get(part.title()) for part in re.split("[-_]", code)[1:]]
    return name and " ".join([name, *(f"({script})" for script in scripts if script)]) or code


def matching_code(given: str, known: Sequence[str]) -> str | None:
    """Return the known code that a code means; `None` if none fits, or several.

    A code fits if it is the same language, and not another script or region. Chinese regions imply a script.

    Example:

    >>> matching_code("fr-CA", ["deu", "fra"]), matching_code("DE", ["deu", "fra"])
    ('fra', 'deu')
    >>> matching_code("zh", ["cmn_Hans", "cmn_Hant"]), matching_code("zh-Hant", ["cmn_Hans", "cmn_Hant"])
    (None, 'cmn_Hant')
    """
    if given in known:
        return given
    same = [code for code in known if _parts(code) == _parts(given)]
    fitting = same or _fitting(given, known)
    return fitting[0] if len(fitting) == 1 else None


def not_known(given: str, known: Sequence[str]) -> str:
    """Return the known codes and which are likely, for the error of a code that `matching_code` lacks."""
    likely = _fitting(given, known) or [code for code in known if main_code(code) == main_code(given)]
    likely = " or ".join(likely)
    meant = f"; did you mean {likely}?" if likely else ""
    listed = ", ".join(known) if len(known) <= SHOWN else f"{len(known)} languages"
    if len(known) > SHOWN and not likely:
        meant = f"; {nearest(given, list(known))}"
    return f"{listed}, not {given!r:.40}{meant}"


def _fitting(given: str, known: Sequence[str]) -> list[str]:
    """Return the known codes of a language; those of another script or region are left out."""
    language, *rest = _parts(given)
    asked = _by_kind(rest)

    def fitting(same: Callable[[str], bool]) -> list[str]:
        parts = {code: _parts(code) for code in known}
        return [
            code
            for code, (own, *rest) in parts.items()
            if same(own) and all(asked.get(kind, part) == part for kind, part in _by_kind(rest).items())
        ]

    return fitting(language.__eq__) or fitting(lambda own: (language, own) in MAY_MEAN)


def _by_kind(parts: Sequence[str]) -> dict[bool, str]:
    """Return a code's region and its script, whose key is true."""
    return {len(part) == 4: part for part in parts}


@functools.lru_cache(4096)  # a request may have hundreds of texts, a model hundreds of languages
def _parts(code: str) -> tuple[str, ...]:
    """Return a code's language, of two letters if known, then its script and region."""
    language, rest = main_code(code), re.split("[-_]", code.lower())[1:]
    if language == "zh" and len(rest) == 1 and rest[0] in CHINESE_SCRIPTS:
        return language, CHINESE_SCRIPTS[rest[0]], *rest
    return language, *rest


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
