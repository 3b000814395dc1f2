"""`kzoo translate` of files: written as they are translated, and gone on with after a stop."""

import bz2
import gzip
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image
from small_preset import small_preset
from typer.testing import CliRunner

from kzoo import cli
from kzoo.cli import streams, translated_blocks
from kzoo.decoding import TextTranslator
from kzoo.documents.document import BY_ENDING
from kzoo.errors import UserError
from kzoo.models import Hypothesis
from kzoo.text.vocabulary import UNKNOWN

LINES = [f"line {number}" for number in range(10)]


class Upper(TextTranslator):
    """Translates to capitals; a signal, `stop_by`, comes before `stop_at`."""

    engine, threads = "ctranslate2", 1
    source_language, target_language = "en", "de"
    target_tokenizer, max_length = None, 5

    @staticmethod
    def source_tokenizer(texts):
        return [text.split() for text in texts]

    def __init__(self):
        self.seen, self.stop_at, self.stop_by = [], None, signal.SIGTERM

    def n_best(self, texts, n, **options):
        if self.stop_at in texts:
            os.kill(os.getpid(), self.stop_by)
        self.seen += texts
        return [[Hypothesis(f"{text.upper()} {k}", -1.0) for k in range(n)] for text in texts]


@pytest.fixture
def upper(commands_load, monkeypatch, tmp_path):
    model = Upper()
    commands_load(lambda _: model)
    monkeypatch.setattr(translated_blocks, "FEWEST", 3)
    small_preset(tmp_path / "m")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    Path("in.txt").write_text("".join(f"{line}\n" for line in LINES))
    return model


def kzoo(*arguments):
    return CliRunner().invoke(cli.app, ["translate", "../m", "--input", "in.txt", *arguments])


def upper_lines(n=1):
    if n == 1:
        return "".join(f"{line.upper()} 0\n" for line in LINES)
    return "".join(
        f"{number}\t-1.0000\t{line.upper()} {k}\n" for number, line in enumerate(LINES, 1) for k in range(n)
    )


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize(("cut", "stop_by"), [(0, signal.SIGINT), (4, signal.SIGTERM)])
def test_what_is_stopped_goes_on(upper, n, cut, stop_by):
    """Also where the last line was only half written."""
    upper.stop_at, upper.stop_by = "line 5", stop_by
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
    try:
        stopped = kzoo("-o", "out.txt", "--n-best", str(n))
    finally:
        signal.signal(signal.SIGINT, earlier)
    (part,) = Path().glob("out.txt.*.part")
    assert stopped.exit_code == 128 + stop_by
    assert all(part_of in stopped.stderr for part_of in (" 3 of 10 ", str(part.resolve())))
    assert not Path("out.txt").exists()
    assert part.read_text() == "".join(upper_lines(n).splitlines(keepends=True)[: 3 * n])
    os.truncate(part, part.stat().st_size - cut)
    upper.stop_at, upper.seen = None, []
    assert kzoo("-o", "out.txt", "--n-best", str(n)).exit_code == 0
    assert Path("out.txt").read_text() == upper_lines(n)
    assert upper.seen[0] == ("line 3" if n == 1 and not cut else "line 2")
    assert not part.exists()


