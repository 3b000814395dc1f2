"""The page of two models' translations: order, marks, escaping, pictures."""

import base64
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image
from sacrebleu import sentence_chrf

from kzoo.evaluation.comparison import ComparedBleu, cases, write_report

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
            data = dict(attributes)["src"].partition(";base64,")[2]
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


def written(folder, chosen, images=None, compared=([], ""), languages=("en", "de"), sentences=3):
    """Return the page of two models a and b."""
    path = folder / "report.html"
    write_report(path, "a <and> b", ("a", "b"), chosen, images, compared, languages, sentences)
    return path.read_text("utf-8")


def test_the_most_different_come_first():
    found = cases(SOURCES, REFERENCES, FIRST, SECOND)
    assert [case.number for case in found] == [0, 2, 1]
    assert found[-1].difference == 0
    assert found[0].difference == 1


def test_shows_texts_marks_and_pictures(tmp_path):
    pictures = np.random.default_rng(0).integers(0, 256, (3, 4, 4, 3)).astype("uint8")
    page = written(tmp_path, cases(SOURCES, REFERENCES, FIRST, SECOND), pictures)
    seen = Text(page)
    order = [0, 2, 1]
    assert seen.fields == [row[i] for i in order for row in (SOURCES, REFERENCES, FIRST, SECOND)]
    assert seen.marked == ["Ein Schläger.", "Eine Fledermaus.", "<i>Katzen</i>.", "Hunde."]
    for picture, i in zip(seen.pictures, order, strict=True):
        np.testing.assert_array_equal(picture, pictures[i])
    assert not re.search(r'(src|href)="http', page)


def test_the_colours_follow_the_reader_s_scheme(tmp_path):
    """Each colour has a value for both, and its text is legible: https://www.w3.org/TR/WCAG22/#contrast-minimum"""
    style = re.search(r"<style>(.*?)</style>", written(tmp_path, []), re.S)[1]
    light, dark = (
        dict(re.findall(r"(--\w+): #(\w+)", block)) for block in re.findall(r":root \{([^}]*)\}", style)
    )
    used = set(re.findall(r"var\((--\w+)\)", style))
    assert used == set(light) == set(dark)
    assert not re.search(r"#[0-9a-f]{3}", re.sub(r":root \{[^}]*\}", "", style))

    def luminance(colour):
        values = bytes.fromhex(colour if len(colour) == 6 else "".join(2 * digit for digit in colour))
        shares = np.array(list(values)) / 255
        linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    for colours in (light, dark):
        for text, background in (("--ink", "--paper"), ("--muted", "--paper"), ("--ink", "--mark")):
            low, high = sorted(luminance(colours[name]) for name in (text, background))
            assert (high + 0.05) / (low + 0.05) >= 4.5


def test_photographs_are_shown_as_jpeg_and_not_enlarged_by_pixels(tmp_path):
    """A picture by the sentence's number: of whatever size, and none of sentences that are not shown."""
    photograph = np.linspace(0, 255, 300 * 200 * 3).reshape(200, 300, 3).astype("uint8")
    chosen = cases(SOURCES, REFERENCES, FIRST, SECOND)[:2]
    page = written(tmp_path, chosen, {0: photograph, 2: photograph[:100, :100]})
    assert re.findall(r"<img(.*?) src=\"data:image/(\w+)", page) == [("", "jpeg"), (' class="small"', "png")]
    seen = Text(page).pictures
    assert abs(seen[0].astype(int) - photograph).mean() < 3
    np.testing.assert_array_equal(seen[1], photograph[:100, :100])


def test_the_page_says_where_interval_and_p_come_from(tmp_path):
    compared = [ComparedBleu("a", 30.0, 30.1, 1.0, None), ComparedBleu("b", 31.0, 31.1, 1.0, 0.04)]
    chosen = cases(SOURCES, REFERENCES, FIRST, SECOND)
    page = written(tmp_path, chosen, compared=(compared, "nrefs:1|bs:1000"))
    assert "interval: <code>nrefs:1|bs:1000</code>" in page and "10,000 random exchanges" in page


def test_direction_size_and_each_sentence_s_score_are_said(tmp_path):
    page = written(tmp_path, cases(SOURCES, REFERENCES, FIRST, SECOND)[:1])
    assert "en → de, 3 sentences." in page and "1 of them" in page and "nc:6|nw:0" in page
    scores = [sentence_chrf(text, [REFERENCES[0]]).score for text in (FIRST[0], SECOND[0])]
    assert [f"<dt>{name} · {score:.1f}</dt>" in page for name, score in zip("ab", scores, strict=True)] == [
        True
    ] * 2


def test_chinese_is_compared_by_characters(tmp_path):
    found = cases(["He."], ["他来。"], ["他来。"], ["她来。"])
    page = written(tmp_path, found, languages=("en", "zh"))
    assert re.findall(r'<dd dir="auto" lang="(.*?)">', page) == ["en", "zh", "zh", "zh"]
    seen = Text(page)
    assert seen.fields == ["He.", "他来。", "他来。", "她来。"]
    assert seen.marked == ["他", "她"]


def test_thai_is_compared_by_letters_with_their_marks(tmp_path):
    found = cases(["Water."], ["ดื่มน้ำ"], ["ดื่มน้ำ"], ["กินน้ำ"])
    assert found[0].difference == 0.5  # น้ and ำ of ดื่, ม, น้, ำ and กิ, น, น้, ำ
    assert Text(written(tmp_path, found)).fields[2:] == ["ดื่มน้ำ", "กินน้ำ"]


def test_kana_are_compared_one_by_one():
    found = cases(["I like cats."], ["ねこがすき。"], ["ねこがすき。"], ["いぬがすき。"])
    assert found[0].difference == pytest.approx(1 - 4 / 6)


def test_other_words_and_spaces_within_chinese_stay_whole(tmp_path):
    found = cases(["He."], ["他在NBA 球场。"], ["他在NBA 球场。"], ["她在NFL 球场。"])
    assert found[0].difference == pytest.approx(1 - 5 / 7)  # 在, a space, 球, 场, 。 of seven
    seen = Text(written(tmp_path, found))
    assert seen.fields[2:] == ["他在NBA 球场。", "她在NFL 球场。"]
    assert seen.marked == ["他", "NBA", "她", "NFL"]


def test_both_sides_are_compared_in_the_same_units(tmp_path):
    found = cases(["A dog."], ["Ein Hund"], ["Hund"], ["ein Hund"])
    assert found[0].difference == pytest.approx(1 - 2 / 3)
    assert Text(written(tmp_path, found)).marked == ["ein"]
