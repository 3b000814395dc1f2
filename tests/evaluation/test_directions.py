"""BLEU by direction: scored against sacreBLEU itself, written, read, drawn."""

import json
import re
import statistics
from types import SimpleNamespace

import pytest
from sacrebleu.metrics import BLEU

from kzoo.data import open_corpus
from kzoo.decoding import TextTranslator
from kzoo.errors import UserError
from kzoo.evaluation.directions import (
    direction_table,
    evaluate_directions,
    plot_directions,
    read_directions,
    summarize_directions,
    write_directions,
)


class Echo(TextTranslator):
    """A translator whose every translation is the source."""

    def translate(self, texts, source_language, target_language, **options):
        return list(texts)


@pytest.mark.parametrize(
    "scores",
    [[], *([{"source": "en", "target": "de", "bleu": bleu, "unseen": False}] for bleu in (None, "x"))],
)
def test_a_file_without_scores_is_named(scores, tmp_path):
    (tmp_path / "d.json").write_text(json.dumps({"scores": scores}))
    with pytest.raises(UserError, match="d.json"):
        read_directions(tmp_path / "d.json")


@pytest.mark.usefixtures("few_scenes")
def test_directions_are_scored_written_and_read(tmp_path):
    corpus = open_corpus("scenes")
    scores = evaluate_directions(Echo(), corpus, "test", [("en", "de"), ("de", "de")])
    english, german = corpus.pairs("test", "en", "de")
    assert scores["en", "de"].bleu == pytest.approx(BLEU().corpus_score(english, [german]).score)
    assert scores["de", "de"].bleu == pytest.approx(100)
    write_directions(scores, tmp_path / "scores.json", unseen=[("en", "de")], beam_size=1)
    assert json.loads((tmp_path / "scores.json").read_text())["beam_size"] == 1
    bleu, unseen = read_directions(tmp_path / "scores.json")
    assert bleu == {direction: score.bleu for direction, score in scores.items()}
    assert unseen == [("en", "de")]
    plot_directions(bleu, unseen, tmp_path / "directions.png")
    assert (tmp_path / "directions.png").stat().st_size > 1000
    lowercased = {direction: score.bleu_lowercased for direction, score in scores.items()}
    assert lowercased != bleu
    means = [statistics.fmean(values.values()) for values in (bleu, lowercased)]
    assert "mean BLEU {:.1f} (lowercased: {:.1f})".format(*means) in summarize_directions(scores)
    assert read_directions(tmp_path / "scores.json", lowercased=True) == (lowercased, unseen)
    plot_directions(lowercased, unseen, tmp_path / "lowercased.svg", lowercased=True)
    assert "<!-- BLEU, lowercased -->" in (tmp_path / "lowercased.svg").read_text()


def test_each_direction_is_translated_as_told_and_scored_as_its_target():
    asked = []

    def translate(*arguments, **options):
        asked.append((*arguments, options))
        return arguments[0]

    corpus = SimpleNamespace(
        pairs=lambda split, source, target: ([f"{split} {source}"], ["一个男人在睡觉。"]),
        more_references=lambda split, target: [],
    )
    directions, told = [("en", "zh"), ("zh", "en")], {"truncate": True, "progress": print}
    scores = evaluate_directions(
        SimpleNamespace(translate=translate, image_shape=None),
        corpus,
        "test",
        directions,
        beam_size=3,
        **told,
    )
    told |= {"beam_size": 3, "split_sentences": False}
    assert asked == [
        ([f"test {source}"], told | {"source_language": source, "target_language": target})
        for source, target in directions
    ]
    for direction, tokenizer in zip(directions, ("zh", "13a"), strict=True):
        assert f"tok:{tokenizer}" in scores[direction].signatures["bleu"]


def test_scores_are_drawn_and_unseen_directions_framed(tmp_path):
    bleu = {("en", "de"): 30.04, ("de", "en"): 32.5, ("en", "fr"): 12.3, ("fr", "de"): 9.1}
    for unseen, note in (([], ""), ([("en", "fr"), ("fr", "de")], " (dashed: not trained on)")):
        plot_directions(bleu, unseen, tmp_path / "directions.svg")
        text = (tmp_path / "directions.svg").read_text()
        written = re.findall("<!-- (.+) -->", text)
        languages = ["de", "en", "fr"]
        assert written[:12] == [*languages, "to", *languages, "from", "30.0", "32.5", "12.3", "9.1"]
        assert "BLEU by direction" + note in written
        assert "BLEU, cased" in written
        (left, middle), (right, same), (_, above) = (
            places(text)[score] for score in ("30.0", "12.3", "32.5")
        )
        assert left < right and above < middle == same  # a row for a source, a column for a target
        assert framed(text) == [f"{bleu[direction]:.1f}" for direction in unseen]


def places(svg: str) -> dict[str, tuple[float, float]]:
    """Return where each score stands, from the left and from the top."""
    numbers = re.findall(r"<!-- (\d+\.\d) -->\s+<g [^>]*translate\((\S+) (\S+)\)", svg)
    return {number: (float(x), float(y)) for number, x, y in numbers}


def framed(svg: str) -> list[str]:
    """Return the scores that stand in dashed frames."""
    found = []
    for frame in re.findall(r'<path d="M ([^"]+)"[^>]*stroke-dasharray', svg):
        corners = [tuple(map(float, corner)) for corner in re.findall(r"(\S+) (\S+) *\n", frame)]
        (left, right), (top, bottom) = ((min(values), max(values)) for values in zip(*corners, strict=True))
        found += [score for score, (x, y) in places(svg).items() if left < x < right and top < y < bottom]
    return found


@pytest.mark.usefixtures("few_scenes")
def test_nobody_may_know_what_was_unseen(tmp_path):
    scores = evaluate_directions(Echo(), open_corpus("scenes"), "val", [("en", "de")])
    write_directions(scores, tmp_path / "scores.json")
    assert '"unseen": null' in (tmp_path / "scores.json").read_text()
    assert read_directions(tmp_path / "scores.json")[1] == []


def test_the_table_marks_unseen_directions():
    table = direction_table({("en", "de"): 30.04, ("de", "en"): 32.5}, unseen=[("de", "en")])
    assert table.splitlines()[2:] == ["| de |  | *32.5* |", "| en | 30.0 |  |"]


@pytest.mark.parametrize("content", ['{"scores": 3}', '{"scores": [{"bleu": 3}]}', "{}"])
def test_a_file_without_directions_is_refused(content, tmp_path):
    path = tmp_path / "scores.json"
    path.write_text(content)
    with pytest.raises(UserError, match="direction"):
        read_directions(path)
    with pytest.raises(UserError, match="read"):
        read_directions(tmp_path / "none.json")


def test_others_scores_stand_in_brackets():
    bleu, papers = {("en", "de"): 30.04, ("de", "en"): 32.5}, {("en", "de"): 35.25, ("en", "fr"): 55.96}
    assert direction_table(bleu, unseen=[("en", "de")], published=papers).splitlines()[2:] == [
        "| de |  | 32.5 |",
        "| en | *30.0* (35.3) |  |",
    ]
