"""SentEval whole: small files of every kind in, a table out; and the real files."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from message_of import message_of
from scipy.spatial import distance

from kzoo.errors import UserError
from training.attention_bridge import senteval, senteval_linear
from training.attention_bridge import senteval_data as files
from training.attention_bridge.senteval import TaskScores, evaluate_embeddings, senteval_table
from training.attention_bridge.senteval_data import STS_SETS, sts_files

WORDS = ("bad", "good", "dog", "cat", "runs", "sleeps")


def embed(texts: list[str]) -> np.ndarray:
    """Count a few words."""
    return np.array([[text.split().count(word) for word in WORDS] for text in texts], "float32")


def test_an_empty_sentence_has_the_vector_of_a_full_stop():
    def lengths_and_letters(texts):
        return np.array([[len(text), ord(text[0])] for text in texts])

    splits = {"all": files.Examples((["abc", ""],), [0, 1])}
    (vectors,) = senteval._embedded(lengths_and_letters, splits)["all"].of()
    assert vectors.tolist() == [[3, ord("a")], [1, ord(".")]]


@pytest.fixture
def folder(three_folds, tmp_path, monkeypatch) -> Path:
    """A small file of every kind: "good" is class 1, pairs are related as far as their words are the same."""
    random = np.random.default_rng(3)
    monkeypatch.setenv("KZOO_DATA", str(tmp_path))
    folder = tmp_path / "senteval"
    (folder / "probing").mkdir(parents=True)

    labels = random.integers(0, 2, 60)
    sentences = [f"the {random.choice(WORDS[2:4])} is {WORDS[label]}" for label in labels]
    labelled = "\n".join(f"{label} {text}" for label, text in zip(labels, sentences, strict=True))
    (folder / "custrev.all").write_text(labelled + "\n0 \n")
    for split in ("train", "dev", "test"):
        (folder / f"stsa.binary.{split}").write_text(labelled)
        (folder / f"TREC.{split}.all").write_text(labelled)
    rows = [f"{s}\t{y}\t{t}" for s in ("tr", "va", "te") for y, t in zip(labels, sentences, strict=True)]
    (folder / "probing" / "past_present.txt").write_text("\n".join(rows * 10))

    pairs = [tuple(" ".join(random.choice(WORDS[2:], 2)) for _ in range(2)) for _ in range(60)]
    same = [len(set(a.split()) & set(b.split())) for a, b in pairs]
    judgments = [files.ENTAILMENT[min(n, 2)] for n in same]
    for name, sick, msr in (
        ("train", "train", "train"),
        ("dev", "trial", "val"),
        ("test", "test_annotated", "test"),
    ):
        table = zip(pairs, same, judgments, strict=True)
        lines = [f"{a}\t{b}\t{1 + 2 * n}\t{judgment}\t{int(n > 0)}" for (a, b), n, judgment in table]
        header = "sentence_A\tsentence_B\trelatedness_score\tentailment_judgment\tQuality\n"
        (folder / f"SICK_{sick}.txt").write_text(header + "\n".join(lines))
        header = "#1 String\t#2 String\tx\tx\tQuality\n"
        (folder / f"msr-para-{msr}.tsv").write_text(header + "\n".join(lines))
        header = "sentence1\tsentence2\tx\tgold_label\tx\n"
        (folder / f"snli_1.0_{name}.txt").write_text(header + "\n".join(lines * 100))
    return folder


ONE, PAIR, SNLI = 6, 12, 24  # widths of features: of u, of |u − v| and u · v, of these with u and v
SPLITS = {"all": 7, "train": 5, "val": 3, "test": 4}
CALLS = {
    **dict.fromkeys(("MR", "CR", "SUBJ", "MPQA"), ("nested_cross_validation", ONE, [7], {})),  # seed 1111's
    "TREC": ("cross_validated_training", ONE, [5, 4], {}),
    "MRPC": ("cross_validated_training", PAIR, [5 + 3, 4], {"f1": True}),
    **dict.fromkeys(("SST-2", "SST-5"), ("validated_training", ONE, [5, 3, 4], {})),
    "SICK-E": ("validated_training", PAIR, [5, 3, 4], {}),
    **dict.fromkeys(("SICK-R", "STS-B", "STS-2015"), ("relatedness", PAIR, [5, 3, 4], {})),
    "SNLI": ("probe", SNLI, [5, 3, 4], {"hidden_units": 0, "strengths": [1e-9], "passes": 1, "looks": 16}),
    **dict.fromkeys(files.PROBING_TASKS, ("probe", ONE, [5, 3, 4], {})),
    "WordContent": ("probe", ONE, [5, 3, 4], {"hidden_units": 0}),
}


@pytest.mark.parametrize("task", [task for task in files.SENTEVAL_TASKS if not task.endswith("-cosine")])
def test_each_task_has_its_protocol(task, monkeypatch):
    function, width, sizes, options = CALLS[task]
    called = []

    def note(*arguments, **given):
        called.append((arguments, given))
        return {"accuracy": [0.0]}

    module = senteval if function in ("probe", "relatedness") else senteval_linear
    monkeypatch.setattr(module, function, note)
    sides = 1 if width == ONE else 2
    splits = {
        split: files.Examples(
            tuple([f"{split} {side} good {number}" for number in range(count)] for side in range(sides)),
            [f"{split} {number}" for number in range(count)],
        )
        for split, count in SPLITS.items()
    }
    senteval.evaluate_task(embed, task, splits, [1111, 7])
    ((arguments, given),) = called
    parts = [argument for argument in arguments if isinstance(argument, tuple)]
    assert given == options
    assert [len(targets) for _, targets in parts] == sizes
    # In the order of training, validation and test.
    assert [targets[0].split()[0] for _, targets in parts] == (
        ["all"] if sizes == [7] else ["train", "val", "test"] if len(sizes) == 3 else ["train", "test"]
    )
    if function not in ("validated_training", "nested_cross_validation"):  # which the seeds do not change
        assert arguments[-1] == [1111, 7]
    for features, targets in parts:
        found = features(np.arange(len(targets))) if callable(features) else features
        assert found.shape == (len(targets), width)


def test_cosines_are_compared_with_the_scores_of_every_set(monkeypatch):
    random, found = np.random.default_rng(3), []
    sets = {
        name: files.Examples(
            tuple([" ".join(random.choice(WORDS, 3)) for _ in range(count)] for _ in "uv"),
            random.random(count).tolist(),
        )
        for name, count in (("answers", 20), ("images", 60))
    }
    task = senteval.evaluate_task(embed, "STS-2015-cosine", sets)
    for examples in sets.values():
        u, v = (embed(texts) for texts in examples.texts)
        cosines = (u * v).sum(axis=1) / np.sqrt((u**2).sum(axis=1) * (v**2).sum(axis=1))
        found.append(np.corrcoef(cosines, examples.targets)[0, 1])
    assert task.scores["pearson"] == [pytest.approx(0.25 * found[0] + 0.75 * found[1], abs=1e-5)]


@pytest.mark.parametrize("year", STS_SETS)
def test_a_year_is_the_mean_of_its_sets_weighted_by_their_pairs(year, folder):
    random, sets = np.random.default_rng(year), []
    for number, name in enumerate(sts_files(year).values()):
        pairs = [[f"{name} {side} {row}" for side in "uv"] for row in range(8 + number)]
        given = [f"{5 * random.random():.2f}" for _ in pairs]
        given[number] = ""  # this pair has no score
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join("\t".join(pair) + "\n" for pair in pairs))
        file.with_name(file.name.replace("input", "gs")).write_text("".join(f"{score}\n" for score in given))
        sets.append([(*pair, float(score)) for pair, score in zip(pairs, given, strict=True) if score])

    def vectors(texts):
        return np.array([np.random.default_rng([*text.encode()]).normal(size=5) for text in texts])

    (task,) = evaluate_embeddings(vectors, [f"STS-{year}-cosine"])
    for name, measure in (("pearson", scipy.stats.pearsonr), ("spearman", scipy.stats.spearmanr)):
        found = []
        for pairs in sets:
            first, second, scores = zip(*pairs, strict=True)
            both = zip(vectors(first), vectors(second), strict=True)
            found.append(measure([1 - distance.cosine(*pair) for pair in both], scores)[0])
        expected = np.average(found, weights=[len(pairs) for pairs in sets])
        assert task.scores[name] == [pytest.approx(expected, abs=1e-5)]


@pytest.mark.parametrize("task", ["SICK-R-cosine", "STS-B-cosine"])
def test_cosines_are_compared_with_the_scores_of_the_test_set(task):
    random = np.random.default_rng(3)
    texts = tuple([" ".join(random.choice(WORDS, 3)) for _ in range(30)] for _ in "uv")
    test = files.Examples(texts, random.random(30).tolist())
    found = senteval.evaluate_task(embed, task, {"test": test})
    cosines = [1 - distance.cosine(*pair) for pair in zip(*map(embed, texts), strict=True)]
    expected = scipy.stats.pearsonr(cosines, test.targets)[0]
    assert found.scores["pearson"] == [pytest.approx(expected, abs=1e-5)]


def test_seeds_are_sentevals_first():
    assert senteval.SEEDS == (1111, 1112, 1113, 1114, 1115)


def test_small_files_of_every_kind(folder, monkeypatch):
    probe = senteval.probe
    monkeypatch.setattr(
        senteval, "probe", lambda *args, **kwargs: probe(*args, **{**kwargs, "strengths": [1e-5]})
    )
    scores = evaluate_embeddings(embed, seeds=[1111])
    tasks = ["CR", "SST-2", "TREC", "MRPC", "SICK-E", "SNLI", "SICK-R", "SICK-R-cosine", "Tense"]
    assert [task.task for task in scores] == tasks
    by_name = {task.task: task for task in scores}
    assert by_name["CR"].mean("accuracy") > 95
    for task in ("SST-2", "TREC", "Tense"):
        assert by_name[task].mean("accuracy") == 100
    for task in ("SICK-E", "SNLI", "MRPC"):
        assert by_name[task].mean("accuracy") > 80
    assert by_name["MRPC"].mean("f1") > 80
    assert by_name["SICK-R"].mean("pearson") > 0.9

    # Folds that the seeds shuffle have a spread; a fixed split, and the folds of seed 1111, one number.
    folds, *fixed = evaluate_embeddings(embed, ["TREC", "CR", "SST-2"], seeds=[1112, 1113])
    assert len(folds.scores["accuracy"]) == 2
    assert fixed == [by_name["CR"], by_name["SST-2"]]
    assert [len(task.scores["accuracy"]) for task in fixed] == [1, 1]


def test_each_sentence_is_embedded_once(folder):
    calls = []

    def counted(texts):
        calls.append(list(texts))
        return embed(texts)

    evaluate_embeddings(counted, ["CR"], seeds=[1, 2])
    (texts,) = calls
    assert len(texts) == len(set(texts))
    assert "." in texts  # for the empty sentence
    assert "" not in texts


def test_splits_share_their_vectors(folder):
    splits = senteval._embedded(embed, files.senteval_examples("SNLI")).values()
    assert len({id(split.vectors) for split in splits}) == 1


def test_table_has_models_side_by_side():
    first = [TaskScores("MR", {"accuracy": [70.0, 71.0, 72.0]}), TaskScores("SICK-R", {"pearson": [0.7512]})]
    second = [TaskScores("MR", {"accuracy": [60.0, 60.0]}), TaskScores("CR", {"accuracy": [80.0]})]
    assert senteval_table({"bridge": first, "bag": second}).splitlines() == [
        "| task | score | bridge | bag |",
        "| --- | --- | ---: | ---: |",
        "| MR | accuracy | 71.0 ± 1.0 | 60.0 ± 0.0 |",
        "| SICK-R | pearson | 0.751 | – |",
        "| CR | accuracy | – | 80.0 |",
    ]


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (lambda texts: np.zeros((len(texts), 3, 2)), "shape"),
        (lambda texts: np.zeros((len(texts) - 1, 3)), "shape"),
        (lambda texts: np.full((len(texts), 3), np.nan), "not finite"),
    ],
)
def test_wrong_vectors(folder, wrong, expected):
    with pytest.raises(UserError, match=expected):
        evaluate_embeddings(wrong, ["CR"])


def test_an_unknown_task_is_named(folder):
    assert "MRPC" in message_of(evaluate_embeddings, embed, ["MRPCC"])


def test_the_sentence_whose_vector_is_not_finite_is_named(folder):
    def spoiled(texts):
        vectors = embed(texts)
        vectors[texts.index("the cat is bad"), 1] = np.inf
        return vectors

    with pytest.raises(UserError, match="'the cat is bad'"):
        evaluate_embeddings(spoiled, ["CR"])


def test_word_counts_on_real_files():
    if not (Path(os.environ.get("KZOO_DATA", "")) / "senteval").is_dir():
        pytest.skip("KZOO_DATA names no folder that holds senteval/")

    def letters(texts):
        alphabet = "abcdefghijklmnopqrstuvwxyz"
        return np.array([[text.lower().count(letter) for letter in alphabet] for text in texts], "float32")

    (cosine,) = evaluate_embeddings(letters, ["STS-2015-cosine"])
    assert 0.2 < cosine.mean("pearson") < 0.8
    assert 0.2 < cosine.mean("spearman") < 0.8
