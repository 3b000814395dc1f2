"""The wheels of a bundle: the right ones, and as many as training imports."""

import importlib.util
import os
import subprocess
import sys

import pytest

from kzoo.bundle import wheels
from kzoo.errors import UserError

VERSIONS = {"alpha": "1.0", "beta-x": "2.0"}


def test_takes_from_the_folder_what_the_target_can_install(tmp_path, monkeypatch):
    given, scratch = tmp_path / "given", tmp_path / "scratch"
    given.mkdir()
    scratch.mkdir()
    for name in (
        "alpha-1.0-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "alpha-1.1-py3-none-any.whl",
        "beta_x-2.0-cp311-cp311-manylinux2014_x86_64.whl",
        "beta_x-2.0-cp312-cp312-macosx_11_0_arm64.whl",
        "no wheel.whl",
    ):
        (given / name).touch()
    asked = []

    def download(requirements, python, folder):
        asked.extend(requirements)
        (folder / "beta_x-2.0-cp39-abi3-manylinux_2_28_x86_64.whl").touch()

    monkeypatch.setattr(wheels, "_download", download)
    found = wheels.collect_wheels(VERSIONS, "3.12", given, scratch)
    assert asked == ["beta-x==2.0"]
    assert {name: path.name for name, path in found.items()} == {
        "alpha": "alpha-1.0-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "beta-x": "beta_x-2.0-cp39-abi3-manylinux_2_28_x86_64.whl",
    }


def test_what_is_not_to_be_had_is_one_line(tmp_path, monkeypatch):
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(UserError, match="give a folder that has them with --wheels: alpha==1.0") as error:
        wheels.collect_wheels({"alpha": "1.0"}, "3.12", None, tmp_path)
    assert "\n" not in str(error.value)
    with pytest.raises(UserError, match="no such folder of wheels"):
        wheels.collect_wheels(VERSIONS, "3.12", tmp_path / "none", tmp_path)


PROGRAM = """
import importlib.abc, importlib.metadata, sys
from packaging.utils import canonicalize_name
from kzoo.bundle.wheels import NEEDED

THERE = {"jax", "jaxlib", "ml-dtypes", "numpy", "opt-einsum", "scipy"}  # JAX and what it requires
owners = importlib.metadata.packages_distributions()
absent = {name for name, by in owners.items() if not {canonicalize_name(n) for n in by} & {*NEEDED, *THERE}}
absent -= {"kzoo"}
assert {"tensorflow", "matplotlib", "torch"} & absent

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import kzoo.bundle.one
import kzoo.presets.attention_bridge, kzoo.presets.glyph, kzoo.presets.image_text, kzoo.presets.pope
import kzoo.scenes.picture
"""


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
def test_training_imports_no_other_package():
    environment = {**os.environ, "KERAS_BACKEND": "jax"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
