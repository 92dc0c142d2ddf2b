"""Whether the constants of an IR and its `.bin` fit together."""

import re
from collections.abc import Iterator

from ir_scatter.diagnostics import Location
from ir_scatter.elements import from_element_type, is_dynamic_word
from ir_scatter.formats.openvino_graph import CONST, PARAMETER, IrGraph, byte_range
from ir_scatter.model import Defect
from ir_scatter.shapes import element_count, parse_shape

_DATA = re.compile(
    rb'<data element_type="([^"&]*)" shape="([^"&]*)"'
    rb'(?: offset="(\d{1,19})" size="(\d{1,19})")?\s*/>'
)


def constant_defects(graph: IrGraph) -> Iterator[Defect]:
    """Yield what is wrong with the Consts and Parameters of a graph and all bodies in it."""
    yield from _Constants(graph).defects()


class _Constants:
    """Looks at every Const and every Parameter once; equal declarations are judged once."""

    def __init__(self, graph: IrGraph) -> None:
        self.graph = graph
        self.weights = graph.file.weights
        self.count = 0
        self._known: dict[tuple[bytes, bytes], int | None] = {}

    def defects(self) -> Iterator[Defect]:
        """Yield the defects, the missing `.bin` last."""
        pending = [self.graph]
        while pending:
            graph = pending.pop()
            for key, (type, start, end) in graph.body.layers.items():
                if type in (b"Const", b"Parameter") or type.lower() in (CONST, PARAMETER):
                    yield from self._layer(graph, key, start, end)
            inner = [body for key in graph.body.bodies for body in graph.graphs(key).values()]
            pending.extend(reversed(inner))
        if self.count and (self.weights is None or self.weights.size is None):
            yield self._missing()

    def _layer(self, graph: IrGraph, key: bytes, start: int, end: int) -> Iterator[Defect]:
        match = _DATA.search(graph.file.text.data, start, end)
        needed: int | None = None
        if match is not None:
            declared = (match[1], match[2])
            if declared not in self._known:
                self._known[declared] = _needed_bytes(
                    match[1].decode("utf-8", "replace"), match[2].decode("utf-8", "replace")
                )
            needed = self._known[declared]
        if match is None or needed is None:
            yield from self._unusual(graph, key)
        elif match[3] is not None:
            yield from self._place(graph, key, int(match[3]), int(match[4]), needed)
        elif graph.body.layers[key][0].lower() == CONST:
            yield from self._unusual(graph, key)

    def _unusual(self, graph: IrGraph, key: bytes) -> Iterator[Defect]:
        """Check a declaration that is wrong, or written in another order."""
        layer, node = graph.layer(key), graph.node(key)
        shape, type = layer.attributes.get("shape"), layer.attributes.get("element_type", "")
        problems = list(_problems(shape, type))
        is_const = graph.body.layers[key][0].lower() == CONST
        place = byte_range(layer) if is_const else None
        if is_const and place is None:
            texts = [layer.attributes.get(name) for name in ("offset", "size")]
            problems.append(f"offset and size are {texts[0]!r} and {texts[1]!r}, expected numbers")
        for problem in problems:
            yield Defect("bad-number", problem, node.location, node)
        if place is not None:
            needed = None if problems else _needed_bytes(type, shape or "")
            yield from self._place(graph, key, *place, needed or 0)

    def _place(self, graph: IrGraph, key: bytes, offset: int, size: int, needed: int) -> Iterator[Defect]:
        self.count += 1
        available = None if self.weights is None else self.weights.size
        node = None
        if size < needed:
            node = graph.node(key)
            message = f"the constant has {size} bytes, its type and shape need {needed}"
            yield Defect("constant-size", message, node.location, node)
        if available is not None and offset + size > available and self.weights is not None:
            node = graph.node(key)
            message = (
                f"the constant ends at byte {offset + size} of {self.weights.path.name}, "
                f"which has {available}"
            )
            yield Defect("weights-truncated", message, node.location, node)

    def _missing(self) -> Defect:
        constants = "1 constant is" if self.count == 1 else f"{self.count} constants are"
        path = self.graph.file.text.path
        if self.weights is None:
            reason = "there is no .bin beside standard input"
        else:
            reason = f"{self.weights.path.name} cannot be read ({self.weights.error})"
        message = f"{reason}: the values of {constants} unknown"
        return Defect("weights-missing", message, Location(path))


def _needed_bytes(type_text: str, shape_text: str) -> int | None:
    """Return the bytes of a constant; 0 if its type has no size, None if something is wrong."""
    if any(_problems(shape_text, type_text)):
        return None
    element_type = from_element_type(type_text.strip())
    count = element_count(parse_shape(shape_text))
    if element_type is None or count is None or element_type.kind == "string":
        return 0
    return element_type.byte_size(count)


def _problems(shape: str | None, type: str) -> Iterator[str]:
    if shape is None:
        yield "<data> has no shape, expected one"
    else:
        try:
            parse_shape(shape)
        except ValueError as error:
            yield f"shape is {shape!r}: {error}"
    if from_element_type(type.strip()) is None and not is_dynamic_word(type.strip()):
        yield f"element_type is {type!r}, expected a type such as 'f32'"
