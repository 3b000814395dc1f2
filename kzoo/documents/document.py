"""A document of any format: its texts, each once, and the same document with their translations."""

import importlib
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

from kzoo.data.text_files import DAMAGED as DAMAGED_FILE
from kzoo.documents.inline import Segment, plain, texts, translated, whole
from kzoo.documents.placeholders import has_words
from kzoo.documents.translating import translate_texts
from kzoo.errors import UserError, unreadable
from kzoo.files import atomic_write, check_file_name, check_writable
from kzoo.text.languages import Direction, matching_code

# The module of each format, by the ending of the file's name. It has `read(path) -> Content`.
FORMATS = {
    "office": (".docx", ".pptx"),
    "opendocument": (".odt",),
    "web": (".html", ".htm"),
    "epub": (".epub",),
    "gettext": (".po",),
    "xliff": (".xliff", ".xlf"),
    "web_json": (".json",),
    "subtitles": (".srt", ".vtt"),
}
BY_ENDING = {ending: module for module, endings in FORMATS.items() for ending in endings}


class Content(NamedTuple):
    """What a format's module reads from a file.

    Attributes:
        segments: the pieces to translate.
        write: writes the document, in which segments may have been replaced, to a file; its second argument
            is the language of the translations.
        languages: those of the texts and of their translations, if the file names them.
    """

    segments: Iterable[Segment]
    write: Callable[[BinaryIO, str | None], object]
    languages: tuple[str | None, str | None] = (None, None)


class Document:
    """A file whose texts are to be translated.

    Args:
        path: the file; the ending of its name is its format.
        longest: int. Most characters of a text; `None`: any number.

    Attributes:
        texts: what `write` needs the translations of, each once: texts with single spaces, and with marks for
            inline elements (`kzoo.documents.inline`). Those without words, such as numbers, are left out.
        languages: of the texts and of their translations, if the file names them.

    Raises:
        UserError: the format is not known; the file cannot be read, is damaged, or not what its name says; it
            declares XML's entities, or unpacks to too much; a text is too long; a package is missing.
    """

    def __init__(self, path: Path, longest: int | None = None):
        check_is_document(path)
        module = BY_ENDING[Path(path).suffix.lower()]
        check_file_name(path)
        self.path = path
        try:
            read = importlib.import_module(f"kzoo.documents.{module}").read
            segments, self._write, self.languages = read(Path(path))
            segments = [_checked(segment, path, longest) for segment in segments]
            self._segments = [segment for segment in segments if any(map(_needed, texts(segment.pieces)))]
        except DAMAGED as error:
            raise unreadable(path, error) from None
        found = (text for segment in self._segments for text in texts(segment.pieces) if _needed(text))
        self.texts = list(dict.fromkeys(found))

    @property
    def plain_texts(self) -> list[str]:
        """`texts` without marks."""
        return list(map(plain, self.texts))

    def places(self, some: Collection[str]) -> list[str]:
        """Return the places in the document that need the translation of one of some of `texts`."""
        return [one.place for one in self._segments if any(text in some for text in texts(one.pieces))]

    def direction(self, source: str | None, target: str | None) -> Direction:
        """Return the languages given, or else those that the document names.

        Raises:
            UserError: the document names another language.
        """
        given = source, target
        for code, named in zip(given, self.languages, strict=True):
            if code and named and not matching_code(code, [named]):
                raise UserError(f"{self.path} names the language {named:.40}, not {code:.40}")
        return tuple(code or named for code, named in zip(given, self.languages, strict=True))

    def write(self, file: BinaryIO, translations: Mapping[str, str], target: str | None = None) -> list[str]:
        """Write the document with translations, once.

        Args:
            file: opened for writing.
            translations: of each of `texts`; an empty one leaves what needs it as it was.
            target: the language of the translations, for formats that name it.

        Returns:
            The places in the document that were left as they were.
        """
        left, known = [], _Known(translations)
        try:
            for segment in self._segments:
                new = translated(segment.pieces, known)
                if new is None:
                    left.append(segment.place)
                else:
                    segment.put(new)
            self._write(file, target)
        except DAMAGED as error:
            if isinstance(error, OSError) and error.filename != str(self.path):
                raise  # from writing
            raise unreadable(self.path, error) from None
        return left


def _checked(segment: Segment, path: Path, longest: int | None) -> Segment:
    if longest and (length := len(whole(segment.pieces))) > longest:
        raise UserError(f"{path}: {segment.place} has {length:,} characters; at most {longest:,} are allowed")
    return segment


def _needed(text: str) -> bool:
    return has_words(plain(text))


class _Known(dict):
    """Translations; those of texts without words are the texts."""

    def __missing__(self, text: str) -> str:
        return text


def is_document(path: Path) -> bool:
    """Return whether a file is a document that kzoo translates, by the ending of its name."""
    return Path(path).suffix.lower() in BY_ENDING


def translate_document(
    path: Path,
    output: Path,
    translator,
    source_language: str | None = None,
    target_language: str | None = None,
) -> list[str]:
    """Write a document's translation.

    Args:
        path: the document.
        output: the file to write; its name has the same ending.
        translator: of either engine.
        source_language, target_language: as in `translate`; by default those that the document names.

    Returns:
        The places in the document that were left as they were, because a placeholder was lost, or a sentence
        is longer than the model's maximum.

    Raises:
        UserError: as `Document`; it names another language; the endings differ; the output cannot be written,
            or is the document; the translator does not translate between these languages.

    Example:

        translator = kzoo.presets.load("pope_small_multi30k_en_de")
        translate_document("report.docx", "bericht.docx", translator)
    """
    check_ending(path, output)
    document = Document(path)
    direction = translator.direction(*document.direction(source_language, target_language))
    check_writable(output, [path])

    def translate(sentences: list[str]) -> list[str]:
        return translator.translate(sentences, *direction, split_sentences=False)

    translations = translate_texts(document.texts, translate, translator, direction)
    with atomic_write(output) as unfinished, open(unfinished, "wb") as file:
        return document.write(file, dict(zip(document.texts, translations, strict=True)), direction[1])


def check_is_document(path: Path):
    """Raise `UserError` for a file that is no document, by the ending of its name."""
    if not is_document(path):
        raise UserError(f"{path}: no document that is known by its ending: {', '.join(BY_ENDING)}")


def check_ending(path: Path, output: Path):
    """Raise `UserError` if the name of a document's translation has another ending."""
    ending = Path(path).suffix.lower()
    if Path(output).suffix.lower() != ending:
        raise UserError(f"{output} must end in {ending}, as {path} does")


# What reading a damaged file raises: zipfile's errors, those of text, and deep nesting.
DAMAGED = (*DAMAGED_FILE, zipfile.BadZipFile, RuntimeError, UnicodeError)
