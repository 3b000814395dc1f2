"""What ends a line is not part of a sentence: no tokenizer gets it (in a graph: `kzoo.export.graph_text`)."""


def one_line(text: str) -> str:
    """Return a text without the line ends around it, and with a space for those within it.

    Example:

    >>> one_line("A man\\r\\nwalks.\\n")
    'A man walks.'
    """
    return " ".join(filter(None, text.splitlines()))
