"""A small picture of a node with its producers and consumers: positions of boxes and arrows."""

from typing import NamedTuple

from ir_scatter.analysis.neighbourhood import Neighbour, Neighbourhood
from ir_scatter.core.shapes import show
from ir_scatter.report.characters import cells, visible, without_middle

_WIDTH, _BOX_WIDTH, _BOX_HEIGHT, _GAP = 380, 320, 42, 10
"""Sizes in units of the picture: the picture, a neighbour's box, the gap between boxes."""
_INDENT = _WIDTH - _BOX_WIDTH
_FIRST_LANE, _LANE = 12, 12
"""Position of the first vertical line of the arrows, and the distance between such lines."""
_COLUMNS = 44
"""Maximum characters in one line of a neighbour's box."""


class Box(NamedTuple):
    """A box for a neighbour; `kinds` are its CSS classes."""

    kinds: str
    title: str
    left: int
    top: int
    width: int
    height: int
    operator: str
    tensor: str
    name: str
    role: str


class Arrow(NamedTuple):
    """The line and the head of an arrow, as SVG paths."""

    line: str
    head: str
    is_fault: bool = False


class GraphPicture(NamedTuple):
    """A picture that scales to any width; a note is a position and a text."""

    width: int
    height: int
    label: str
    boxes: list[Box]
    arrows: list[Arrow]
    notes: list[tuple[int, int, str]]


def layout(neighbourhood: Neighbourhood, fault: int | None = None) -> GraphPicture:
    """Place the producers above the node and the consumers below it.

    Args:
        neighbourhood: the node with its producers and consumers.
        fault: the number of the node's faulty input; None if the fault is not an input.
    """
    boxes, arrows, notes = list[Box](), list[Arrow](), list[tuple[int, int, str]]()
    step, y, lanes = _BOX_HEIGHT + _GAP, 1, list[tuple[int, int, bool]]()

    def more(count: int, word: str) -> int:
        """Add a note on the number of neighbours that are not drawn; return its height."""
        if not count:
            return 0
        notes.append((_INDENT, y + 10, f"and {count} more {word}{'s' * (count > 1)}"))
        return 16 + _GAP

    for number, neighbour in enumerate(neighbourhood.producers):
        is_fault = neighbour.port == fault
        boxes.append(_box(neighbour, _INDENT, y, _BOX_WIDTH - 1, "fault" if is_fault else ""))
        lanes.append((_FIRST_LANE + _LANE * number, y + _BOX_HEIGHT // 2, is_fault))
        y += step
    y += more(neighbourhood.more_producers, "input")
    top = y + 2
    for lane, start, is_fault in lanes:
        line = f"M{_INDENT} {start}H{lane}V{top - 6}"
        arrows.append(Arrow(line, f"M{lane - 4} {top - 7}h8l-4 7z", is_fault))
    boxes.append(_box(neighbourhood.node, 1, top, _WIDTH - 2, "centre"))
    bottom = top + _BOX_HEIGHT
    y = bottom + _GAP + 2
    for neighbour in neighbourhood.consumers:
        middle = y + _BOX_HEIGHT // 2
        line = f"M{_FIRST_LANE} {bottom}V{middle}H{_INDENT - 6}"
        arrows.append(Arrow(line, f"M{_INDENT - 7} {middle - 4}v8l7 -4z"))
        boxes.append(_box(neighbour, _INDENT, y, _BOX_WIDTH - 1))
        y += step
    y += more(neighbourhood.more_consumers, "reader")
    return GraphPicture(_WIDTH, y - _GAP + 1, _description(neighbourhood), boxes, arrows, notes)


def _box(neighbour: Neighbour, left: int, top: int, width: int, kind: str = "") -> Box:
    room = _COLUMNS + (width - _BOX_WIDTH) // 7
    tensor = without_middle(_tensor(neighbour), room - 10)
    operator = without_middle(visible(neighbour.operator), room - cells(tensor) - 1)
    name = without_middle(visible(neighbour.name), room - len(neighbour.role) - 1)
    outside = "outside" if neighbour.operator in ("nothing", "input", "output", "constant") else ""
    return Box(
        kinds=" ".join(filter(None, (kind, outside))),
        title=_line(neighbour),
        left=left,
        top=top,
        width=width,
        height=_BOX_HEIGHT,
        operator=operator,
        tensor=tensor,
        name=name,
        role=neighbour.role,
    )


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
    return " ".join(filter(None, parts))


def _description(neighbourhood: Neighbourhood) -> str:
    """Return a description of the picture in words, for screen readers."""
    read = "; ".join(map(_line, neighbourhood.producers)) or "nothing"
    readers = "; ".join(map(_line, neighbourhood.consumers)) or "no node"
    more = [
        f", and {count} more" if count else ""
        for count in (neighbourhood.more_producers, neighbourhood.more_consumers)
    ]
    return f"{_line(neighbourhood.node)} reads {read}{more[0]}. It is read by {readers}{more[1]}."
