"""The command line: what it prints, and one line for what the user got wrong."""

import json
import os
import signal
import subprocess
import sys
from importlib import metadata

import pytest
from small_preset import small_preset
from typer.testing import CliRunner

from kzoo import cli
from kzoo.cli import console
from kzoo.cli.console import progress_bar
from kzoo.cli.streams import sentences_of
from kzoo.data import open_corpus
from kzoo.decoding import GNMT, SearchSettings, TextTranslator
from kzoo.errors import UserError
from kzoo.evaluation.directions import read_directions
from kzoo.hub.location import SHELF
from kzoo.presets import list_presets, locate

RECIPE = 'preset = "pope_tiny"\ncorpus = "scenes"\nsource = "en"\ntarget = "de"\n'


def run(*arguments, monkeypatch, capsys):
    """Return the exit status and standard error of `kzoo …`."""
    monkeypatch.setattr("sys.argv", ["kzoo", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    error = capsys.readouterr().err
    if isinstance(stop.value.code, str):  # as Python does on exit
        return 1, stop.value.code
    return stop.value.code, error


def test_the_version_is_that_of_the_installed_package():
    assert CliRunner().invoke(cli.app, ["--version"]).stdout == f"kzoo {metadata.version('kzoo')}\n"


def test_without_its_shelf_kzoo_says_where_it_is(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("kzoo.hub.location.SHELF", tmp_path / "presets")
    status, error = run(
        "translate", "pope_small_multi30k_en_de", "A dog.", monkeypatch=monkeypatch, capsys=capsys
    )
    assert status == 1
    assert "./presets" in error
    listed = CliRunner().invoke(cli.app, ["list", "pope*"]).stdout
    assert "pope_small_multi30k_en_de" in listed and "pip install ./presets" in listed
    assert "glyph" not in listed


def test_help_and_list():
    runner = CliRunner()
    assert "Translate a sentence, a file or standard input" in runner.invoke(cli.app, ["--help"]).stdout
    listed = runner.invoke(cli.app, ["list", "pope*"]).stdout
    assert "pope_base" in listed
    assert "sine_base" not in listed


PRESET = "pope_small_multi30k_en_de"
REFUSED = [
    ("translate pope_tinny Hello.", "'pope_tinny'"),
    ("translate  Hello.", "empty"),
    ("translate Helsinki-NLP/opus-mt-en-de Hello.", "hf://Helsinki-NLP/opus-mt-en-de"),
    (f"translate {PRESET} -i {__file__} -o {__file__}", __file__),
    ("evaluate pope_tinny", "'pope_tinny'"),
    (f"evaluate {PRESET} --corpus multi3k", " multi30k"),
    ("evaluate image_text_tiny_scenes_en_de --split none", "'none'"),
    ("evaluate attention_bridge_m2m_tiny_multi30k --split none", "'none'"),
    ("train none.toml", "none.toml"),
    ("train a.en a.de epochs = 5", "epochs=3"),
    ("train a\u3000b\u200cc.toml", "a\u3000b\u200cc.toml"),
    ("list nope*", "'nope*'"),
    (f"translate {PRESET} --input x dog", "--input"),
    ("translate image_text_tiny_scenes_en_de dog", "--image"),
    (f"translate {PRESET} --n-best 9 dog", "beam_size"),
    (f"translate {PRESET} A\udcff", "arguments, line 1"),
    (f"translate {PRESET} --max-length 3 --min-length 4 dog", "min_length 4 "),
    (f"evaluate {PRESET} --files a b --corpus scenes", "--files and --corpus"),
    (f"report x {PRESET} {PRESET} --files a b --corpus scenes", "--files and --corpus"),
    (f"translate {PRESET} --length-penalty nan dog", "length_penalty "),
    (f"evaluate {PRESET} --length-penalty nan", "length_penalty "),
    (f"export {PRESET} x --length-penalty nan", "length_penalty "),
    (f"export {PRESET} x --format argos", ".argosmodel"),
    *(
        (f"export {PRESET} x.argosmodel --format {to}", "x.argosmodel")
        for to in ("ctranslate2", "saved_model")
    ),
    (f"export {PRESET} x.argosmodel --beam 4", "beam_size"),
    (f"export {PRESET} x.ARGOSMODEL --beam 4", "beam_size"),
    ("export glyph_tiny_tatoeba_zh_en x --format ctranslate2", "RecurrentBackbone"),
    (f"export {PRESET} x --format ctranslate2 --gnmt 1", "--length-penalty"),
    (f"serve {PRESET} --port 0 --length-penalty nan", "length_penalty "),
    (f"serve {PRESET} --port 0 --name a/b", "a model's name (--name)"),
    (f"serve {PRESET} --port 0 --allow-host übersetzer.example", "'übersetzer.example'"),
    (f"serve {PRESET} --port 0 --allow-origin https://site.example/", "'https://site.example/'"),
    (f"serve {PRESET} --port 0 --allow-origin *", "'*'"),
    (f"serve {PRESET} {PRESET} --port 0", f"'{PRESET}'"),
    (f"serve {PRESET} {PRESET} --port 0 --name a", "1 names"),
    (f"serve {PRESET} --port 0 --allow-origin https://site.example:443", "https://site.example:443"),
    *((f"serve {PRESET} --port 0 --keep {value}", "--keep") for value in ("nan", "inf", "-1", "0")),
    *(
        (f"serve {PRESET} --port 0 --memory {size}", "--memory")
        for size in ("nan", "-1G", "1e3G", "9" * 400 + "G")
    ),
    *((f"serve {PRESET} --port 0 --terms {given}", "--terms") for given in ("", "en-de=", "=a.tsv")),
    (f"serve {PRESET} --port 0 --keys none.txt", "none.txt cannot be read"),
    (f"translate {PRESET} dog --terms ", "--terms"),
    (f"translate {PRESET} dog -o x.docx", "x.docx"),
    ("check a.tmx --from en --to de columns=[1,2]", "columns"),
    ("check a.tmx --from en --to de approved=true", "approved"),
    (f"check {os.path.dirname(__file__)} --from en --to de", "dataset"),
]


@pytest.fixture
def nothing_loaded(monkeypatch):
    """Neither Keras nor a model."""
    for loading in ("console.start_backend", "serving.open_translator", "training.import_keras"):
        monkeypatch.setattr(f"kzoo.cli.{loading}", lambda *_: pytest.fail("too late"))


@pytest.mark.usefixtures("nothing_loaded")
@pytest.mark.parametrize(("command", "message"), REFUSED)
def test_user_errors_are_one_line_before_the_model_is_loaded(command, message, monkeypatch, capsys):
    status, error = run(*command.split(" "), monkeypatch=monkeypatch, capsys=capsys)
    assert status == 1
    assert message in error
    assert "\n" not in error.strip()


@pytest.mark.usefixtures("nothing_loaded")
def test_another_backend_than_a_saved_models_is_refused_before_it_is_loaded(monkeypatch, capsys):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    status, error = run("export", PRESET, "x", monkeypatch=monkeypatch, capsys=capsys)
    assert status == 1 and "KERAS_BACKEND=tensorflow" in error


@pytest.mark.usefixtures("nothing_loaded")
@pytest.mark.parametrize("command", [f"evaluate {PRESET} -o {{}}", f"report {{}} {PRESET} {PRESET}"])
def test_scores_do_not_replace_the_text(command, tmp_path, monkeypatch, capsys):
    english, german = tmp_path / "a.en", tmp_path / "a.de"
    english.write_text("A dog.\n")
    german.write_text("Ein Hund.\n")
    words = [*command.format(german).split(" "), "--files", str(english), str(german)]
    status, error = run(*words, monkeypatch=monkeypatch, capsys=capsys)
    assert status == 1 and str(german) in error
    assert german.read_text() == "Ein Hund.\n"
    assert "\n" not in error.strip()


@pytest.mark.usefixtures("nothing_loaded")
@pytest.mark.parametrize("seconds", ["inf", "nan", "1e13"])
def test_a_wait_without_end_is_refused(seconds):
    result = CliRunner().invoke(cli.app, ["serve", PRESET, "--port", "0", "--max-wait", seconds])
    assert result.exit_code == 2


def test_a_corpus_without_the_preset_s_languages_is_refused(monkeypatch, capsys):
    error = run("evaluate", PRESET, "--corpus", "tatoeba_zh_en", monkeypatch=monkeypatch, capsys=capsys)[1]
    assert "en and de" in error


@pytest.mark.usefixtures("nothing_loaded")
def test_what_is_wrong_with_files_is_said_before_the_model_is_loaded(tmp_path, monkeypatch, capsys):
    longer, shorter = tmp_path / "test.en", tmp_path / "test.de"
    longer.write_text("One.\nTwo.\n")
    shorter.write_text("Eins.\n")
    command = ["evaluate", "pope_small_multi30k_en_de", "--files", str(longer), str(shorter)]
    status, error = run(*command, monkeypatch=monkeypatch, capsys=capsys)
    assert status == 1
    assert error.startswith(f"error: {longer} has 2 lines") and f"{shorter} has 1" in error


@pytest.mark.usefixtures("nothing_loaded")
def test_what_is_wrong_with_training_files_is_said_before_keras_is_loaded(tmp_path, monkeypatch, capsys):
    for name, text in {"train.en": "One.\nTwo.\n", "train.de": "Eins.\n"}.items():
        (tmp_path / name).write_text(text)
    recipe = tmp_path / "my.toml"
    files = ["train.en", "train.de"]
    recipe.write_text(RECIPE.replace("scenes", "files") + f"train = {files}\nval = {files}\n")
    error = run("train", str(recipe), monkeypatch=monkeypatch, capsys=capsys)[1]
    assert f"{tmp_path / 'train.en'} has 2 " in error


def test_a_sentence_that_names_a_file_is_noticed(tmp_path, capsys):
    file = tmp_path / "test.en"
    file.write_text("One.\n")
    assert sentences_of([str(file)], None) == [str(file)]
    told = capsys.readouterr().err
    assert str(file) in told and "--input" in told
    assert sentences_of(["A dog. " * 100], None) == ["A dog. " * 100]
    assert capsys.readouterr().err == ""


def test_a_sentence_may_begin_like_another_file_format():
    sentences = ["%PDF- is one.", r"{\rtf is another."]
    assert sentences_of(sentences, None) == sentences


def test_no_progress_is_shown_where_nobody_looks(capsys):
    with progress_bar("translating", 2) as advance:
        advance(2)
    assert capsys.readouterr().err == ""


class Both(TextTranslator):
    """A multilingual translator of English and German."""

    engine, multilingual, languages = "keras", True, ["en", "de"]

    def __init__(self, translate):
        self.translate = translate


class EnglishGerman(TextTranslator):
    """Repeats the sentences."""

    engine = "keras"
    source_language, target_language, source_tokenizer = "en", "de", None

    def translate(self, texts, **options):
        return texts


@pytest.mark.parametrize(
    ("preset", "recorded"), [("models/copier", "copier"), ("hf://me/copier@v2", "hf://me/copier@v2")]
)
def test_evaluation_records_what_it_was_asked(preset, recorded, commands_load, tmp_path, monkeypatch):
    copier = EnglishGerman()
    commands_load(lambda _: copier)
    monkeypatch.setenv("KZOO_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for folder in ("models/copier", "presets/hf/me/copier/v2"):
        small_preset(folder)
    files = [str(tmp_path / f"test.{language}") for language in ("en", "de")]
    for path in files:
        with open(path, "w") as file:
            file.write("Berlin\n")
    output = tmp_path / "scores.json"
    arguments = ["evaluate", preset, "--files", *files, "--truncate", "-o", str(output)]
    assert CliRunner().invoke(cli.app, arguments).exit_code == 0
    scores = json.loads(output.read_text())
    del scores["scores"], scores["licence"]
    assert scores == {
        "preset": recorded,
        "corpus": "files",
        "files": files,
        "source": "en",
        "target": "de",
        "beam_size": 5,
        "length_penalty": 1.0,
        "truncate": True,
        "engine": "keras",
    }


def test_sigterm_ends_a_server_that_is_still_loading(monkeypatch, capsys):
    before = signal.getsignal(signal.SIGTERM)
    loading = lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM)  # noqa: E731
    monkeypatch.setattr("kzoo.cli.serving.open_translator", loading)
    command = ("serve", "pope_small_multi30k_en_de", "--port", "0")
    try:
        assert run(*command, monkeypatch=monkeypatch, capsys=capsys)[0] == 0
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_search_is_the_preset_s_own_unless_another_is_asked_for():
    own = locate("glyph_tiny_tatoeba_zh_en").search
    assert own == SearchSettings(10, 0.9)
    assert own.changed(beam_size=None, length_penalty=None, gnmt=None) == own
    assert own.changed(beam_size=5) == SearchSettings(5, 0.9)
    assert own.changed(length_penalty=1.5) == SearchSettings(10, 1.5)
    assert own.changed(gnmt=0.6) == SearchSettings(10, GNMT(0.6))
    assert str(own) == "beam 10, log P / length^0.9"
    assert str(SearchSettings(4, GNMT(0.6), 99, 3, 2)) == (
        "beam 4, GNMT's length penalty with α = 0.6, at most 99 tokens, at least 3 tokens, no 2-gram twice"
    )


@pytest.mark.parametrize("preset", sorted(path.name for path in SHELF.glob("*/")))
def test_presets_of_the_shelf_have_the_search_of_their_scores(preset):
    scores = json.loads((SHELF / preset / "scores.json").read_text())
    assert locate(preset).search == SearchSettings(scores["beam_size"], scores["length_penalty"])


@pytest.mark.parametrize("scores", [None, {"corpus": "files", "scores": []}])
def test_a_preset_of_any_text_is_not_scored_on_a_corpus_that_nobody_named(
    scores, tmp_path, monkeypatch, capsys
):
    small_preset(tmp_path, **({"scores": scores} if scores else {}))
    message = run("evaluate", str(tmp_path), monkeypatch=monkeypatch, capsys=capsys)[1]
    assert message.endswith("does not name a corpus to score it on: give --corpus, or --files")


def test_evaluation_of_a_run_is_on_its_recipe_s_test_set(tmp_path, monkeypatch, capsys):
    """Whose text for training need not be there any more."""
    small_preset(tmp_path / "preset")
    arguments = ("evaluate", str(tmp_path / "preset"), "--split", "none")
    recipe = {"preset": "pope_tiny", "source": "ar", "target": "pt-BR"}
    (tmp_path / "recipe.json").write_text(json.dumps({**recipe, "corpus": "scenes"}))
    message = run(*arguments, monkeypatch=monkeypatch, capsys=capsys)[1]
    assert "'none'" in message
    (tmp_path / "a").touch(), (tmp_path / "b").touch()
    files = {
        "train": ["gone", "gone"],
        "val": ["gone", "gone"],
        "test": [str(tmp_path / "a"), str(tmp_path / "b")],
    }
    (tmp_path / "recipe.json").write_text(json.dumps({**recipe, "corpus": "files", **files}))
    message = run(*arguments, monkeypatch=monkeypatch, capsys=capsys)[1]
    assert "'none': known: test" in message
    message = run(*arguments[:-1], "val", monkeypatch=monkeypatch, capsys=capsys)[1]
    assert "gone: " in message and "--corpus, or --files" in message
    (tmp_path / "recipe.json").write_text(json.dumps({**recipe, "corpus": "files", "train": ["x", "y"]}))
    for asked in (arguments[:2], (*arguments[:-1], "test")):
        message = run(*asked, monkeypatch=monkeypatch, capsys=capsys)[1]
        assert "--corpus, or --files" in message


def test_a_report_is_on_the_first_run_s_own_test_set(commands_load, tmp_path, monkeypatch, capsys):
    small_preset(tmp_path / "preset")
    small_preset(tmp_path / "other")
    recipe = {"preset": "pope_tiny", "source": "en", "target": "th", "corpus": "files"}
    files = {
        "train": ["gone", "gone"],
        "val": ["gone", "gone"],
        "test": [str(tmp_path / "a"), str(tmp_path / "b")],
    }
    (tmp_path / "recipe.json").write_text(json.dumps({**recipe, **files}))
    arguments = (
        "report",
        str(tmp_path / "page.html"),
        str(tmp_path / "preset"),
        str(tmp_path / "other"),
        "--split",
        "none",
    )
    (tmp_path / "a").touch(), (tmp_path / "b").touch()
    message = run(*arguments, monkeypatch=monkeypatch, capsys=capsys)[1]
    assert "'none': known: test" in message
    (tmp_path / "recipe.json").write_text(json.dumps({**recipe, "corpus": "multi30k", "target": "de"}))
    commands_load(lambda _: EnglishGerman())
    seen = []
    monkeypatch.setattr(
        "kzoo.data.corpora.Corpus.pairs", lambda _, split, *way: seen.append((split, *way)) or exit()
    )
    CliRunner().invoke(cli.app, arguments[:-2])
    assert seen == [("test_2016_flickr", "en", "de")]


@pytest.mark.usefixtures("few_scenes")
def test_a_multilingual_preset_is_scored_in_every_direction(commands_load, tmp_path):
    """With a translator that knows the references into German, and repeats its source for English."""

    def translate(texts, source_language, target_language, **_):
        return open_corpus("scenes").sentences("val", "de") if target_language == "de" else texts

    model = Both(translate)
    commands_load(lambda _: model)
    output = tmp_path / "scores.json"
    arguments = ["evaluate", str(small_preset(tmp_path / "m").folder), "--corpus", "scenes", "--split", "val"]
    result = CliRunner().invoke(cli.app, [*arguments, "-o", str(output)])
    assert result.exit_code == 0
    assert "| en | 100.0 |  |" in result.stdout
    assert "val: mean BLEU" in result.stdout
    assert "BLEU into de, en: `nrefs:1" in result.stdout
    bleu, unseen = read_directions(output)
    assert (list(bleu), unseen) == ([("en", "de"), ("de", "en")], [])
    assert bleu["en", "de"] == pytest.approx(100)
    assert bleu["de", "en"] < 20
    assert json.loads(output.read_text())["licence"] == open_corpus("scenes").licence
    refused = CliRunner().invoke(cli.app, [*arguments, "--split", "test"])
    assert "split" in str(refused.exception)
    model.languages = ["en", "xx"]
    refused = CliRunner().invoke(cli.app, arguments)
    assert "en, xx" in str(refused.exception)


@pytest.mark.usefixtures("few_scenes")
def test_a_model_tuned_in_one_direction_is_scored_in_that_alone(commands_load, tmp_path):
    model = Both(lambda texts, *_, **__: texts)
    small_preset(tmp_path / "preset")
    commands_load(lambda _: model)
    recipe = {"preset": "attention_bridge_m2m_tiny", "corpus": "scenes", "languages": ["en", "de"]}
    arguments = ["evaluate", str(tmp_path / "preset"), "--split", "val"]
    for directions, count in ((["de-en"], 1), ([], 2)):
        (tmp_path / "recipe.json").write_text(json.dumps({**recipe, "directions": directions}))
        printed = CliRunner().invoke(cli.app, arguments).stdout
        assert f"of {count} directions" in printed


def test_names_of_presets_are_whole_in_a_narrow_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    printed = CliRunner().invoke(cli.app, ["list"]).stdout
    for name in list_presets():
        assert name in printed


def test_plots_print_epochs(tmp_path):
    (tmp_path / "history.csv").write_text("epoch,loss,val_bleu\n1,5,3.5\n2,4,20\n")
    drawn = tmp_path / "curves.svg"
    result = CliRunner().invoke(cli.app, ["plot", "curves", str(drawn), f"run={tmp_path}", "--reach", "10"])
    assert result.exit_code == 0
    assert "| run | 2 |" in result.stdout
    assert drawn.exists()


def test_a_recipe_s_unknown_key_is_named(tmp_path, monkeypatch, capsys):
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    status, error = run("train", path, "epoch=3", monkeypatch=monkeypatch, capsys=capsys)
    assert status == 1
    assert "'epoch'" in error and " epochs" in error


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        # With its control character written out: it cannot steer a terminal.
        (OSError(28, "…", "runs/\x1bx/preset"), r": runs/\x1bx/preset"),
        (OverflowError("int too large"), "int too large"),
        # As JAX reports it.
        (RuntimeError("RESOURCE_EXHAUSTED: 9 bytes\n…"), "RESOURCE_EXHAUSTED: 9 bytes"),
    ],
)
def test_an_error_of_the_system_is_one_line(raised, message, monkeypatch, capsys):
    def fails(*arguments, **keywords):
        raise raised

    monkeypatch.setattr(cli, "app", fails)
    status, error = run(monkeypatch=monkeypatch, capsys=capsys)
    assert status == 1 and error.startswith("error: ") and error.endswith(message)


def test_unknown_options_exit_with_2(monkeypatch, capsys):
    assert run("translate", "--unknown", monkeypatch=monkeypatch, capsys=capsys)[0] == 2


@pytest.mark.parametrize("text", ["- Yes.", "-5 degrees", "--no"])
def test_a_text_that_begins_with_a_dash_is_told_how(text):
    result = CliRunner().invoke(cli.app, ["translate", PRESET, text])
    assert result.exit_code == 2
    assert "write --" in " ".join(result.output.replace("│", " ").split())


def test_errors_are_value_errors_too():
    assert issubclass(UserError, ValueError)


def test_what_keras_hub_prints_when_imported_is_discarded(tmp_path, monkeypatch, capfd):
    """It imports TensorFlow, whose first lines no setting silences."""
    (tmp_path / "keras_hub.py").write_text("import os; os.write(2, b'oneDNN is on')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "keras_hub", None)
    del sys.modules["keras_hub"]
    console.import_keras()
    assert sys.modules["keras_hub"].__file__ == str(tmp_path / "keras_hub.py")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ImportError("Traceback …\n  File x\nImportError: libx.so\n\nFailed."), "ImportError: libx.so"),
        (RuntimeError("Unable to initialize\nbackend"), "Unable to initialize"),
        (AssertionError(), "AssertionError"),
    ],
)
def test_a_backend_that_cannot_start_says_why_in_one_line(error, reason):
    with pytest.raises(UserError) as raised, console._started():
        raise error
    assert str(raised.value).endswith(f"(KERAS_BACKEND): {reason}")


def test_the_list_is_printed_where_standard_output_is_not_utf_8():
    command = [sys.executable, "-m", "kzoo", "list", "pope_small_multi30k_en_de"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert b"pope_small_multi30k_en_de" in done.stdout and b"\\u2192" in done.stdout and not done.stderr
