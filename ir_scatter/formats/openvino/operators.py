"""What operators other than scatter operators make of what their ports store, and which look misused."""

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from ir_scatter.core.diagnostics import Part, Side
from ir_scatter.core.element_types import ElementType
from ir_scatter.core.model import OperatorUse
from ir_scatter.core.shapes import Shape, agree, claims_more, differing_dim, show
from ir_scatter.core.tensors import few_numbers
from ir_scatter.formats.openvino.graph import CONST, PARAMETER, RESULT, IrGraph
from ir_scatter.formats.openvino.layers import PortText
from ir_scatter.formats.openvino.xml_text import decoded


def difference(
    type: ElementType | None, shape: Shape, port: PortText, part: Part
) -> tuple[str, str, Part] | None:
    """Return what is, what a port stores, and what of that part it is, where the port says else or more."""
    if type is not None and port.element_type is not None and type is not port.element_type:
        return type.name, port.element_type.name, part._replace(name="type")
    if not claims_more(port.shape, shape):
        return None
    part = part._replace(name="shape", dim=differing_dim(port.shape, shape))
    return show(shape), show(port.shape), part


class Look(NamedTuple):
    """What is seen of a layer.

    Attributes:
        stale: the outputs of which a port stores something else, with the type and the shape that the
            operator makes of its inputs.
        is_misused: whether it may be: what it takes is not told from what ports store alone.
        is_particular: whether its constants tell more.
        computed: the input ports of numbers that decide, and are no constants in the file.
    """

    stale: Sequence[tuple[int, ElementType | None, Shape]] = ()
    is_misused: bool = False
    is_particular: bool = False
    computed: tuple[bytes, ...] = ()


NOTHING = Look()
_OUTPUT = Part(Side.OUTPUT)
_FEW_DIGITS = 3
_TOLD = frozenset({CONST, RESULT, b"constant"})


class OperatorChecks:
    """Looks at the layers of one graph."""

    def __init__(self, graph: IrGraph) -> None:
        self._graph = graph
        self._operators = graph.file.options.operators
        self._close: dict[Hashable, Look] = {}
        self._odd_ends = {key for key in graph.body.unusual if graph.type_of(key) == PARAMETER}

    def look(self, key: bytes) -> Look:
        """Look at a layer alone."""
        graph, layer = self._graph, self._graph.layer(key)
        is_told = graph.is_scatter(key) or graph.type_of(key) in _TOLD or key in self._odd_ends
        if self._operators is None or is_told:
            return NOTHING
        asked: list[int] = []
        types, shapes = [port.element_type for port in layer.inputs], [port.shape for port in layer.inputs]
        found = self._judged(key, types, shapes, asked.append)
        found = found._replace(is_particular=bool(asked) or None in shapes)
        return NOTHING if found == NOTHING else found

    def look_closely(self, key: bytes, form: Hashable) -> Look:
        """Look at a layer, and at the constants that feed it; a form is all that it is but for names."""
        graph = self._graph
        fed = [(edge[3], graph.body.constants.get(edge[0])) for edge in graph.body.edges.get(key, ())]
        constants = tuple([(port, one and (*one[:2], self._bytes(*one[2:]))) for port, one in fed])
        found = self._close.get((form, constants))
        if found is None:
            found = self._close[form, constants] = self._seen_closely(key)
        if not found.computed or found.is_misused:
            return found
        feed = graph.body.producers(key)
        made = [feed[port][0] for port in found.computed if port in feed]
        return found._replace(is_misused=any(origin not in graph.varying for origin in made))

    def _bytes(self, offset: bytes, size: bytes) -> bytes:
        """Return the bytes of a constant if they are few, or else where they are."""
        weights = self._graph.file.weights
        view = None if weights is None or len(size) > _FEW_DIGITS else weights.view(int(offset), int(size))
        return offset if view is None else view.tobytes()

    def _seen_closely(self, key: bytes) -> Look:
        graph, layer = self._graph, self._graph.layer(key)
        types, shapes = [port.element_type for port in layer.inputs], [port.shape for port in layer.inputs]
        numbers: dict[int, list[int] | None] = {}
        feed = graph.body.producers(key)
        for port, text in enumerate(layer.inputs):
            value = graph.value(feed.get(text.id))
            constant = None if value is None else value.constant
            if constant is not None and constant.element_type is not None:
                types[port], shapes[port] = constant.element_type, constant.shape
                numbers[port] = few_numbers(constant.element_type, constant.shape, constant.view)
        asked = set[int]()

        def few(port: int) -> list[int] | None:
            asked.add(port)
            return numbers.get(port)

        found = self._judged(key, types, shapes, few, is_close=True)
        computed = tuple(
            [layer.inputs[port].id for port in asked - numbers.keys() if port < len(layer.inputs)]
        )
        return found._replace(computed=computed)

    def _judged(
        self,
        key: bytes,
        types: Sequence[ElementType | None],
        shapes: Sequence[Shape],
        numbers: Callable[[int], list[int] | None],
        *,
        is_close: bool = False,
    ) -> Look:
        assert self._operators is not None
        layer, type = self._graph.layer(key), decoded(self._graph.body.layers[key][0])
        use = OperatorUse(type, layer.version, layer.attributes, types, shapes, numbers, len(layer.outputs))
        made = self._operators.outputs(use)
        stale = []
        for number, ((element_type, shape), port) in enumerate(zip(made, layer.outputs, strict=False)):
            is_wrong = not agree(port.shape, shape) if is_close else claims_more(port.shape, shape)
            shape = shape if is_wrong else None
            if difference(element_type, shape, port, _OUTPUT):
                stale.append((number, element_type, shape))
        scalars = [() if shape is None else shape for shape in use.shapes]  # or of a rank that nobody knows
        return Look(tuple(stale), self._operators.problem(use._replace(shapes=scalars)) is not None)
