"""Both wheels, installed into a fresh environment, do the main job in an empty folder."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_from_wheels_alone_the_main_commands_work(python, tmp_path):
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "-w",
        tmp_path / "dist",
        ".",
        "./presets",
    ]
    subprocess.run(build, cwd=ROOT, check=True)
    kzoo, shelf = sorted((tmp_path / "dist").glob("*.whl"))
    installed = python("wheels", "-c", str(ROOT / "constraints.txt"), f"{kzoo}[tensorflow,serve]", str(shelf))
    empty = tmp_path / "empty"
    empty.mkdir()

    def run(*arguments) -> str:
        command = [installed, "-m", "kzoo", *arguments]
        return subprocess.run(command, cwd=empty, check=True, capture_output=True, text=True).stdout

    assert "pope_small_multi30k_en_de" in run("list")
    assert run("translate", "pope_small_multi30k_en_de", "A dog runs.") == "Ein Hund rennt.\n"
    run("train", "demo_scenes", "epochs=1", "-o", "run")
    assert "| test | 1000 |" in run("evaluate", "run")
    assert "Ihre" not in run("translate", "run", "She is running with a child in the yard.")
    assert "Ein brauner Hund" in run("demo", "A brown dog is running through the snow.")
