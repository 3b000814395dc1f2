"""The Dockerfile's image serves a preset. Without Docker, its steps run in an empty folder instead."""

import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PREDICT = "/v1/models/pope_small_multi30k_en_de:predict"


def docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def docker_runs() -> bool:
    try:
        docker("info")
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def check_answers(address: str):
    """Check that a server translates, and that its page is there."""
    body = json.dumps({"instances": ["A dog runs."]}).encode()
    with urllib.request.urlopen(f"{address}{PREDICT}", body, timeout=60) as answer:
        assert json.load(answer)["predictions"][0]["translation"] == "Ein Hund rennt."
    with urllib.request.urlopen(f"{address}/", timeout=60) as page:
        assert b"<title>kzoo</title>" in page.read()


@pytest.mark.skipif(not docker_runs(), reason="Docker does not run here")
def test_the_image_serves_a_preset(tmp_path):
    """On a root that is read-only, as docs/kubernetes.yaml has it."""
    docker("build", "--iidfile", str(tmp_path / "image"), ".")
    image = (tmp_path / "image").read_text()
    options = "--detach", "--read-only", "--tmpfs=/tmp", "--publish=127.0.0.1::8501"
    container = docker("run", *options, image)
    try:
        end = time.monotonic() + 300
        while docker("inspect", "--format={{.State.Health.Status}}", container) != "healthy":
            assert time.monotonic() < end, docker("logs", container)
            time.sleep(1)
        check_answers(f"http://{docker('port', container, '8501')}")
        assert docker("exec", container, "id", "-u") == "65534"
        docker("stop", container)
        assert docker("inspect", "--format={{.State.ExitCode}}", container) == "0"
    finally:
        docker("rm", "--force", container)
        docker("rmi", image)


def instructions() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions: the word and the rest."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text("utf-8"), flags=re.M)
    lines = re.sub(r"\\\n", " ", text).splitlines()
    return [tuple(line.split(None, 1)) for line in lines if line]


def copy_context(folder: Path):
    """Copy the files of the clone that .dockerignore, a list of what is not ignored, lets through."""
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert "*" in lines
    patterns = [line[1:] for line in lines if line.startswith("!")]
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in tracked.stdout.splitlines():
        if any(fnmatch.fnmatch(name, pattern) or name.startswith(f"{pattern}/") for pattern in patterns):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


@pytest.mark.skipif(docker_runs(), reason="Docker builds the image")
def test_its_steps_serve_a_preset_in_an_empty_folder(tmp_path):
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    said = {}

    def inside(text: str) -> str:
        """Return a text with the image's folders inside the empty one."""
        return re.sub(r"(?<![\w/])/(kzoo|wheels|venv|tmp)\b", rf"{tmp_path}/\1", text)

    (tmp_path / "tmp").mkdir()
    for word, rest in instructions():
        said[word] = rest
        if word == "COPY" and "--from" not in rest:
            source, target = inside(rest).split()
            assert source == "."
            copy_context(Path(target))
        elif word == "COPY":  # an environment works only where it was made
            assert len(set(rest.split()[1:])) == 1
        elif word == "RUN":
            subprocess.run(["sh", "-ec", inside(rest)], cwd=tmp_path, env=environment, check=True)
        elif word == "ENV":
            for assignment in shlex.split(inside(rest)):
                name, value = assignment.split("=", 1)
                environment[name] = value.replace("$PATH", environment["PATH"])
    assert (said["USER"], said["EXPOSE"]) == ("65534", "8501")
    command = [*json.loads(said["ENTRYPOINT"]), *json.loads(said["CMD"]), "--port", "0"]
    command[0] = shutil.which(command[0], path=environment["PATH"])
    assert command[0].startswith(str(tmp_path))
    empty = tmp_path / "empty"
    empty.mkdir()
    with subprocess.Popen(command, cwd=empty, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            port = re.search(r":(\d+)/", process.stdout.readline())[1]
            check_answers(f"http://127.0.0.1:{port}")
            check = json.loads(said["HEALTHCHECK"].partition("CMD")[2])
            assert "8501" in check[-1]
            check[-1] = check[-1].replace("8501", port)
            subprocess.run(check, cwd=empty, env=environment, check=True)
        finally:
            process.terminate()
        assert process.wait(60) == 0
