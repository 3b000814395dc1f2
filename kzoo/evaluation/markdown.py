"""Markdown tables."""

from collections.abc import Iterable, Sequence


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Return a table with the first `left` columns aligned left and the others, numbers, right."""
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    lines = ([cell.replace("|", "\\|") for cell in cells] for cells in (head, rule, *rows))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
