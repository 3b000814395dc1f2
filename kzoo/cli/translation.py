"""`kzoo translate`."""

import contextlib
import hashlib
import os
import shutil
import sys
import warnings
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

import typer
from typer.core import TyperCommand

from kzoo.cli import options
from kzoo.cli.console import (
    chosen_search,
    open_translator,
    progress_bar,
    read_terms,
    telling_when_stopped,
)
from kzoo.cli.streams import MOST, arriving_lines, done_in, growing_file, is_followed, is_input, sentences_of
from kzoo.errors import UserError, printable
from kzoo.files import check_writable, sha256

app = typer.Typer()
# Lines to translate between writes: an eighth of all, from this number to `MOST`. Large blocks are faster.
FEWEST = 4096
MOST_PLACES = 20  # in a document, that are listed
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
    from kzoo.images import image_rows
    from kzoo.presets.shelf import locate
    from kzoo.text.reading import UnknownCharactersWarning, lacking_line
    from kzoo.text.sentences import SplitTexts

    if text and file is not None:
        raise UserError("sentences and --input exclude each other: give one of them")
    if output and not text and is_input(output, file):
        raise UserError(f"{output} is the input, which its translation would replace: give another --output")
    if image and images:
        raise UserError("--image and --images exclude each other: give pictures or features")
    # Files come before the preset, which may have to be downloaded.
    glossary = read_terms(terms) if terms else {}
    document = _document(file, output, n_best > 1 or prefix or image or images) if file else None
    split = split or document is not None
    sentences = document.texts if document else sentences_of(None, file) if file else []
    features = open_features(images) if images else None
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
    shape = None if located.is_converted else located.backbone["config"].get("image_shape")
    if shape and not (image or images):  # say so before the model is loaded
        image_rows(None, 0, tuple(shape))
    needs = {"pictures": image or images, "a prefix": prefix}
    translator = open_translator(located, search, engine, compute_type, device, needs)
    languages = translator.named_direction(source, target)
    done, rows_are = 0, "texts" if document else "lines"

    def found(block: list[str], **rows) -> list:
        try:
            return translator.n_best(
                block,
                n=n_best,
                truncate=truncate,
                progress=advance,
                split_sentences=split or None,
                unknown=unknown,
                terms=glossary,
                source_language=languages[0],
                target_language=languages[1],
                **rows,
            )
        except UserError as error:  # it counts from this block's first line
            if not done:
                raise
            raise UserError(f"in the {rows_are} after {rows_are[:-1]} {done:,}: {error}") from None

    def translated(block: list[str], **rows) -> bytes:
        if document:
            from kzoo.documents.translating import translate_texts

            def best_of(texts: list[str]) -> list[str]:
                return [results[0].text for results in found(texts)]

            best = translate_texts(block, best_of, translator, languages)
            return "".join(f"{translation}\n" for translation in best).encode("utf-8")
        return _lines(found(block, **rows), n_best, done + 1).encode("utf-8")

    if follows:
        advance = None
        for block in arriving_lines():
            begun = {"prefixes": prefix * len(block)} if prefix else {}
            _print(translated(block, **begun))
            done += len(block)
        return
    rows = {}
    if translator.image_shape or image or images:
        shape, extractor = translator.image_shape, translator.extractor
        rows["images"] = image_rows(image or features, len(sentences), shape, extractor)
    if prefix:
        rows["prefixes"] = prefix * len(sentences) if len(prefix) == 1 else prefix
    plain = document.plain_texts if document else sentences
    whole = SplitTexts(plain, [languages] * len(sentences), split, translator.codes_in_text)
    begun = whole.prefixes(rows.get("prefixes"))
    # All are checked before the first block is translated. That they are read again then takes 0.1 % of the
    # time; to keep all token ids would take twice the memory of the text.
    lacking = [reading for reading in translator.readings(whole, truncate, begun, unknown) if reading.lacking]
    notice = lacking_line(lacking, len(whole.sentences))

    def where() -> str:
        resumes = done and written and os.path.isfile(written.name)  # a device is not
        kept = f", kept in {written.name}: the same command resumes" if resumes else ""
        return f"stopped after {done:,} of {len(sentences):,} {rows_are}{kept}"

    left = []

    def document_of(lines: BinaryIO, file: BinaryIO):
        translations = dict(zip(sentences, lines.read().decode("utf-8").split("\n"), strict=False))
        left.extend(document.write(file, translations, languages[1]))

    growing = contextlib.nullcontext()
    if output:
        pictures = [sha256(path) for path in (*(image or ()), images) if path]
        made_of = [located.files, pictures, search, n_best, truncate, split, unknown, source, target]
        digest = _digest([*made_of, translator.engine, prefix, glossary], sentences)
        growing = growing_file(output, digest, document_of if document else shutil.copyfileobj)
    text_of = whole.text_of
    del whole  # as large as the text
    # A stop while the file is packed, too.
    with telling_when_stopped(where), growing as written, warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownCharactersWarning)  # they are in the notice
        done = 0 if written is None else done_in(written, n_best)
        lines = max(FEWEST, min(MOST, len(sentences) // 8))
        count = int((text_of >= done).sum())
        with progress_bar("translating", count, shown=file is not None) as advance:
            while done < len(sentences):
                block = slice(done, done + lines)
                content = translated(sentences[block], **{name: given[block] for name, given in rows.items()})
                if written is None:
                    _print(content)
                else:
                    written.write(content)
                    written.flush()
                done = min(block.stop, len(sentences))
    if notice:
        print(printable(notice), file=sys.stderr)
    if left:
        places = "; ".join(left[:MOST_PLACES]) + ("; …" if len(left) > MOST_PLACES else "")
        why = "texts left as they were, because numbers or placeholders changed in translation"
        print(printable(f"{file}: {len(left):,} {why}: {places}"), file=sys.stderr)


def _document(file: Path, output: Path | None, others: object):
    """Return the document in a file; `None` if it is text. `others` are options that are for text alone.

    Raises:
        UserError: it cannot be read, or the options do not fit.
    """
    from kzoo.documents.document import Document, check_ending, is_document

    if not is_document(file):
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
    from kzoo.text.languages import matching_code

    given, own = (source, target), document.languages if document else (None, None)
    for option, code, named in zip(("--from", "--to"), given, own, strict=True):
        if code and named and not matching_code(code, [named]):
            raise UserError(f"{document.path} names the language {named}, not {code} ({option})")
    source, target = (code or named for code, named in zip(given, own, strict=True))
    try:
        check_direction(preset, source, target)
    except UserError as error:
        raise UserError(f"{document.path}: {error}" if any(own) else str(error)) from None
    return source, target


def _digest(made_of: list, sentences: list[str]) -> str:
    """Return the SHA-256 of sentences, and of what else their translations are made of."""
    digest = hashlib.sha256(repr(made_of).encode())
    for sentence in sentences:  # not at once: it would be a copy of the text
        digest.update(repr(sentence).encode())
    return digest.hexdigest()


def _print(content: bytes):
    # UTF-8, whatever the locale. Not `typer.echo`, which takes bytes for UTF-16 on Windows.
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _lines(results: list, n_best: int, first: int) -> str:
    """Return the translations, one per line; with several per sentence, also its number and their scores."""
    if n_best == 1:
        return "".join(f"{hypotheses[0].text}\n" for hypotheses in results)
    return "".join(
        f"{number}\t{hypothesis.score:.4f}\t{hypothesis.text}\n"
        for number, hypotheses in enumerate(results, first)
        for hypothesis in hypotheses
    )
