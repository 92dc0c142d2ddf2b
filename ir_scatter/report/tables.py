"""Tables on a terminal."""

from collections.abc import Sequence
from typing import NamedTuple

from ir_scatter.report.characters import visible


class Cell(NamedTuple):
    """A cell with a colour of its own."""

    text: str
    style: str = ""


class Table(NamedTuple):
    header: tuple[str, ...]
    rows: Sequence[tuple[object, ...]]
    keeps_empty: bool = False
    """Whether columns without any text are drawn."""


def table_text(table: Table, *, color: bool, width: int | None) -> str:
    """A table as text, in which names cannot send terminal escapes."""
    import io

    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    rows = [[cell if isinstance(cell, Cell) else Cell(str(cell)) for cell in row] for row in table.rows]
    drawn = RichTable(box=box.SIMPLE_HEAD if color else None, pad_edge=False)
    shown = [at for at in range(len(table.header)) if table.keeps_empty or any(row[at].text for row in rows)]
    for column in shown:
        drawn.add_column(table.header[column], overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(visible(row[column].text), style=row[column].style) for column in shown))
    buffer = io.StringIO()
    Console(file=buffer, width=width or 10_000, force_terminal=color).print(drawn)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"
