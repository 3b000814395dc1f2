"""The one place that prepares text: for training, both engines, the command line, the server and scoring.

`prepare`, which every tokenizer applies first, makes one line of a text, removes what no reader sees, and
keeps normalization from moving digits. `kzoo.text.reading` adds what only translators do. In a SavedModel,
`kzoo.export.graph_inputs` does the same, but leaves numbers as they are.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence

from kzoo.text.vocabulary import UNKNOWN

# Sources: Unicode's Default_Ignorable_Code_Point, without letters (Hangul's fillers) and Mongolian's
# selectors; UAX #31 for joiners; Line_Break=Complex_Context for spaces without width; UTS #51 for emoji. Not
# from `regex`, whose import takes a fifth of the command line's time.
NEVER_SEEN = (
    "\u00ad\u034f\u061c\u17b4\u17b5\u200e\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0e\ufeff\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e001f\U000e0080-\U000e0fff"
)
# Scripts whose letters join (Arabic's kind, Indic conjuncts), those without spaces, and emoji.
JOINING = (
    "\u0600-\u109f\u1700-\u1cff\u2d30-\u2d7f\ua800-\ua95f\ua980-\uabff\ufb50-\ufdff\ufe70-\ufefc"
    "\U00010a00-\U00011fff\U00016100-\U0001613f\U0001e900-\U0001e95f"
)
SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\ua9e0-\ua9ff\uaa60-\uaadf"
    "\U00011700-\U0001174f"
)
EMOJI = "\u00a9\u00ae\u203c\u2049\u2100-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
# What to remove, in this order, as patterns that both Python and TensorFlow's graph (RE2) read.
REMOVED = (
    (f"[{NEVER_SEEN}]", ""),
    (f"(^|[^{EMOJI}#*0-9])\ufe0f+", r"\1"),
    (f"(^|[^{JOINING}{EMOJI}\ufe0f])[\u200c\u200d]+", r"\1"),
    (f"(^|[^{SPACELESS}])\u200b+", r"\1"),
    ("(^|[^\U0001f3f4\U000e0020-\U000e007f])[\U000e0020-\U000e007f]+", r"\1"),  # the letters of a flag
)

# Radicals that look like a character: Unicode's EquivalentUnifiedIdeograph.txt for the block CJK Radicals
# Supplement. Those of the block Kangxi Radicals have the compatibility forms that NFKC knows.
RADICALS = str.maketrans(
    "⺁⺂⺃⺄⺅⺆⺇⺈⺉⺊⺋⺌⺍⺎⺏⺐⺑⺒⺓⺔⺕⺖⺗⺘⺙⺛⺜⺝⺞⺠⺡⺢⺣⺤⺥⺦⺧⺨⺩⺪⺫⺬⺭⺮⺯⺰⺱⺲⺳⺴⺵⺶⺷⺸⺹⺺"
    "⺻⺼⺽⺾⺿⻀⻁⻂⻃⻄⻅⻆⻇⻈⻉⻊⻋⻌⻍⻎⻏⻐⻑⻒⻓⻔⻕⻖⻗⻘⻙⻚⻛⻜⻝⻞⻟⻠⻡⻢⻣⻤⻥⻦⻧⻨⻩⻪⻫⻬⻭⻮⻯⻰⻱⻲",
    "厂乛乚乙亻冂𠘨刀刂卜㔾小小兀尣尢𡯂巳幺彑彐忄心扌攵旡日月歺民氵氺灬爫爫丬牛犭王𤴔目示礻𥫗糹纟罓罒㓁冗𦉫羊𦍌𦍋耂肀"
    "聿肉𦥑艹艹艹虎衤覀西见角𧢲讠贝𧾷车辶辶辶邑钅長镸长门𨸏阝雨青韦页风飞食𩙿飠饣𩠐马骨鬼鱼鸟卤麦黄黾斉齐歯齿竜龙龜亀",
)
# The numbers and exponents whose digits NFKC would write beside others: 10½ would become 101⁄2, and 10² 102.
# Tests derive them from Unicode's decompositions.
NUMBERS = (
    "²³¹¼-¾\u2070-\u208e\u2150-\u215f\u2189\u2460-\u249b\u24ea\u3038-\u303a\u3192-\u3195\u3220-\u3229\u3251-\u325f"
    "\u3280-\u3289\u32b1-\u32cb\u3358-\u3370\u3378-\u3379\u339f-\u33a6\u33a8\u33af\u33e0-\u33fe\U0001f100-\U0001f10a"
)
NUMBER = re.compile(f"[{NUMBERS}]")
# All of these and others, in few ranges: without this search, German takes 1.4 times as long to tokenize.
PERHAPS = re.compile(
    "[\u00ad²³¹¼-¾\u034f\u061c\u17b4\u17b5\u200b-\u200f\u202a-\u202e\u2060-\u208e\u2150-\u2189\u2460-\u24ea"
    "\u3038-\u303a\u3192-\u33fe\ufe00-\ufe0f\ufeff\ufff0-\ufff8\U0001bca0-\U000e0fff]"
)
RUN = re.compile(f"[{NUMBERS}]+")
UNIT = re.compile(r"(?<=[a-z])(?=\d)")  # before the exponent in the compatibility form of ㎡, "m2"
RAISED = {"<super>": "^", "<sub>": "_"}
FULL_WIDTH = {code: code + 0xFEE0 for code in range(ord("!"), ord("~") + 1)}


def prepare(text: str, normalize: Callable[[str], str] | None = None) -> str:
    """Return a text as every tokenizer reads it, in training and translation.

    - Line ends become spaces; those at its beginning and end are removed.
    - Characters that no reader sees and no script needs are removed, such as soft hyphens and marks of the
      writing direction. Joiners stay after letters that join and within emoji, as do a space without width
      in scripts without spaces and the selectors of emoji.
    - Numbers that the vocabulary's normalization would rewrite are written by `with_plain_numbers`.

    Args:
        text: a text.
        normalize: the vocabulary's normalization; `None`: it has none.

    Example:

    >>> prepare("A play\\u00adhouse\\r\\nin the garden.\\n")
    'A playhouse in the garden.'
    """
    lines = text.splitlines()
    text = lines[0] if len(lines) == 1 else " ".join(filter(None, lines))
    if text.isascii() or not PERHAPS.search(text):
        return text
    for pattern, replacement in REMOVED:
        text = re.sub(pattern, replacement, text)
    if normalize and any(number not in normalize(number) for number in NUMBER.findall(text)):
        text = with_plain_numbers(text)
    return text


def with_plain_numbers(text: str) -> str:
    """Return a text whose numbers of one character have plain digits, apart from the digits beside them.

    Example:

    >>> with_plain_numbers("10½ kg, 10⁻³ m², 2①")
    '10 1/2 kg, 10^−3 m^2, 2 1'
    """
    return RUN.sub(_plain, text)


def _plain(run: re.Match) -> str:
    text, mark = run.string, ""
    written = text[: run.start()][-1:]  # only to know what is before
    for number in run[0]:
        last, mark = mark, RAISED.get(unicodedata.decomposition(number).split(" ")[0], "")
        after_number = _is_number(written[-1:])
        if mark == "^" != last or mark == "_" != last and after_number:  # but H₂O is H2O
            written += mark
        elif not mark and after_number:
            written += " "
        form = unicodedata.normalize("NFKC", number).replace("\u2044", "/")  # the fraction's own slash
        written += UNIT.sub("^", form)
    return written[run.start() > 0 :] + " " * _is_number(text[run.end() : run.end() + 1])


def _is_number(character: str) -> bool:
    return bool(character) and unicodedata.numeric(character, None) is not None


def known_forms(tokenize: Callable[[list[str]], Sequence[Sequence[int]]], text: str) -> tuple[str, str]:
    """Return a text in characters that a vocabulary knows, as far as possible, and those that it lacks.

    A character that the vocabulary lacks is replaced by the first of these forms that it knows: an accent
    joined to its letter (NFC); a number in plain digits; the character that a radical looks like; the
    compatibility form (NFKC), as for `３`, `…` and `㎏`; the full-width form; nothing, if no reader sees it.

    Args:
        tokenize: the tokenizer.
        text: a text.

    Example:

    >>> known_forms(CharacterTokenizer(["人", "3"]), "⼈３x")
    ('人3x', 'x')
    """
    known = {}

    def knows(form: str) -> bool:
        if form not in known:
            known[form] = UNKNOWN not in tokenize([form])[0]
        return known[form]

    text = unicodedata.normalize("NFC", prepare(text))
    plain = with_plain_numbers(text)
    if not all(map(knows, NUMBER.findall(text))) and all(map(knows, plain)):
        text = plain
    forms = {character: character for character in text}
    for character in forms:
        # `prepare` would remove a joiner that is alone.
        seen = character if prepare(character) else text[text.index(character) - 1 :][:2]
        if not knows(seen) and not NUMBER.match(character):
            plain = unicodedata.normalize("NFKC", character)
            candidates = [character.translate(RADICALS), plain, character.translate(FULL_WIDTH)]
            candidates = [form for form in candidates if form != character]
            if unicodedata.category(character) in ("Cc", "Cf") or "\ufe00" <= character <= "\ufe0f":
                candidates.append("")
            forms[character] = next(filter(knows, candidates), character)
    written = "".join(map(forms.__getitem__, text))
    return written, "".join(character for character in forms if not knows(forms[character]))
