"""The examples of docs/tools.md, as they stand there: documents, glossaries, clients, OmegaT, Argos."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from running import UNSPLIT, serving, skip_unless_had, with_empty_home

from kzoo.data.parallel_files import parallel_rows
from kzoo.engine.translator import CTranslate2Translator
from kzoo.presets import locate

PAGE = (Path(__file__).resolve().parents[2] / "docs/tools.md").read_text("utf-8")
PRESET, ARGOS = "pope_small_multi30k_en_de", "argostranslate==1.11.0"
SENTENCES = """
import json, sys
from argostranslate import translate
print(json.dumps([translate.translate(text, "en", "de") for text in json.load(sys.stdin)]))
"""


def example(word: str) -> tuple[str, list[str]]:
    """Return the Python of the page that has a word, and what it says that this prints."""
    (code,) = (block for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S) if word in block)
    return code, re.findall(r"^print\(.*\)  # (.*)$", code, re.M)


def commands(section: str) -> list[str]:
    """Return the commands of a section of the page."""
    text = PAGE.split(f"# {section}\n")[1].split("\n#")[0]
    return re.findall(r"^ {4,}((?:kzoo|curl|printf|msgattrib|po2tmx) .*?)(?:  #.*)?$", text, re.M)


def printed(command, **options) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


@pytest.fixture
def shell(tmp_path):
    """Function that runs a command as a reader types it, in an empty folder; returns what it prints."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def run(command: str) -> str:
        needed = command.split()[0]
        if needed != "kzoo" and not shutil.which(needed, path=path):
            pytest.skip(f"{needed} is not installed")
        words = re.sub(r"^kzoo", f"{sys.executable} -m kzoo", command)
        return printed(["bash", "-ec", words], cwd=tmp_path, env={**os.environ, "PATH": path})

    return run


@pytest.fixture(scope="module")
def address():
    assert commands("LibreTranslate's API")[0] == f"kzoo serve {PRESET}"
    with serving([sys.executable, "-m", "kzoo", "serve", PRESET]) as address:
        yield address


def test_curl(address, shell):
    _, curl = commands("LibreTranslate's API")
    expected = re.findall(r"^```json\n(.*)\n```", PAGE, re.M)[0]
    assert shell(curl.replace("http://127.0.0.1:8501", address)) == expected


def test_clients(address):
    code, expected = example("libretranslatepy")
    code = code.replace("http://127.0.0.1:8501", address)
    assert printed([sys.executable, "-c", code]).splitlines() == expected


def test_omegat(shell, tmp_path):
    message = 'msgid "A dog runs."\nmsgstr ""\n'
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    (tmp_path / "en.po").write_text(header + message)
    (tmp_path / "project/tm/auto").mkdir(parents=True)
    found = commands("OmegaT")
    assert [command.split()[0] for command in found] == ["kzoo", "msgattrib", "po2tmx"]
    for command in found:
        shell(command)
    rows = parallel_rows(tmp_path / "project/tm/auto/kzoo.tmx", ("en", "de"))
    assert list(rows) == [["A dog runs.", "Ein Hund rennt."]]


def test_documents(shell, tmp_path):
    docx = pytest.importorskip("docx")
    report = docx.Document()
    report.add_paragraph("A dog runs.")
    report.save(tmp_path / "report.docx")
    shell(commands("Documents")[0])
    code, _ = example("translate_document")
    (tmp_path / "in_python").mkdir()
    shutil.copy(tmp_path / "report.docx", tmp_path / "in_python")
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path / "in_python", check=True)
    for folder in (tmp_path, tmp_path / "in_python"):
        assert [one.text for one in docx.Document(folder / "bericht.docx").paragraphs] == ["Ein Hund rennt."]


def test_a_glossary(shell):
    write, translate = commands("A glossary")[:2]
    shell(write)
    assert "Schwimmbad" in shell(translate)


def test_training_text(shell, tmp_path):
    units = '<tu><tuv xml:lang="en"><seg>A dog.</seg></tuv><tuv xml:lang="de"><seg>Ein Hund.</seg></tuv></tu>'
    (tmp_path / "memory.tmx").write_text(f'<tmx version="1.4"><header/><body>{units * 2}</body></tmx>')
    assert "1 a copy" in shell(commands("Training text")[0])


@pytest.fixture(scope="module")
def argos(python, tmp_path_factory):
    """The Python that has Argos Translate, and the options of its processes: a folder with the package."""
    folder = tmp_path_factory.mktemp("argos")
    skip_unless_had(ARGOS, folder)
    export = re.sub("^kzoo ", "", commands("Argos Translate")[0]).split()
    subprocess.run([sys.executable, "-m", "kzoo", *export], cwd=folder, check=True)
    return python("argos", ARGOS), with_empty_home(folder)


def test_argos(argos):
    program, options = argos
    code, expected = example("argostranslate")
    assert printed([program, "-c", UNSPLIT + code], **options).splitlines() == expected


@pytest.mark.parametrize("compute_type", ["float32", "int8"])
def test_argos_translates_200_sentences_as_kzoo_does(argos, compute_type, multi30k):
    program, options = argos
    texts = multi30k.sentences("test_2016_flickr", "en")[:200]
    options["env"]["ARGOS_COMPUTE_TYPE"] = compute_type
    code = UNSPLIT + example("argostranslate")[0].replace("print", "#") + SENTENCES
    found = json.loads(printed([program, "-c", code], input=json.dumps(texts), **options))
    translator = CTranslate2Translator(locate(PRESET), compute_type)
    assert found == translator.translate(texts, beam_size=4, length_penalty=0.2)
