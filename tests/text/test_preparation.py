"""What every tokenizer changes in a text, against the Unicode properties of the package `regex`."""

import sys

import pytest
import regex

from kzoo.text import CharacterTokenizer, SubwordTokenizer, learn_characters, train_subwords
from kzoo.text.pieces import Subwords
from kzoo.text.preparation import prepare

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
