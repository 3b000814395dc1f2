"""`kzoo bundle`: what is in the folder, and what is refused."""

import gzip
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kzoo.bundle import bundle, pack
from kzoo.bundle.corpora import corpus_files
from kzoo.bundle.pack import CONSTRAINTS, read_packed
from kzoo.bundle.wheels import NEEDED, NEEDED_FOR, NEEDED_FOR_SHARDS, read_pins
from kzoo.errors import UserError
from kzoo.hub import locate
from kzoo.hub.integrity import preset_files
from kzoo.training.corpus import recipe_corpus
from kzoo.training.recipe import Recipe, read_recipe

TRAINED, TRAINED_BRIDGE = (
    f"preset={name}" for name in ("pope_tiny_multi30k_en_de", "attention_bridge_m2m_tiny_multi30k")
)
BRIDGE = "preset=attention_bridge_m2m_tiny"
TWO_OF_ALL = ('languages=["en", "de"]', "source=", "target=")
LINES = {"en": ["a man", "", "a dog\u2028runs"], "de": ["ein Mann", "", "ein Hund rennt"]}


@pytest.fixture
def wheels(tmp_path):
    """A folder with an empty wheel of every package that a bundle may need."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    pins = read_pins(CONSTRAINTS)
    for name in (*NEEDED, *NEEDED_FOR_SHARDS, *(name for names in NEEDED_FOR.values() for name in names)):
        (folder / f"{name.replace('-', '_')}-{pins[name]}-py3-none-any.whl").touch()
    return folder


@pytest.fixture
def own_files(tmp_path):
    """A recipe on the user's own text."""
    paths = {
        split: [str(tmp_path / f"{split}.{code}") for code in LINES] for split in ("train", "val", "test")
    }
    for split in paths.values():
        for path, lines in zip(split, LINES.values(), strict=True):
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join(lines))
    recipe = tmp_path / "own.toml"
    fields = {"preset": "pope_tiny", "corpus": "files", "source": "en", "target": "de", **paths}
    recipe.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in fields.items()))
    return recipe


@pytest.fixture
def multi30k_alike(tmp_path, monkeypatch):
    """A folder in Multi30k's layout, in two of its languages."""
    folder = tmp_path / "data" / "multi30k"
    folder.mkdir(parents=True)
    tests = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr")
    for split in ("train", "val", *tests):
        for code in ("en", "cs"):
            (folder / f"{split}.{code}.gz").write_bytes(gzip.compress(f"{split} {code}\n".encode()))
    monkeypatch.setenv("KZOO_DATA", str(folder.parent))
    return folder


def test_holds_all_that_run_sh_takes(tmp_path, wheels, own_files):
    folder = tmp_path / "bundle"
    total = bundle([str(own_files), str(own_files), "seed=2"], folder, "3.11", wheels)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert total == sum(path.stat().st_size for path in files)
    assert {path.name for path in (folder / "wheels").iterdir()} >= {
        f"keras-{read_pins(CONSTRAINTS)['keras']}-py3-none-any.whl"
    }
    assert len(list((folder / "wheels").iterdir())) == len(NEEDED)  # no font: nothing draws glyphs
    assert (folder / "code" / "kzoo" / "bundle" / "one.py").is_file()
    assert not any("__pycache__" in path.parts for path in files)
    assert os.stat(folder / "run.sh").st_mode & stat.S_IXUSR
    assert "Python 3.11" in (folder / "run.sh").read_text()
    assert "PYTHON_VERSION" not in (folder / "run.sh").read_text()


def test_recipes_find_their_own_files_from_the_bundle(tmp_path, wheels, own_files, monkeypatch):
    folder = tmp_path / "bundle"
    bundle([str(own_files), "seed=2"], folder, wheels=wheels)
    for path in tmp_path.glob("t*.??"):
        path.unlink()
    (one,) = json.loads((folder / "bundle.json").read_text())["recipes"]
    monkeypatch.chdir(folder)
    recipe = read_recipe(f"recipes/{one['name']}.toml", one["overrides"])
    assert recipe.seed == 2
    assert recipe_corpus(recipe).pairs("test", "en", "de") == (LINES["en"], LINES["de"])


