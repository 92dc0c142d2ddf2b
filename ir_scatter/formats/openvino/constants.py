"""Whether the constants of an IR and its `.bin` fit together."""

from collections.abc import Iterator

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.element_types import from_element_type, is_dynamic_word
from ir_scatter.core.model import Defect
from ir_scatter.core.shapes import counted, element_count, parse_shape
from ir_scatter.formats.openvino.file import CONST, PARAMETER, byte_range
from ir_scatter.formats.openvino.graph import IrGraph
from ir_scatter.formats.openvino.layers import LARGEST_RANK
from ir_scatter.formats.openvino.xml_text import shown

_DECLARING = frozenset({b"Const", b"Parameter", CONST, PARAMETER})


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
            yield from self._usual(graph)
            constants = graph.body.constants
            for key, (type, _, _) in graph.body.layers.items():
                if type in _DECLARING and key not in constants:
                    yield from self._unusual(graph, key)
            inner = [body for key in graph.body.bodies for body in graph.graphs(key).values()]
            pending.extend(reversed(inner))
        if self.count and (self.weights is None or self.weights.size is None):
            yield self._missing()

    def _usual(self, graph: IrGraph) -> Iterator[Defect]:
        """Check the Consts that the index has read."""
        known = self._known
        available = self.weights.size if self.weights is not None else None
        for key, (type, shape, offset, size) in graph.body.constants.items():
            if (type, shape) not in known:
                texts = type.decode("utf-8", "replace"), shape.decode("utf-8", "replace")
                known[type, shape] = _needed_bytes(*texts)
            needed, length = known[type, shape], int(size)
            if needed is None:
                yield from self._unusual(graph, key)
                continue
            self.count += 1
            end = int(offset) + length
            if length < needed or (available is not None and end > available):
                self.count -= 1
                yield from self._place(graph, key, int(offset), length, needed)

    def _unusual(self, graph: IrGraph, key: bytes) -> Iterator[Defect]:
        """Check a declaration that is wrong, or written in another order."""
        layer, node = graph.layer(key), graph.node(key)
        shape, type = layer.attributes.get("shape"), layer.attributes.get("element_type", "")
        problems = list(_problems(shape, type))
        is_const = graph.body.layers[key][0].lower() == CONST
        place = byte_range(layer) if is_const else None
        if is_const and place is None:
            texts = [layer.attributes.get(name) for name in ("offset", "size")]
            offset, size = (None if text is None else shown(text) for text in texts)
            problems.append(f"offset and size are {offset!r} and {size!r}, expected numbers")
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
            message = f"the constant has {counted(size, 'byte')}, its type and shape need {needed}"
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
            rank = len(parse_shape(shape) or ())
        except ValueError as error:
            yield f"shape is {shown(shape)!r}: {error}"
        else:
            if rank > LARGEST_RANK:
                yield f"shape has {rank} dimensions, expected at most {LARGEST_RANK}"
    if from_element_type(type.strip()) is None and not is_dynamic_word(type.strip()):
        yield f"element_type is {shown(type)!r}, expected a type such as 'f32'"