def test_a_full_disk_names_the_file_and_the_same_command_goes_on(upper):
    """No file grows over 50 bytes, at first."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, limits[1]))
    try:
        stopped = kzoo("-o", "out.txt")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    (part,) = Path().glob("out.txt.*.part")
    assert isinstance(stopped.exception, UserError)
    assert "out.txt: cannot be written (File too large)" in str(stopped.exception)
    assert part.name in str(stopped.exception)
    assert part.stat().st_size <= 50
    upper.seen = []
    assert kzoo("-o", "out.txt").exit_code == 0
    assert Path("out.txt").read_text() == upper_lines()
    assert upper.seen != LINES
    assert sorted(os.listdir()) == ["in.txt", "out.txt"]


def test_a_stop_while_the_file_is_packed_leaves_nothing_hidden(upper, monkeypatch):
    stop = lambda *_: os.kill(os.getpid(), signal.SIGTERM)  # noqa: E731
    monkeypatch.setattr(shutil, "copyfileobj", stop)
    earlier = signal.signal(signal.SIGTERM, lambda *_: None)  # not the default, which ends the tests
    try:
        stopped = kzoo("-o", "out.xz")
    finally:
        signal.signal(signal.SIGTERM, earlier)
    (part,) = Path().glob("out.xz.*.part")
    assert stopped.exit_code == 143
    assert all(part_of in stopped.stderr for part_of in (" 10 of 10 ", str(part.resolve())))
    assert sorted(os.listdir()) == ["in.txt", part.name]


def test_a_stop_before_the_first_block_keeps_nothing(upper):
    upper.stop_at = "line 1"
    assert kzoo("-o", "out.txt").stderr.rstrip().endswith(" 0 of 10 lines")
    assert os.listdir() == ["in.txt"]


def test_a_line_that_is_too_long_is_found_before_any_is_translated(upper):
    lines = LINES * (streams.MOST // 4)  # the line is in the third part
    Path("in.txt").write_text("".join(f"{line}\n" for line in [*lines, "one two three four five"]))
    assert f"sentence {len(lines) + 1} has 5 " in str(kzoo("-o", "out.txt").exception)
    assert (upper.seen, os.listdir()) == ([], ["in.txt"])
    assert kzoo("-o", "out.txt", "--truncate").exit_code == 0


def test_blocks_take_some_seconds():
    assert [translated_blocks.next_size(100, seconds) for seconds in (0.0, 2, 4, 8)] == [200, 200, 100, 50]
    assert translated_blocks.next_size(streams.MOST, 1) == streams.MOST


@pytest.mark.parametrize(
    ("keras", "unit", "count", "fewest"),
    [
        (False, "text", 1000, 96),
        (False, "line", 10**6, 96),
        (True, "text", 1000, 256),
        (True, "text", 10_000, 256),
        (True, "line", 1000, 4096),
        (True, "line", 80_000, 10_000),
        (True, "line", 10**6, streams.MOST),
    ],
)
def test_the_smallest_blocks_of_each_engine(keras, unit, count, fewest):
    translator = SimpleNamespace(runs_on_keras=keras, threads=2)
    assert translated_blocks.fewest_texts(translator, unit, count) == fewest


def test_another_text_or_search_begins_anew(upper):
    upper.stop_at = "line 7"
    kzoo("-o", "out.txt")
    upper.stop_at, upper.seen = None, []
    assert kzoo("-o", "out.txt", "--beam", "3").exit_code == 0
    assert upper.seen == LINES


def test_another_picture_of_the_same_name_begins_anew(upper):
    upper.image_shape, upper.stop_at = (2, 2, 3), "line 7"
    for colour in ("red", "blue"):
        Image.new("RGB", (2, 2), colour).save("a.png")
        upper.seen = []
        kzoo("-o", "out.txt", *["--image", "a.png"] * len(LINES))
        upper.stop_at = None
    assert upper.seen == LINES


def test_another_engine_begins_anew(upper):
    for engine in ("ctranslate2 int8", "ctranslate2 float32", "ctranslate2 float32 on cuda"):
        upper.engine, upper.seen = engine, []
        upper.stop_at = None if engine.endswith("cuda") else "line 7"
        kzoo("-o", "out.txt")
        assert upper.seen[0] == LINES[0]
    assert upper.seen == LINES


def test_the_translation_is_packed_as_its_name_says(upper):
    for name, unpack in {"out.gz": gzip.decompress, "out.BZ2": bz2.decompress}.items():
        assert kzoo("-o", name).exit_code == 0
        assert unpack(Path(name).read_bytes()).decode() == upper_lines()
    assert Path("out.gz").read_bytes()[3:8] == bytes(5)  # no name, no time
    assert kzoo("-o", os.devnull).exit_code == 0
    assert kzoo().stdout == upper_lines()
    assert sorted(os.listdir()) == ["in.txt", "out.BZ2", "out.gz"]


def test_another_glossary_begins_anew(upper):
    Path("terms.tsv").write_text("line\tZeile\n")
    upper.stop_at = "line 5"
    assert kzoo("-o", "out.txt").exit_code == 143
    upper.stop_at, upper.seen = None, []
    assert kzoo("-o", "out.txt", "--terms", "terms.tsv").exit_code == 0
    assert upper.seen == LINES


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "terms.tsv has no terms"),
        ("dog\tHund\n\ncat", "line 3"),
        ("dog\t", "line 1"),
        ("\tHund", "line 1"),
        ("dog\tHund\tm", "line 1"),
        ("dog\tHund\nDog\tKöter", "line 2"),
        (b"dog\tk\xf6ter", "terms.tsv"),
    ],
)
def test_bad_terms_are_refused(upper, content, says):
    Path("terms.tsv").write_bytes(content if isinstance(content, bytes) else content.encode())
    done = kzoo("-o", "out.txt", "--terms", "terms.tsv")
    assert isinstance(done.exception, UserError) and says in str(done.exception)
    assert (upper.seen, sorted(os.listdir())) == ([], ["in.txt", "terms.tsv"])


def test_the_glossary_is_not_replaced(upper):
    Path("terms.tsv").write_text("line\tZeile\n")
    done = kzoo("-o", "terms.tsv", "--terms", "terms.tsv")
    assert isinstance(done.exception, UserError) and "terms.tsv" in str(done.exception)
    assert (upper.seen, Path("terms.tsv").read_text()) == ([], "line\tZeile\n")


def test_an_error_names_the_line_that_it_counts_from(upper, monkeypatch):
    def n_best(texts, **options):
        if "line 5" in texts:
            raise UserError("the scores of sentence 2 are not finite")
        return Upper.n_best(upper, texts, **options)

    upper.n_best = n_best
    message = "in the lines after line 3: the scores of sentence 2 are not finite"
    assert str(kzoo("-o", "out.txt").exception) == message


def test_a_table_is_refused(upper):
    Path("pairs.tsv").write_text("a\tb\n")
    refused = CliRunner().invoke(cli.app, ["translate", "../m", "--input", "pairs.tsv"])
    assert isinstance(refused.exception, UserError)
    assert "cut -f1 pairs.tsv" in str(refused.exception)


@pytest.mark.parametrize(("text", "refused"), [("a\tb\nc\td\n", True), ("a\tb\nc\n", False)])
def test_text_whose_lines_all_have_tabs_is_taken_for_a_table(upper, text, refused):
    Path("pairs.txt").write_text(text)
    for name, options in (("pairs.txt", ["--input", "pairs.txt"]), ("standard input", [])):
        done = CliRunner().invoke(cli.app, ["translate", "../m", *options], input=text)
        if refused:
            assert isinstance(done.exception, UserError)
            assert name in str(done.exception) and "cut -f1" in str(done.exception)
        else:
            assert done.exit_code == 0


@pytest.mark.parametrize("command", [["evaluate", "../m"], ["report", "page.html", "../m", "../m"]])
def test_files_are_one_table_or_a_text_and_its_references(command, upper, monkeypatch):
    told, stub = [], SimpleNamespace(languages=["en", "de"])
    monkeypatch.setattr("kzoo.cli.text_to_score.open_files", lambda test: told.append(test) or stub.none)
    for files in (["t.tsv"], ["a", "b"], ["a", "b", "c"]):
        CliRunner().invoke(cli.app, [*command, "--files", *files, "--truncate"])
        assert told.pop() == [Path(file) for file in files]
    assert CliRunner().invoke(cli.app, [*command, "--files", "--truncate"]).exit_code == 2


def test_unknown_characters_are_counted_once_for_all_lines(upper, monkeypatch):
    def tokenizer(texts):
        return [[UNKNOWN if re.search("[♪☺]", word) else 9 for word in text.split()] for text in texts]

    upper.source_tokenizer = tokenizer
    lines = [*LINES[:7], "♪", "a ♪ dog", "a {☺} dog"]  # the last has it in a placeholder only
    Path("in.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    done = kzoo("--output", "out.txt")
    assert "☺" not in done.stderr and "'☺'" in kzoo("--n-best", "2").stderr
    assert done.output.count("2 of 10 sentences") == done.output.count("'♪'") == 1
    assert len(Path("out.txt").read_text("utf-8").splitlines()) == 10
    refused = kzoo("--unknown", "error")
    assert isinstance(refused.exception, UserError) and "'♪'" in str(refused.exception)


def test_unknown_characters_of_a_sentence_in_capitals_are_counted(upper):
    """It is read in lower case, as its pieces are then the fewest."""

    def tokenizer(texts):
        return [[UNKNOWN if c in "Þþ" else 9 for c in text for _ in range(1 + c.isupper())] for text in texts]

    upper.source_tokenizer = tokenizer
    Path("in.txt").write_text("ABÞ\n", "utf-8")
    assert "'þ'" in kzoo("-o", "out.txt").stderr


@pytest.fixture
def written(monkeypatch):
    """Standard input as a pipe: a file to write to."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin, os.fdopen(writing, "wb", buffering=0) as file:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield file


