"""Tables as spreadsheets write them: the right columns, whole, or one line that says what is wrong."""

import csv
import gzip

import pytest
from message_of import message_of

from kzoo.data import open_files
from kzoo.data.own_files import stream_pairs

PAIRS = [('He said: "Stop, dog!"', "Er sagte: „Halt; Hund!“"), ("one\ttab", "zwei"), ("", "drei, vier")]


def pairs_of(path, columns=()):
    """The pairs read whole, which are those that are streamed."""
    corpus = open_files(train=path, columns=columns)
    found = list(zip(*corpus.pairs("train", "en", "de"), strict=True))
    assert list(stream_pairs([path], ("en", "de"), columns)) == found
    return found


@pytest.mark.parametrize("separator", ",;\t")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_csv_with_quotes_and_titles(separator, encoding, tmp_path):
    path = tmp_path / "pairs.CSV"
    with open(path, "w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerow(["number", "German text", "English text"])
        writer.writerows([number, target, source] for number, (source, target) in enumerate(PAIRS))
    assert pairs_of(path, ["English text", "German text"]) == PAIRS
    assert pairs_of(path, [3, 2]) == [("English text", "German text"), *PAIRS]
    assert "line 1: 3" in message_of(pairs_of, path)
    assert "'English'" in message_of(pairs_of, path, ["English", "German text"])


def test_numbered_columns_do_not_decide_which_separator_it_is(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("a dog, small;ein Hund;x\na man, tall;ein Mann;x\n")
    assert "semicolon" in message_of(pairs_of, path, [1, 2])
    assert pairs_of(path, [1, 3]) == [("a dog, small", "x"), ("a man, tall", "x")]


def test_a_cell_of_several_lines_is_one_sentence(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_bytes(b'"two\r\nlines","zwei\nZeilen"\r\na,b\r\n')
    assert pairs_of(path) == [("two lines", "zwei Zeilen"), ("a", "b")]


def test_a_cell_of_several_lines_may_be_where_the_sample_ends(tmp_path):
    path, rows = tmp_path / "pairs.csv", [("a", "b"), *[("two\nlines", "c")] * 60]
    with open(path, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    assert pairs_of(path) == [("a", "b"), *[("two lines", "c")] * 60]


def test_columns_of_a_tsv_keep_their_quotes(tmp_path):
    path = tmp_path / "pairs.Tsv.Gz"
    path.write_bytes(gzip.compress('1\t"a" dog\t„Hund“\tx\n2\tb\tc\n'.encode()))
    assert pairs_of(path, [2, 3]) == [('"a" dog', "„Hund“"), ("b", "c")]
    assert "line 2: 3" in message_of(pairs_of, path, [2, 4])


@pytest.mark.parametrize("columns", [[0, 1], [2, 2], ["en", "en"], [1, "de"], [1]])
def test_columns_are_different_numbers_or_names(columns, tmp_path):
    (tmp_path / "pairs.tsv").write_text("en\tde\tfr\na\tb\tc\n")
    assert f"columns is {columns}" in message_of(pairs_of, tmp_path / "pairs.tsv", columns)


def test_titles_are_not_a_sentence(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("EN\tde\na\tb\n")
    assert "(EN, de)" in message_of(pairs_of, path)
    assert pairs_of(path, ["EN", "de"]) == [("a", "b")]
    path.write_text("English\tDeutsch\na\tb\n")
    assert "(English, Deutsch)" in message_of(pairs_of, path)


def test_what_is_no_text_is_named_whatever_its_name(tmp_path):
    path = tmp_path / "pairs.tsv.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd\x04")
    assert "Zstandard" in message_of(open_files, path)


@pytest.mark.parametrize("text", ["a, b,c\nd,e\n", 'a,"b\n', "a dog, big;ein Hund\n", "a\n", "a\rb,c\n"])
def test_what_is_not_csv_is_named(text, tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text(text)
    assert message_of(pairs_of, path).startswith(str(path))


def test_a_blank_line_is_named(tmp_path):
    (tmp_path / "pairs.csv").write_text("a,b\n\nc,d\n")
    assert "line 2: 0" in message_of(pairs_of, tmp_path / "pairs.csv")


def test_a_table_where_text_is_meant_is_refused(tmp_path):
    table, text = tmp_path / "pairs.tsv", tmp_path / "pairs.txt"
    for path in (table, text):
        path.write_text("a\tb\nc\td\n")
    assert "pairs.tsv" in message_of(open_files, None, None, (text, table))
    (tmp_path / "other.txt").write_text("a\nb\n")
    corpus = open_files(test=(text, tmp_path / "other.txt"))
    assert "tab" in message_of(corpus.pairs, "test", "en", "de")
    assert "twice" in message_of(open_files, None, None, (text, text))


def test_several_references(tmp_path):
    for name, content in {"en": "a\nb\n", "de": "x\ny\n", "de2": "x2\ny2\n", "de3": "x\n"}.items():
        (tmp_path / name).write_text(content)
    files = [tmp_path / name for name in ("en", "de", "de2", "de3")]
    corpus = open_files(test=files[:3])
    assert corpus.pairs("test", "en", "de") == (["a", "b"], ["x", "y"])
    assert corpus.more_references("test", "de") == [["x2", "y2"]]
    assert corpus.more_references("test", "en") == []
    assert "de3 has 1" in message_of(open_files(test=files).more_references, "test", "de")
    assert "aligned" in message_of(open_files, files[:3])