def test_a_preset_to_fine_tune_goes_with_it(tmp_path, wheels, own_files, monkeypatch):
    folder = tmp_path / "bundle"
    name = "pope_tiny_multi30k_en_de"
    with pytest.raises(UserError, match="no trained preset 'pope_tniy'|no preset 'pope_tniy'"):
        bundle([str(own_files), "preset=pope_tniy"], folder, wheels=wheels)
    bundle([str(own_files), f"preset={name}"], folder, wheels=wheels)
    (one,) = json.loads((folder / "bundle.json").read_text())["recipes"]
    monkeypatch.chdir(folder)
    packed = Path(read_recipe(f"recipes/{one['name']}.toml", one["overrides"]).preset)
    assert {file: path.read_bytes() for file, path in preset_files(packed).items()} == {
        file: path.read_bytes() for file, path in preset_files(locate(name)).items()
    }


def test_shards_go_in_place_of_the_training_text(tmp_path, wheels, own_files, monkeypatch):
    shards = tmp_path / "shards"
    shards.mkdir()
    with pytest.raises(UserError, match="no index.json.: make them with kzoo prepare"):
        bundle([str(own_files), f"shards={shards}"], tmp_path / "bundle", wheels=wheels)
    for name in ("index.json", "00000-of-00001.array_record"):
        (shards / name).write_text(name)
    bundle([str(own_files), f"shards={shards}"], tmp_path / "bundle", wheels=wheels)
    assert list((tmp_path / "bundle" / "wheels").glob("array_record*"))
    assert not list((tmp_path / "bundle").rglob("train.en.gz"))
    (one,) = json.loads((tmp_path / "bundle" / "bundle.json").read_text())["recipes"]
    monkeypatch.chdir(tmp_path / "bundle")
    recipe = read_recipe(f"recipes/{one['name']}.toml", one["overrides"])
    assert recipe.train == []
    assert sorted(os.listdir(recipe.shards)) == ["00000-of-00001.array_record", "index.json"]


def test_takes_only_the_languages_and_splits_of_the_recipe(tmp_path, wheels, multi30k_alike):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('preset = "pope_tiny"\ncorpus = "multi30k"\nsource = "en"\ntarget = "cs"\n')
    bundle([str(recipe)], tmp_path / "bundle", wheels=wheels)
    packed = tmp_path / "bundle" / "data" / "multi30k"
    splits = ("test_2016_flickr", "test_2018_flickr", "train", "val")  # Czech has no tests of 2017
    assert sorted(path.name for path in packed.iterdir()) == [
        f"{s}.{c}.gz" for s in splits for c in ("cs", "en")
    ]
    for path in packed.iterdir():
        assert gzip.decompress(path.read_bytes()) == gzip.decompress(
            (multi30k_alike / path.name).read_bytes()
        )


@pytest.mark.parametrize(
    "preset",
    [["glyph_zh_en_tiny"], ["pope_tiny", "source_characters=common", "model.source_embedding=glyph"]],
)
def test_the_font_goes_with_glyphs(preset, tmp_path, wheels):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('corpus = "scenes"\nsource = "zh"\ntarget = "en"\n')
    bundle([str(recipe), f"preset={preset[0]}", *preset[1:]], tmp_path / "bundle", wheels=wheels)
    assert list((tmp_path / "bundle" / "wheels").glob("noto_cjk*"))
    assert not (tmp_path / "bundle" / "data").exists()  # scenes are made there


def test_above_the_limit_names_the_largest_and_leaves_nothing(tmp_path, wheels, own_files, monkeypatch):
    next(wheels.glob("h5py*")).write_bytes(bytes(2_000_000))
    monkeypatch.setattr(pack, "LIMIT", 2_000_000)
    with pytest.raises(UserError, match=r"MB, above 2; its largest parts: wheels/h5py-\S+ 2.0 MB, ") as error:
        bundle([str(own_files)], tmp_path / "bundle", wheels=wheels)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.glob("*bundle*"))


