"""BPE-dropout: without dropout the usual subwords, with it Algorithm 1's probabilities; the same text."""

import itertools
import subprocess
import sys
from collections import Counter
from random import Random

import pytest
import sentencepiece
from scipy.stats import chisquare

from kzoo.data import open_corpus
from kzoo.text import UNKNOWN, SubwordTokenizer, train_subwords
from kzoo.text.bpe_dropout import BPEDropout

EN, DE = open_corpus("scenes").pairs("train", "en", "de")
TEXT = [*EN[:300], *DE[:300], "", "½ of a dog, 3²!", "an oddly-spelt wörd: " + "dogdog" * 9]


@pytest.fixture(scope="module")
def tokenizer():
    return SubwordTokenizer(train_subwords([*EN, *DE, "½ of 3²"], 400))


def test_without_dropout_the_subwords_are_sentencepiece_s(tokenizer):
    usual, split = BPEDropout(tokenizer.proto, 0.0, 1), sentencepiece.SentencePieceProcessor()
    split.load_from_serialized_proto(tokenizer.proto)
    for row in split.encode(TEXT):
        assert usual(row, 1000, Random(1)) == row


def probabilities(scores, parts, dropout):
    """Return the probability of each segmentation, by Algorithm 1: which merge is the best one kept?"""
    merges = sorted(
        ((scores[a + b], -i) for i, (a, b) in enumerate(itertools.pairwise(parts)) if a + b in scores),
        reverse=True,
    )
    found = Counter({tuple(parts): dropout ** len(merges)})
    for better, (_, place) in enumerate(merges):
        joined = [*parts[:-place], parts[-place] + parts[1 - place], *parts[2 - place :]]
        for result, probability in probabilities(scores, joined, dropout).items():
            found[result] += dropout**better * (1 - dropout) * probability
    return found


@pytest.mark.parametrize("dropout", [0.1, 0.5])
def test_segmentations_have_the_probabilities_of_algorithm_1(tokenizer, dropout):
    split = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.proto)
    scores = {split.id_to_piece(i): split.get_score(i) for i in range(split.vocab_size())}
    drawn, random, count = BPEDropout(tokenizer.proto, dropout, 1), Random(1), 4000
    for word in ("▁dog", "▁Hund", "▁walks"):
        expected = probabilities(scores, [*word], dropout)
        assert sum(expected.values()) == pytest.approx(1)
        found = Counter(tuple(drawn.split(word, random)) for _ in range(count))
        assert found.keys() <= expected.keys()
        often = [parts for parts, probability in expected.items() if probability * count > 5]
        counts = [[some[parts] for parts in often] for some in (found, expected)]
        rest = [sum(some.values()) - sum(part) for some, part in zip((found, expected), counts, strict=True)]
        counts = [[*part[1:], part[0] + more] for part, more in zip(counts, rest, strict=True)]
        counts[1] = [probability * count for probability in counts[1]]
        assert chisquare(*counts).pvalue > 1e-3


def test_the_text_stays_the_same_and_fits(tokenizer):
    subwords, random, other = BPEDropout(tokenizer.proto, 0.3, 1), Random(1), 0
    for row in tokenizer(TEXT):
        for limit in (len(row), len(row) + 2, 1000):
            drawn = subwords(row, limit, random)
            assert len(drawn) <= limit
            assert tokenizer.detokenize([drawn]) == tokenizer.detokenize([row])
            other += drawn != row
    assert other > len(TEXT)


def test_a_word_with_unknown_characters_stays_as_it_is(tokenizer):
    (row,) = tokenizer(["a 犬 dog"])
    subwords, random = BPEDropout(tokenizer.proto, 0.9, 1), Random(1)
    place = row.index(UNKNOWN)
    assert all(row[place] in subwords(row, 1000, random) for _ in range(20))
    assert all(subwords(row, 1000, random).count(UNKNOWN) == 1 for _ in range(20))


DRAW = """
import sys
from random import Random
from kzoo.text.bpe_dropout import BPEDropout
subwords = BPEDropout(open(sys.argv[1], "rb").read(), 0.3, 1)
print([subwords(row, 1000, Random("1 2 3")) for row in eval(sys.argv[2])])
"""


def test_another_process_draws_the_same(tokenizer, tmp_path):
    """So a resumed run goes on with the text that it would have had; SentencePiece's own samples differ."""
    (tmp_path / "model").write_bytes(tokenizer.proto)
    rows = tokenizer(TEXT[:20])
    subwords = BPEDropout(tokenizer.proto, 0.3, 1)
    subwords(tokenizer(TEXT[20:21])[0], 1000, Random(5))  # what was drawn before changes nothing
    command = [sys.executable, "-c", DRAW, str(tmp_path / "model"), str(rows)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert found.strip() == str([subwords(row, 1000, Random("1 2 3")) for row in rows])
