"""Types that nobody has to infer: those of values that a chain of operators hands on as they are.

Shape inference costs a process of its own; where scatter nodes stand in chains of such operators
behind inputs and initializers, one walk over the chains says the same.
"""

from typing import TYPE_CHECKING

from ir_scatter.elements import from_onnx_number
from ir_scatter.formats.onnx_tensors import shape_of
from ir_scatter.formats.onnx_types import UNKNOWN, TensorType, inferred

if TYPE_CHECKING:
    from ir_scatter.formats.onnx_graph import OnnxGraph


class HandedOn:
    """The types of the outputs in one graph that chains of such operators lead to."""

    def __init__(self, graph: "OnnxGraph") -> None:
        """Walk over the chains; nodes that stand before what they need are left out."""
        self.graph, index = graph, graph.index
        self._found: dict[str, TensorType | None] = {}
        found, nodes, by_type = self._found, index.nodes, index.by_type
        scatter, keepers, broadcasters = graph.shared.operators
        two = {at for type in by_type.keys() & broadcasters for at in by_type[type]}
        wanted = two.union(at for type in by_type.keys() & (scatter | keepers) for at in by_type[type])
        wanted.difference_update(index.calls)
        for name, (at, number) in index.producers.items():
            inputs = nodes[at].input[:] if at in wanted and number == 0 else ()
            if not inputs:
                continue
            first = inputs[0]
            type = found[first] if first in found else self._known(first)
            if type is not None and (at not in two or self._fits(type, inputs[1:])):
                found[name] = type

    def get(self, name: str) -> TensorType | None:
        """Return the type of an output, None if it takes inference."""
        return self._found.get(name) if name in self.graph.index.producers else None

    def _fits(self, type: TensorType, others: "list[str]") -> bool:
        """Tell whether the second input of a broadcasting operator leaves the type of the first one."""
        second = self._known(others[0]) if len(others) == 1 else None
        return second is not None and second.shape in ((), type.shape)

    def _known(self, name: str) -> TensorType | None:
        if name not in self._found:
            is_given = name and name not in self.graph.index.producers
            self._found[name] = self._given(name) if is_given else None
        return self._found[name]

    def _given(self, name: str) -> TensorType | None:
        """Return the type of what no node of the graph produces, None if it is not known whole."""
        graph, known = self.graph, UNKNOWN
        index, parent = graph.index, graph.parent
        if name in graph.arguments:
            value = graph.arguments[name]
            known = UNKNOWN if value is None else TensorType(value.element_type, value.shape)
        elif name in index.inputs:
            input = index.inputs[name]
            if parent is None and input is not None:
                known = graph.overridden(name, inferred(input.type))
        elif name in index.initializers:
            tensor = index.initializers[name]
            known = TensorType(from_onnx_number(tensor.data_type), shape_of(tensor))
        elif parent is not None and name not in index.sparse_initializers:
            return parent.handed_on.get(name) or parent.handed_on._given(name)
        return None if known.element_type is None or known.shape is None else known
