"""The documentation: its links lead somewhere, its Python's names and imports exist; by hand, it runs."""

import ast
import doctest
import gzip
import importlib
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer

import kzoo
from kzoo.cli import app
from kzoo.training.recipe import KEYS
from kzoo.training.recipe_files import read_recipe, recipe_file

ROOT = Path(__file__).parents[1]


def code(page: Path) -> str:
    """Return a page's Python: its blocks, one after the other, as a reader would type them."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S))


FILES = [
    *ROOT.glob("*.md"),
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("training/*/RESULTS.md")),
    *sorted(ROOT.glob("presets/**/README.md")),
]
COMMAND = re.compile(r"^    (?:[A-Z_]+=\S+ )*(?:python3? -m )?(kzoo [a-z].*)$", re.M)
PAGES = {str(page.relative_to(ROOT)): code(page) for page in FILES if code(page)}


def reference_pages():
    """Return `docs/reference_pages.py`, which writes the reference from the code."""
    spec = importlib.util.spec_from_file_location("reference_pages", ROOT / "docs/reference_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", FILES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page):
    """Whether their headings exist, and links from generated pages, `make docs` checks."""
    links = re.findall(
        r"\]\(([^)#\s]+)", re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S)
    )
    inside = [link for link in links if "://" not in link]
    assert not [link for link in inside if not (page.parent / link).exists()]


def test_there_is_python_in_the_documentation():
    assert {
        "README.md",
        "docs/adding_a_language.md",
        "training/glyph/RESULTS.md",
        "training/image_text/RESULTS.md",
    } < set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_names_are_defined(page):
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821", "-"],
        input=PAGES[page],
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_what_is_imported_from_kzoo_exists(page):
    for node in ast.walk(ast.parse(PAGES[page])):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("kzoo"):
            module = importlib.import_module(node.module)
            assert all(hasattr(module, name.name) for name in node.names), node.module


@pytest.mark.parametrize("page", FILES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_their_options_exist(page):
    text = re.sub(
        "^```\n.*?^```",
        lambda block: block[0].replace("\n", "\n    "),
        page.read_text("utf-8"),
        flags=re.M | re.S,
    )
    for line in COMMAND.findall(text.replace("\\\n", " ")):
        command, words = typer.main.get_command(app), shlex.split(line, comments=True)[1:]
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        assert not hasattr(command, "commands"), line
        options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
        assert {word.split("=")[0] for word in words if word.startswith("-")} <= options, line
        if command.name in ("train", "prepare"):
            overrides = [word for word in words[1:] if re.match(r"[a-z_0-9]+[.=]", word)]
            assert {re.split("[.=]", word)[0] for word in overrides} <= set(KEYS), line
            own = words[0] == "RECIPE" or words[0].endswith((".toml", ".en", ".zh", ".tmx"))
            assert own or recipe_file(words[0]).is_file(), line


@pytest.mark.parametrize("page", PAGES)
def test_optimizers_are_the_same_on_all_backends(page):
    """Keras's own square the parts of an embedding's gradient one by one on TensorFlow."""
    assert not re.search(r"keras\.optimizers\.(Adam|Adagrad|SGD)\(", PAGES[page])


def test_a_language_added_to_the_paper_s_model_leaves_the_others_as_they_were():
    """The code of docs/adding_a_language.md, untrained; this model has two tables of embeddings."""
    sizes = {"embedding_dim": 8, "width": 8, "hidden_dim": 8, "num_heads": 2}
    left_out = (".fit(", "model.translate(", "model.embed(")
    lines = PAGES["docs/adding_a_language.md"].splitlines()
    page = "\n".join(line for line in lines if not any(call in line for call in left_out))
    page = page.replace('"train"', '"val"').replace("attention_bridge_m2m_tiny", "attention_bridge_m2m")
    page = page.replace("m2m(tokenizers)", f"m2m(tokenizers, **{sizes})")
    names = {}
    exec(page, names)
    old, new = names["model"], names["larger"]
    assert old.backbone.target_embedding is not old.backbone.embedding
    batch = names["PairBatches"](names["words"], [("de", "fr")], names["languages"], tokens=256)[0][0]
    np.testing.assert_array_equal(*(np.asarray(model(batch)) for model in (old, new)))


@pytest.mark.parametrize("page", ["README.md", "docs/data.md"])
def test_recipes_can_be_read(page, tmp_path):
    recipes = re.findall(r"^```toml\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.M | re.S)
    assert recipes
    for name in re.findall(r'"([\w.]+\.(?:en|de|fr))"', "".join(recipes)):
        (tmp_path / name).write_text("a dog\n" * 2000)
    for recipe in recipes:
        (tmp_path / "my.toml").write_text(recipe, "utf-8")
        assert read_recipe(tmp_path / "my.toml").corpus == "files"


@pytest.mark.skipif("KZOO_SLOW" not in os.environ, reason="trains for minutes: KZOO_SLOW=1 runs it")
@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/adding_a_language.md",
        "training/glyph/RESULTS.md",
        "training/image_text/RESULTS.md",
        "docs/pictures.md",
    ],
)
def test_it_runs(page, tmp_path):
    left_out = "evaluate_embeddings("  # needs SentEval's data, and half an hour
    lines = [line for line in PAGES[page].splitlines() if left_out not in line]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", "\n".join(lines)], cwd=tmp_path, env=environment, check=True)


class Shapes(doctest.OutputChecker):
    """Takes TensorFlow's shapes for the tuples that they are."""

    def check_output(self, want, got, optionflags):
        got = re.sub(r"TensorShape\((.*?)\)", lambda shape: str(tuple(ast.literal_eval(shape[1]))), got)
        return super().check_output(want, got, optionflags)


@pytest.mark.parametrize("pages", ["_layers", "_presets", "_packages"])
def test_the_reference_s_examples_run(pages, tmp_path, monkeypatch):
    """As they stand on the site, with their imports."""
    monkeypatch.chdir(tmp_path)
    for name in ("train.id", "train.zh"):
        Path(name).write_text("a line\n", "utf-8")
    Path("val.tsv.gz").write_bytes(gzip.compress(b"a line\ta line\n"))
    runner = doctest.DocTestRunner(Shapes())
    parts = [part for text in getattr(reference_pages(), pages)().values() for part in text.split("::::{py:")]
    for part in parts:
        example = "\n\n".join(re.findall(r"^```pycon\n(.*?)^```", part, re.M | re.S))
        example = example.replace(">>> uvicorn.run(", ">>> None and uvicorn.run(")  # which does not end
        if example:
            runner.run(doctest.DocTestParser().get_doctest(example, {}, part.split("(")[0], None, None))
    assert runner.tries and not runner.failures


def test_the_reference_has_the_options_choices_and_the_notebook_s_picture():
    pages = reference_pages()
    (engine,) = {line for line in pages._command_line().splitlines() if line.startswith("| `--engine`")}
    assert all(f"`{name}`" in engine for name in ("auto", "keras", "ctranslate2"))
    text, pictures = pages._notebook(ROOT / "docs/first_translator.ipynb")
    assert pictures and all(f"]({name})" in text for name in pictures)


@pytest.mark.parametrize(
    ("file", "version"), [("CITATION.cff", r"^version: (.*)$"), ("docs/citing.md", r"version = \{(.*)\}")]
)
def test_the_citation_names_this_version(file, version):
    assert re.findall(version, (ROOT / file).read_text("utf-8"), re.M) == [kzoo.__version__]
