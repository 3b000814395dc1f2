"""The lines of translated cues."""

import pytest
from made_up import MadeUp, in_order

from kzoo.documents import translate_document

CUE = "1\n00:00:01,000 --> 00:00:02,000\n{}\n"
LONG = "Donaudampfschifffahrtsgesellschaft"
HEADERS = {"vtt": "WEBVTT\n\n"}
TAG = '<font color="#ffff00" face="Arial">'


@pytest.mark.parametrize(
    ("translation", "tag", "language", "lines"),
    [
        (f"Die {LONG}", "", "de", ["Die", LONG]),
        ("Ein Hund", TAG, "de", [f"{TAG}Ein", "Hund"]),
        ("一只狗在雪地里。", "", "zh", ["一只狗在", "雪地里。"]),
        ("一只狗", TAG, "zh", [f"{TAG}一只狗"]),
    ],
)
def test_words_and_tags_are_not_cut(tmp_path, translation, tag, language, lines):
    (tmp_path / "a.srt").write_text(CUE.format(f"{tag}A dog\nhere"), encoding="utf-8")
    path, output = tmp_path / "a.srt", tmp_path / "b.srt"
    translate_document(path, output, MadeUp(lambda text: translation), "en", language)
    assert output.read_text("utf-8") == CUE.format("\n".join(lines))


def test_the_dashes_of_speakers_stay(tmp_path):
    text = "- Dog?\n<i>-Cat!</i>\n– <b>black</b>-and-white\n-5 dogs"
    (tmp_path / "a.srt").write_text(CUE.format(text), encoding="utf-8")
    path, output = tmp_path / "a.srt", tmp_path / "b.srt"
    model = MadeUp(str.upper)
    translate_document(path, output, model, "en", "de")
    assert set(model.asked) >= {"Dog?", "Cat!"}
    assert output.read_text("utf-8").lower() == CUE.format(text).lower()


@pytest.mark.parametrize(
    ("ending", "text"), [("vtt", "Salt & <b>a < b</b>"), ("srt", "Salt &amp; <b>a &lt; b</b>")]
)
def test_the_entities_of_webvtt_are_characters(tmp_path, ending, text):
    cue = HEADERS.get(ending, "") + CUE.format("Salt &amp; <b>a &lt; b</b>")
    path, output = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    path.write_text(cue, encoding="utf-8")
    model = MadeUp(lambda text: text.replace("Salt", "Salz"), in_order)
    translate_document(path, output, model, "en", "de")
    assert model.asked == [text.replace("<b>", "").replace("</b>", "")]
    assert output.read_text("utf-8") == cue.replace("Salt", "Salz")


def test_cues_that_show_a_word_at_a_time(tmp_path):
    text = "A<00:01.200><c> dog</c><00:01.400><c> runs</c>"
    (tmp_path / "a.vtt").write_text(f"WEBVTT\n\n00:01.000 --> 00:02.000\n{text}\n", "utf-8")
    model = MadeUp(str.upper, in_order)
    translate_document(tmp_path / "a.vtt", tmp_path / "b.vtt", model, "en", "de")
    assert model.asked == ["A dog runs"]
    assert (tmp_path / "b.vtt").read_text("utf-8").endswith("\nA <c>DOG</c> <c>RUNS</c>\n")


@pytest.mark.parametrize(
    ("text", "language", "lines"),
    [
        (">> Dog", "de", [">> Dog"]),
        ("a --&gt; b", "de", ["a --&gt; b"]),
        ("甲乙丙丁戊己庚辛壬&amp;子丑寅\n卯辰巳午", "zh", ["甲乙丙丁戊己庚辛壬&amp;子丑寅卯辰巳午"]),
    ],
)
def test_what_webvtt_escapes(tmp_path, text, language, lines):
    path, output = tmp_path / "a.vtt", tmp_path / "b.vtt"
    path.write_text(HEADERS["vtt"] + CUE.format(text), encoding="utf-8")
    translate_document(path, output, MadeUp(lambda text: text.replace(" 卯", "卯")), "en", language)
    assert output.read_text("utf-8") == HEADERS["vtt"] + CUE.format("\n".join(lines))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_sounds_have_lines_of_their_own(tmp_path, end):
    cue = CUE.replace("\n", end)
    shown = end.join(["[music]", "♪ A dog", "runs ♪", "[door]", "A cat"])
    (tmp_path / "a.srt").write_text(cue.format(shown), encoding="utf-8", newline="")
    model = MadeUp(str.upper, in_order)
    translate_document(tmp_path / "a.srt", tmp_path / "b.srt", model, "en", "de")
    expected = end.join(["[MUSIC]", "♪ A DOG RUNS ♪", "[DOOR]", "A CAT"])
    assert (tmp_path / "b.srt").read_bytes() == cue.format(expected).encode()
    assert set(model.asked) == {"[music]", "A dog runs", "[door]", "A cat"}  # without the notes


@pytest.mark.parametrize("text", ["♪♪", "<i>♪ A dog</i> ♪", "♪A dog ♪ ♪ a cat♪"])
def test_notes_of_songs_stay_where_they_are(tmp_path, text):
    (tmp_path / "a.srt").write_text(CUE.format(text), encoding="utf-8")
    translate_document(tmp_path / "a.srt", tmp_path / "b.srt", MadeUp(str.upper, in_order), "en", "de")
    expected = text.replace("A dog", "A DOG").replace("a cat", "A CAT")
    assert (tmp_path / "b.srt").read_text("utf-8") == CUE.format(expected)


@pytest.mark.parametrize("number", ["", "2\n"])
def test_a_cue_may_follow_without_an_empty_line(tmp_path, number):
    times = ["00:00:01,000 --> 00:00:02,000", "00:00:02,000 --> 00:00:03,000 align:start"]
    text = f"1\n{times[0]}\nA dog\n3\n{number}{times[1]}\nA cat\n"
    (tmp_path / "a.srt").write_text(text, encoding="utf-8")
    model = MadeUp(str.upper)
    translate_document(tmp_path / "a.srt", tmp_path / "b.srt", model, "en", "de")
    expected = text.replace("A dog", "A DOG").replace("A cat", "A CAT")
    assert (tmp_path / "b.srt").read_text("utf-8") == expected


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_empty_line_ends_no_cue_of_subrip(tmp_path, end):
    times = [f"00:00:0{second},000 --> 00:00:0{second + 1},000" for second in range(3)]
    lines = ["\ufeff1", times[0], "A dog", "", "A cat", "", "2", times[1], "", "A boy", "", "3", times[2], ""]
    (tmp_path / "a.srt").write_text(end.join(lines), encoding="utf-8", newline="")
    model = MadeUp(str.upper)
    translate_document(tmp_path / "a.srt", tmp_path / "b.srt", model, "en", "de")
    assert (tmp_path / "b.srt").read_bytes() == end.join(lines).upper().encode()
    assert set(model.asked) == {"A dog", "A cat", "A boy"}
