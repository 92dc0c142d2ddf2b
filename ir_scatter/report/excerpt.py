"""One line of a file and the caret below its column."""

from ir_scatter.report.characters import visible

_WIDTH = 100  # characters of the file that are shown of a long line
_TAB = "    "
_CUT = "..."


def excerpt(line: str, column: int | None) -> tuple[str, str]:
    """Return the line as it is printed, and spaces with a caret below the column.

    Tabs are expanded and invisible characters spelled out in both; a long line is cut on both
    sides of the column.

    Args:
        line: the text of the line, with or without its line end.
        column: from 1, in characters; None gives an empty second line.
    """
    line = line.rstrip("\r\n")
    target = min(max((column or 1) - 1, 0), len(line))
    start, stop = _window(len(line), target)
    left = (_CUT if start else "") + _printed(line[start:target])
    right = _printed(line[target:stop]) + (_CUT if stop < len(line) else "")
    caret = "" if column is None else " " * _cells(left) + "^"
    return left + right, caret


def _window(length: int, target: int) -> tuple[int, int]:
    """Return which part of a line of this length is shown so that the target is in it."""
    start = max(0, min(target - _WIDTH // 2, length - _WIDTH))
    return start, min(length, start + _WIDTH)


def _printed(text: str) -> str:
    return visible(text.replace("\t", _TAB))


def _cells(text: str) -> int:
    """Return how many cells of a terminal the text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(
        0 if combining(character) else 2 if east_asian_width(character) in "WF" else 1 for character in text
    )
