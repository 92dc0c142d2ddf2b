"""Edits of a text by places: everything that no edit names stays as it is, byte for byte."""

from collections.abc import Iterable
from operator import itemgetter
from typing import NamedTuple

_LONGEST_INDENT = 256


class Edit(NamedTuple):
    """A piece of a text, and what stands there afterwards.

    Attributes:
        start: its first byte.
        end: the byte behind it; that of `start` where something is inserted.
        text: what replaces it.
    """

    start: int
    end: int
    text: bytes


def apply_edits(data: bytes, edits: Iterable[Edit]) -> bytes:
    """Return a text after edits, which may come in any order and never overlap.

    What is inserted at the same place keeps its order, and comes before a piece that begins there.
    """
    parts: list[bytes] = []
    position = 0
    for start, end, text in sorted(edits, key=itemgetter(0, 1)):
        assert position <= start <= end <= len(data), "edits overlap"
        parts += (data[position:start], text)
        position = end
    parts.append(data[position:])
    return b"".join(parts)


def line_lead(data: bytes, start: int) -> bytes:
    """Return the line break and the white space before a byte, empty if more stands on its line."""
    found = data.rfind(b"\n", max(0, start - _LONGEST_INDENT), start)
    if found < 0 or data[found + 1 : start].strip(b" \t"):
        return b""
    is_pair = found > 0 and data[found - 1] == ord("\r")
    return data[found - is_pair : start]


def removal(data: bytes, start: int, end: int) -> Edit:
    """Return the edit that removes a piece, with its line if nothing else stands on that."""
    lead, after = line_lead(data, start), _behind_blanks(data, end)
    if lead:
        is_alone = data[after : after + 1] in (b"\r", b"\n", b"")
        return Edit(start - len(lead), after, b"") if is_alone else Edit(start, end, b"")
    before = data[max(0, start - _LONGEST_INDENT) : start]
    return Edit(start - len(before) + len(before.rstrip(b" \t")), end, b"")


def _behind_blanks(data: bytes, start: int) -> int:
    piece = data[start : start + _LONGEST_INDENT]
    return start + len(piece) - len(piece.lstrip(b" \t"))
