"""Tables of scores in Markdown."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from kzoo.files import whole_file


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Return a table whose first `left` columns are aligned left, and the others, numbers, right."""
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    lines = ([cell.replace("|", "\\|") for cell in cells] for cells in (head, rule, *rows))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def show_markdown(text: str, results: Path):
    """Print Markdown, and write it beside the JSON file of the same results, complete or not at all.

    Args:
        text: without a last line feed.
        results: the JSON file; the Markdown's has its name, but ends in `.md`.

    Raises:
        UserError: it cannot be written, for example because the disk is full.
    """
    print(text)
    with whole_file(results.with_suffix(".md")) as file:
        file.write_text(text + "\n", encoding="utf-8")
