"""SentEval's files: what is read is what stands there, and what is wrong is named with its line."""

import gzip
import os
from pathlib import Path

import pytest
from message_of import message_of

from training.attention_bridge import senteval_data as senteval
from training.attention_bridge.senteval_data import (
    PROBING_TASKS,
    SENTEVAL_TASKS,
    senteval_examples,
    senteval_tasks,
)

# The sizes that SentEval's paper and the publishers give: Conneau and Kiela 2018, Tables 1 and 2.
SIZES = {
    "MR": {"all": 10662},
    "CR": {"all": 3775},
    "SUBJ": {"all": 10000},
    "MPQA": {"all": 10606},
    "SST-2": {"train": 6920, "val": 872, "test": 1821},
    "SST-5": {"train": 8544, "val": 1101, "test": 2210},
    "TREC": {"train": 5452, "test": 500},
    "MRPC": {"train": 3576, "val": 500, "test": 1725},
    "SICK-E": {"train": 4500, "val": 500, "test": 4927},
    "SICK-R": {"train": 4500, "val": 500, "test": 4927},
    "STS-2015": {"train": 3000, "val": 750, "test": 3000},
    "STS-2015-cosine": {
        "answers-forums": 375,
        "answers-students": 750,
        "belief": 375,
        "headlines": 750,
        "images": 750,
    },
    "SICK-R-cosine": {"test": 4927},
}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty folder for SentEval's files."""
    monkeypatch.setenv("KZOO_DATA", str(tmp_path))
    (tmp_path / "senteval" / "probing").mkdir(parents=True)
    return tmp_path / "senteval"


@pytest.mark.parametrize("task", SIZES)
def test_real_files(task):
    if not (Path(os.environ.get("KZOO_DATA", "")) / "senteval").is_dir():
        pytest.skip("KZOO_DATA names no folder that holds senteval/")
    splits = senteval_examples(task)
    assert {split: len(examples.targets) for split, examples in splits.items()} == SIZES[task]
    for texts, targets in splits.values():
        assert all(len(column) == len(targets) for column in texts)
        assert not any("\ufffd" in text or text.endswith("\r") for column in texts for text in column)
    assert task in senteval_tasks()


def test_classes_and_windows_text(folder):
    text = "0 the clichés … pile up .\n1 a small gem .\n"
    (folder / "rt-polarity.all").write_bytes(text.encode("cp1252"))
    examples = senteval_examples("MR")["all"]
    assert examples.texts == (["the clichés … pile up .", "a small gem ."],)
    assert examples.targets == [0, 1]
    (folder / "rt-polarity.all").unlink()
    (folder / "rt-polarity.all.gz").write_bytes(gzip.compress(text.encode()))
    assert senteval_examples("MR")["all"] == examples
    assert senteval_tasks() == ["MR"]
    (folder / "custrev.all").write_bytes(b"0 caf\xe9 .\n")  # published in UTF-8: a broken byte is one
    assert "UTF-8" in message_of(senteval_examples, "CR")
    (folder / "custrev.all").write_text("\u00b2 a .\n")
    assert "line 1: '\u00b2 a .'" in message_of(senteval_examples, "CR")


def test_tables_are_read_by_their_headers(folder):
    header = "pair_ID\tentailment_judgment\tsentence_A\tsentence_B\trelatedness_score\r\n"
    for name in ("train", "trial", "test_annotated"):
        (folder / f"SICK_{name}.txt").write_text(header + "3\tENTAILMENT\ta dog\tan animal\t4.5\r\n")
    assert senteval_examples("SICK-R")["test"] == ((["a dog"], ["an animal"]), [4.5])
    assert senteval_examples("SICK-R-cosine") == {"test": ((["a dog"], ["an animal"]), [4.5])}
    assert senteval_examples("SICK-E")["train"] == ((["a dog"], ["an animal"]), [2])


def test_publishers_formats_of_sts_b_and_snli(folder):
    for name in ("train", "dev", "test"):
        line = 'main-captions\tMSRvid\t2012test\t0001\t5.000\tA "plane.\tAn air plane.\n'
        (folder / f"sts-{name}.csv").write_text(line)
        rows = ["gold_label\tsentence1_parse\tsentence1\tsentence2", "-\t(A)\tA\tB", "neutral\t(C)\tC\tD"]
        (folder / f"snli_1.0_{name}.txt").write_text("\n".join(rows) + "\n")
    assert senteval_examples("STS-B")["val"] == ((['A "plane.'], ["An air plane."]), [5.0])
    assert senteval_examples("STS-B-cosine") == {"test": ((['A "plane.'], ["An air plane."]), [5.0])}
    assert senteval_examples("SNLI")["test"] == ((["C"], ["D"]), [1])