def test_lines_of_a_pipe_are_translated_as_they_arrive(written, upper, capfdbinary):
    lines = streams.arriving_lines()
    for block in (["one"], ["two", "three"]):
        written.write("".join(f"{line}\n" for line in block).encode())
        found = []
        while len(found) < len(block):  # they may arrive one by one
            found += next(lines)
        assert found == block
    written.close()
    assert list(lines) == []


def test_a_pipe_is_translated_whole(written, upper, capfdbinary):
    written.write(b"one\ntwo\nthree")
    written.close()
    cli.app(["translate", "../m", "--n-best", "2"], standalone_mode=False)
    out = capfdbinary.readouterr().out.decode().splitlines()
    assert out == [
        f"{n}\t-1.0000\t{word} {k}" for n, word in enumerate(("ONE", "TWO", "THREE"), 1) for k in (0, 1)
    ]


def test_an_error_of_a_pipe_names_its_line(written):
    written.write(b"one\n\xff\n")
    written.close()
    with pytest.raises(UserError, match="input, line 2"):
        list(streams.arriving_lines())


def test_standard_input_is_not_replaced(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("A dog runs.\n")
    command = [sys.executable, "-m", "kzoo", "translate", "pope_small_multi30k_en_de", "-o", str(text)]
    with open(text) as file:
        done = subprocess.run(command, stdin=file, capture_output=True, text=True, check=False)
    assert (done.returncode, str(text) in done.stderr) == (1, True)
    assert text.read_text() == "A dog runs.\n"


def test_languages_that_a_preset_lacks_are_refused_without_loading_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "kzoo.models", None)  # importing it fails
    for preset, options in (
        ("attention_bridge_m2m_tiny_multi30k", []),
        ("attention_bridge_m2m_tiny_multi30k", ["--from", "en", "--to", "es"]),
        ("glyph_tiny_tatoeba_zh_en", ["--to", "fr"]),
    ):
        result = CliRunner().invoke(cli.app, ["translate", preset, "A dog.", *options])
        assert isinstance(result.exception, UserError)
        assert any(code in str(result.exception) for code in ("--from", "es", "fr"))


