"""The progress bar of long commands."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(what: str, total: int | None, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error if that is a terminal; yield the function that advances it by a count."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    # Elsewhere it would write an empty line.
    with Progress(console=console, disable=not (shown and console.is_terminal), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)
