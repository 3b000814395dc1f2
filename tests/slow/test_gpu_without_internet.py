"""The commands of docs/gpu_without_internet.md, on an installation with JAX alone."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_s_commands_train_without_tensorflow(python, tmp_path):
    page = (ROOT / "docs/gpu_without_internet.md").read_text("utf-8")
    blocks = [re.sub("^    ", "", block, flags=re.M) for block in re.findall(r"(?:^    .*\n)+", page, re.M)]
    collect, shards, train, faster, translate = blocks
    jax_alone = Path(python("jax", "-c", str(ROOT / "constraints.txt"), "jax")).parent
    version = subprocess.run([jax_alone / "python", "-V"], capture_output=True, text=True).stdout.split(".")[
        1
    ]
    collect = collect.replace("--python-version 3.12", f"--python-version 3.{version}")

    def run(commands: str, first: Path | None = None, **variables) -> str:
        path = os.pathsep.join([*([str(first)] if first else []), os.environ["PATH"]])
        environment = {**os.environ, "PATH": path, **variables}
        environment.pop("PYTHONPATH", None)
        done = subprocess.run(
            ["bash", "-euc", commands], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    home = ROOT / ".venv/bin"
    run(collect + shards, home, KZOO=str(ROOT))
    run(faster + train, jax_alone, PIP_NO_INDEX="1")
    assert (tmp_path / "scores.json").is_file()
    assert run(translate, home).strip()
