"""A progress bar on standard error, for long work on a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_FEW = 20


@contextmanager
def progress(total: int, *, is_wanted: bool) -> Iterator[Callable[[object], None] | None]:
    """Give a function to call after each file; None where nobody would see the bar."""
    if not is_wanted or total < _FEW or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("checking", total=total)
        yield lambda _: bar.advance(task)
