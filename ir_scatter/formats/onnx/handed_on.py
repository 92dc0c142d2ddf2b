"""Types that nobody has to infer: those of values that a chain of operators hands on as they are.

Shape inference costs a process of its own; where scatter nodes stand in chains of such operators
behind inputs and initializers, one walk over the chains says the same.
"""

from typing import TYPE_CHECKING

from onnx import TensorProto

from ir_scatter.core.element_types import from_onnx_number
from ir_scatter.core.shapes import Shape, agree
from ir_scatter.formats.onnx.tensors import shape_of
from ir_scatter.formats.onnx.types import UNKNOWN, TensorType, inferred, schema_of

if TYPE_CHECKING:
    from ir_scatter.formats.onnx.graph import OnnxGraph


class HandedOn:
    """The types of the outputs in one graph that chains of such operators lead to."""

    def __init__(self, graph: "OnnxGraph") -> None:
        """Walk over the chains; nodes that stand before what they need are left out."""
        self.graph, index = graph, graph.index
        self._found: dict[str, TensorType | None] = {}
        found, nodes, by_type = self._found, index.nodes, index.by_type
        _, keepers, broadcasters = graph.shared.operators
        opset = graph.shared.opsets.get("", 1)
        two = {at for type in by_type.keys() & broadcasters for at in by_type[type]}
        kept = [type for type in by_type.keys() & keepers if schema_of(type, opset) is not None]
        wanted = two.union(at for type in kept for at in by_type[type])
        wanted.difference_update(index.calls)
        for name, (at, number) in index.producers.items():
            inputs = nodes[at].input[:] if at in wanted and number == 0 else ()
            if not inputs:
                continue
            first = inputs[0]
            type = found[first] if first in found else self.find(first)
            if type is not None:
                found[name] = self._joined(type, inputs[1:]) if at in two else type

    def get(self, name: str) -> TensorType | None:
        """Return the type of an output, None if it takes inference."""
        return self._found.get(name) if name in self.graph.index.producers else None

    def _joined(self, first: TensorType, others: "list[str]") -> TensorType | None:
        """Return the type of what a broadcasting operator makes of two inputs, if one has its shape."""
        second = self.find(others[0]) if len(others) == 1 else None
        if second is None:
            return None
        if _fits(second.shape, first.shape):
            return first
        return TensorType(first.element_type, second.shape) if _fits(first.shape, second.shape) else None

    def find(self, name: str) -> TensorType | None:
        """Return the type of anything that has a name in the graph, None if it takes inference."""
        if name not in self._found:
            index = self.graph.index
            producer = index.producers.get(name)
            if producer is None:
                self._found[name] = self._given(name) if name else None
            else:
                tensor = index.constant(producer[0]) if producer[0] in index.tensors else None
                self._found[name] = None if tensor is None else _whole(tensor)
        return self._found[name]

    def _given(self, name: str) -> TensorType | None:
        """Return the type of what no node of the graph produces, None if it is not known whole."""
        graph, known = self.graph, UNKNOWN
        index, tensor = graph.index, graph.index.initializers.get(name)
        if name in graph.arguments:
            value = graph.arguments[name]
            known = UNKNOWN if value is None else TensorType(value.element_type, value.shape)
        elif tensor is not None and (name not in index.inputs or not graph.shared.has_defaults):
            return _whole(tensor)
        elif name in index.inputs:
            input = index.inputs[name]
            if graph.parent is None and input is not None:
                known = graph.overridden(name, inferred(input.type))
            if tensor is not None and not agree(shape_of(tensor), known.shape):
                return None
        elif graph.parent is not None and name not in index.sparse_initializers:
            return graph.parent.handed_on.find(name)
        return None if known.element_type is None or known.shape is None else known


def _whole(tensor: TensorProto) -> TensorType | None:
    """Return the type of a tensor, None if it is not known whole."""
    element_type, shape = from_onnx_number(tensor.data_type), shape_of(tensor)
    return None if element_type is None or shape is None else TensorType(element_type, shape)


def _fits(inner: Shape, outer: Shape) -> bool:
    """Tell whether a shape may be repeated to another one, which then is that of both together."""
    if inner is None or outer is None or len(inner) > len(outer):
        return False
    pairs = zip(reversed(inner), reversed(outer), strict=False)
    return all(dim in (1, other) for dim, other in pairs)
