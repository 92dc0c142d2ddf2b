"""Forms of ONNX nodes, read from the messages without making values."""

from collections.abc import Collection, Hashable
from math import prod
from typing import TYPE_CHECKING, cast

from onnx import TensorProto

from ir_scatter.constants import few_numbers
from ir_scatter.elements import from_onnx_number
from ir_scatter.formats.onnx_external import is_external
from ir_scatter.formats.onnx_types import declared, normal_domain
from ir_scatter.forms import NOTHING, Brief, Form, Forms
from ir_scatter.lazy import lazy
from ir_scatter.shapes import Shape, is_static

if TYPE_CHECKING:
    from ir_scatter.formats.onnx_graph import OnnxGraph


class OnnxForms(Forms):
    """Forms of the nodes of a main graph or of a body."""

    def __init__(self, graph: "OnnxGraph") -> None:
        self.graph = graph
        self._briefs: dict[str, Brief | None] = {"": NOTHING}
        self._may_refer = bool(graph.shared.bindings)
        self._kinds: dict[tuple[int, tuple[int, ...], int], Brief | None] = {}

    def of(self, handle: int, spelled: Collection[int]) -> Form | None:
        """Return the form of a node; None where an input or an attribute takes a closer look."""
        shared, briefs = self.graph.shared, self._briefs
        proto = self.graph.index.nodes[handle]
        names = proto.input[:]
        inputs = tuple([briefs[name] if name in briefs else self._remember(name) for name in names])
        rest: list[Hashable] = [proto.op_type, proto.domain, shared.opsets.get(normal_domain(proto.domain))]
        for attribute in proto.attribute[:]:
            if self._may_refer and attribute.ref_attr_name:
                return None
            rest.append(attribute.SerializeToString())
        stored = self.graph.index.stored
        rest += [declared(stored[name]) if name in stored else None for name in proto.output[:]]
        if len({*names}) < len(names):
            rest.append(tuple(map(names.index, names)))
        for index in spelled:
            numbers = self.numbers(handle, index) if index < len(names) else []
            if numbers is None:
                return None
            rest.append(tuple(numbers))
        return None if None in inputs else Form(cast("tuple[Brief, ...]", inputs), tuple(rest))

    def numbers(self, handle: int, index: int) -> list[int] | None:
        """Return the few whole numbers of a constant; None for any other input, and where they are many."""
        name = self.graph.index.nodes[handle].input[index]
        brief = self._briefs[name] if name in self._briefs else self._remember(name)
        if brief is None or brief[0] != "constant":
            return None
        element_type, shape = brief[1][:2]
        return few_numbers(element_type, shape, lambda: memoryview(self._tensor(name).raw_data))

    def is_settled(self, handle: int, output: int) -> bool:
        """Tell whether it is known that nothing in front of an output tells more of its shape."""
        name = self.graph.index.nodes[handle].output[output]
        brief = self._briefs[name] if name in self._briefs else self._remember(name)
        return brief is not None and brief[0] == "node"

    def _tensor(self, name: str) -> TensorProto:
        """Return the tensor of a constant."""
        index = self.graph.index
        tensor = index.initializers.get(name)
        return index.tensors[index.producers[name][0]] if tensor is None else tensor

    def _remember(self, name: str) -> Brief | None:
        """Find out about a value, before that about what a chain of scatter nodes in front writes to."""
        way, seen = [name], {name}
        while way:
            source = self._data_of(way[-1])
            if source is None or source in self._briefs or source in seen:
                current = way.pop()
                self._briefs[current] = self._brief(current)
            else:
                way.append(source)
                seen.add(source)
        return self._briefs[name]

    def _data_of(self, name: str) -> str | None:
        """Return what is written to where a value is the output of a scatter: it has the shape of that."""
        graph = self.graph
        if name not in graph.index.producers or graph.handed_on.get(name) is not None:
            return None
        node = graph.index.nodes[graph.index.producers[name][0]]
        return node.input[0] if node.op_type in graph.shared.operators.scatter and node.input else None

    def _brief(self, name: str) -> Brief | None:
        """Return where a value comes from, and what is known of it and stored for it."""
        graph = self.graph
        index = graph.index
        if name in graph.arguments or name in index.sparse_initializers:
            return None
        if name in index.initializers:
            return None if name in index.inputs else self._constant(name, index.initializers[name])
        if name in index.inputs:
            return self._input(name) if graph.parent is None else None
        return self._output(name) if name in index.producers else None

    def _constant(self, name: str, tensor: TensorProto) -> Brief | None:
        kind = tensor.data_type, tuple(tensor.dims[:]), len(tensor.raw_data)
        if kind not in self._kinds:
            self._kinds[kind] = _brief_constant(*kind)
        brief, stored = self._kinds[kind], self.graph.index.stored.get(name)
        if brief is None or is_external(tensor) or tensor.HasField("segment"):
            return None
        return brief if stored is None else ("constant", (*brief[1], declared(stored)))

    def _input(self, name: str) -> Brief | None:
        found = self.graph.find(name)
        if found is None or found.element_type is None:
            return None
        return "input", (found.element_type, found.shape, found.stored_type, found.stored_shape)

    def _output(self, name: str) -> Brief | None:
        """Return what is known of an output whose shape nothing in front of it can tell better."""
        graph = self.graph
        index = graph.index
        known = graph.handed_on.get(name)
        if known is not None:
            is_settled = is_static(known.shape) or self.is_nothing_added
        else:
            position = index.producers[name][0]
            if position in index.tensors:
                tensor = index.constant(position)
                return None if tensor is None else self._constant(name, tensor)
            known = graph.type_of(name)
            is_settled = is_static(known.shape) and self._agrees(name, known.shape)
        if not is_settled or known.element_type is None:
            return None
        stored = index.stored.get(name)
        return "node", (known if stored is None else (*known, declared(stored)))

    def _agrees(self, name: str, shape: Shape) -> bool:
        """Tell whether a value that a scatter gives has the shape of what it writes to."""
        source = self._data_of(name)
        data = None if source is None else self._briefs.get(source)
        return source is None or (data is not None and data[0] != "nothing" and data[1][1] == shape)

    @lazy
    def is_nothing_added(self) -> bool:
        """Whether the stored shapes of values whose type is handed on say nothing more of them."""
        graph, parent = self.graph, self.graph.parent
        if parent is not None and not parent.forms.is_nothing_added:
            return False
        known = ((graph.handed_on.get(name), stored) for name, stored in graph.index.stored.items())
        return all(type is None or declared(stored).shape in (None, type.shape) for type, stored in known)


def _brief_constant(data_type: int, shape: tuple[int, ...], size: int) -> Brief | None:
    """Return what is known of a tensor; None if it does not hold as many bytes as it needs."""
    element_type = from_onnx_number(data_type)
    if element_type is None or not size or (shape and min(shape) < 0):
        return None
    return ("constant", (element_type, shape)) if size == element_type.byte_size(prod(shape)) else None