def test_sts_2015_leaves_out_what_follows_its_sets(folder, monkeypatch):
    monkeypatch.setattr(senteval, "STS_2015_SETS", {"forums": 2, "images": 1})
    (folder / "sts-2015.test.tsv").write_text("3.2\ta\tb\n\tno\tscore\n1\tc\td\n5\tof train\tof train\n")
    for split in ("train", "val"):
        (folder / f"sts-2015.{split}.tsv").write_text("5\tof train\tof train\n")
    sets = senteval_examples("STS-2015-cosine")
    assert sets == {"forums": ((["a"], ["b"]), [3.2]), "images": ((["c"], ["d"]), [1.0])}
    splits = senteval_examples("STS-2015")
    assert splits["test"] == ((["a", "c"], ["b", "d"]), [3.2, 1.0])
    assert splits["train"].targets == [5.0]


def test_probing_files(folder):
    lines = ["tr\tNNS\tThe dogs ran .", "va\tNN\tA dog .", "tr\tNN\tThe dog ran .", "te\tNNS\tDogs ."]
    for name in PROBING_TASKS.values():
        (folder / "probing" / f"{name}.txt").write_text("\n".join(lines) + "\n")
    assert senteval_tasks() == list(PROBING_TASKS)
    for task in PROBING_TASKS:
        splits = senteval_examples(task)
        assert splits["train"] == ((["The dogs ran .", "The dog ran ."],), [1, 0])
        assert splits["val"] == ((["A dog ."],), [0])
        assert splits["test"] == ((["Dogs ."],), [1])


@pytest.mark.parametrize(
    ("task", "file", "text", "expected"),
    [
        ("CR", "custrev.all", "1 good\nno class\n", "line 2: 'no class'"),
        ("CR", "custrev.all", "", "no all example"),
        ("MRPC", "msr-para-train.tsv", "Quality\t#1 String\n1\ta\n", "line 1: no column '#2 String'"),
        ("MRPC", "msr-para-train.tsv", "Quality\t#1 String\t#2 String\n1\ta\n", "line 2: 2 columns, not 3"),
        ("MRPC", "msr-para-train.tsv", "Quality\t#1 String\t#2 String\n7\ta\tb\n", "line 2, column 1: '7'"),
        ("STS-B", "sts-train.csv", "a\tb\tc\td\t9.5\te\tf\n", "line 1, column 5: '9.5'"),
        ("STS-B", "sts-train.csv", "a\tb\tc\td\t9.5\te\n", "line 1: 6 columns, not 7"),
        ("STS-2015-cosine", "sts-2015.test.tsv", "1\ta\tb\n", "1 lines, but the sets of STS 2015 have 8,500"),
        ("Tense", "probing/past_present.txt", "tr\tPAST\ta\ntr\tPAST\n", "line 2: 2 columns, not 3"),
        ("Tense", "probing/past_present.txt", "tr\tPAST\ta\nxx\tPAST\tb\n", "line 2: split 'xx'"),
        ("Tense", "probing/past_present.txt", "tr\tPAST\ta\nte\tPRES\tb\n", "label 'PRES' of split test"),
    ],
)
def test_broken_files(folder, task, file, text, expected):
    for name in SENTEVAL_TASKS[task].names.values():
        (folder / name).write_text(text)
    message = message_of(senteval_examples, task)
    assert expected in message
    assert file in message


def test_missing_files(folder, monkeypatch):
    assert "custrev.all" in message_of(senteval_examples, "CR")
    assert "SICK-E" in message_of(senteval_examples, "SICKE")
    (folder / "custrev.all.gz").write_bytes(gzip.compress(b"1 good\n" * 99)[:-9])
    assert "gzip" in message_of(senteval_examples, "CR")
    monkeypatch.setenv("KZOO_DATA", str(folder / "absent"))
    assert "KZOO_DATA" in message_of(senteval_examples, "CR")


def test_the_split_without_examples_is_named_with_its_file(folder):
    (folder / "TREC.train.all").write_text("0 How far ?\n")
    (folder / "TREC.test.all.gz").write_bytes(gzip.compress(b""))
    expected = f"task TREC: {folder / 'TREC.test.all.gz'} has no test example"
    assert message_of(senteval_examples, "TREC") == expected