DOCUMENT = {"title": "line 1", "twice": ["line 2", "line 2"], "more": [f"line {n}" for n in range(3, 9)]}


@pytest.fixture
def document(upper, monkeypatch):
    """The name of a document of eight texts, which are translated to capitals; `bad` gets a number.

    Numbers of two digits, which may stand for placeholders, are lost.
    """

    def n_best(texts, n, **options):
        assert options["split_sentences"] is False  # they are sentences already
        if upper.stop_at in texts:
            os.kill(os.getpid(), signal.SIGTERM)
        upper.seen += texts
        found = ("7" if text == "bad" else re.sub(r"\d\d", "", text.upper()) for text in texts)
        return [[Hypothesis(text, -1.0)] for text in found]

    upper.n_best = n_best
    Path("in.json").write_text(json.dumps(DOCUMENT))
    return "in.json"


def translated(*arguments):
    return CliRunner().invoke(cli.app, ["translate", "../m", *arguments])


def test_a_document_is_translated_and_goes_on_after_a_stop(upper, document):
    upper.stop_at = "line 6"
    stopped = translated("-i", document, "-o", "out.json")
    assert stopped.exit_code == 143 and " 3 of 8 " in stopped.stderr
    assert not Path("out.json").exists()
    upper.stop_at, upper.seen = None, []
    assert translated("-i", document, "-o", "out.json").exit_code == 0
    assert upper.seen == [f"line {n}" for n in range(4, 9)]
    assert Path("out.json").read_text() == json.dumps(DOCUMENT).replace("line", "LINE")
    assert sorted(os.listdir()) == ["in.json", "in.txt", "out.json"]


