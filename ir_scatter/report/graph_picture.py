"""A node with its producers and consumers as a small SVG of text and lines."""

from collections.abc import Iterator
from html import escape

from ir_scatter.analysis.neighbourhood import Neighbour, Neighbourhood
from ir_scatter.core.shapes import show
from ir_scatter.report.characters import cells, visible, without_middle

_WIDTH, _BOX_WIDTH, _BOX_HEIGHT, _GAP = 380, 320, 42, 10
"""Sizes in units of the picture: all of it, the box of a neighbour, the space between boxes."""
_INDENT = _WIDTH - _BOX_WIDTH
_FIRST_LANE, _LANE = 12, 12
"""Where the first vertical line runs, and the distance of the others."""
_COLUMNS = 44
"""Characters that fit into one line of a neighbour's box."""


def picture(neighbourhood: Neighbourhood, fault: int | None = None) -> str:
    """Return an SVG that scales to any width: producers above the node, consumers below it.

    Args:
        neighbourhood: the node with its producers and consumers.
        fault: the number of the node's faulty input; None if the fault is not an input.
    """
    parts = list[str]()
    step, y, lanes = _BOX_HEIGHT + _GAP, 1, list[tuple[int, int, bool]]()
    for number, neighbour in enumerate(neighbourhood.producers):
        is_fault = neighbour.port == fault
        parts += _box(neighbour, _INDENT, y, _BOX_WIDTH - 1, "fault" if is_fault else "")
        lanes.append((_FIRST_LANE + _LANE * number, y + _BOX_HEIGHT // 2, is_fault))
        y += step
    y = _more(parts, neighbourhood.more_producers, "input", y)
    top = y + 2
    for lane, start, is_fault in lanes:
        parts += _arrow(f"M{_INDENT} {start}H{lane}V{top - 6}", f"M{lane - 4} {top - 7}h8l-4 7z", is_fault)
    parts += _box(neighbourhood.node, 1, top, _WIDTH - 2, "centre")
    bottom = top + _BOX_HEIGHT
    y = bottom + _GAP + 2
    for neighbour in neighbourhood.consumers:
        middle = y + _BOX_HEIGHT // 2
        line = f"M{_FIRST_LANE} {bottom}V{middle}H{_INDENT - 6}"
        parts += _arrow(line, f"M{_INDENT - 7} {middle - 4}v8l7 -4z", False)
        parts += _box(neighbour, _INDENT, y, _BOX_WIDTH - 1, "")
        y += step
    y = _more(parts, neighbourhood.more_consumers, "reader", y)
    height = y - _GAP + 1
    label = _description(neighbourhood)
    head = f'<svg class="graph" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{label}">'
    return head + "".join(parts) + "</svg>"


def _box(neighbour: Neighbour, left: int, y: int, width: int, kind: str) -> Iterator[str]:
    room = _COLUMNS + (width - _BOX_WIDTH) // 7
    tensor = without_middle(_tensor(neighbour), room - 10)
    operator = without_middle(visible(neighbour.operator), room - cells(tensor) - 1)
    name = without_middle(visible(neighbour.name), room - len(neighbour.role) - 1)
    outside = "outside" if neighbour.operator in ("nothing", "input", "output", "constant") else ""
    right = left + width - 8
    yield f'<g class="{" ".join(filter(None, (kind, outside)))}"><title>{_line(neighbour)}</title>'
    yield f'<rect x="{left}" y="{y}" width="{width}" height="{_BOX_HEIGHT}" rx="4"/>'
    yield f'<text class="operator" x="{left + 8}" y="{y + 17}">{escape(operator)}</text>'
    yield f'<text class="shape" x="{right}" y="{y + 17}">{escape(tensor)}</text>'
    yield f'<text x="{left + 8}" y="{y + 34}">{escape(name)}</text>'
    yield f'<text class="role" x="{right}" y="{y + 34}">{escape(neighbour.role)}</text></g>'


def _arrow(line: str, head: str, is_fault: bool) -> list[str]:
    kind = ' class="fault"' if is_fault else ""
    return [f'<path{kind} d="{line}"/>', f'<path class="head{" fault" if is_fault else ""}" d="{head}"/>']


def _more(parts: list[str], count: int, word: str, y: int) -> int:
    if not count:
        return y
    parts.append(f'<text x="{_INDENT}" y="{y + 10}">and {count} more {word}{"s" * (count > 1)}</text>')
    return y + 16 + _GAP


def _tensor(neighbour: Neighbour) -> str:
    shape = "" if neighbour.shape is None else show(neighbour.shape)
    return visible(
        " ".join(filter(None, (neighbour.element_type.name if neighbour.element_type else "", shape)))
    )


def _line(neighbour: Neighbour) -> str:
    parts = (
        f"{neighbour.role}:" if neighbour.role else "",
        visible(neighbour.operator),
        visible(neighbour.name),
        _tensor(neighbour),
    )
    return escape(" ".join(filter(None, parts)))


def _description(neighbourhood: Neighbourhood) -> str:
    """Return the picture in words, for screen readers."""
    read = "; ".join(map(_line, neighbourhood.producers)) or "nothing"
    readers = "; ".join(map(_line, neighbourhood.consumers)) or "no node"
    more = [
        f", and {count} more" if count else ""
        for count in (neighbourhood.more_producers, neighbourhood.more_consumers)
    ]
    return f"{_line(neighbourhood.node)} reads {read}{more[0]}. It is read by {readers}{more[1]}."
