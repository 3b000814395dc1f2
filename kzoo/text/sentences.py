"""A text's sentences, and a sentence as one line."""

import re

from kzoo.text.languages import main_code

# After these, sentencex sees an end where there is none: an initial or an ordinal, as in "M. Dupont" and
# "19. Jahrhundert"; "Ms."; and a mark with a letter right behind it, as in "E.S.E.".
NO_END = re.compile(r"((^|[\s(\[.\-'’])(\d{1,2}|[^\W\d_]|Ms)\.\s*|[!-~])$")


def split_sentences(text: str, language: str | None = None) -> list[str]:
    """Return a text's sentences, each with the white space behind it: joined, they are the text.

    The end of a line ends a sentence too. What is in quotes or parentheses is not split. A text without a
    sentence is returned as one.

    Args:
        text: any text.
        language: its code, by which abbreviations are known; `None`, or one without rules: as English.

    Example:

    >>> split_sentences("Mr. Smith sees a dog. It runs.", "en")
    ['Mr. Smith sees a dog. ', 'It runs.']
    """
    import sentencex  # which training does not need

    sentences = [""]
    for line in text.splitlines(keepends=True):
        for part in sentencex.segment(main_code(language) or "en", line):
            last = sentences[-1]
            ended = last.endswith("\n") or not NO_END.search(last[-20:])
            if part.strip() and last.strip() and ended:
                sentences.append("")
            sentences[-1] += part
    return sentences


def one_line(text: str) -> str:
    """Return a text without the line ends around it, and with a space for those within it.

    What ends a line is not part of a sentence: no tokenizer gets it (in a graph: `kzoo.export.graph_text`).

    Example:

    >>> one_line("A man\\r\\nwalks.\\n")
    'A man walks.'
    """
    return " ".join(filter(None, text.splitlines()))
