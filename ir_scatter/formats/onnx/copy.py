"""What shape inference is given: graphs without stored shapes, without weights, without surprises."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import onnx
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto

from ir_scatter.formats.onnx.attributes import Bindings, bound, is_graph, kind_of
from ir_scatter.formats.onnx.bytes import bytes_field
from ir_scatter.formats.onnx.index import GraphIndex, graphs_of, sorted_positions
from ir_scatter.formats.onnx.tensors import is_small_and_sound, shape_of
from ir_scatter.formats.onnx.types import tensor_message, text

_NODE, _INITIALIZER = GraphProto.NODE_FIELD_NUMBER, GraphProto.INITIALIZER_FIELD_NUMBER
_INTS: dict[int, str] = {AttributeProto.INT: "i", AttributeProto.INTS: "ints"}


class Copier:
    """Copies graphs for inference.

    Stored types stay out, because they may be stale: only those of outputs that inference cannot
    know are kept. Weights stay out as well, their types are declared instead.
    """

    def __init__(
        self,
        ir_version: int,
        bindings: Bindings | None = None,
        arguments: Mapping[str, TensorProto] | None = None,
    ) -> None:
        """Make a copier.

        Args:
            ir_version: from 4 on, an initializer that is an input too is only its default.
            bindings: what a call gives for the attributes of a function.
            arguments: what a call gives for inputs of a function, where it is small and constant.
        """
        self._arguments = arguments or {}
        self._are_inputs_defaults = ir_version >= 4
        self._bindings = bindings or {}
        self._scopes: list[GraphIndex] = []

    def fill(self, target: GraphProto, index: GraphIndex) -> None:
        """Copy inputs, small constants, nodes and outputs."""
        self._scopes.append(index)
        self._inputs(target, index)
        known = self._initializers(target, index)
        known.update(_unknowable(index))
        for run, odd in _runs(index):
            _append(target, _NODE, [index.nodes[at] for at in run])
            if odd is not None:
                self._odd_node(target, index, odd, known)
        for name in index.outputs:
            declared = known.pop(name, None)
            if declared is None and name not in index.producers:
                declared = index.stored.get(name)
            target.output.append(_sound(declared or ValueInfoProto(name=name)))
        target.value_info.extend(map(_sound, known.values()))
        self._scopes.pop()

    def _inputs(self, target: GraphProto, index: GraphIndex) -> None:
        for name, value_info in index.inputs.items():
            tensor = index.initializers.get(name)
            if tensor is not None and not self._are_inputs_defaults:
                continue
            if tensor is not None and (value_info is None or not value_info.HasField("type")):
                value_info = _declaration(name, tensor)
            target.input.append(_sound(value_info or ValueInfoProto(name=name)))

    def _initializers(self, target: GraphProto, index: GraphIndex) -> dict[str, ValueInfoProto]:
        """Copy small constants; of all others the type is enough, and all that is safe."""
        known, small = {}, list[TensorProto]()
        for name, tensor in index.initializers.items():
            if self._are_inputs_defaults and name in index.inputs:
                continue
            if is_small_and_sound(tensor):
                small.append(tensor)
            else:
                known[name] = _declaration(name, tensor)
        _append(target, _INITIALIZER, small)
        for name, sparse in index.sparse_initializers.items():
            declared = known[name] = ValueInfoProto(name=name)
            _write_dims(declared.type.sparse_tensor_type, sparse.values.data_type, sparse.dims)
        return known

    def _odd_node(
        self,
        target: GraphProto,
        index: GraphIndex,
        position: int,
        known: dict[str, ValueInfoProto],
    ) -> None:
        """Copy a node that holds graphs, refers to attributes of a call, or may be large."""
        node = index.nodes[position]
        tensor = index.tensors.get(position)
        is_small = tensor is None or is_small_and_sound(tensor)
        if tensor is not None and not is_small:
            known.update((name, _declaration(name, tensor)) for name in node.output[:1])
        copy = target.node.add(op_type=node.op_type, name=node.name, overload=node.overload)
        copy.domain = "" if node.domain == "ai.onnx" else node.domain
        copy.input.extend(node.input)
        copy.output.extend(node.output)
        for name, attribute in bound(node, self._bindings):
            if is_graph(attribute):
                self._bodies(copy, index.bodies.get(position, {}), attribute)
            elif is_small or name != "value":
                written = copy.attribute.add()
                written.CopyFrom(attribute)
                written.name = name

    def _bodies(self, node: NodeProto, bodies: Mapping[str, GraphIndex], attribute: AttributeProto) -> None:
        written = node.attribute.add(name=attribute.name, type=attribute.type)
        for name, graph in graphs_of(attribute):
            body = bodies.get(name)
            if body is None:
                continue
            is_single = attribute.HasField("g") and name == text(attribute.name)
            copy = written.g if is_single else written.graphs.add()
            copy.name = graph.name
            self._captured(copy, body)
            self.fill(copy, body)

    def _captured(self, copy: GraphProto, body: GraphIndex) -> None:
        """Give a body the small constants around it: inference does not look for them there."""
        for name in sorted(body.captured, key=repr):
            tensor = self._constant_around(name)
            if tensor is not None and is_small_and_sound(tensor):
                written = copy.initializer.add()
                written.CopyFrom(tensor)
                written.name = name

    def _constant_around(self, name: str) -> TensorProto | None:
        for index in reversed(self._scopes):
            if name in self._arguments and index is self._scopes[0]:
                return self._arguments[name]
            if name in index.inputs:
                is_constant = name in index.initializers and not self._are_inputs_defaults
                return index.initializers[name] if is_constant else None
            if name in index.initializers:
                return index.initializers[name]
            if name in index.producers:
                position = index.producers[name][0]
                return index.tensors.get(position) or _listed_tensor(index.nodes[position])
        return None


def _append(target: GraphProto, number: int, messages: "Iterable[NodeProto | TensorProto]") -> None:
    """Copy messages as bytes: field by field takes several times as long."""
    fields = [bytes_field(number, message.SerializeToString()) for message in messages]
    target.MergeFromString(b"".join(fields))


def _runs(index: GraphIndex) -> Iterator[tuple[Sequence[int], int | None]]:
    """Yield the nodes, producers first: runs of plain ones, each with the odd one behind it."""
    odd = index.bodies.keys() | index.references | index.tensors.keys()
    if "ai.onnx" in index.domains:
        odd |= {at for at, node in enumerate(index.nodes) if node.domain == "ai.onnx"}
    order, start = sorted_positions(index), 0
    for end, position in enumerate(order):
        if position in odd:
            yield order[start:end], position
            start = end + 1
    yield order[start:], None


def _unknowable(index: GraphIndex) -> dict[str, ValueInfoProto]:
    """Return the stored types of outputs of nodes that inference does not know."""
    if not index.stored:
        return {}
    calls = set(index.calls)
    places = [position for position in index.foreign if position not in calls]
    for type, positions in index.by_type.items():
        if not onnx.defs.has(text(type)):
            places += positions
    names = (name for position in places for name in index.nodes[position].output)
    return {name: index.stored[name] for name in names if name in index.stored}


def _listed_tensor(node: NodeProto) -> TensorProto | None:
    """Return the tensor that the whole numbers of a Constant node stand for."""
    if node.op_type != "Constant" or node.domain not in ("", "ai.onnx"):
        return None
    for attribute in node.attribute:
        field = _INTS.get(kind_of(attribute))
        if field is not None and not attribute.ref_attr_name:
            numbers = [attribute.i] if field == "i" else list(attribute.ints)
            dims = [] if field == "i" else [len(numbers)]
            return TensorProto(data_type=TensorProto.INT64, dims=dims, int64_data=numbers)
    return None


def _declaration(name: str, tensor: TensorProto) -> ValueInfoProto:
    """Return what declares a tensor without its contents."""
    declared = ValueInfoProto(name=name)
    dims = shape_of(tensor)
    _write_dims(declared.type.tensor_type, tensor.data_type, dims)
    return declared


def _write_dims(
    target: "TypeProto.Tensor | TypeProto.SparseTensor", data_type: int, dims: "Iterable[int] | None"
) -> None:
    target.elem_type = data_type
    if dims is None:
        return
    target.shape.SetInParent()
    for size in dims:
        target.shape.dim.add(dim_value=size)


def _sound(value_info: ValueInfoProto) -> ValueInfoProto:
    """Return a declaration without negative dimensions: inference would calculate with them."""
    message = tensor_message(value_info.type)
    if message is None or all(dim.dim_value >= 0 for dim in message.shape.dim):
        return value_info
    copy = ValueInfoProto()
    copy.CopyFrom(value_info)
    written = tensor_message(copy.type)
    assert written is not None
    for dim in written.shape.dim:
        if dim.dim_value < 0:
            dim.ClearField("dim_value")
    return copy
