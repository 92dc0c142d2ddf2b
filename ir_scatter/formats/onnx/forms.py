"""Forms of ONNX nodes, read from the messages without making values."""

from collections.abc import Collection, Hashable
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from onnx import TensorProto

from ir_scatter.core.element_types import from_onnx_number
from ir_scatter.core.forms import NOTHING, Brief, Form, Forms
from ir_scatter.core.shapes import Shape, is_static
from ir_scatter.core.tensors import few_numbers
from ir_scatter.formats.onnx.types import TensorType, declared, normal_domain

if TYPE_CHECKING:
    from ir_scatter.formats.onnx.graph import OnnxGraph

_Kind: TypeAlias = tuple[int, tuple[int, ...], int, int, bool]


class _Written(NamedTuple):
    """What a node says: the names of its inputs, and the rest of its form, None if it refers to a call."""

    inputs: list[str]
    rest: tuple[Hashable, ...] | None


_UNKNOWN = _Written([], None)


class OnnxForms(Forms):
    """Forms of the nodes of a main graph or of a body."""

    def __init__(self, graph: "OnnxGraph") -> None:
        self.graph = graph
        self._briefs: dict[str, Brief | None] = {"": NOTHING}

    @cached_property
    def _written(self) -> dict[int, _Written]:
        """What each scatter node says; reading one field of all nodes at once is twice as quick."""
        shared, index = self.graph.shared, self.graph.index
        scatter = index.by_type.keys() & shared.operators.scatter
        places = sorted(at for type in scatter for at in index.by_type[type])
        nodes = [index.nodes[at] for at in places]
        inputs = [node.input[:] for node in nodes]
        same = [tuple(map(names.index, names)) if len({*names}) < len(names) else () for names in inputs]
        operators = [(node.op_type, shared.opsets.get(normal_domain(node.domain))) for node in nodes]
        attributes = [tuple([one.SerializeToString() for one in node.attribute[:]]) for node in nodes]
        outputs = [tuple(map(self._stored, node.output[:])) for node in nodes]
        rests: list[tuple[Hashable, ...] | None] = [*zip(operators, attributes, outputs, same, strict=True)]
        if shared.bindings:
            refers = [any(one.ref_attr_name for one in node.attribute[:]) for node in nodes]
            rests = [None if refer else rest for refer, rest in zip(refers, rests, strict=True)]
        self._remember_constants([name for names in inputs for name in names])
        return dict(zip(places, map(_Written, inputs, rests), strict=True))

    def of(self, handle: int, spelled: Collection[int]) -> Form | None:
        """Return the form of a node; None where an input or an attribute takes a closer look."""
        names, rest = self._written.get(handle, _UNKNOWN)
        if rest is None:
            return None
        briefs = self._briefs
        inputs = tuple([briefs[name] if name in briefs else self._remember(name) for name in names])
        if None in inputs:
            return None
        for index in spelled:
            numbers = self.numbers(handle, index) if index < len(names) else []
            if numbers is None:
                return None
            rest = (*rest, tuple(numbers))
        return Form(cast("tuple[Brief, ...]", inputs), rest)

    def numbers(self, handle: int, index: int) -> list[int] | None:
        """Return the few whole numbers of a constant; None for any other input, and where they are many."""
        name = self._written[handle].inputs[index]
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

    def _stored(self, name: str) -> TensorType | None:
        stored = self.graph.index.stored
        return declared(stored[name]) if name in stored else None

    def _remember_constants(self, names: list[str]) -> None:
        """Find out about all initializers at once that are nothing else and of which nothing is stored."""
        index, initializers = self.graph.index, self.graph.index.initializers
        others = {*self.graph.arguments, *index.inputs, *index.sparse_initializers, *index.stored}
        plain = [name for name in names if name in initializers and name not in others]
        kinds = _kinds([initializers[name] for name in plain])
        known = {kind: _brief_constant(*kind) for kind in {*kinds}}
        self._briefs.update(zip(plain, [known[kind] for kind in kinds], strict=True))

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
        brief, stored = _brief_constant(*_kinds([tensor])[0]), self._stored(name)
        return brief if stored is None or brief is None else ("constant", (*brief[1], stored))

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
        stored = self._stored(name)
        return "node", (known if stored is None else (*known, stored))

    def _agrees(self, name: str, shape: Shape) -> bool:
        """Tell whether a value that a scatter gives has the shape of what it writes to."""
        source = self._data_of(name)
        data = None if source is None else self._briefs.get(source)
        return source is None or (data is not None and data[0] != "nothing" and data[1][1] == shape)

    @cached_property
    def is_nothing_added(self) -> bool:
        """Whether the stored shapes of values whose type is handed on say nothing more of them."""
        graph, parent = self.graph, self.graph.parent
        if parent is not None and not parent.forms.is_nothing_added:
            return False
        known = ((graph.handed_on.get(name), stored) for name, stored in graph.index.stored.items())
        return all(type is None or declared(stored).shape in (None, type.shape) for type, stored in known)


def _kinds(tensors: list[TensorProto]) -> list[_Kind]:
    """Return element type, dimensions, bytes, and where those bytes are."""
    return [
        *zip(
            [tensor.data_type for tensor in tensors],
            [tuple(tensor.dims[:]) for tensor in tensors],
            [len(tensor.raw_data) for tensor in tensors],
            [tensor.data_location for tensor in tensors],
            [tensor.HasField("segment") for tensor in tensors],
            strict=True,
        )
    ]


def _brief_constant(
    data_type: int, shape: tuple[int, ...], size: int, place: int, is_segment: bool
) -> Brief | None:
    """Return what is known of a tensor; None if it does not hold as many bytes as it needs."""
    element_type = from_onnx_number(data_type)
    is_here = place == TensorProto.DEFAULT and not is_segment
    if element_type is None or not is_here or not size or (shape and min(shape) < 0):
        return None
    return ("constant", (element_type, shape)) if size == element_type.byte_size(prod(shape)) else None
