"""The page of two models' translations: order, marks, escaping, pictures."""

import base64
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from kzoo.errors import UserError
from kzoo.evaluation.report import cases, write_report

SOURCES = ["A bat.", "A dog runs.", "Two <b>cats</b> & one."]
REFERENCES = ["Eine Fledermaus.", "Ein Hund rennt.", "Zwei Katzen."]
FIRST = ["Ein Schläger.", "Ein Hund rennt.", "Zwei & <i>Katzen</i>."]
SECOND = ["Eine Fledermaus.", "Ein Hund rennt.", "Zwei & Hunde."]


class Text(HTMLParser):
    """Collects the texts of `dd` and of `mark`, and the pictures."""

    def __init__(self, page):
        super().__init__()
        self.fields, self.marked, self.pictures, self.inside = [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.inside.append(tag)
        if tag == "dd":
            self.fields.append("")
        if tag == "img":
            data = dict(attributes)["src"].removeprefix("data:image/png;base64,")
            self.pictures.append(np.asarray(Image.open(io.BytesIO(base64.b64decode(data)))))
            self.inside.pop()

    def handle_endtag(self, tag):
        if tag in self.inside:
            while self.inside.pop() != tag:
                pass

    def handle_data(self, data):
        if "dd" in self.inside:
            self.fields[-1] += data
        if "mark" in self.inside:
            self.marked.append(data)


def test_the_most_different_come_first():
    found = cases(SOURCES, REFERENCES, FIRST, SECOND)
    assert [case.number for case in found] == [0, 2, 1]
    assert found[-1].difference == 0
    assert found[0].difference == 1


def test_shows_texts_marks_and_pictures(tmp_path):
    pictures = np.random.default_rng(0).integers(0, 256, (3, 4, 4, 3)).astype("uint8")
    path = tmp_path / "report.html"
    write_report(
        path, "Text <and> pictures", ("text", "image"), cases(SOURCES, REFERENCES, FIRST, SECOND), pictures
    )
    page = path.read_text("utf-8")
    seen = Text(page)
    order = [0, 2, 1]
    assert seen.fields == [row[i] for i in order for row in (SOURCES, REFERENCES, FIRST, SECOND)]
    assert seen.marked == ["Ein Schläger.", "Eine Fledermaus.", "<i>Katzen</i>.", "Hunde."]
    for picture, i in zip(seen.pictures, order, strict=True):
        np.testing.assert_array_equal(picture, pictures[i])
    assert not re.search(r'(src|href)="http', page)


def test_chinese_is_compared_by_characters(tmp_path):
    path = tmp_path / "report.html"
    write_report(path, "zh", ("a", "b"), cases(["He."], ["他来。"], ["他来。"], ["她来。"]))
    seen = Text(path.read_text("utf-8"))
    assert seen.fields == ["He.", "他来。", "他来。", "她来。"]
    assert seen.marked == ["他", "她"]


def test_both_sides_are_compared_in_the_same_units(tmp_path):
    found = cases(["A dog."], ["Ein Hund"], ["Hund"], ["ein Hund"])
    assert found[0].difference == pytest.approx(1 - 2 / 3)
    write_report(tmp_path / "report.html", "de", ("a", "b"), found)
    assert Text((tmp_path / "report.html").read_text("utf-8")).marked == ["ein"]


def test_bad_input_is_named(tmp_path):
    with pytest.raises(UserError, match="3 sentences, 3 references, 2 and 3 translations"):
        cases(SOURCES, REFERENCES, FIRST[:2], SECOND)
    with pytest.raises(UserError, match="no sentences"):
        write_report(tmp_path / "report.html", "t", ("a", "b"), [])
    assert not (tmp_path / "report.html").exists()
