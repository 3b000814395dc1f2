"""The lines of translated cues."""

import pytest
from made_up import MadeUp

from kzoo.documents import translate_document

CUE = "1\n00:00:01,000 --> 00:00:02,000\n{}\n"
LONG = "Donaudampfschifffahrtsgesellschaft"
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
