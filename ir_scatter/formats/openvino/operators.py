"""Checks general operators against the types and shapes stored at their ports; called by `checks.py`."""

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
    """Return (actual, stored, part) if the type or shape stored at a port is wrong; None if it is correct.

    A stored shape that claims more than the actual one, such as [2] instead of [?], is wrong too.
    """
    if type is not None and port.element_type is not None and type is not port.element_type:
        return type.name, port.element_type.name, part._replace(name="type")
    if not claims_more(port.shape, shape):
        return None
    part = part._replace(name="shape", dim=differing_dim(port.shape, shape))
    return show(shape), show(port.shape), part


class CheckResult(NamedTuple):
    """The result of checking a layer.

    Attributes:
        stale: (port number, element type, shape) of outputs whose port stores another type or shape than
            the operator computes from its inputs.
        is_misused: whether the layer may be an illegal use of its operator; the final decision needs
            more than stored types and shapes.
        needs_constants: whether a check with constants may have another result.
        computed: ids of input ports whose values decide the result, but are not constants.
    """

    stale: Sequence[tuple[int, ElementType | None, Shape]] = ()
    is_misused: bool = False
    needs_constants: bool = False
    computed: tuple[bytes, ...] = ()


NOTHING = CheckResult()
_OUTPUT = Part(Side.OUTPUT)
_FEW_DIGITS = 3
"""Limit of digits of a constant's size whose bytes are compared: at most 999 bytes."""

_EXEMPT = frozenset({CONST, RESULT, b"constant"})
"""Types of layers that other checks handle."""


class OperatorChecks:
    """Checks the layers of one graph."""

    def __init__(self, graph: IrGraph) -> None:
        self._graph = graph
        self._operators = graph.file.options.operators
        self._close: dict[Hashable, CheckResult] = {}
        self._unusual_parameters = {key for key in graph.body.unusual if graph.type_of(key) == PARAMETER}

    def check(self, key: bytes) -> CheckResult:
        """Check a layer without reading its constants."""
        graph, layer = self._graph, self._graph.layer(key)
        is_exempt = graph.is_scatter(key) or graph.type_of(key) in _EXEMPT or key in self._unusual_parameters
        if self._operators is None or is_exempt:
            return NOTHING
        requested: list[int] = []
        types, shapes = [port.element_type for port in layer.inputs], [port.shape for port in layer.inputs]
        result = self._judge(key, types, shapes, requested.append)
        result = result._replace(needs_constants=bool(requested) or None in shapes)
        return NOTHING if result == NOTHING else result

    def check_with_constants(self, key: bytes, form: Hashable) -> CheckResult:
        """Check a layer with its constant inputs.

        Layers with equal `form` (text without names) and constants are checked once.
        """
        graph = self._graph
        fed = [(edge[3], graph.body.constants.get(edge[0])) for edge in graph.body.edges.get(key, ())]
        constants = tuple(
            [(port, constant and (*constant[:2], self._bytes(*constant[2:]))) for port, constant in fed]
        )
        result = self._close.get((form, constants))
        if result is None:
            result = self._close[form, constants] = self._judge_with_constants(key)
        if not result.computed or result.is_misused:
            return result
        feed = graph.body.producers(key)
        origins = [feed[port][0] for port in result.computed if port in feed]
        return result._replace(is_misused=any(origin not in graph.nonconstant for origin in origins))

    def _bytes(self, offset: bytes, size: bytes) -> bytes:
        """Return the bytes of a small constant; for a large one its offset, which identifies it."""
        weights = self._graph.file.weights
        view = None if weights is None or len(size) > _FEW_DIGITS else weights.view(int(offset), int(size))
        return offset if view is None else view.tobytes()

    def _judge_with_constants(self, key: bytes) -> CheckResult:
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
        requested = set[int]()

        def few(port: int) -> list[int] | None:
            requested.add(port)
            return numbers.get(port)

        result = self._judge(key, types, shapes, few, is_close=True)
        computed = tuple(
            [layer.inputs[port].id for port in requested - numbers.keys() if port < len(layer.inputs)]
        )
        return result._replace(computed=computed)

    def _judge(
        self,
        key: bytes,
        types: Sequence[ElementType | None],
        shapes: Sequence[Shape],
        numbers: Callable[[int], list[int] | None],
        *,
        is_close: bool = False,
    ) -> CheckResult:
        assert self._operators is not None
        layer, type = self._graph.layer(key), decoded(self._graph.body.layers[key][0])
        use = OperatorUse(type, layer.version, layer.attributes, types, shapes, numbers, len(layer.outputs))
        outputs = self._operators.outputs(use)
        stale = []
        for number, ((element_type, shape), port) in enumerate(zip(outputs, layer.outputs, strict=False)):
            is_wrong = not agree(port.shape, shape) if is_close else claims_more(port.shape, shape)
            shape = shape if is_wrong else None
            if difference(element_type, shape, port, _OUTPUT):
                stale.append((number, element_type, shape))
        scalars = [() if shape is None else shape for shape in use.shapes]  # treat unknown ranks as scalars
        return CheckResult(tuple(stale), self._operators.problem(use._replace(shapes=scalars)) is not None)
