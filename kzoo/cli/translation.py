"""`kzoo translate`."""

import contextlib
import hashlib
import sys
import unicodedata
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer.core import TyperCommand

from kzoo.cli import options
from kzoo.cli.console import chosen_search, open_translator, progress_bar, read_terms
from kzoo.cli.streams import growing_file, is_followed, is_input, sentences_of
from kzoo.cli.translated_blocks import (
    DocumentLines,
    KeptLines,
    TextLines,
    fewest_texts,
    translate_arriving,
    translate_blocks,
)
from kzoo.errors import UserError, printable
from kzoo.files import check_writable, sha256

app = typer.Typer()
MOST_LISTED = 20  # of a document's texts
CHANGED = "because numbers or placeholders changed in translation"
Unknown = Literal["copy", "error", "translate"]


class WithTexts(TyperCommand):
    """A command whose texts may begin with a dash after `--`, which its errors say."""

    def parse_args(self, ctx, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:  # typer brings its own click, or uses the installed one
            if type(error).__name__ == "NoSuchOption":
                error.message += " (before texts that begin with a dash, write --)"
            raise


@app.command(cls=WithTexts)
def translate(
    preset: options.Preset,
    text: Annotated[list[str] | None, typer.Argument(help="Sentences; standard input by default.")] = None,
    source: options.From = None,
    target: options.To = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--input",
            "-i",
            help="A text file with one sentence or text per line, or a document: "
            "docx, pptx, odt, html, epub, po, xliff, json, srt, vtt.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; standard output by default.")
    ] = None,
    beam_size: options.Beam = None,
    length_penalty: options.Penalty = None,
    gnmt: options.GNMTPenalty = None,
    max_length: options.MaxLength = None,
    min_length: Annotated[
        int | None,
        typer.Option(min=0, max=100_000, help="Minimum tokens of a translation, end symbol included."),
    ] = None,
    no_repeat_ngram: Annotated[
        int | None, typer.Option(min=0, max=100_000, help="Never repeat a sequence of n tokens; 0 allows it.")
    ] = None,
    prefix: Annotated[
        list[str] | None,
        typer.Option(help="Text that the translations begin with; give it once, or once per sentence."),
    ] = None,
    n_best: Annotated[
        int,
        typer.Option(
            min=1,
            help="Translations per sentence. With several, each line begins with the sentence number "
            "and the score, tab-separated.",
        ),
    ] = 1,
    truncate: options.Truncate = False,
    split: Annotated[
        bool, typer.Option("--split-sentences", help="Translate each sentence of a line by itself.")
    ] = False,
    unknown: Annotated[
        Unknown, typer.Option(help="What becomes of a sentence whose characters the model mostly lacks.")
    ] = "copy",
    terms: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.tsv",
            help="A glossary: in each line a term, a tab, and the translation that replaces the model's.",
        ),
    ] = None,
    image: Annotated[
        list[Path] | None,
        typer.Option(help="A sentence's picture, for presets that read pictures; give one per sentence."),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npy", help="Picture features, one row per sentence, for presets that read features."
        ),
    ] = None,
    engine: options.EngineOption = "auto",
    compute_type: options.ComputeType = "float32",
    device: options.DeviceOption = "auto",
):
    """Translate a sentence, a file or standard input."""
    from kzoo.data import open_features
    from kzoo.decoding.search_settings import checked_n
    from kzoo.presets.shelf import locate

    _check_together(text, file, output, image, images)
    # Files come before the preset, which may have to be downloaded.
    glossary = read_terms(terms) if terms else {}
    document = _document(file, output, n_best > 1 or prefix or image or images)
    sentences = document.texts if document else sentences_of(None, file) if file else []
    shown = image or (open_features(images) if images else None)
    if output:
        check_writable(output, [path for path in (terms, images) if path])
    located = locate(preset)
    limits = {"min_length": min_length, "no_repeat_ngram": no_repeat_ngram}
    search = chosen_search(located, beam_size, length_penalty, gnmt, max_length, **limits)
    checked_n(n_best, search)
    source, target = _directed(located, document, source, target)
    follows = is_followed() and not (text or file or output or image or images or len(prefix or ()) > 1)
    if not (file or follows):
        sentences = sentences_of(text, None)
    _check_shown(located, shown)
    needs = {"pictures": image or images, "a prefix": prefix}
    translator = open_translator(located, search, engine, compute_type, device, needs)
    direction = translator.direction(source, target)
    reading = {"truncate": truncate, "unknown": unknown}
    n_best_of = partial(translator.n_best, direction=direction, n=n_best, terms=glossary, **reading)
    # Parts of sentences that were read may be mostly unknown. They are not split again.
    in_parts = "copy" if unknown == "error" else unknown
    parts_of = partial(n_best_of, split_sentences=False, unknown=in_parts)
    keeps_placeholders = n_best == 1 and not (prefix or image or images)
    if document:
        lines = DocumentLines(document, parts_of, translator, direction, not truncate, in_parts)
    else:
        n_best_of = partial(n_best_of, split_sentences=split or None)
        lines = TextLines(sentences, n_best_of, n_best)
        if keeps_placeholders:
            lines = KeptLines(sentences, n_best_of, parts_of, translator, direction)
    split, reading["truncate"] = split or document is not None, truncate or document is not None
    read = partial(_read, translator, direction, split, keeps_placeholders, **reading)
    if follows:

        def tell(block: list[str], prefixes: list[str] | None):
            _tell_changed(file, lines)
            if notice := read(block, prefixes)[0]:
                print(printable(notice), file=sys.stderr)

        translate_arriving(lines, prefix, tell)
        return
    rows = _rows(translator, len(sentences), shown, prefix)
    notice, text_of, cut = read(lines.plain, rows.get("prefixes"))
    too_long = document.places({sentences[text] for text in cut}) if cut and document and not truncate else []
    growing = contextlib.nullcontext()
    if output:
        pictures = [sha256(path) for path in (*(image or ()), images) if path]
        made_of = [located.files, pictures, search, n_best, truncate, split, unknown, source, target]
        digest = _digest([*made_of, translator.engine, prefix, glossary], sentences)
        growing = growing_file(output, digest, lines.write)

    def bar(done: int):
        return progress_bar("translating", int((text_of >= done).sum()), file is not None)

    try:
        translate_blocks(lines, rows, growing, fewest_texts(translator, lines.unit, len(sentences)), bar)
    finally:  # the next run does not know them
        _tell_changed(file, lines)
    if notice:
        print(printable(notice), file=sys.stderr)
    most = f"because a sentence has more than the {translator.max_length - 1:,} subwords that the model reads"
    _list(file, f"left as they were, {most}", [place for place in lines.left if place in too_long])
    _list(file, f"left as they were, {CHANGED}", [place for place in lines.left if place not in too_long])


