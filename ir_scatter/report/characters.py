"""Makes untrusted text safe for terminals and JSON, fits it into a width, and draws tables."""

import re
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

from ir_scatter.core.display import is_seen
from ir_scatter.core.display import visible as visible
from ir_scatter.core.display import without_commands as without_commands

_UNSAFE = re.compile(r"[^\n -~]|#(?=#(?:vso)?\[)", re.IGNORECASE)
"""Characters to escape in JSON: possibly invisible ones, and "#" before "#[" or "#vso[" (commands of CI
systems)."""
_SHAPE = re.compile(r"\[[^][]{0,40}\]")
_SCHEMA = 1
"""Version of the JSON schemas. Within a version fields may be added, but are never renamed or removed."""


def cells(text: str) -> int:
    """Return the width of a text in terminal cells; rich is only imported for text that is not ASCII."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def head(text: str, room: int) -> str:
    """Return the longest beginning of a text that fits into `room` cells."""
    end = min(len(text), max(room, 0))
    while cells(text[:end]) > room and end:
        end -= 1
    return text[:end]


def tail(text: str, room: int) -> str:
    """Return the longest end of a text that fits into `room` cells."""
    start = max(0, len(text) - max(room, 0))
    while cells(text[start:]) > max(room, 0):
        start += 1
    return text[start:]


def fold(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Break a text into lines of at most `width` cells, between words or within a longer word.

    `first` and `rest` are the prefixes of the first and the other lines; they count. Shapes like "[1, 2]" are
    kept together.
    """
    lines, line, is_empty = list[str](), first, True
    for word in _SHAPE.sub(lambda shape: shape[0].replace(" ", "\0"), text).split(" "):
        word = word.replace("\0", " ")
        wider = line + word if is_empty else f"{line} {word}"
        if cells(wider) > width and not is_empty:
            lines.append(line)
            wider = rest + word
        while cells(wider) > width:
            part = head(wider, width)
            if len(part) <= len(rest):
                break
            lines.append(part)
            wider = rest + wider[len(part) :]
        line, is_empty = wider, False
    return [*lines, line]


def reflow(text: str, width: int | None) -> str:
    """Wrap the paragraphs of a Markdown page to the terminal's width; tables and code stay unchanged."""
    blocks, is_code = list[str](), False
    for block in text.rstrip("\n").split("\n\n"):
        is_kept = is_code or "```" in block or block.startswith(("|", "#", "<", "{"))
        is_code ^= block.count("```") % 2 == 1
        lines = block.splitlines() if is_kept or "\n " in block else [" ".join(block.splitlines())]
        blocks.append(
            "\n".join(
                line if is_kept else wrap_line(line, width, "    " * line.startswith(" ")) for line in lines
            )
        )
    return "\n\n".join(blocks) + "\n" if width else text


def dumps(document: Mapping[str, Any]) -> str:
    r"""Return indented JSON that UTF-8 can encode and a terminal can show.

    Letters are not escaped. C1 controls, text direction marks, zero-width characters and lone surrogates
    (bytes of a path that is not UTF-8) are written as \uXXXX, which `json.loads` decodes.
    """
    import json

    text = json.dumps(document, ensure_ascii=False, indent=2)
    return _UNSAFE.sub(_escape, text) + "\n"


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character != "#" and is_seen(character):
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def as_document(**fields: Any) -> dict[str, Any]:
    """Return a JSON document with these fields, the schema number and the versions of the packages."""
    from ir_scatter.version import versions

    return {"schema": _SCHEMA, "versions": versions(), **fields}


def fields_of(record: object, names: str) -> dict[str, Any]:
    """Return attributes by name; the attribute "is_readable" becomes the field "readable"."""
    return {name.removeprefix("is_"): getattr(record, name) for name in names.split()}


class TableCell(NamedTuple):
    """A cell with a style, and a shorter text for tables that are too wide."""

    text: str
    style: str = ""
    narrow: str | None = None


class Table(NamedTuple):
    header: tuple[str | TableCell, ...]
    rows: Sequence[tuple[object, ...]]
    keeps_empty: bool = False
    """Whether to draw columns whose cells are all empty."""


_LEAST_NAME = 24
"""Minimum width, in cells, of a column of shortened names: below that they become indistinguishable."""


