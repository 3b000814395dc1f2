"""Plural forms of gettext's catalogues, read back with Babel; capitals stand for translations."""

import pytest
from made_up import MadeUp
from message_of import message_of

from kzoo.documents import Document, translate_document

pytest.importorskip("translate")
pofile = pytest.importorskip("babel.messages.pofile")

ARABIC = "nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5;"


def catalogue(path, plurals, singular="One file"):
    path.write_text(
        f'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Plural-Forms: {plurals}\\n"\n\n'
        f'msgid "{singular}"\nmsgid_plural "%d files"\nmsgstr[0] ""\n',
        encoding="utf-8",
    )
    return path


@pytest.mark.parametrize(
    ("plurals", "forms"),
    [
        ("nplurals=1; plural=0;", ["%d FILES"]),
        ("nplurals=2; plural=(n != 1);", ["ONE FILE", "%d FILES"]),
        (ARABIC, ["%d FILES", "ONE FILE", *["%d FILES"] * 4]),
    ],
)
def test_the_singular_is_the_form_for_one(tmp_path, plurals, forms):
    path, output = catalogue(tmp_path / "a.po", plurals), tmp_path / "b.po"
    assert translate_document(path, output, MadeUp(str.upper)) == []
    with open(output, encoding="utf-8") as file:
        [message] = [message for message in pofile.read_po(file) if message.id]
    assert list(message.string) == forms and "fuzzy" in message.flags


def test_a_singular_without_words_stays(tmp_path):
    path = catalogue(tmp_path / "a.po", "nplurals=2; plural=(n != 1);", "<b>%d</b>")
    translate_document(path, tmp_path / "b.po", MadeUp(str.upper))
    assert 'msgstr[0] "<b>%d</b>"\nmsgstr[1] "%d FILES"' in (tmp_path / "b.po").read_text("utf-8")


def test_a_template_names_the_encoding_of_its_translations(tmp_path):
    path, output = catalogue(tmp_path / "a.po", "nplurals=2; plural=(n != 1);"), tmp_path / "b.po"
    path.write_text(path.read_text("utf-8").replace("UTF-8", "CHARSET"), "utf-8")
    translate_document(path, output, MadeUp(lambda text: text + " ü"))
    with open(output, "rb") as file:
        catalogue_read = pofile.read_po(file)
    assert catalogue_read.charset.upper() == "UTF-8"
    assert [message.string for message in catalogue_read if message.id] == [("One file ü", "%d files ü")]


@pytest.mark.parametrize(
    "plurals", ["nplurals=9999; plural=n;", "nplurals=2; plural=n/0;", "nplurals=2; plural=x;"]
)
def test_damaged_rules_are_refused(tmp_path, plurals):
    assert "Plural-Forms" in message_of(Document, catalogue(tmp_path / "a.po", plurals))
