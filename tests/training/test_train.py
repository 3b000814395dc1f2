"""Training: a run's folder, resumed to the same weights, and the recipe that it follows."""

import csv
import json
import shutil
from dataclasses import replace
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import sacrebleu
from changed_tasks import quick_task
from message_of import message_of

from kzoo.data import open_corpus
from kzoo.decoding import SearchSettings
from kzoo.errors import UserError
from kzoo.presets import build, load
from kzoo.training import Recipe, prepare, read_recipe, train
from kzoo.training.checkpoints import Checkpoints
from kzoo.training.corpus import recipe_corpus
from kzoo.training.recipe_checks import check_recipe
from kzoo.training.report import History, write_history
from kzoo.training.resuming import fit_from
from kzoo.training.run import train_task
from kzoo.training.trained_rows import count_trained_rows


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    """A recipe on two hundred sentences in files, short ones, for which few shapes are compiled."""
    folder = tmp_path_factory.mktemp("data")
    corpus, files = open_corpus("scenes"), {}
    for split, count in (("train", 200), ("val", 16)):
        pairs = zip(*corpus.pairs(split, "en", "de"), strict=True)
        short = [pair for pair in pairs if max(map(len, pair)) < 35][:count]
        files[split] = []
        for language, sentences in zip(("en", "de"), zip(*short, strict=True), strict=True):
            path = folder / f"{split}.{language}"
            path.write_text("\n".join(sentences) + "\n", encoding="utf-8")
            files[split].append(str(path))
    return Recipe(
        preset="pope_tiny",
        corpus="files",
        source="en",
        target="de",
        **files,
        model={"num_layers": 1, "width": 32, "num_heads": 2, "feedforward_dim": 32, "max_length": 64},
        vocabulary_size=400,
        tokens=512,
        num_shapes=1,
        warmup_steps=20,
        epochs=3,
        bpe_dropout=0.1,
        clip_norm=1.0,
        beam_size=4,
        length_penalty=0.8,
    )


@pytest.fixture(scope="module")
def unbroken(recipe, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "unbroken"
    return folder, train(recipe, folder, verbose=0)


def test_a_run_leaves_history_checkpoints_and_a_preset(unbroken, recipe):
    folder, translator = unbroken
    rows = list(csv.DictReader((folder / "history.csv").open()))
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    assert float(rows[2]["loss"]) < float(rows[0]["loss"])
    assert all(0 <= float(row["input_share"]) < 1 for row in rows)
    assert json.loads((folder / "recipe.json").read_text())["seed"] == recipe.seed
    assert (folder / "checkpoints" / "epoch_0003").is_dir()
    assert list((folder / "tensorboard").rglob("events*"))
    corpus, rows = recipe_corpus(recipe), {"train": 200, "val": 0}
    for split, count in rows.items():
        assert count_trained_rows(folder / "preset", corpus, split, [("en", "de")]) == count
    assert list(json.loads((folder / "preset" / "metadata.json").read_text())["low_scores"]) == ["en-de"]
    preset = load(folder)
    assert (preset.source_language, preset.target_language) == ("en", "de")
    assert preset.search == translator.search == SearchSettings(4, 0.8)
    np.testing.assert_allclose(preset.get_weights()[0], translator.get_weights()[0], atol=1e-3)


def test_a_stopped_run_goes_on_to_the_same_weights(unbroken, recipe, tmp_path):
    """As after a kill in the third epoch: a folder as it was then, without the preset."""
    run = shutil.copytree(unbroken[0], tmp_path / "run")
    for later in ("preset", "checkpoints/epoch_0003"):
        shutil.rmtree(run / later)
    translator = train_task(quick_task, recipe, run, verbose=0)
    for ours, theirs in zip(translator.get_weights(), unbroken[1].get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.fixture(scope="module")
def refusing(tmp_path_factory):
    """A folder for recipes that are refused, one after another."""
    return tmp_path_factory.mktemp("refusing")


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"preset": "pope_tinny"}, "pope_tiny"),
        ({"corpus": "none", "train": [], "val": []}, "'none'"),
        ({"validation": "dev"}, "'dev'"),
        ({"model": {"depth": 3}}, "'depth'"),
        ({"model": {"num_heads": 0}}, "num_heads"),
        ({"model": {"max_length": 8}}, "limit"),
        ({"preset": "attention_bridge_m2m_tiny"}, "languages"),
        ({"language_model_epochs": 1}, "pope_tiny"),
        ({"images": "features"}, "images"),
        ({"tokens": 4}, "train.de"),
    ],
)
def test_a_bad_recipe_is_named_and_does_not_hinder_the_next(wrong, name, recipe, refusing):
    if "model" in wrong:
        wrong = {"model": {**recipe.model, **wrong["model"]}}
    assert name in message_of(train, replace(recipe, **wrong), refusing, verbose=0)


