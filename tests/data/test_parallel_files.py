"""Translation memories and the like: the right pairs, streamed, and one line for each file that lies."""

import bz2
import gzip
import json
import lzma
import os
import random
import subprocess
import sys
import tracemalloc
import warnings
import zipfile

import pytest
from message_of import message_of

from kzoo.data import open_files
from kzoo.data.own_files import stream_pairs
from kzoo.data.parallel_files import parallel_rows
from kzoo.documents import Document
from kzoo.training import read_recipe
from kzoo.training.choice import languages_of
from kzoo.training.corpus import recipe_corpus
from kzoo.training.recipe_files import text_values

pytest.importorskip("lxml")

TMX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en-GB" datatype="plaintext"><note>n</note></header><body>{}</body></tmx>
"""
XLIFF_1 = (
    '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a" '
    'datatype="plaintext" source-language="en-GB" target-language="de-DE"><header><note>x</note></header>'
    "<body>{}</body></file></xliff>"
)
XLIFF_2 = (
    '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="de">'
    '<file id="f">{}</file></xliff>'
)


def tu(**texts):
    variants = (
        f'<tuv xml:lang="{code.replace("_", "-")}"><seg>{text}</seg></tuv>' for code, text in texts.items()
    )
    return f"<tu>{''.join(variants)}</tu>"


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def pairs_of(path, languages=("en", "de"), columns=(), approved=False):
    """Return the pairs read whole, which are those that are streamed, and the lines of the warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = list(stream_pairs([path], languages, columns, approved))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        corpus = open_files(train=path, languages=languages, columns=columns, approved=approved)
        assert list(zip(*corpus.pairs("train", *languages), strict=True)) == found
    tables = [str(one.message).partition(": ")[2] for one in caught if one.category is UserWarning]
    return found, [" ".join(line.split()) for table in tables for line in table.splitlines()]


def test_tmx(tmp_path):
    units = [
        tu(en_GB="A dog.", de_DE="Ein Hund."),
        tu(de="Zwei\n  Hunde &amp; ein Mann.", en="Two dogs &amp; a man."),
        tu(en="Dogs.", fr="Des chiens."),
        tu(en="", de="Leer."),
        '<tu><tuv lang="EN-US"><seg>Old.</seg></tuv><tuv lang="DE"><seg>Alt.</seg></tuv></tu>',
        tu(en_US="color", en="colour", de="Farbe"),
        tu(
            en='Press <bpt i="1">&lt;b&gt;</bpt>OK<ept i="1">&lt;/b&gt;</ept> <hi>now</hi> <ph>{0}</ph>'
            "!<!-- c -->",
            de='<it pos="begin">x</it>Jetzt <hi>OK <ph/></hi>drücken!',
        ),
    ]
    found, warned = pairs_of(written(tmp_path / "m.tmx", TMX.format("\n".join(units))))
    assert found == [
        ("A dog.", "Ein Hund."),
        ("Two dogs & a man.", "Zwei Hunde & ein Mann."),
        ("Old.", "Alt."),
        ("colour", "Farbe"),
        ("Press OK now !", "Jetzt OK drücken!"),
    ]
    assert warned == [
        "2 of 7 rows are left out:",
        "1 without de row 3: Dogs. | Des chiens.",
        "1 without en row 4: Leer.",
    ]


def test_tmx_packed_and_in_another_encoding(tmp_path):
    text = TMX.format(tu(en="A dog.", de="Für Hunde."))
    expected = [("A dog.", "Für Hunde.")], []
    assert pairs_of(written(tmp_path / "m.TMX.gz", gzip.compress(text.encode()))) == expected
    utf_16 = text.replace("UTF-8", "UTF-16").encode("utf-16")
    assert pairs_of(written(tmp_path / "m.tmx", utf_16)) == expected


def test_three_languages(tmp_path):
    path = written(tmp_path / "m.tmx", TMX.format(tu(en="a", de="b", fr="c") + tu(en="a", de="b")))
    with pytest.warns(UserWarning, match=r"fr +row 2: a \| b$"):
        assert list(parallel_rows(path, ("fr", "en", "de"))) == [["c", "a", "b"]]


