"""The line about characters that a vocabulary lacks."""

from kzoo.text import MosesSubwordTokenizer, SubwordTokenizer, moses_text, train_subwords
from kzoo.text.vocabulary import UnknownCharacters, unknown_characters, unknown_line

SENTENCES = ["A man has a dog.", "Zwei Hunde für uns."]


def found(tokenizer, texts):
    return unknown_characters(texts, tokenizer(texts), tokenizer)


def test_sentences_and_characters_that_the_vocabulary_lacks():
    tokenizer = SubwordTokenizer(train_subwords(SENTENCES * 5, 40))
    assert found(tokenizer, SENTENCES) == UnknownCharacters(2)
    # NFKC joins u and its diaeresis, takes the ligature apart, and drops the space without width.
    assert found(tokenizer, ["fu\u0308r €5€", "a\u200b \ufb01", "", "x €"]) == UnknownCharacters(4, 2, "€5x")


def test_in_the_form_that_the_tokenizer_gives_text():
    tokenizer = MosesSubwordTokenizer(train_subwords([moses_text(s, "de") for s in SENTENCES * 5], 40), "de")
    assert found(tokenizer, ["EIN HUND", "DAS ẞ"]) == UnknownCharacters(2, 1, "ẞ")


def test_the_line_has_both_sides_and_the_first_characters():
    assert unknown_line({"en": UnknownCharacters(300), "de": UnknownCharacters(300)}) == ""
    line = unknown_line({"en": UnknownCharacters(3000), "de": UnknownCharacters(3000, 1200, "€\0abcd")})
    assert line.endswith(r"en 0 of 3,000; de 1,200 of 3,000 ('€' '\x00' 'a' 'b' 'c' …)")
