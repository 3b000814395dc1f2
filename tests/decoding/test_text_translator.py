"""The preparation of texts that both engines share: directions, portions, prefixes."""

import dataclasses

import pytest
from message_of import message_of

from kzoo.decoding import SearchSettings, TextTranslator
from kzoo.text.hypotheses import Hypothesis
from kzoo.text.sentences import PORTION, SplitTexts


@dataclasses.dataclass
class Words:
    """A tokenizer of words whose ids are their lengths."""

    times: int = 1

    def __post_init__(self):
        self.asked = []

    def __call__(self, texts):
        self.asked += texts
        return [[5 + len(word) for word in text.split()] * self.times for text in texts]


class Echo(TextTranslator):
    """Reads English once and German twice; its translations are the number of tokens and the prefix."""

    engine, max_length, multilingual, search = "echo", 16, True, SearchSettings(1)
    source_tokenizer = None
    target_languages = ()

    def __init__(self):
        self.known = {"en": Words(), "de": Words(2)}

    def direction(self, source_language=None, target_language=None):
        return source_language, target_language

    def tokenizers_of(self, source, target):
        return self.known[source], self.known[target]

    def n_best_of_rows(self, rows, *others):
        return [[Hypothesis(f"{len(row)}", 0.0)] for row in rows.tokens]


@pytest.fixture
def echo():
    return Echo()


def split(texts, directions, parts=False):
    return SplitTexts(texts, directions, parts)


def test_each_sentence_is_read_in_the_language_of_its_text(echo):
    directions = [("en", "de"), ("de", "en"), ("de", "en"), ("en", "de")] * 10
    prepared = echo.prepared(split(["a", "b c"] * 20, directions), echo.search, prefixes=["", "x"] * 20)
    assert [len(reading.tokens) for reading in prepared.readings] == [1, 4, 2, 2] * 10
    assert prepared.rows.prefixes == [[], [6], [], [6, 6]] * 10


def test_tokenizing_stops_soon_after_the_first_sentence_that_is_too_long(echo):
    long = "a " * 16 + "b" * 4000
    texts = ["a"] * 11 + [long] * 200
    assert "sentence 12 " in message_of(list, echo.readings(split(texts, [("en", "de")] * 211)))
    assert sum(map(len, echo.known["en"].asked)) < 3 * PORTION


def test_sentences_have_the_direction_and_the_prefix_of_their_text(echo):
    texts = split(["A man. Two dogs.", "Ein Hund."], [("en", "de"), ("de", "en")], True)
    prepared = echo.prepared(texts, echo.search, prefixes=["x", ""])
    assert [len(reading.tokens) for reading in prepared.readings] == [2, 2, 4]
    assert prepared.rows.prefixes == [[6, 6], [], []]


def test_a_text_s_own_target_decides_its_case_and_its_terms(echo):
    class Several(Echo):
        codes_in_text = ["tur", "deu"]

        def tokenizers_of(self, source, target):
            return Subwords(), Subwords()

        def n_best_of_rows(self, rows, *others):
            return [[Hypothesis("insan", 0.0)] for _ in rows.tokens]

        def with_terms(self, sentences, found, n, glossary):
            return [[Hypothesis("term", 0.0)] for _ in found]

    class Subwords(Words):
        """Letters in lower case are one word; in capitals, one each."""

        def __call__(self, texts):
            return [[5] * (len(text) if text.isupper() else 1) for text in texts]

    texts = [">>tur<<HUMAN BEINGS", "HUMAN BEINGS", ">>deu<<a"]
    assert Several().translate(texts, "en", "deu") == ["\u0130NSAN", "INSAN", "insan"]
    assert Several().translate(texts, "en", "deu", terms={"a": "b"}) == ["\u0130NSAN", "term", "term"]


def test_no_texts_and_no_prefixes(echo):
    prepared = echo.prepared(split([], []), echo.search)
    assert (prepared.readings, prepared.rows) == ([], ([], None, None))
    assert echo.translate([], "en", "de") == []