def test_what_a_document_keeps_untranslated_is_printed(document):
    Path(document).write_text('{\n"a": "good",\n"b": "bad"}')
    done = translated("-i", document, "-o", "out.json")
    assert "line 3" in done.stderr and not any(text in done.stderr for text in ("line 2", "'bad'"))
    assert json.loads(Path("out.json").read_text()) == {"a": "GOOD", "b": "bad"}


def test_sentences_whose_placeholders_the_model_loses_are_printed(document):
    """They come through, between the words around them, which is worse."""
    Path(document).write_text(json.dumps(["a dog. see {x} now", "good", "{y}"]))
    done = translated("-i", document, "-o", "out.json")
    assert json.loads(Path("out.json").read_text()) == ["A DOG. SEE {x} NOW", "GOOD", "{y}"]
    assert "'see {x} now'" in done.stderr
    assert not any(text in done.stderr for text in ("a dog", "'see'", "'now'", "good", "{y}"))


def test_sentences_of_a_text_that_is_kept_untranslated_are_not_printed(document):
    Path(document).write_text(json.dumps(["see {x} now. bad", "good"]))
    done = translated("-i", document, "-o", "out.json")
    assert json.loads(Path("out.json").read_text()) == ["see {x} now. bad", "GOOD"]
    assert "'see {x} now.'" not in done.stderr


def test_a_sentence_that_is_too_long_leaves_its_text_in_a_document(upper, document):
    """The rest is translated; `--truncate` cuts the sentence instead."""
    texts = ["good", "one two three four five", "bad", "line 5"]
    Path(document).write_text(json.dumps(texts, indent=1))
    done = translated("-i", document, "-o", "out.json")
    assert json.loads(Path("out.json").read_text()) == ["GOOD", *texts[1:3], "LINE 5"]
    (too_long, other) = done.stderr.splitlines()
    assert "line 3" in too_long and "the 4 subwords" in too_long and "line 4" not in too_long
    assert "line 4" in other
    assert translated("-i", document, "-o", "cut.json", "--truncate").exit_code == 0
    assert json.loads(Path("cut.json").read_text()) == ["GOOD", texts[1].upper(), "bad", "LINE 5"]


@pytest.mark.parametrize(
    ("unknown", "found"), [("copy", "GOOD. Ш Ш Ш Ш Ш"), ("translate", "good. ш ш ш ш ш")]
)
def test_a_sentence_that_is_copied_is_not_too_long(upper, document, unknown, found):
    upper.source_tokenizer = lambda texts: [
        [UNKNOWN if "ш" in word else 9 for word in text.split()] for text in texts
    ]
    Path(document).write_text('["good. ш ш ш ш ш"]', "utf-8")
    done = translated("-i", document, "-o", "out.json", "--unknown", unknown)
    assert json.loads(Path("out.json").read_text("utf-8")) == [found]
    assert ("more than the 4 subwords" in done.stderr) == (unknown == "translate")


