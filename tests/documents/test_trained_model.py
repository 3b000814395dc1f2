"""A document through the command line and a trained model."""

import pytest
from typer.testing import CliRunner

from kzoo import cli


def test_bold_words_and_numbers_of_a_docx(tmp_path, monkeypatch):
    docx = pytest.importorskip("docx")
    monkeypatch.chdir(tmp_path)
    document = docx.Document()
    bold = document.add_paragraph("A dog runs on the beach. Two ")
    bold.add_run("dogs").bold = True
    bold.add_run(" are playing in the snow.")
    document.add_paragraph("{{count}} people are standing in front of a shop.")
    document.save("a.docx")
    command = ["translate", "pope_small_multi30k_en_de", "-i", "a.docx", "-o", "b.docx"]
    assert CliRunner().invoke(cli.app, command).exit_code == 0
    bold, kept = docx.Document("b.docx").paragraphs
    assert [(run.text, run.bold) for run in bold.runs] == [
        ("Ein Hund rennt am Strand. Zwei ", None),
        ("Hunde", True),
        (" spielen im Schnee.", None),
    ]
    assert kept.text.startswith("{{count}} ") and "Geschäft" in kept.text