def _tell_changed(file: Path | None, lines: TextLines):
    """Print the sentences in parts and the lines that changed since the last call."""
    _list(file, f"translated in parts, {CHANGED}", map("'{:.80}'".format, lines.in_parts))
    _list(file, "placeholders changed in translation", map("'{:.80}'".format, lines.changed))
    lines.in_parts.clear()
    lines.changed.clear()


def _list(file: Path | None, what: str, some: Iterable[str]):
    """Print what happened to some of a file's texts: how many, and which. Of none, print nothing."""
    if some := list(some):
        which = "; ".join(some[:MOST_LISTED]) + ("; …" if len(some) > MOST_LISTED else "")
        where = f"{file}: " if file else ""
        print(printable(f"{where}{what} ({len(some):,}): {which}"), file=sys.stderr)


def _document(file: Path | None, output: Path | None, others: object):
    """Return the document in a file; `None` if there is only text. `others` are options for text.

    Raises:
        UserError: it cannot be read, or the options do not fit.
    """
    from kzoo.data.text_files import BY_ENDING as NOT_LINES
    from kzoo.documents.document import BY_ENDING, Document, check_ending, is_document

    if not (file and is_document(file)):
        if file and file.is_file() and (what := NOT_LINES.get(file.suffix.lower())):
            raise UserError(
                f"{file}: is {what}, neither plain text nor a document that kzoo translates: save it as one "
                f"of these ({', '.join(BY_ENDING)}), or its sentences as a text file, one per line"
            )
        if output and is_document(output):
            raise UserError(
                f"{output} is a document by its ending, and the input is text: give a document with --input, "
                f"or name the output {output.stem}.txt"
            )
        return None
    if others:
        raise UserError(f"{file} is a document: leave out --n-best, --prefix, --image and --images")
    if output is None:
        raise UserError(f"{file} is a document: give --output, a name that ends in {file.suffix}")
    check_ending(file, output)
    return Document(file)