def without_middle(text: str, width: int | None, share: float = 0.4) -> str:
    """Shorten a name to `width` cells by cutting its middle.

    `share` is the part kept from the start; less than half by default, since names mostly differ at their
    ends.
    """
    if width is None or cells(text) <= width:
        return text
    first = int(max(width - 1, 0) * share)
    return f"{head(text, first)}…{tail(text, width - 1 - first)}"


def wrap_line(line: str, width: int | None, indent: str = "") -> str:
    """Wrap a line to the terminal's width; the second and later lines are indented."""
    return line if width is None else "\n".join(fold(line, max(width, 20), "", indent))


def draw_plain_table(texts: Sequence[Sequence[str]], limit: int, *, color: bool) -> str | None:
    """Draw a table without cell styles exactly as rich does, in a hundredth of the time.

    Return None if rich would draw it differently: if it is wider than the limit, or if a cell begins or ends
    with whitespace, which rich may cut off.
    """
    if any(text != text.strip() or "\n" in text for row in texts for text in row):
        return None
    widths = [max(map(cells, column)) for column in zip(*texts, strict=True)]
    if not widths or 0 in widths or sum(widths) + 2 * (len(widths) - 1) > limit:
        return None

    def pad(row: Sequence[str]) -> list[str]:
        pairs = zip(row, widths, strict=True)
        return [text + " " * (width - cells(text)) for text, width in pairs]

    lines = ["  ".join(pad(row)) for row in texts]
    if color:
        rule = "─" * (sum(widths) + 2 * (len(widths) - 1))
        bold = [f"\x1b[1m{text}\x1b[0m" for text in pad(texts[0])]
        lines[:1] = ["\x1b[1m \x1b[0m ".join(bold), rule]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def table_text(table: Table, *, color: bool, width: int | None) -> str:
    """Return a table as text, without terminal escapes from names.

    A table wider than the terminal is narrowed in three steps, until it fits: short texts of cells; shortened
    names in the first column, if they stay distinct; wrapped cells.
    """
    rows = (table.header, *table.rows)
    lines = [[cell if isinstance(cell, TableCell) else TableCell(str(cell)) for cell in row] for row in rows]
    full = [table.keeps_empty or any(cell.text for cell in column[1:]) for column in zip(*lines, strict=True)]
    lines = [list(compress(line, full)) for line in lines]
    texts = [[visible(cell.text) for cell in line] for line in lines]
    has_styles = color and any(cell.style for line in lines for cell in line)
    plain_table = None if has_styles else draw_plain_table(texts, width or 10_000, color=color)
    if plain_table is not None:
        return plain_table
    import io

    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    buffer, limit = io.StringIO(), width or 10_000
    console = Console(
        file=buffer,
        width=limit,
        height=25,
        force_terminal=color,
        color_system="standard" if color else None,  # whatever TERM says
        no_color=not color,
    )

    def draw(texts: Sequence[Sequence[str]]) -> RichTable:
        rich_table = RichTable(
            box=box.SIMPLE_HEAD if color else None,
            pad_edge=False,
            show_edge=False,
            padding=(0, 1, 0, 0) if color else (0, 1),
        )
        for text in texts[0]:
            rich_table.add_column(text, overflow="fold")
        for line, row in zip(lines[1:], texts[1:], strict=True):
            rich_table.add_row(*(Text(text, cell.style) for cell, text in zip(line, row, strict=True)))
        return rich_table

    def excess(rich_table: RichTable) -> int:
        unlimited = console.options.update(max_width=10_000)
        return console.measure(rich_table, options=unlimited).maximum - limit

    rich_table = draw(texts)
    if any(full) and excess(rich_table) > 0:
        narrow = [[cell.text if cell.narrow is None else cell.narrow for cell in line] for line in lines]
        texts = [[*map(visible, line)] for line in narrow]
        rich_table, names = draw(texts), [row[0] for row in texts]
        least = max(max(map(cells, names)) - max(excess(rich_table), 0), _LEAST_NAME)
        for share in (0.4, 0.6):
            fitting = [without_middle(name, least, share) for name in names]
            if len(set(fitting)) == len(set(names)):
                rich_table = draw([[name, *row[1:]] for name, row in zip(fitting, texts, strict=True)])
                break
    console.print(rich_table)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"
