"""The glyph paper's tables: what they print, the paper's numbers beside ours, and runs that they refuse."""

import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from training.glyph.word_similarity import WordPair

SCRIPT = str(Path(__file__).resolve().parents[3] / "training/glyph/tables.py")
CHARACTERS = list("人口日月山水")
CORPUS = SimpleNamespace(
    name="tatoeba_zh_en",
    pairs=lambda split, source, target: (CHARACTERS, [f"this is line number {c}" for c in CHARACTERS]),
    sentences=lambda split, language: ["人口日", "人月山水"],
)


class Source:
    """A table of vectors, or an encoder of eight features."""

    embeddings = np.eye(10, dtype="float32")
    glyphs = np.zeros((10, 22, 22))

    def activations(self, glyphs):
        return np.tile(np.arange(8.0) / 28, (10, 1))

    encoder = property(lambda self: self)


@pytest.fixture
def script(tmp_path):
    """The script, with training and translating left out."""
    script = runpy.run_path(SCRIPT)
    tokens = ["<pad>", "<unk>", "<s>", "</s>", *CHARACTERS]
    tokenizer = SimpleNamespace(get_vocabulary=lambda: tokens, token_to_id=tokens.index)
    translator = SimpleNamespace(
        source_tokenizer=tokenizer, backbone=SimpleNamespace(source_embedding=Source())
    )
    tagged = [[("人口", "NOUN")]] * 2
    lines = CORPUS.pairs("test", "zh", "en")[1]
    (tmp_path / "translations.json").write_text(json.dumps({"test": lines}))
    script["trained"].__globals__.update(
        trained=lambda name, size, runs, overrides: (script["recipe_of"](name, size, None), tmp_path, []),
        load=lambda folder: translator,
        recipe_corpus=lambda recipe: CORPUS,
        character_vectors=lambda translator, asked, seen: {
            c: np.array([i, 1.0]) for i, c in enumerate(asked)
        },
        universal_dependencies=lambda treebanks: (tagged, tagged, {"simplified": tagged}),
        tagger_from=lambda *_, **options: SimpleNamespace(rates={"dropout": 0.1}, tag=lambda texts: tagged),
        train_tagger=lambda *_, **options: [0.5, 0.25],
        open_word_pairs=lambda words: [
            WordPair("人", "口", 9),
            WordPair("日", "水", 1),
            WordPair("山", "月", 5),
        ],
    )
    return script


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("table5", ["| EMB | 100.0 | 100.0 | 100.0 | 100.0 | 16.63 | 15.60 | 17.17 | 16.03 |"]),
        (
            "table6",
            [
                "| EMB | fixed | 100.0 | 92.18 |",
                "| cnn_softmax_fc | adapted | 100.0 | 71.54 |",
                "| 3-gram BI-RNN-CRF (Shao et al. 2017) |  |  | 94.07 |",
            ],
        ),
        (
            "table7",
            [
                "| wordsim_240 | EMB | -100.0 (3) | nan (0) | n/a | 33 | 6 | n/a |",
                "| wordsim_240 | fc_2 | -100.0 (3) | nan (0) | nan (0) | 21 | 15 | 26 |",
                "| simlex_999 | SG-CNN (Su and Lee 2017) |  |  |  | 24 | n/a | n/a |",
            ],
        ),
    ],
)
def test_ours_and_the_paper_s_numbers(table, rows, script, tmp_path, capsys):
    script[table](runs=tmp_path)
    printed = capsys.readouterr().out.splitlines()
    for row in rows:
        assert row in printed
    assert printed[-1].startswith("Paper: ") and "base size. Ours: " in printed[-1] and "tiny" in printed[-1]
    assert len({line.count("|") for line in printed if line.startswith("|")}) == 1


def test_figure_1_is_the_distribution_of_the_greatest_activations(script, tmp_path, capsys):
    script["figure1"](runs=tmp_path)
    printed = capsys.readouterr().out
    assert "| first | 0.250 | 0.250 | 0.250 | 0.250 |" in printed  # of every character
    assert "| third | 0.179 | 0.179 | 0.179 | 0.179 |" in printed
    found = json.loads((tmp_path / "figure1_tiny.json").read_text())["cnn_softmax_fc"]
    assert found["characters"] == 7
    assert found["second"]["median"] == pytest.approx(6 / 28)
    assert (tmp_path / "figure1_tiny.png").exists() and (tmp_path / "features_tiny.png").exists()


def test_the_paper_s_numbers_stand_beside_ours():
    script = runpy.run_path(SCRIPT)
    papers, cited, numbers = script["papers"], script["cited"], script["PAPER"]
    assert (
        papers(numbers["table4"], "cnn_fc_relu") == papers(numbers["table4"], "cnn_fc_relu:1024") == ["16.60"]
    )
    assert papers(numbers["table4"], "cnn_fc_relu:256") == ["16.34"]
    assert papers(numbers["table4"], "fc_2:1024") == [""]
    assert papers(numbers["table5"], "fc_2") == ["16.32", "15.10", "17.20", "16.37"]
    assert papers(numbers["table5"], "fc_1") == [""] * 4
    assert papers(numbers["table7"]["wordsim_240"], "EMB", times=100) == ["33", "6", "n/a"]
    assert cited(numbers["table4"]) == ["words (Wang et al. 2017)"]
    assert script["named"](
        ",".join(name for name in numbers["table4"] if " " not in name)
    )  # all can be trained
