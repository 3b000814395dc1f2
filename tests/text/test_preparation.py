"""What every tokenizer changes in a text, against the Unicode properties of the package `regex`."""

import sys
import unicodedata

import pytest
import regex

from kzoo.text import CharacterTokenizer, SubwordTokenizer, learn_characters, train_subwords
from kzoo.text.pieces import Subwords
from kzoo.text.preparation import NUMBER, prepare, with_plain_numbers

CHARACTERS = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
# Letters that nobody sees, and Mongolian's variation selectors.
NEEDED = regex.compile(r"[\p{Lo}\u180b-\u180f]")


def matching(pattern: str) -> list[str]:
    return regex.findall(pattern, "".join(CHARACTERS))


def test_what_no_reader_sees_is_removed_within_a_word():
    ignorable = matching(r"\p{Default_Ignorable_Code_Point}")
    assert len(ignorable) > 4000
    removed = [c for c in CHARACTERS if prepare(f"dög{c}s") == "dögs"]
    assert removed == [c for c in ignorable if not NEEDED.match(c)]


@pytest.mark.parametrize(
    "letters, needed",
    [
        (r"[\p{Joining_Type=Dual_Joining}--\p{Script=Mongolian}--\p{Script=Phags_Pa}]", "\u200c\u200d"),
        (r"[\p{Joining_Type=Right_Joining}]", "\u200c"),  # Persian's کار‌ها
        (r"[\p{Canonical_Combining_Class=9}]", "\u200c\u200d"),  # viramas
        (r"[\p{Line_Break=Complex_Context}--\p{Default_Ignorable_Code_Point}]", "\u200b"),
        (r"[\p{Emoji_Presentation}\p{Extended_Pictographic}&&\p{Assigned}]", "\u200d\ufe0f"),
    ],
)
def test_what_a_script_needs_stays(letters, needed):
    before = regex.findall(letters, "".join(CHARACTERS), regex.V1)
    assert len(before) > 20
    for c in before:
        for invisible in needed:
            assert prepare(f"{c}{invisible}a") == f"{c}{invisible}a", f"U+{ord(c):04X}"


@pytest.mark.parametrize(
    "sequence", ["❤\ufe0f\u200d🔥", "👨\u200d👩\u200d👧", "1\ufe0f\u20e3", "🏴\U000e0067\U000e007f"]
)
def test_sequences_of_emoji_stay(sequence):
    assert prepare(f"a {sequence}") == f"a {sequence}"


@pytest.mark.parametrize("text", ["dog\ufe0f\u200d", "dog\u2060\ufe0f", "dog\u200b\u200b", "dog\u200d\u00ad"])
def test_several_are_removed_together(text):
    assert prepare(text) == "dog"


@pytest.mark.parametrize("invisible", "\u00ad\u2060\u200b\u200c\u200d\ufe0f\ufeff")
def test_vocabularies_and_tokens_are_those_of_the_seen_text(invisible):
    plain, marked = ["A playhouse stands."] * 9, [f"A play{invisible}house stands."] * 9
    proto = train_subwords(plain, 25)
    assert train_subwords(marked, 25) == proto
    assert learn_characters(marked) == learn_characters(plain)
    for tokenizer in (SubwordTokenizer(proto), Subwords(proto), CharacterTokenizer(learn_characters(plain))):
        assert tokenizer(marked) == tokenizer(plain)


# Everything with a value, and everything that NFKC writes with a digit, such as ㎡ and ㋀.
NUMBERS = [
    c
    for c in CHARACTERS
    if unicodedata.numeric(c, None) is not None or any(map(str.isdecimal, unicodedata.normalize("NFKC", c)))
]
LINES = ["A man has 10 dogs, 25 and 1/2.", "Two dogs 5, 3, 4, 6, 7, 8, 9 and 0."] * 500


def runs_of_digits(text: str) -> list[str]:
    """Return a text's runs of digits, in ASCII."""
    return ["".join(str(unicodedata.decimal(c)) for c in run) for run in regex.findall(r"\p{Nd}+", text)]


def test_no_number_joins_the_digits_beside_it():
    """In a vocabulary that normalizes, and whose training text had no such numbers."""
    tokenizer = Subwords(train_subwords(LINES, 60))
    texts = [f"10{number}5" for number in NUMBERS]
    assert len(texts) > 1800
    for number, text, found in zip(NUMBERS, texts, tokenizer.detokenize(tokenizer(texts)), strict=True):
        runs = runs_of_digits(found)
        if number.isdecimal():  # ５ is 5; those of other scripts are unknown
            assert runs in ([f"10{unicodedata.decimal(number)}5"], ["10", "5"])
        else:
            assert (runs[0], runs[-1]) == ("10", "5"), text


def test_numbers_of_the_training_text_are_kept_as_they_are():
    """A few, in a text that is otherwise normalized."""
    rare = [number for number in NUMBERS if NUMBER.match(number)]
    sentences = [f"10{number}5 {number} dogs" for number in rare]
    together = [" ".join(sentences[i::5]) for i in range(5)]
    tokenizer = Subwords(train_subwords([*LINES, *together], 60 + len(rare)))
    assert tokenizer.detokenize(tokenizer(sentences)) == sentences
    assert tokenizer.detokenize(tokenizer(["do\u00a0gs"])) == ["do gs"]  # normalized


def test_which_numbers_nfkc_would_join_is_unicode_s():
    for c in CHARACTERS:
        form = unicodedata.normalize("NFKC", c)
        tagged = unicodedata.decomposition(c).startswith("<") and not c.isdecimal()
        digits = (
            regex.search(r"\d", form)
            or unicodedata.numeric(c, None) is not None
            and any(unicodedata.numeric(one, None) is not None for one in form)
        )
        exponent = 0x2070 <= ord(c) <= 0x208E  # with signs, parentheses and n
        assert bool(NUMBER.match(c)) == bool(tagged and digits or exponent), f"U+{ord(c):04X}"


@pytest.mark.parametrize(
    "text, plain",
    [
        ("10½ kg", "10 1/2 kg"),
        ("½½", "1/2 1/2"),
        ("10⁻³ m²", "10^−3 m^2"),
        ("1²3", "1^2 3"),
        ("5㎡", "5 m^2"),
        ("H₂O", "H2O"),
        ("log₁₀5", "log10 5"),
        ("10₁₆", "10_16"),
        ("2①", "2 1"),
        ("12㋀", "12 1月"),
    ],
)
def test_plain_numbers(text, plain):
    assert with_plain_numbers(text) == plain
