"""The LibreTranslate server, from PyPI, with our model in it: the same questions to it and to `kzoo serve`.

The answers are compared field by field; what may differ is in `DIFFERENT`, with the reason.
"""

import json
import re
import shutil
import subprocess
import sys

import httpx
import pytest
from running import UNSPLIT, serving, skip_unless_had, with_empty_home

from kzoo.hub import seal
from kzoo.presets import locate

PRESET, LIBRETRANSLATE = "pope_small_multi30k_en_de", "libretranslate==1.9.6"
INSTALL = "import sys; from argostranslate import package; [*map(package.install_from_path, sys.argv[1:])]"
SERVE = UNSPLIT + "from libretranslate import main; main()"
# Argos's search, of which `--beam` and `--length-penalty` are the same.
SEARCH = ["--beam", "4", "--length-penalty", "0.2"]

DOG, MEN = "A dog runs through the snow.", "Two men sit on a bench."
ASKED = {"q": DOG, "source": "en", "target": "de"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}


def translate(**fields):
    """Return a question in JSON; `None` leaves a field out."""
    given = {key: value for key, value in (ASKED | fields).items() if value is not None}
    return "POST", "/translate", {"json": given}


QUESTIONS = {
    "languages": ("GET", "/languages", {}),
    "health": ("GET", "/health", {}),
    "a text": translate(),
    "a form": ("POST", "/translate", {"data": ASKED}),
    "a form of several parts": ("POST", "/translate", {"files": {k: (None, v) for k, v in ASKED.items()}}),
    "a form with two texts": ("POST", "/translate", {"data": ASKED | {"q": [DOG, MEN]}}),
    "a form and the address": ("POST", "/translate", {"data": ASKED, "params": {"q": MEN}}),
    "a list": translate(q=[DOG, MEN]),
    "a list of one": translate(q=[DOG]),
    "two lines": translate(q=f"{DOG}\n{MEN}"),
    "a key that is not needed": translate(api_key="none"),
    "another direction": translate(source="de", target="en"),
    "a text in the target language": translate(q="Ein Hund rennt.", source="de"),
    "auto": translate(source="auto"),
    "auto, a list": translate(q=[DOG, MEN], source="auto"),
    "alternatives": translate(alternatives=2),
    "alternatives, a list": translate(q=[DOG, MEN], alternatives=2),
    "no alternatives": translate(alternatives=0),
    "html": translate(q=f"<p>{DOG}</p>", format="html"),
    "html, a list": translate(q=[f"<p>{DOG}</p>", f"<div>{MEN}</div>"], format="html"),
    "html with inline elements": translate(q="<p>A <b>dog</b> runs through the snow.</p>", format="html"),
    "text": translate(format="text"),
    "a text without a last mark": translate(q=DOG[:-1]),
    "a text in capitals": translate(q=DOG.upper()),
    "detect": ("POST", "/detect", {"json": {"q": DOG}}),
    "detect, a form": ("POST", "/detect", {"data": {"q": DOG}}),
    "no q": translate(q=None),
    "an empty q": translate(q=""),
    "no source": translate(source=None),
    "no target": translate(target=None),
    "an unknown source": translate(source="xx"),
    "an unknown target": translate(target="xx"),
    "an unknown format": translate(format="pdf"),
    "alternatives that are no number": translate(alternatives="two"),
    "alternatives that are no number, a form": (
        "POST",
        "/translate",
        {"data": ASKED | {"alternatives": "two"}},
    ),
    "detect without q": ("POST", "/detect", {"json": {}}),
    "JSON that is cut off": ("POST", "/translate", {"content": b'{"q": ', "headers": JSON}),
    "JSON that is a list": ("POST", "/translate", {"json": [DOG]}),
    "a body that is plain text": (
        "POST",
        "/translate",
        {"content": b"A dog.", "headers": {"Content-Type": "text/plain"}},
    ),
    "a form that is empty": ("POST", "/translate", {"content": b"", "headers": FORM}),
    "GET instead of POST": ("GET", "/translate", {}),
    "POST instead of GET": ("POST", "/languages", {}),
    "an unknown address": ("GET", "/none", {}),
}
# Of these, only the kind is compared.
KINDS = {
    "error": "the messages have other words",
    "confidence": "other libraries identify the language",
}
FLASK = {"body": "LibreTranslate's is a page of its web framework"}
DIFFERENT = {
    "a text without a last mark": {"translatedText": "LibreTranslate takes the model's mark away"},
    "a text in capitals": {"translatedText": "kzoo reads it in another case"},
    "html with inline elements": {"translatedText": "LibreTranslate translates each part by itself"},
    "a body that is plain text": {"status": "kzoo names the Content-Type, with 415"},
    "alternatives that are no number": {"status": "LibreTranslate fails, with 500"},
    "GET instead of POST": FLASK,
    "POST instead of GET": FLASK,
    "an unknown address": FLASK,
}