def _directed(preset, document, source: str | None, target: str | None) -> tuple[str | None, str | None]:
    """Return the languages given, or else a document's own.

    Raises:
        UserError: the document has others, or the preset's small files rule them out.
    """
    from kzoo.presets.shelf import check_direction

    if document:
        source, target = document.direction(source, target)
    try:
        check_direction(preset, source, target)
    except UserError as error:
        named = document and any(document.languages)
        raise UserError(f"{document.path}: {error}" if named else str(error)) from None
    return source, target


def _check_shown(preset, shown):
    """Raise `UserError` before the model is loaded if it reads images and none are given."""
    from kzoo.images import image_rows

    shape = None if preset.is_converted else preset.backbone["config"].get("image_shape")
    if shape and shown is None:
        image_rows(None, 0, tuple(shape))


def _rows(translator, count: int, shown, prefix: list[str] | None) -> dict:
    """Return the further arguments of the translator, with one entry for each of `count` sentences."""
    from kzoo.images import checked_images

    rows = {}
    if translator.image_shape or shown is not None:
        rows["images"] = checked_images(translator, shown, count)
    if prefix:
        rows["prefixes"] = prefix * count if len(prefix) == 1 else prefix
    return rows


def _check_together(text, file: Path | None, output: Path | None, image, images):
    """Raise `UserError` for options that exclude each other, and for an output that is the input."""
    if text and file is not None:
        raise UserError("sentences and --input exclude each other: give one of them")
    if output == Path("-"):
        raise UserError("- is no file for --output: leave it out to print the translations")
    if output and not text and is_input(output, file):
        raise UserError(f"{output} is the input, which its translation would replace: give another --output")
    if image and images:
        raise UserError("--image and --images exclude each other: give pictures or features")


def _read(
    translator,
    direction,
    split: bool,
    keeps_placeholders: bool,
    texts: list[str],
    prefixes: list[str] | None,
    **options,
):
    """Read all texts, so that errors come before the first translation; `options` are those of `readings`.

    That they are read again then takes 0.1 % of the time; to keep all token ids would take twice the memory
    of the text.

    Returns:
        A line about characters that the vocabulary lacks, or ""; the index of each sentence's text; and those
        of texts with sentences that are cut.
    """
    from kzoo.documents.placeholders import outside
    from kzoo.text.reading import lacking_line
    from kzoo.text.sentences import SplitTexts

    whole = SplitTexts(texts, [direction] * len(texts), split, translator.codes_in_text)
    readings = translator.readings(whole, prefixes=whole.prefixes(prefixes), **options)
    lacking, cut = [], []
    for text, sentence, reading in zip(whole.text_of, whole.sentences, readings, strict=True):
        if reading.lacking and reading.tokens and keeps_placeholders:  # the model need not read placeholders
            within, seen = (unicodedata.normalize("NFC", one) for one in (sentence, outside(sentence)))
            # One that is not in the sentence itself is of its lower case, in which it is read.
            own = (one for one in reading.lacking if one in seen or one not in within)
            reading = reading._replace(lacking="".join(own))
        if reading.lacking:
            lacking.append(reading)
        if reading.cut:
            cut.append(text)
    return lacking_line(lacking, len(whole.sentences)), whole.text_of, cut


def _digest(made_of: list, sentences: list[str]) -> str:
    """Return the SHA-256 of sentences, and of what else their translations are made of."""
    digest = hashlib.sha256(repr(made_of).encode())
    for sentence in sentences:  # not at once: it would be a copy of the text
        digest.update(repr(sentence).encode())
    return digest.hexdigest()