def trans_unit(source, target, **attributes):
    given = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f'<trans-unit id="1"{given}><source>{source}</source>{target}</trans-unit>'


def test_xliff_1(tmp_path):
    units = [
        trans_unit("A dog.", "<target>Ein Hund.</target>", approved="yes"),
        trans_unit("Two.", '<target state="translated">Zwei.</target>'),
        trans_unit("New.", '<target state="needs-translation">New.</target>'),
        trans_unit("None.", ""),
        "<group>"
        + trans_unit(
            '<g id="1">Open</g> <x id="2"/>it',
            '<target><g id="1">Öffne</g> es<bpt id="3">b</bpt></target>'
            "<alt-trans><source>No</source><target>Nein</target></alt-trans>",
            approved="no",
        )
        + "</group>",
        trans_unit(
            "One. Two.",
            '<seg-source><g id="1"><mrk mtype="seg" mid="1">One.</mrk></g> '
            '<mrk mtype="seg" mid="2">Two.</mrk></seg-source>'
            '<target><g id="1"><mrk mtype="seg" mid="1">Eins.</mrk></g> '
            '<mrk mtype="seg" mid="2">Zwei.</mrk></target>',
            approved="yes",
        ),
    ]
    path = written(tmp_path / "m.xlf", XLIFF_1.format("".join(units)))
    approved = [("A dog.", "Ein Hund."), ("One.", "Eins."), ("Two.", "Zwei.")]
    found, warned = pairs_of(path)
    assert found == [approved[0], ("Two.", "Zwei."), ("Open it", "Öffne es"), *approved[1:]]
    assert warned == ["2 of 7 rows are left out:", "2 without a translation row 3: New."]
    found, warned = pairs_of(path, approved=True)
    assert found == approved
    assert warned == [
        "4 of 7 rows are left out:",
        "2 not approved row 2: Two. | Zwei.",
        "2 without a translation row 3: New.",
    ]
    assert pairs_of(path, ("de", "en"))[0][0] == ("Ein Hund.", "A dog.")


def test_xliff_2(tmp_path):
    segments = [
        '<segment state="final"><source>A <pc id="1">dog</pc>.</source>'
        '<target>Ein Hund<ph id="2"/>.</target></segment>',
        "<segment><source>Two.</source><target>Zwei.</target></segment>",
        '<segment state="initial"><source>New.</source><target>New.</target></segment>',
    ]
    path = written(tmp_path / "m.xliff", XLIFF_2.format(f"<unit id='1'>{''.join(segments)}</unit>"))
    assert pairs_of(path)[0] == [("A dog.", "Ein Hund."), ("Two.", "Zwei.")]
    assert pairs_of(path, approved=True)[0] == [("A dog.", "Ein Hund.")]


def archive(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name.replace("_", "."), content)
    return path


def test_an_archive_of_opus(tmp_path):
    members = {
        "README": "Read\n",
        "C_de-en_de": "Ein Hund.\n\nZwei.\n",
        "C_de-en_en": "A dog.\nNone.\nTwo.\n",
        "C_de-en_ids": "1\n",
    }
    found, warned = pairs_of(archive(tmp_path / "de-en.txt.zip", **members))
    assert found == [("A dog.", "Ein Hund."), ("Two.", "Zwei.")]
    assert warned == ["1 of 3 rows are left out:", "1 without de row 2: None."]


@pytest.mark.parametrize("nested", [False, True])
def test_json_lines(nested, tmp_path):
    rows = [
        {"en": "A\ndog.", "de": "Ein Hund.", "id": 1},
        {"en": None, "de": "x"},
        {"de": "Zwei.", "en": "Two."},
    ]
    lines = [json.dumps({"translation": row, "n": 1} if nested else row) for row in rows]
    found, warned = pairs_of(written(tmp_path / "m.jsonl", "\n".join([*lines, ""])))
    assert found == [("A dog.", "Ein Hund."), ("Two.", "Zwei.")]
    assert warned == ["1 of 3 rows are left out:", "1 without en row 2: x"]