def test_replaces_a_bundle_and_nothing_else(tmp_path, wheels, own_files):
    folder = tmp_path / "bundle"
    bundle([str(own_files)], folder, wheels=wheels)
    (folder / "stale").touch()
    bundle([str(own_files)], folder, wheels=wheels)
    assert not (folder / "stale").exists()
    for made in ("runs", "results"):  # by run.sh in that folder
        (folder / made).mkdir()
        with pytest.raises(
            UserError, match=f"has {made} of a bundle: move them away, or give another folder"
        ):
            bundle([str(own_files)], folder, wheels=wheels)
        (folder / made).rmdir()
    (folder / "bundle.json").unlink()
    with pytest.raises(UserError, match="other contents"):
        bundle([str(own_files)], folder, wheels=wheels)


def test_packing_starts_no_backend():
    check = (
        "import sys, kzoo.bundle.pack; assert not {'keras', 'tensorflow', 'jax', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", check], check=True)


def test_names_are_files_names(own_files):
    names = [
        one.name for one in read_packed([str(own_files), str(own_files), "model.width=32", "images=/a b/c"])
    ]
    assert names == ["own", "own.model-width-32.images-a-b-c"]
    long = [f'train=["/a/long/way/{"x" * 90}.en", "/{n}"]' for n in range(2)]
    first, second = (read_packed([str(own_files), change])[0].name for change in long)
    assert first != second
    assert max(len(name) for name in (first, second)) <= 89


@pytest.mark.parametrize(
    ("words", "python", "message"),
    [
        (["seed=2"], "3.12", "give it after the recipe's file"),
        (["RECIPE", "RECIPE"], "3.12", "two recipes would be called own"),
        (["RECIPE", "preset=pope_tny"], "3.12", "did you mean pope_tiny"),
        (["RECIPE", BRIDGE], "3.12", "needs languages in its recipe"),
        (["RECIPE", TRAINED, "source=de", "target=en"], "3.12", "translates from en to de, not with 'de'"),
        (["RECIPE", TRAINED, "model.num_layers=9"], "3.12", "trained with its num_layers: only dropout, "),
        (["RECIPE", TRAINED, *TWO_OF_ALL], "3.12", "needs source and target in its recipe"),
        (["RECIPE", TRAINED_BRIDGE], "3.12", "needs languages in its recipe"),
        (
            ["RECIPE", TRAINED_BRIDGE, *TWO_OF_ALL],
            "3.12",
            "has the languages .*: give the same, in this order",
        ),
        (["RECIPE", "model.num_layer=2"], "3.12", "no argument 'num_layer'; did you mean num_layers"),
        (
            ["RECIPE", BRIDGE, *TWO_OF_ALL, "model.num_heads=0"],
            "3.12",
            "num_heads is a whole number of at least 1",
        ),
        (["none.toml"], "3.12", "recipe none.toml cannot be read"),
        (["RECIPE"], "3.14", "kzoo runs on 3.11 and 3.12"),
    ],
)
def test_refuses(words, python, message, tmp_path, wheels, own_files):
    with pytest.raises(UserError, match=message):
        bundle(
            [word.replace("RECIPE", str(own_files)) for word in words], tmp_path / "bundle", python, wheels
        )
    assert not (tmp_path / "bundle").exists()


def test_own_text_is_packed_as_it_is_read(tmp_path):
    """A table that is split by itself, and further references, become files of one column."""
    table, files = tmp_path / "pairs.csv", [tmp_path / name for name in ("en", "de", "de2")]
    table.write_text("".join(f"{n},ein Satz {n},sentence {n}\n" for n in range(20)))
    for file in files:
        file.write_text(f"{file.name}\n")
    own = {"preset": "pope_tiny", "corpus": "files", "source": "en", "target": "de"}
    parts = {"train": [str(table)], "columns": [3, 2], "val": 5, "test": list(map(str, files))}
    packed, changes = corpus_files("my", Recipe(**own, **parts))
    assert (changes["columns"], len(changes["val"]), len(changes["test"])) == ([], 2, 3)
    lines = {name: gzip.decompress(packed[name]).decode().splitlines() for name in packed}
    assert [len(lines[name]) for name in changes["train"] + changes["val"]] == [15, 15, 5, 5]
    assert lines[changes["test"][2]] == ["de2"]
    assert all(line.startswith("sentence") for line in lines[changes["val"][0]])
