"""Splits texts into sentences; puts a sentence on one line."""

import re

from kzoo.text.languages import main_code

# After these sentencex ends a sentence wrongly: an initial or an ordinal, as in "M. Dupont" and "19.
# Jahrhundert"; "Ms."; and a punctuation mark directly followed by a letter, as in "E.S.E.".
NO_END = re.compile(r"((^|[\s(\[.\-'’])(\d{1,2}|[^\W\d_]|Ms)\.\s*|[!-~])$")


def split_sentences(text: str, language: str | None = None) -> list[str]:
    """Return a text's sentences, each with the white space after it; joined, they give the text.

    A line end also ends a sentence. Quotes and parentheses are not split. A text without a sentence is
    returned as one.

    Args:
        text: any text.
        language: its code, which selects the abbreviations; English for `None` or a language without rules.

    Example:

    >>> split_sentences("Mr. Smith sees a dog. It runs.", "en")
    ['Mr. Smith sees a dog. ', 'It runs.']
    """
    import sentencex  # not needed in training

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
    """Return a text with its line ends replaced by spaces, or removed at the beginning and the end.

    Every tokenizer applies it first; `kzoo.export.graph_text` does the same in a graph.

    Example:

    >>> one_line("A man\\r\\nwalks.\\n")
    'A man walks.'
    """
    return " ".join(filter(None, text.splitlines()))