@pytest.mark.parametrize("wrong", [{"accumulate": 2}, {"precision": "mixed_float16"}])
def test_what_keras_cannot_do_under_tf_distribute_is_refused(wrong, recipe, tmp_path):
    if keras.backend.backend() != "tensorflow":
        pytest.skip("is about TensorFlow")
    wrong = replace(recipe, **wrong)
    assert "tokens" in message_of(train, wrong, tmp_path / "run", verbose=0, strategy="mirrored")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("change", "name"), [({"seed": 9}, "seed"), ({"epochs": 2}, "epochs=3")])
def test_a_folder_of_another_recipe_is_refused(change, name, unbroken, recipe):
    folder = unbroken[0]
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert name in message_of(train, replace(recipe, **change), folder, verbose=0)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_what_stands_beside_the_preset_stays(unbroken, recipe):
    folder = unbroken[0]
    (folder / "preset" / "README.md").write_text("my card")
    train_task(quick_task, recipe, folder, verbose=0)
    assert (folder / "preset" / "README.md").read_text() == "my card"


def test_the_next_best_takes_the_place_of_a_checkpoint_that_is_missing(unbroken, tmp_path):
    folder, translator = unbroken
    shutil.copytree(folder / "checkpoints", tmp_path / "checkpoints")
    checkpoints = Checkpoints(tmp_path / "checkpoints", keep_best=1)
    checkpoints.set_model(translator)
    state = json.loads((folder / "checkpoints" / "epoch_0003" / "state.json").read_text())
    checkpoints.history = state["history"]
    (best,) = checkpoints.best()
    shutil.rmtree(best)
    (second,) = checkpoints.best()
    checkpoints.load_average_of_best()
    average = translator.get_weights()
    translator.load_weights(second / "checkpoint.weights.h5")
    for ours, theirs in zip(average, translator.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_checkpoint_of_another_model_is_refused(unbroken, recipe, tmp_path):
    shutil.copytree(unbroken[0] / "checkpoints", tmp_path / "checkpoints")
    wider = build("pope_tiny", unbroken[1].source_tokenizer, **{**recipe.model, "width": 64})
    data = json.loads((tmp_path / "checkpoints" / "epoch_0003" / "state.json").read_text())["data"]
    checkpoints = Checkpoints(tmp_path / "checkpoints", data=data)
    checkpoints.set_model(wider)
    assert "epoch_0003" in message_of(checkpoints.restore)


def test_average_of_best_is_the_mean_of_their_weights(unbroken):
    folder, translator = unbroken
    state = json.loads((folder / "checkpoints" / "epoch_0003" / "state.json").read_text())
    checkpoints = Checkpoints(folder / "checkpoints", keep_best=5)
    checkpoints.set_model(translator)
    checkpoints.history = state["history"]
    saved = checkpoints.best()
    weights = []
    for path in saved:
        translator.load_weights(path / "checkpoint.weights.h5")
        weights.append([np.asarray(w, "float64") for w in translator.get_weights()])
    checkpoints.load_average_of_best()
    for i, average in enumerate(translator.get_weights()):
        np.testing.assert_allclose(average, np.mean([w[i] for w in weights], axis=0), rtol=1e-6, atol=1e-7)


def test_where_bleu_is_zero_the_kept_epochs_are_the_best_by_chrf2_and_of_equal_ones_the_latest(tmp_path):
    """Right translations of fewer than four tokens have a corpus BLEU of 0."""
    assert sacrebleu.corpus_bleu(["ein Hund"], [["ein Hund"]]).score == 0
    checkpoints = Checkpoints(tmp_path, keep_best=3)
    for epoch, (bleu, chrf2) in enumerate([(0, 20), (0, 90), (0, 60), (0, 90), (1, 5)], 1):
        checkpoints.history.append({"epoch": epoch, "val_bleu": bleu, "val_chrf2": chrf2})
        (tmp_path / f"epoch_{epoch:04d}").mkdir()
    assert [path.name for path in checkpoints.best()] == ["epoch_0005", "epoch_0004", "epoch_0002"]
    checkpoints.history = checkpoints.history[:4]
    assert not History(tmp_path / "history.csv", checkpoints, 3).out_of_patience
    assert History(tmp_path / "history.csv", checkpoints, 2).out_of_patience


@pytest.mark.parametrize(("patience", "out"), [(2, True), (3, False), (4, False), (0, False)])
def test_patience(patience, out, tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.history = [{"epoch": n + 1, "val_bleu": bleu} for n, bleu in enumerate((1, 3, 2, 3))]
    assert History(tmp_path / "history.csv", checkpoints, patience).out_of_patience is out


@pytest.mark.parametrize("chief", [True, False])
def test_each_epoch_writes_the_history_and_the_last_ends_training(chief, tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.strategy = SimpleNamespace(is_chief=chief)
    history, model = History(tmp_path / "history.csv", checkpoints, 1), SimpleNamespace(stop_training=False)
    history.set_model(model)
    for epoch, bleu in enumerate((2.0, 3.0, 3.0)):
        assert not model.stop_training
        checkpoints.history.append({"epoch": epoch + 1, "val_bleu": bleu})
        history.on_epoch_end(epoch)
        written = (tmp_path / "history.csv").read_text().split() if chief else []
        assert written[1:] == ["1,2.0", "2,3.0", "3,3.0"][: epoch + 1] * chief
    assert model.stop_training
    assert (tmp_path / "history.csv").exists() == chief


def test_a_history_has_the_columns_of_all_its_rows(tmp_path):
    """As of a run that went on with a newer kzoo, which logs more."""
    checkpoints = Checkpoints(tmp_path)
    checkpoints.history = [{"epoch": 1, "loss": 3.0}, {"epoch": 2, "loss": 2.0, "speed": 5.0}]
    write_history(tmp_path / "history.csv", checkpoints)
    assert (tmp_path / "history.csv").read_text().splitlines() == ["epoch,loss,speed", "1,3.0,", "2,2.0,5.0"]


RECIPE = 'preset = "pope_tiny"\ncorpus = "scenes"\nsource = "en"\ntarget = "de"\n'
SEVERAL = 'preset = "attention_bridge_m2m_tiny"\ncorpus = "scenes"\nlanguages = ["en", "de"]\n'


def test_a_recipe_is_read_and_overridden(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE + "epochs = 7\n[model]\nnum_layers = 3\n")
    recipe = read_recipe(path, ["epochs=9", "target=fr", "model.width=64", "clip_norm=1"])
    assert (recipe.epochs, recipe.target, recipe.clip_norm) == (9, "fr", 1.0)
    assert recipe.model == {"num_layers": 3, "width": 64}


def test_a_string_in_an_override_needs_no_quotes(tmp_path):
    (tmp_path / "recipe.toml").write_text(RECIPE)
    recipe = read_recipe(tmp_path / "recipe.toml", ["target=nan", "preset=2024"])
    assert (recipe.target, recipe.preset) == ("nan", "2024")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (RECIPE + "epoch = 3", "epochs"),
        (RECIPE + 'epochs = "3"', "epochs"),
        (RECIPE + "average = 0", "average"),
        (RECIPE + "beta_2 = 3", "beta_2 is 3"),
        (RECIPE + "label_smoothing = 1.0", "label_smoothing"),
        (RECIPE + "rate = nan", "nan"),
        (RECIPE + "seed = 4294967296", "4294967295"),
        (RECIPE + 'precision = "half"', "float32"),
        (RECIPE + 'model.dtype = "float16"', "precision"),
        (RECIPE + "train = [1, 2]", "[1, 2]"),
        (RECIPE + "monolingual = true", "monolingual"),
        (RECIPE + "rate = 1e-4", "rate"),
        (RECIPE + 'optimizer = "adam"\nbeta_2 = 0.9', "beta_2"),
        (RECIPE + 'source_characters = "seen"\njoint_vocabulary = false', "joint_vocabulary"),
        (RECIPE + 'val = ["a", "b"]', '"files"'),
        (SEVERAL + 'directions = ["en-de"]\ncentre = "en"', "centre"),
        (SEVERAL + "sentences = 64\ntokens = 4096", "tokens"),
        (SEVERAL.replace("attention_bridge_m2m", "pope"), "source"),
        (RECIPE + "depth = 9", "model.depth"),
        (RECIPE + "gnmt = 0.6\nlength_penalty = 1.0", "gnmt"),
        (RECIPE.replace("de", "d/e"), "'d/e'"),
        ('preset = "pope_tiny"\nsource = "en"\ntarget = "de"', "corpus"),
        ("preset = ", "TOML"),
    ],
)
def test_a_bad_recipe_is_named(text, name, tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(text)
    assert name in message_of(read_recipe, path)


def test_a_byte_order_mark_before_a_recipe_is_skipped(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE, encoding="utf-8-sig")
    assert read_recipe(path).corpus == "scenes"


def test_a_missing_recipe_and_a_bad_override(tmp_path):
    path = tmp_path / "recipe.toml"
    assert "recipe.toml" in message_of(read_recipe, path)
    path.write_text(RECIPE)
    for override, name in (("epochs", "'epochs'"), ("average=0", "recipe.toml: average")):
        assert name in message_of(read_recipe, path, [override])


def test_a_run_s_folder_may_have_its_recipe_s_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pope_multi30k").mkdir()
    assert read_recipe("pope_multi30k").corpus == "multi30k"


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"optimizer": "adamw"}, "'adamw'"),
        ({"accumulate": 0}, "accumulate"),
        ({"model": None}, "None"),
        ({"epochs": 3.0}, "epochs"),
        ({"rate": 0.1}, "rate"),
        ({"rate_factor": 0.0}, "rate_factor"),
    ],
)
def test_a_recipe_made_in_python_is_checked_too(wrong, name, recipe, tmp_path):
    for start in (train, prepare):
        assert name in message_of(start, replace(recipe, **wrong), tmp_path / "folder")
    assert not list(tmp_path.iterdir())


