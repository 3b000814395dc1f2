"""Word similarity against SciPy on words by hand, the readers on small, broken and real files."""

import math
import os
import re
from pathlib import Path

import numpy as np
import pytest
from message_of import message_of
from scipy.spatial.distance import cosine
from scipy.stats import rankdata

from kzoo.errors import UserError
from training.glyph.word_similarity import (
    WORD_PAIRS,
    WordPair,
    open_word_pairs,
    read_word_pairs,
    score_word_similarity,
)


def expected(pairs, vectors):
    """Return Pearson's correlation of the ranks."""
    similar = [
        1 - cosine(*(np.mean([vectors[c] for c in word if c in vectors], axis=0) for word in pair[:2]))
        for pair in pairs
    ]
    return 100 * np.corrcoef(rankdata(similar), rankdata([pair.score for pair in pairs]))[0, 1]


def test_seen_and_unseen_words(random):
    seen, unseen = "abcdefgh", "stuv"
    vectors = {character: random.normal(size=5) for character in seen + unseen}

    def pairs():
        words = ["".join(random.choice(list(seen), 2)) for _ in range(48)]
        return [WordPair(words[i], words[i + 1], float(i % 7)) for i in range(0, 48, 2)]

    known = pairs()
    others = [WordPair(p.first + "s", p.second, p.score) for p in pairs()]
    lonely = [WordPair("uv", "ab", 3.0)]  # a word without any seen character
    result = score_word_similarity([*known, *others, *lonely], vectors, seen)
    seen_vectors = {character: vectors[character] for character in seen}
    assert result.seen.spearman == pytest.approx(expected(known, vectors))
    assert result.unseen_without.spearman == pytest.approx(expected(others, seen_vectors))
    assert result.unseen_with.spearman == pytest.approx(expected([*others, *lonely], vectors))
    counts = [column.pairs for column in (result.seen, result.unseen_without, result.unseen_with)]
    assert counts == [len(known), len(others), len(others) + 1]
    # A lookup embedding has nothing to add for unseen characters.
    lookup = score_word_similarity([*known, *others, *lonely], seen_vectors, seen)
    assert lookup.unseen_with == lookup.unseen_without == result.unseen_without


def test_too_few_pairs_have_no_correlation():
    result = score_word_similarity([WordPair("a", "b", 1.0)], {"a": np.ones(2), "b": np.ones(2)}, "ab")
    assert math.isnan(result.seen.spearman) and result.seen.pairs == 1
    assert math.isnan(result.unseen_with.spearman) and result.unseen_with.pairs == 0


def test_readers_take_any_white_space(tmp_path):
    (tmp_path / "pairs.txt").write_text("日本  南京大屠殺 8.95\n老\t新 1\n")
    assert read_word_pairs(tmp_path / "pairs.txt") == [("日本", "南京大屠殺", 8.95), ("老", "新", 1.0)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b 1\na 2\n", "line 2: 2 "),
        ("a b c 1\n", "line 1: 4 "),
        ("a b 1\n\n", "line 2: 0 "),
        ("a b much\n", "line 1: .*'much'"),
        ("a b nan\n", "line 1: .*'nan'"),
    ],
)
def test_broken_lines_are_named(text, message, tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        read_word_pairs(path)
    assert re.match(f"{re.escape(str(path))}, {message}", str(error.value))


def test_sets_that_are_not_there_are_named(monkeypatch, tmp_path):
    monkeypatch.delenv("KZOO_DATA", raising=False)
    assert "KZOO_DATA" in message_of(open_word_pairs, "wordsim_240")
    monkeypatch.setenv("KZOO_DATA", str(tmp_path))
    assert "wordsim/" in message_of(open_word_pairs, "wordsim_240")
    (tmp_path / "wordsim").mkdir()
    assert "240_trad.txt" in message_of(open_word_pairs, "wordsim_240")


def test_real_sets():
    folder = os.environ.get("KZOO_DATA")
    if not folder or not (Path(folder) / "wordsim").is_dir():
        pytest.skip("set KZOO_DATA to a folder with wordsim/ to run this test on real data")
    assert [len(open_word_pairs(name)) for name in WORD_PAIRS] == [240, 297, 999]  # the paper's 1,536
