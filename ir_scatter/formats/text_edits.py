"""Edits of a text by byte offsets, which leave every other byte unchanged, and their unified diff."""

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

_LONGEST_INDENT = 256
"""Limit of bytes of indentation and line break that are examined: a longer one counts as other text."""

_CONTEXT = 3
"""Lines of context in a diff, as `diff -u` prints."""

_NO_END = "\\ No newline at end of file\n"
_ESCAPES = str.maketrans({"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\", '"': '\\"'})
_HEADER = re.compile(r"([-+])(\d+)(,\d+)?")


class Edit(NamedTuple):
    """A replacement of the bytes from `start` up to, but not including, `end`."""

    start: int
    end: int
    text: bytes


def apply_edits(data: bytes, edits: Iterable[Edit]) -> bytes:
    """Apply edits, in any order, to a text; they must not overlap.

    Insertions at the same offset keep their order, and precede a replacement that begins there.
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
    """Return the line break and white space before an offset; empty if other text precedes it in its line."""
    line_break = data.rfind(b"\n", max(0, start - _LONGEST_INDENT), start)
    if line_break < 0 or data[line_break + 1 : start].strip(b" \t"):
        return b""
    is_pair = line_break > 0 and data[line_break - 1] == ord("\r")
    return data[line_break - is_pair : start]


def removal(data: bytes, start: int, end: int) -> Edit:
    """Return the edit that removes some bytes, or the whole line if it contains nothing else."""
    lead, following = line_lead(data, start), data[end : end + _LONGEST_INDENT]
    if lead:
        after = end + len(following) - len(following.lstrip(b" \t"))
        is_alone = data[after : after + 1] in (b"\r", b"\n", b"")
        return Edit(start - len(lead), after, b"") if is_alone else Edit(start, end, b"")
    before = data[max(0, start - _LONGEST_INDENT) : start]
    return Edit(start - len(before) + len(before.rstrip(b" \t")), end, b"")


def unified_diff(data: bytes, edits: Sequence[Edit], old: str, new: str) -> Iterator[str]:
    """Yield the lines of a unified diff of a text in UTF-8, each with its line break.

    `old` and `new` are the file names before and after. Only the regions around edits are compared: a diff of
    the whole text would take minutes for a large model.
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
    """Return a file name in the syntax of the program `patch`: quoted or followed by a tab, if necessary."""
    if name.startswith('"') or any(character in name for character in "\n\t\r\\"):
        return f'"{name.translate(_ESCAPES)}"'
    return f"{name}\t" if " " in name else name


def _lines(data: bytes) -> list[str]:
    *whole, rest = data.decode("utf-8", "replace").split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def _regions(data: bytes, edits: Sequence[Edit]) -> list[tuple[int, int, list[Edit]]]:
    """Return (start, end, edits) of each region around edits, in bytes, including lines of context.

    Regions that touch are joined.
    """
    regions: list[tuple[int, int, list[Edit]]] = []
    for edit in sorted(edits, key=itemgetter(0, 1)):
        start, end = edit.start, edit.end
        for _ in range(_CONTEXT + 1):
            start = data.rfind(b"\n", 0, max(start, 0))
            end = data.find(b"\n", end) + 1 or len(data)
        start += 1
        if regions and start <= regions[-1][1]:
            first, _, inside = regions[-1]
            regions[-1] = (first, end, [*inside, edit])
        else:
            regions.append((start, end, [edit]))
    return regions
