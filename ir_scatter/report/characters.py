"""Text of a stranger's file, made safe to print as lines and tables, and to be written as JSON."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_LONGEST, _HEAD, _TAIL = 2000, 1500, 200
_UNSAFE = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SCHEMA = 1
"""Fields of schema 1 are never renamed or left out; later versions may add some."""


def visible(text: str, keep: str = "") -> str:
    r"""Return the text with everything that cannot be seen spelled out.

    Terminal escapes, line ends, text direction marks and bytes that are not UTF-8 become `\x1b`,
    `\n`, `\u202e`, `\xff`: a name inside a model can then neither move the cursor, nor look like
    another line of the report, nor fail to be encoded. What is longer than a screen is shortened.
    """
    if len(text) > _LONGEST:
        text = f"{text[:_HEAD]}...{text[-_TAIL:]}"
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in keep else _spelled(character)
        for character in text
    )


def _spelled(character: str) -> str:
    number = ord(character)
    if 0xDC80 <= number <= 0xDCFF:  # a byte of a path, kept by os.fsdecode
        return f"\\x{number - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")


def dumps(document: Mapping[str, Any]) -> str:
    r"""JSON that UTF-8 can encode and a terminal can show, indented by two spaces.

    Letters stay letters; C1 controls, text direction marks and lone surrogates (the bytes of a
    path that is not UTF-8) are escaped like the control characters that JSON forbids, so
    `json.loads` gives them back.
    """
    import json

    text = json.dumps(document, ensure_ascii=False, indent=2)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def as_document(**fields: Any) -> dict[str, Any]:
    """What is written of a result as JSON, with the versions of the packages that it was found with."""
    from ir_scatter.version import versions

    return {"schema": _SCHEMA, "versions": versions(), **fields}


def fields_of(one: object, names: str) -> dict[str, Any]:
    """Attributes by name; what "is_readable" says is written as "readable"."""
    return {name.removeprefix("is_"): getattr(one, name) for name in names.split()}


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
