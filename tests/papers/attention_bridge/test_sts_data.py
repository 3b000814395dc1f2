"""STS in SentEval's layout: the pairs that have a score, and what is wrong, named with its file and line."""

import gzip
from pathlib import Path

import pytest
from message_of import message_of

from training.attention_bridge.senteval_data import (
    STS_SETS,
    read_sts_set,
    senteval_examples,
    senteval_tasks,
    sts_files,
)

PAIRS = "A man runs .\tA man is running .\nno\tscore\nA dog .\tA cat .\tof a web page\n"
SCORES = "4.750\n\n1\n"


@pytest.fixture
def path(tmp_path) -> Path:
    """The file of pairs of a set, with its scores beside it."""
    (tmp_path / "STS.input.surprise.OnWN.txt").write_text(PAIRS)
    (tmp_path / "STS.gs.surprise.OnWN.txt").write_text(SCORES)
    return tmp_path / "STS.input.surprise.OnWN.txt"


def test_a_pair_without_a_score_is_left_out(path):
    expected = ((["A man runs .", "A dog ."], ["A man is running .", "A cat ."]), [4.75, 1.0])
    assert read_sts_set(path) == expected
    for file in path.parent.iterdir():
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    assert read_sts_set(path.with_name(f"{path.name}.gz")) == expected


@pytest.mark.parametrize("year", STS_SETS)
def test_a_year_is_a_task_where_all_its_sets_are(year, tmp_path, monkeypatch):
    monkeypatch.setenv("KZOO_DATA", str(tmp_path))
    folder = tmp_path / "senteval" / "downstream" / "STS" / f"STS{year - 2000}-en-test"
    folder.mkdir(parents=True)
    task = f"STS-{year}-cosine"
    for name in STS_SETS[year]:
        assert senteval_tasks() == []
        (folder / f"STS.input.{name}.txt").write_text(PAIRS)
        (folder / f"STS.gs.{name}.txt").write_text(SCORES)
    assert senteval_tasks() == [task]
    sets = senteval_examples(task)
    assert tuple(sets) == STS_SETS[year] == tuple(sts_files(year))
    assert {examples.targets[0] for examples in sets.values()} == {4.75}


@pytest.mark.parametrize(
    ("pairs", "scores", "expected"),
    [
        (PAIRS, "4\n", "input.surprise.OnWN.txt has 3 lines but {gs} has 1"),
        ("a\tb\nalone\n", "1\n2\n", "input.surprise.OnWN.txt, line 2: 'alone' is not two sentences"),
        ("alone\n", "\n", "input.surprise.OnWN.txt, line 1: 'alone' is not two sentences"),
        (PAIRS, "4\n\nmuch\n", "{gs}, line 3: 'much' is not a score from 0 to 5"),
        (PAIRS, "5.5\n\n1\n", "{gs}, line 1: '5.5' is not a score from 0 to 5"),
        (PAIRS, "4\nnan\n1\n", "{gs}, line 2: 'nan' is not a score from 0 to 5"),
        (PAIRS, None, "{gs}: cannot be read (No such file or directory)"),
    ],
)
def test_broken_files(path, pairs, scores, expected):
    path.write_text(pairs)
    scored = path.with_name("STS.gs.surprise.OnWN.txt")
    if scores is None:
        scored.unlink()
    else:
        scored.write_text(scores)
    message = message_of(read_sts_set, path)
    assert expected.format(gs=scored) in message
    assert "\n" not in message
