"""Translation memories and XLIFF as units: the texts by language, streamed."""

import importlib.util
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from kzoo.data.safe_xml import SAFE_XML, check_declares_no_entities, check_no_entities
from kzoo.data.text_files import CHUNK, DAMAGED, open_unpacked
from kzoo.errors import UserError, first_line, unreadable

# Elements of TMX and XLIFF that stand for markup: what they contain is no text. Others are around text, such
# as TMX's `hi` and XLIFF's `g`, `pc` and `mrk`.
MARKUP = {"bpt", "ept", "it", "ph", "ut", "sub", "x", "bx", "ex", "sc", "ec", "sm", "em", "cp"}
# States of XLIFF's translations that are none yet (https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html
# and https://docs.oasis-open.org/xliff/xliff-core/v2.1/).
UNTRANSLATED = {"new", "needs-translation", "initial"}
LONGEST_UNIT = 1 << 24  # bytes: a packed file may hold more than the memory


class LeftOut(NamedTuple):
    """A row that is left out: why, and its texts."""

    why: str
    texts: Sequence


Unit = dict[str, Any] | LeftOut  # the first has texts by language


def tmx_units(path: Path, languages: Sequence[str], columns: Sequence, approved: bool) -> Iterator[Unit]:
    """Yield the units of a TMX file (https://www.gala-global.org/tmx-14b)."""
    for unit in _elements(path, "tmx", "{*}tu"):
        found = {}
        for variant in unit.iterfind("{*}tuv"):
            # Before 1.4, it is `lang`.
            code = variant.get("{http://www.w3.org/XML/1998/namespace}lang") or variant.get("lang") or ""
            segment = variant.find("{*}seg")
            if segment is not None:
                found.setdefault(code, _text(segment))
        yield found


def xliff_units(path: Path, languages: Sequence[str], columns: Sequence, approved: bool) -> Iterator[Unit]:
    """Yield the segments of an XLIFF file, version 1.2 or 2."""
    for unit in _elements(path, "xliff", "{*}trans-unit", "{*}unit"):
        if _name(unit) == "trans-unit":
            file = next(unit.iterancestors("{*}file"), None)
            keys = ("source-language", "target-language")
            segments, final = [unit], unit.get("approved") == "yes"
        else:
            file, keys = unit.getroottree().getroot(), ("srcLang", "trgLang")
            segments = unit.findall("{*}segment")
        codes = ["" if file is None else file.get(key, "") for key in keys]
        for segment in segments:
            source, target = segment.find("{*}source"), segment.find("{*}target")
            state = "new" if target is None else target.get("state") or segment.get("state") or ""
            if _name(unit) == "unit":
                final = state == "final"
            if source is None or state in UNTRANSLATED:
                yield LeftOut("without a translation", [] if source is None else [_text(source)])
            elif approved and not final:
                yield LeftOut("not approved", [_text(source), _text(target)])
            else:
                for texts in _segments(segment.find("{*}seg-source"), source, target):
                    yield dict(zip(codes, texts, strict=True))


def _segments(split, source, target) -> Iterator[tuple[str, str]]:
    """Yield a unit's texts; those of each of its segments, if source and target are split alike."""
    marks = [
        {} if part is None else {
            mark.get("mid"): mark for mark in part.iterfind(".//{*}mrk") if mark.get("mtype") == "seg"
        }
        for part in (split, target)
    ]  # fmt: skip
    if marks[0] and marks[0].keys() == marks[1].keys():
        yield from ((_text(mark), _text(marks[1][number])) for number, mark in marks[0].items())
    else:
        yield _text(source), _text(target)


def _elements(path: Path, root: str, *tags: str) -> Iterator:
    """Yield an XML file's elements with one of the tags, each forgotten afterwards.

    The file's root must be `root`: of other XML, nothing would be forgotten.
    """
    if not importlib.util.find_spec("lxml"):
        raise UserError(f"{path} needs lxml: pip install lxml")
    from lxml import etree

    try:
        with open_unpacked(path) as file:
            for _, first in etree.iterparse(file, events=("start",), **SAFE_XML):
                check_declares_no_entities(first, str(path))
                if _name(first) != root:
                    raise UserError(
                        f"{path}: not {root.upper()}, but XML that begins with {_name(first):.40}"
                    )
                break
            file.seek(0)
            parser = etree.XMLPullParser(
                ("end",), tag=tags, remove_comments=True, remove_pis=True, **SAFE_XML
            )
            size = 0
            for chunk in iter(partial(file.read, CHUNK), b""):
                parser.feed(chunk)
                size += len(chunk)
                for _, element in parser.read_events():
                    check_no_entities(element, str(path))
                    yield element
                    element.clear()
                    while element.getprevious() is not None:
                        del element.getparent()[0]
                    size = 0
                if size > LONGEST_UNIT:
                    raise UserError(f"{path}: over {LONGEST_UNIT:,} bytes without a translation")
            parser.close()
    except etree.XMLSyntaxError as error:
        raise UserError(f"{path}, line {error.lineno}: not XML ({first_line(error)})") from None
    except DAMAGED as error:
        raise unreadable(path, error) from None


def _name(element) -> str:
    from lxml import etree

    return etree.QName(element).localname


def _text(element) -> str:
    """Return an element's text without markup."""
    parts = [element.text or ""]
    for child in element:
        if isinstance(child.tag, str) and _name(child) not in MARKUP:
            parts.append(_text(child))
        parts.append(child.tail or "")
    return "".join(parts)
