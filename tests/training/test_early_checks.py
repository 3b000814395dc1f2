"""What a recipe and small files tell is said before a backend is imported, which takes seconds."""

import json
import subprocess
import sys

import pytest
from message_of import message_of
from small_preset import small_preset

from kzoo.training import Recipe
from kzoo.training.early_checks import check_early
from kzoo.training.run_folder import record

SCENES = {"corpus": "scenes", "source": "en", "target": "de"}
POPE, SEEING = ({"preset": name, **SCENES} for name in ("pope_tiny", "image_text_tiny"))
GLYPHS = {"preset": "glyph_zh_en_tiny", "corpus": "scenes", "source": "zh", "target": "en"}
SEVERAL = {"preset": "attention_bridge_m2m_tiny", "corpus": "scenes", "languages": ["en", "de"]}
TRAINED = {**SCENES, "preset": "pope_small_multi30k_en_de"}
TRAINED_SEVERAL = {"preset": "attention_bridge_m2m_tiny_multi30k", "corpus": "multi30k"}
BAD = [
    ({"train": ["none.en", "none.de"], "source": "en", "target": "de", "epohcs": 3}, " epochs"),
    ({**POPE, "preset": "pope_tinny"}, " pope_tiny"),
    ({**POPE, "preset": "attention_bridge_m2m_tiny"}, "languages"),
    ({**SEVERAL, "preset": "pope_tiny"}, "source"),
    ({**POPE, "corpus": "scences"}, " scenes"),
    ({**POPE, "target": "pt"}, "'pt'"),
    ({**POPE, "validation": "dev"}, "'dev'"),
    ({**POPE, "model": {"dropuot": 0.1}}, " dropout"),
    ({**POPE, "language_model_epochs": 1}, "language_model_epochs"),
    ({**POPE, "images": "features"}, "images"),
    ({**POPE, "target": "tr", "text": "truecased"}, "dotless i"),
    ({**POPE, "shards": "none"}, "kzoo prepare"),
    ({**SEEING, "shards": "none"}, "shards"),
    ({**SEEING, "images": "none"}, "train.npy"),
    ({**SEEING, "corpus": "multi30k"}, "images"),
    (GLYPHS, "source_characters"),
    ({**POPE, "model": {"source_embedding": "glyph"}}, "source_characters"),
    ({**GLYPHS, "source_characters": "seen", "model": {"font": "none.ttf"}}, "none.ttf"),
    ({**SEVERAL, "directions": ["en-fr"]}, "'en-fr'"),
    ({**SEVERAL, "pair_weights": {"en-de": 1}}, "de-en"),
    ({**SEVERAL, "languages": ["en", "pt"]}, "'pt'"),
    ({**TRAINED, "preset": "./none"}, "none"),
    ({**TRAINED, "source": "de", "target": "en"}, "'de'"),
    ({**TRAINED, "model": {"num_layers": 1}}, "'num_layers'"),
    ({**SEVERAL, "preset": TRAINED["preset"]}, "source"),
    ({**TRAINED, "images": "features"}, "images"),
    ({**TRAINED, "preset": "image_text_tiny_scenes_en_de", "corpus": "multi30k"}, "images"),
    ({**TRAINED_SEVERAL, "source": "en", "target": "de"}, "languages"),
    ({**TRAINED_SEVERAL, "languages": ["de", "en"]}, "en, de, fr, cs"),
    ({**POPE, "seed": 7}, "seed"),  # than the folder's run
]
NOT_FOR_SHARDS = [
    (SEVERAL, "multilingual"),
    (SEEING, "shards"),
    ({**POPE, "text": "lowercased"}, "raw text"),
    ({**POPE, "target": "pt"}, "'pt'"),
    ({"train": ["none.en", "none.de"], "source": "en", "target": "de"}, "--show"),
]
RUN = """
import sys
from pathlib import Path
from kzoo.cli.training import prepare, train
from kzoo.errors import UserError

for command, path in zip(sys.argv[1::2], sys.argv[2::2]):
    try:
        folder = Path(path).with_suffix("")
        train([path], folder) if command == "train" else prepare(Path(path), None, folder)
    except UserError as error:
        print(str(error))
assert not {"keras", "tensorflow", "jax", "torch"} & set(sys.modules)
"""


def as_toml(value) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {as_toml(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value)


def test_what_is_bad_is_named_before_a_backend_is_imported(tmp_path):
    bad, arguments = [*NOT_FOR_SHARDS, *BAD], []
    for number, (values, _) in enumerate(bad):
        path = tmp_path / f"{number}.toml"
        path.write_text("".join(f"{key} = {as_toml(value)}\n" for key, value in values.items()))
        arguments += ["prepare" if number < len(NOT_FOR_SHARDS) else "train", str(path)]
    run = path.with_suffix("")
    (run / "checkpoints" / "epoch_0001").mkdir(parents=True)
    record(run, Recipe(**POPE))
    done = subprocess.run([sys.executable, "-c", RUN, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for told, (values, name) in zip(done.stdout.splitlines(), bad, strict=True):
        assert name in told, values


@pytest.mark.parametrize("kind", ["MarianTokenizer", "SubwordTokenizer"])
def test_a_vocabulary_that_names_targets_may_have_others_than_the_preset_s(kind, tmp_path):
    """As OPUS-MT's of several targets, of which the preset names one."""
    small_preset(tmp_path / "preset", settings={"tokenizers": ["joint.json"]}, joint={"class_name": kind})
    recipe = Recipe(preset=str(tmp_path / "preset"), **{**SCENES, "target": "fr"})
    if kind == "MarianTokenizer":
        check_early(recipe, tmp_path / "run")
    else:
        assert "'fr'" in message_of(check_early, recipe, tmp_path / "run")
