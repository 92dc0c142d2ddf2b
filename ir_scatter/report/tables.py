"""Tables on a terminal."""

from collections.abc import Sequence
from dataclasses import dataclass

from ir_scatter.report.characters import visible


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with a colour of its own."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        header: the names of the columns.
        rows: cells, or what is printed as text.
        keeps_empty: whether columns without any text are drawn.
    """

    header: tuple[str, ...]
    rows: Sequence[tuple[object, ...]]
    keeps_empty: bool = False


def table_text(table: Table, *, color: bool, width: int | None) -> str:
    """A table as text, in which names cannot send terminal escapes."""
    import io

    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    columns = range(len(table.header))
    kept = [at for at in columns if table.keeps_empty or any(_text(row[at]) for row in table.rows)]
    drawn = RichTable(box=box.SIMPLE_HEAD if color else None, pad_edge=False)
    for column in kept:
        drawn.add_column(table.header[column], overflow="fold")
    for row in table.rows:
        drawn.add_row(*(Text(visible(_text(row[column])), style=_style(row[column])) for column in kept))
    buffer = io.StringIO()
    Console(file=buffer, width=width or 10_000, force_terminal=color).print(drawn)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def _text(value: object) -> str:
    return value.text if isinstance(value, Cell) else str(value)


def _style(value: object) -> str:
    return value.style if isinstance(value, Cell) else ""