@pytest.fixture(scope="module")
def presets(tmp_path_factory):
    """A preset from English to German, and a copy that says it is from German to English.

    With fewer than two packages, LibreTranslate downloads all of its own.
    """
    folder = tmp_path_factory.mktemp("presets") / "de_en"
    shutil.copytree(locate(PRESET).folder, folder)
    settings = json.loads((folder / "translator.json").read_text("utf-8"))
    settings |= {"source_language": "de", "target_language": "en"}
    (folder / "translator.json").write_text(json.dumps(settings), "utf-8")
    seal(folder)
    return [PRESET, str(folder)]


@pytest.fixture(scope="module")
def packages(presets, tmp_path_factory):
    """Both presets as packages for Argos Translate."""
    folder = tmp_path_factory.mktemp("packages")
    paths = [folder / "en_de.argosmodel", folder / "de_en.argosmodel"]
    for preset, path in zip(presets, paths, strict=True):
        subprocess.run([sys.executable, "-m", "kzoo", "export", preset, path], check=True)
    return paths


@pytest.fixture(scope="module")
def installed(python, tmp_path_factory):
    """The Python that has LibreTranslate and Argos Translate, with an empty home."""
    folder = tmp_path_factory.mktemp("libretranslate")
    skip_unless_had(LIBRETRANSLATE, folder)
    options = with_empty_home(folder)
    options["env"]["ARGOS_COMPUTE_TYPE"] = "float32"
    return python("libretranslate", LIBRETRANSLATE), options


@pytest.fixture(scope="module")
def theirs(installed, packages):
    """The address of a LibreTranslate server with both packages."""
    program, options = installed
    subprocess.run([program, "-c", INSTALL, *packages], check=True, **options)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}  # it writes of each sentence
    with serving([program, "-c", SERVE, "--load-only", "en,de"], **options, **quiet) as address:
        yield address


@pytest.fixture(scope="module")
def ours(presets):
    """The address of `kzoo serve` with both presets."""
    with serving([sys.executable, "-m", "kzoo", "serve", *presets, *SEARCH]) as address:
        yield address


def leaves(value, path: str = ""):
    """Yield the values in JSON, each with its path; of objects and lists, that they are one."""
    yield path, type(value).__name__ if isinstance(value, dict | list) else compared(value, path)
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield from leaves(one, f"{path}.{key}")


def compared(value, path: str):
    if path.rpartition(".")[2] not in KINDS:
        return value
    return "number" if isinstance(value, int | float) else type(value).__name__


def differing(one: httpx.Response, other: httpx.Response) -> set[str]:
    """Return the fields that two answers differ in."""
    found = [dict(leaves({"status": answer.status_code, "body": body(answer)})) for answer in (one, other)]
    paths = {path for path in found[0].keys() | found[1].keys() if found[0].get(path) != found[1].get(path)}
    outer = {path for path in paths if path.rpartition(".")[0] not in paths}
    return {re.sub(r"\.\d+", "", path).removeprefix(".").removeprefix("body.") for path in outer}


def body(answer: httpx.Response):
    """Return an answer's JSON, or what else it is."""
    kind = answer.headers["content-type"].partition(";")[0]
    return answer.json() if kind == "application/json" else kind


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_answers_are_the_same(name, theirs, ours):
    method, path, more = QUESTIONS[name]
    pair = [httpx.request(method, address + path, timeout=300, **more) for address in (theirs, ours)]
    print(*(f"{answer.status_code} {answer.text}" for answer in pair), sep="\n")
    assert differing(*pair) == set(DIFFERENT.get(name, ()))


def test_a_document_is_translated_alike(theirs, ours):
    found = []
    for address in (theirs, ours):
        form = {"files": {"file": ("a.html", f"<p>{DOG}</p>")}, "data": {"source": "en", "target": "de"}}
        answer = httpx.post(f"{address}/translate_file", timeout=300, **form)
        assert (answer.status_code, list(answer.json())) == (200, ["translatedFileUrl"])
        found.append(httpx.get(answer.json()["translatedFileUrl"]).text)
    assert found[0] == found[1]


def test_sentences_differ_at_most_in_the_last_mark_and_the_case(theirs, ours, multi30k):
    """LibreTranslate gives a translation the text's last punctuation mark and its case."""
    texts = multi30k.sentences("test_2016_flickr", "en")[:200]
    found = []
    for address in (theirs, ours):
        answer = httpx.post(f"{address}/translate", json=ASKED | {"q": texts}, timeout=600)
        found.append([text.rstrip(".!?,;: ").lower() for text in answer.json()["translatedText"]])
    assert found[0] == found[1]