def test_placeholders_of_lines_come_through(upper):
    """As in documents; a line of which this fails has the model's translation, and is printed."""

    def n_best(texts, n, **options):
        upper.seen += texts
        found = ("{y}" if text == "bad" else re.sub(r"\{x}|\d\d", "", text).upper() for text in texts)
        return [[Hypothesis(text, -1.0)] for text in found]

    upper.n_best = n_best
    Path("in.txt").write_text("good\nsee {x} now\n{x} bad\nline 12\n")
    done = kzoo("-o", "out.txt")
    assert Path("out.txt").read_text() == "GOOD\nSEE {x} NOW\n BAD\nLINE \n"
    (first, last) = done.stderr.splitlines()
    assert "in parts" in first and "'see {x} now'" in first and "'{x} bad'" in last
    assert upper.seen.count("good") == 1


@pytest.mark.parametrize("name", ["in.txt", "in.json"])
def test_parts_whose_characters_are_unknown_are_no_error(upper, name):
    def n_best(texts, n, unknown, **options):
        if unknown == "error" and "ш" in texts:
            raise UserError("ш")
        return [[Hypothesis(re.sub(r"{.*}|\d", "", text).upper(), -1.0)] for text in texts]

    upper.n_best = n_best
    Path("in.txt").write_text("a dog {x} ш\n", "utf-8")
    Path("in.json").write_text('["a dog {x} ш"]', "utf-8")
    output = name.replace("in", "out")
    done = translated("-i", name, "-o", output, "--unknown", "error")
    assert (done.exception, "A DOG {x} Ш" in Path(output).read_text("utf-8")) == (None, True)


def test_lines_of_a_pipe_that_lose_placeholders_are_printed(written, upper, capfdbinary):
    upper.n_best = lambda texts, n, **_: [[Hypothesis("7 {y}", -1.0)] for _ in texts]
    written.write(b"see {x}\ngood {y}\n")
    written.close()
    cli.app(["translate", "../m"], standalone_mode=False)
    told = capfdbinary.readouterr().err.decode()
    assert told.count("'see {x}'") == 1 and "good" not in told


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "give --output"),
        (["-o", "out.txt"], "must end in .json"),
        (["-o", "out.json", "--n-best", "2"], "--n-best"),
        (["-o", "in.json"], "is the input"),
    ],
)
def test_options_that_do_not_fit_a_document(upper, document, arguments, says):
    assert says in str(translated("-i", document, *arguments).exception)
    assert (upper.seen, sorted(os.listdir())) == ([], ["in.json", "in.txt"])


@pytest.mark.parametrize("name", ["in.pot", "in.DOC"])
def test_what_another_format_may_be_saved_as(upper, document, name):
    Path(name).write_text("one\n")
    error = str(translated("-i", name).exception)
    assert name in error and all(ending in error for ending in BY_ENDING)
    assert upper.seen == []


def test_the_languages_of_a_document_are_those_of_the_model(upper, document):
    pytest.importorskip("lxml")
    unit = '<trans-unit id="1"><source>one</source></trans-unit>'
    for source, target, options, says in (
        ("en-US", "de", [], None),
        ("en", "de", ["--to", "fr"], "names the language de, not fr"),
        ("fr", "de", [], "in.xlf: the model translates from en, not 'fr'"),
    ):
        languages = f'source-language="{source}" target-language="{target}"'
        Path("in.xlf").write_text(f'<xliff version="1.2"><file {languages}>{unit}</file></xliff>')
        done = translated("-i", "in.xlf", "-o", "out.xlf", *options)
        assert says in str(done.exception) if says else done.exit_code == 0
    pytest.importorskip("translate")
    Path("in.po").write_text('msgid ""\nmsgstr "Language: fr\\n"\n\nmsgid "one"\nmsgstr ""\n')
    assert "in.po: " in str(translated("-i", "in.po", "-o", "out.po").exception)
    assert (upper.seen, Path("out.po").exists()) == (["one"], False)


def test_the_output_is_no_dash(upper):
    Path("in.txt").write_text("A dog.\n")
    done = kzoo("--output", "-")
    assert done.exit_code != 0 and "--output" in str(done.exception or done.output)
    assert not Path("-").exists()