def test_a_recipe_made_in_python_is_as_if_it_had_been_read(recipe):
    made = replace(recipe, train=tuple(recipe.train), clip_norm=1)
    assert check_recipe(made) == recipe
    assert type(check_recipe(made).clip_norm) is float


class Numbers(keras.utils.PyDataset):
    """Four batches, of which one may be damaged."""

    def __init__(self, damaged=None):
        super().__init__()
        self.damaged = damaged

    def __len__(self):
        return 4

    def __getitem__(self, index):
        if index == self.damaged:
            raise UserError(f"shard {index}: damaged")
        return np.zeros((2 + index % 2, 1)), np.zeros((2 + index % 2, 1))

    def start_epoch(self, epoch):
        pass


@pytest.fixture
def dense():
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    return model


def test_a_batch_that_cannot_be_made_is_one_line(dense):
    """TensorFlow would raise an error of its own, around a traceback."""
    with pytest.raises(UserError, match="^shard 3: damaged$"):
        fit_from(0, 0, dense, Numbers(3), 1, [], 0)


def test_an_epoch_that_only_has_to_be_scored_ends_as_in_fit(dense, capsys):
    """Without a line of its own: nothing is compiled."""

    def noting(calls):
        names = ("on_train_begin", "on_epoch_begin", "on_epoch_end", "on_train_end")
        notes = {name: lambda *_, name=name: calls.append(name) for name in names}
        return [keras.callbacks.LambdaCallback(**notes)]

    expected, found = [], []
    dense.fit(Numbers(), callbacks=noting(expected), verbose=0)
    fit_from(0, 4, dense, Numbers(), 1, noting(found), verbose=2)
    assert found == expected
    assert capsys.readouterr().out == ""
