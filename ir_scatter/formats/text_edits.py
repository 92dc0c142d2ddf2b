"""Edits of a text by places: what no edit names stays as it is, byte for byte; and their unified diff."""

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

_LONGEST_INDENT = 256
_CONTEXT = 3
_NO_END = "\\ No newline at end of file\n"
_ESCAPES = str.maketrans({"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\", '"': '\\"'})
_HEADER = re.compile(r"([-+])(\d+)(,\d+)?")


class Edit(NamedTuple):
    """A piece of a text, from its first byte to the one behind it, and what stands there afterwards."""

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
    lead, behind = line_lead(data, start), data[end : end + _LONGEST_INDENT]
    if lead:
        after = end + len(behind) - len(behind.lstrip(b" \t"))
        is_alone = data[after : after + 1] in (b"\r", b"\n", b"")
        return Edit(start - len(lead), after, b"") if is_alone else Edit(start, end, b"")
    before = data[max(0, start - _LONGEST_INDENT) : start]
    return Edit(start - len(before) + len(before.rstrip(b" \t")), end, b"")


def unified_diff(data: bytes, edits: Sequence[Edit], old: str, new: str) -> Iterator[str]:
    """Yield the lines of a unified diff of a text in UTF-8, each with its line break.

    `old` and `new` are its names before and afterwards.
    """
    regions = _regions(data, edits)
    if regions:
        yield f"--- {_file_name(old)}\n"
        yield f"+++ {_file_name(new)}\n"
    line, position, shift = 0, 0, 0
    for start, end, inside in regions:
        line += data.count(b"\n", position, start)
        position = start
        local = [Edit(edit.start - start, edit.end - start, edit.text) for edit in inside]
        left, right = _lines(data[start:end]), _lines(apply_edits(data[start:end], local))
        for text in [*difflib.unified_diff(left, right, n=_CONTEXT)][2:]:
            if text.startswith("@@"):
                moved = zip(_HEADER.findall(text), (line, line + shift), strict=True)
                sides = [f"{sign}{int(first) + by}{count}" for (sign, first, count), by in moved]
                yield f"@@ {' '.join(sides)} @@\n"
            else:
                yield from [text] if text.endswith("\n") else (f"{text}\n", _NO_END)
        shift += len(right) - len(left)


def _file_name(name: str) -> str:
    r"""Return a name as `patch` reads it: in quotes if it holds such or a line end, else up to a tab."""
    if name.startswith('"') or any(character in name for character in "\n\t\r\\"):
        return f'"{name.translate(_ESCAPES)}"'
    return f"{name}\t" if " " in name else name


def _lines(data: bytes) -> list[str]:
    *whole, rest = data.decode("utf-8", "replace").split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def _regions(data: bytes, edits: Sequence[Edit]) -> list[tuple[int, int, list[Edit]]]:
    """Return whole lines around edits, with lines of context; those that touch are one region."""
    found: list[tuple[int, int, list[Edit]]] = []
    for edit in sorted(edits, key=itemgetter(0, 1)):
        start, end = edit.start, edit.end
        for _ in range(_CONTEXT + 1):
            start = data.rfind(b"\n", 0, max(start, 0))
            end = data.find(b"\n", end) + 1 or len(data)
        start += 1
        if found and start <= found[-1][1]:
            first, _, inside = found[-1]
            found[-1] = (first, end, [*inside, edit])
        else:
            found.append((start, end, [edit]))
    return found