def test_columns_are_named(tmp_path):
    path = written(tmp_path / "m.ndjson", '{"src": "A dog.", "tgt": "Ein Hund."}\n{"src": 1, "tgt": "x"}\n')
    assert pairs_of(path, columns=["src", "tgt"]) == (
        [("A dog.", "Ein Hund.")],
        ["1 of 2 rows are left out:", "1 without src row 2: x"],
    )
    assert "has 1 and 2" in message_of(pairs_of, path, columns=[1, 2])


def dataset(folder, table, options=None):
    """Write a folder of one split, as `datasets` does."""
    import pyarrow

    folder.mkdir(exist_ok=True)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))
    with (
        pyarrow.OSFile(str(folder / "data.arrow"), "wb") as file,
        pyarrow.ipc.new_stream(file, table.schema, options=options) as out,
    ):
        out.write_table(table)
    return folder


def test_parquet_and_a_folder_of_datasets(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet  # noqa: F811

    rows = [{"en": f"{number} dogs.", "de": f"{number} Hunde."} for number in range(2500)]
    flat = pyarrow.Table.from_pylist([*rows, {"en": None, "de": "x"}])
    pyarrow.parquet.write_table(flat, tmp_path / "m.parquet")
    nested = pyarrow.Table.from_pylist([{"id": 1, "translation": row} for row in rows])
    folder = dataset(tmp_path / "train", nested)
    expected = [(row["en"], row["de"]) for row in rows]
    warned = ["1 of 2,501 rows are left out:", "1 without en row 2,501: x"]
    assert pairs_of(tmp_path / "m.parquet") == (expected, warned)
    assert pairs_of(folder) == (expected, [])
    pyarrow.parquet.write_table(flat.rename_columns(["src", "tgt"]), tmp_path / "n.parquet")
    assert "columns=" in message_of(pairs_of, tmp_path / "n.parquet")
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train"]}')
    assert str(folder) in message_of(pairs_of, tmp_path)
    (folder / "data.arrow").write_bytes(b"ARROW")
    assert str(folder) in message_of(pairs_of, folder)
    (folder / "state.json").write_text("[]")
    assert "state.json" in message_of(pairs_of, folder)


COUNT = 5_000
PAIR = {"en": "A dog runs. " * 60, "de": "Ein Hund rennt. " * 60}


def large(path):
    """Write a file of `COUNT` rows, with half as many without German."""
    if path.suffix == ".tmx":
        written(path, TMX.format(tu(**PAIR) * COUNT + tu(en="No.") * (COUNT // 2)))
    elif path.suffix == ".xlf":
        unit = trans_unit(PAIR["en"], f"<target>{PAIR['de']}</target>")
        written(path, XLIFF_1.format(unit * COUNT + trans_unit("No.", "") * (COUNT // 2)))
    elif path.suffix == ".zip":
        sides = {f"a_{code}": f"{text}\n" * COUNT for code, text in PAIR.items()}
        archive(path, a_en=sides["a_en"] + "No.\n" * (COUNT // 2), a_de=sides["a_de"] + "\n" * (COUNT // 2))
    elif path.suffix == ".jsonl":
        written(path, (json.dumps(PAIR) + "\n") * COUNT + '{"en": "No."}\n' * (COUNT // 2))
    else:
        pyarrow = pytest.importorskip("pyarrow")
        import pyarrow.parquet  # noqa: F811

        rows = [PAIR] * COUNT + [{"en": "No."}] * (COUNT // 2)
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("ending", ["tmx", "xlf", "zip", "jsonl", "parquet"])
def test_large_files_are_streamed(ending, tmp_path):
    """Whole, their pairs would take 9 MB; the rows that are left out are counted, not kept."""
    path = large(tmp_path / f"m.{ending}")
    tracemalloc.start()
    with pytest.warns(UserWarning, match="2,500 of 7,500 (.|\n)* row 5,001: No.$"):
        assert sum(1 for _ in stream_pairs([path], ("en", "de"))) == COUNT
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6e6


# Of the process: tracemalloc does not see what lxml and pyarrow allocate.
MEASURED = """
import importlib, re, sys
from pathlib import Path
from kzoo.data.parallel_files import parallel_rows
importlib.import_module(sys.argv[2])
def peak():
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])
before = peak()
print(sum(1 for _ in parallel_rows(Path(sys.argv[1]), ("en", "de"))), peak() - before)
"""


def measured(path, package):
    """Return the number of rows of a file, and by how many KiB reading them increased the peak of memory."""
    command = [sys.executable, "-c", MEASURED, path, package]
    environment = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"}  # which keeps nothing back
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return tuple(map(int, done.stdout.split()))


def measured_parquet(table, folder, **options):
    """Return what `measured` does of a table of Arrow as a Parquet file, written with some options."""
    import pyarrow.parquet

    pyarrow.parquet.write_table(table, folder / "m.parquet", **options)
    return measured(folder / "m.parquet", "pyarrow.parquet")


@pytest.mark.skipif(sys.platform != "linux", reason="Linux has /proc")
@pytest.mark.parametrize("ending", ["tmx", "xlf"])
def test_units_that_were_read_leave_the_memory(ending, tmp_path):
    """Kept, 100,000 units would take over 100 MB."""
    one = tu(en="A dog.", de="Ein Hund.") if ending == "tmx" else trans_unit("A dog.", "<target>b</target>")
    whole = (TMX if ending == "tmx" else XLIFF_1).format(one * 100_000)
    path = written(tmp_path / f"m.{ending}", whole)
    count, kibibytes = measured(path, "lxml.etree")
    assert count == 100_000 and kibibytes < 30_000


LONG = 1_000_000  # characters
READ_AS = {
    "a dictionary": {"compression": "none"},
    "a dictionary, then texts": {"dictionary_pagesize_limit": 1_000_000, "write_batch_size": 1},
    "what texts share": {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"},
}


@pytest.mark.skipif(sys.platform != "linux", reason="Linux has /proc")
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("how", READ_AS)
def test_parquet_that_repeats_long_texts(how, nested, tmp_path):
    """Decoded at once, the rows would take 120 MB."""
    pyarrow = pytest.importorskip("pyarrow")
    rows = [{"en": "a" * LONG, "de": "b" * LONG + str(number % 7)} for number in range(60)]
    table = pyarrow.Table.from_pylist([{"translation": row, "id": "1"} for row in rows] if nested else rows)
    count, kibibytes = measured_parquet(table, tmp_path, **READ_AS[how])
    assert count == 60 and kibibytes < 90_000


@pytest.mark.skipif(sys.platform != "linux", reason="Linux has /proc")
def test_parquet_whose_last_texts_are_long(tmp_path):
    """Decoded at once, the last rows would take 150 MB."""
    pyarrow = pytest.importorskip("pyarrow")
    drawn = random.Random(1)
    short = [drawn.randbytes(12).hex() for _ in range(60_000)]
    table = pyarrow.table({"en": [*short, *["a"] * 150], "de": [*short, *["b" * LONG] * 150]})
    options = {"use_dictionary": False, "write_batch_size": 1, "compression": "zstd"}
    count, kibibytes = measured_parquet(table, tmp_path, **options)
    assert count == 60_150 and kibibytes < 90_000


@pytest.mark.skipif(sys.platform != "linux", reason="Linux has /proc")
def test_large_parquet_is_not_read_at_once(tmp_path):
    """The file has 100 MB."""
    pyarrow = pytest.importorskip("pyarrow")
    drawn = random.Random(1)
    rows = [{code: drawn.randbytes(500).hex() for code in ("en", "de")} for _ in range(50_000)]
    count, kibibytes = measured_parquet(pyarrow.Table.from_pylist(rows), tmp_path, compression="none")
    assert count == 50_000 and kibibytes < 70_000


ENTITIES = '<!DOCTYPE tmx [<!ENTITY a "dog"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
EXTERNAL = '<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("m.tmx", "", "not XML"),
        ("m.tmx", "a dog\n", "line 1: not XML"),
        ("m.tmx", TMX.format(tu(en="a", de="b"))[:-30], "not XML"),
        ("m.tmx", "<pages><page>a dog</page></pages>", "begins with pages"),
        ("m.xlf", TMX.format(tu(en="a", de="b")), "begins with tmx"),
        ("m.tmx", TMX.format(tu(en="a", de="&b;")), "not XML"),
        ("m.tmx", ENTITIES + f"<tmx><body>{tu(en='a', de='&b;')}</body></tmx>", "declares entities"),
        ("m.tmx", EXTERNAL + f"<tmx><body>{tu(en='a', de='&x;')}</body></tmx>", "declares entities"),
        ("m.tmx", TMX.format(tu(en="a", de="b" * 11_000_000)), "not XML"),
        ("m.tmx", TMX.format(""), "none of its 0 rows has en and de; it is empty"),
        ("m.tmx", TMX.format(tu(fr="a", en_GB="b")), "none of its 1 rows has en and de; it has en-GB, fr"),
        ("m.tmx.gz", b"\x1f\x8b\x08cut", "is damaged"),
        ("m.tmx.bz2", bz2.compress(b"<tmx/>")[:-5], "is damaged"),
        ("m.jsonl.xz", lzma.compress(b'{"en": "a"}')[:-20] + b"\xff" * 20, "is damaged"),
        ("m.tmx.gz", gzip.compress(TMX.format(tu(en="a", de="b")).encode())[:-20], ""),
        ("m.tmx.gz", gzip.compress(b"<tmx><body>" + b"<x/>" * 5_000_000, 1), "bytes without"),
        ("m.xlf", XLIFF_1.format(trans_unit("a", "")), "without a translation"),
        ("m.zip", b"PK\x03\x04", "is damaged"),
        ("m.jsonl", '{"en": "a", "de": "b"}\n{"en": ', "line 2: not a JSON object"),
        ("m.jsonl.gz", gzip.compress(b'{"en": "' + b"a" * 20_000_000, 1), "line 1: has over"),
        ("m.jsonl.gz", gzip.compress(b"\n" + b"a\r" * 10_000_000, 1), "line 2: has over"),
        ("m.jsonl", "[1]\n", "line 1: not a JSON object"),
        ("m.jsonl", "[" * 100_000, "line 1: not a JSON object"),
        ("m.jsonl", b'{"en": "\xff"}', "line 1: not valid UTF-8"),
        ("m.jsonl", '{"english": "a"}\n', "it has english"),
        ("m.jsonl", '{"english": "a"}\n', "columns="),
        ("m.jsonl", '{"en": "a", "de": 5}\n', "en and de; without de"),
    ],
)  # fmt: skip
def test_files_that_lie(name, content, said, tmp_path):
    assert said in message_of(pairs_of, written(tmp_path / name, content))


def test_archives_that_lie(tmp_path):
    path = tmp_path / "m.zip"
    one = {"a_en": "A dog.\n", "a_de": "Ein Hund.\n"}
    assert "a.en" in message_of(pairs_of, archive(path, a_en="x\n"))
    assert "a.en and b.en" in message_of(pairs_of, archive(path, **one, b_en="x\n"))
    assert "a.de" in message_of(pairs_of, archive(path, **one | {"a_en": "A dog.\nTwo.\n"}))
    assert str(path) in message_of(pairs_of, written(path, archive(path, **one).read_bytes()[:-30]))
    damaged = bytearray(archive(path, **one).read_bytes())
    damaged[35] ^= 255
    assert str(path) in message_of(pairs_of, written(path, bytes(damaged)))
    assert "0.2 GB" in message_of(pairs_of, archive(path, **one | {"a_de": bytes(200_000_000)}))
    for name in ("none.tmx", "none.zip", "none.jsonl"):
        assert name in message_of(pairs_of, tmp_path / name)
        assert name in message_of(open_files, tmp_path / name)


def test_parquet_that_lies(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet  # noqa: F811

    path = written(tmp_path / "m.parquet", b"PAR1")
    assert str(path) in message_of(pairs_of, path)
    rows = 140
    large = pyarrow.table({"en": ["A dog."] * rows, "de": ["a" * 1_000_000] * rows})
    pyarrow.parquet.write_table(large, path, use_dictionary=False, compression="zstd")
    assert "0.1 GB" in message_of(pairs_of, path)


def test_parquet_and_datasets_of_any_kind(tmp_path):
    """Kinds of strings, further columns, several row groups, and versions of the format."""
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet  # noqa: F811

    string, other = pyarrow.string(), pyarrow.list_(pyarrow.int64())
    expected = [(f"{number % 50} dogs.", f"{number} Hunde.") for number in range(2000)]
    for kind in (string, pyarrow.large_string(), pyarrow.dictionary("int32", string)):
        sides = [pyarrow.array(side, kind) for side in zip(*expected, strict=True)]
        fields = {"en-GB": sides[0], "de": sides[1], "sizes": pyarrow.array([[1, 2]] * len(expected), other)}
        nested = pyarrow.StructArray.from_arrays(list(fields.values()), list(fields))
        for table in (pyarrow.table(fields), pyarrow.table({"id": sides[0], "translation": nested})):
            for version in ("1.0", "2.0"):
                options = {"data_page_version": version, "dictionary_pagesize_limit": 4000}
                pyarrow.parquet.write_table(table, tmp_path / "m.parquet", row_group_size=700, **options)
                assert pairs_of(tmp_path / "m.parquet") == (expected, [])
            assert pairs_of(dataset(tmp_path / "data", table)) == (expected, [])
        assert "no column fr" in message_of(pairs_of, tmp_path / "m.parquet", ("en", "fr"))
        assert "it has id" in message_of(pairs_of, tmp_path / "data", ("en", "fr"))


@pytest.mark.parametrize("stored", ["parquet", "datasets"])
def test_columns_that_cannot_be_read(stored, tmp_path):
    """Structures in structures, lists, and several columns of one name."""
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet  # noqa: F811

    def refused(table, columns=()):
        if stored == "parquet":
            pyarrow.parquet.write_table(table, path := tmp_path / "m.parquet")
        else:
            path = dataset(tmp_path / "data", table)
        return message_of(pairs_of, path, columns=columns)

    deep = pyarrow.Table.from_pylist([{"x": {"y": {"en": "A dog.", "de": "Ein Hund."}}}])
    said = refused(deep, ("x.y.en", "x.y.de"))
    assert "no column x.y.en" in said and "x.y.de" not in said
    lists = pyarrow.Table.from_pylist([{"en": ["A dog."], "de": ["Ein Hund."]}])
    assert "no column en.list.element" in refused(lists, ("en.list.element", "de.list.element"))
    assert str(tmp_path) in refused(lists)
    sides = [pyarrow.array([text]) for text in ("A dog.", "Ein Hund.", "Hund.")]
    assert "columns de" in refused(pyarrow.Table.from_arrays(sides, ["en", "de", "de"]))


@pytest.mark.parametrize("encoded", [False, True])
def test_packed_datasets_are_refused(encoded, tmp_path):
    """A few bytes may hold any number of texts."""
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"en": ["A dog."] * 100, "de": ["Ein Hund."] * 100})
    if encoded:
        table = pyarrow.table({name: table[name].dictionary_encode() for name in table.column_names})
    assert len(pairs_of(dataset(tmp_path, table))[0]) == 100
    options = pyarrow.ipc.IpcWriteOptions(compression="zstd")
    assert "data.arrow" in message_of(pairs_of, dataset(tmp_path, table, options))


def test_recipes_name_them_as_tables(tmp_path):
    units = trans_unit("A dog.", "<target>Ein Hund.</target>", approved="yes") + trans_unit(
        "Two.", "<target>Zwei.</target>"
    )
    written(tmp_path / "m.xlf", XLIFF_1.format(units))
    (tmp_path / "m.toml").write_text(
        'preset = "pope_tiny"\ncorpus = "files"\nsource = "en"\ntarget = "de"\n'
        'train = ["m.xlf"]\nval = ["m.xlf"]\n'
    )
    assert len(recipe_corpus(read_recipe(tmp_path / "m.toml")).sentences("train", "en")) == 2
    approved = read_recipe(tmp_path / "m.toml", ["approved=true"])
    with pytest.warns(UserWarning, match="approved"):
        assert recipe_corpus(approved).pairs("train", "en", "de") == (["A dog."], ["Ein Hund."])
    table = json.dumps([str(written(tmp_path / "m.tsv", "A dog.\tEin Hund.\n"))])
    others = [f"train={table}", f"val={table}", "approved=true"]
    assert "approved" in message_of(read_recipe, tmp_path / "m.toml", others)
    assert "--from" in message_of(languages_of, ["m.tmx"])


def test_several_files_of_any_kinds_follow_one_another(tmp_path):
    files = [
        written(tmp_path / "a.tmx", TMX.format(tu(en="A dog.", de="Ein Hund.") + tu(en="No."))),
        written(tmp_path / "b.tsv", "Two.\tZwei.\n"),
        written(tmp_path / "c.jsonl", '{"de": "Drei.", "en": "Three."}\n'),
        written(tmp_path / "d.tmx.gz", gzip.compress(TMX.format(tu(en_US="Four.", de="Vier.")).encode())),
    ]
    expected = [("A dog.", "Ein Hund."), ("Two.", "Zwei."), ("Three.", "Drei."), ("Four.", "Vier.")]
    with pytest.warns(UserWarning, match="a.tmx: 1 of 2 "):
        assert list(stream_pairs(files, ("en", "de"))) == expected
    names = json.dumps([file.name for file in files])
    (tmp_path / "m.toml").write_text(
        f'preset = "pope_tiny"\ncorpus = "files"\nsource = "en"\ntarget = "de"\ntrain = {names}\n'
        f"val = 1\ntest = {names}\n"
    )
    recipe = read_recipe(tmp_path / "m.toml")
    with pytest.warns(UserWarning, match="a.tmx"):
        corpus = recipe_corpus(recipe)
        assert list(zip(*corpus.pairs("test", "en", "de"), strict=True)) == expected
        parts = [corpus.pairs(split, "en", "de") for split in ("train", "val")]
    assert corpus.more_references("test", "de") == []
    assert sorted(pair for sides in parts for pair in zip(*sides, strict=True)) == sorted(expected)
    given, _ = text_values(list(map(str, files)), "en", "de")
    assert (given["source"], given["target"], given["train"]) == ("en", "de", list(map(str, files)))
    wide = written(tmp_path / "e.tsv", "1\tFive.\tFünf.\n")  # of which `columns` are chosen; TMX has none
    with pytest.warns(UserWarning, match="a.tmx"):
        found = list(stream_pairs([files[0], wide], ("en", "de"), [2, 3]))
    assert found == [("A dog.", "Ein Hund."), ("Five.", "Fünf.")]
    changes = [f"train={json.dumps([str(files[0])])}", "test=[]", "columns=[2, 3]"]
    assert "columns" in message_of(read_recipe, tmp_path / "m.toml", changes)
    text = written(tmp_path / "a.de", "Ein Hund.\n")
    assert "a.de" in message_of(open_files, [files[0], text], None, None, ("en", "de"))
    assert "a.tmx" in message_of(open_files, [files[0]] * 2, None, None, ("en", "de"))


def test_a_missing_package_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for name, package in (("m.tmx", "lxml"), ("m.parquet", "pyarrow")):
        assert f"pip install {package}" in message_of(pairs_of, written(tmp_path / name, ""))
    documents = {"a.xlf": "lxml", "a.html": "beautifulsoup4", "a.po": "translate-toolkit"}
    for name, package in documents.items():
        assert f"pip install {package}" in message_of(Document, written(tmp_path / name, ""))
