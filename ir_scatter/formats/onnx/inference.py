"""Infers types and shapes that an ONNX file lacks or stores wrongly, with onnx's shape inference.

Its errors also show nodes that runtimes refuse, because runtimes infer in the same way. The inference
runs in a process of its own (`inference_process.py`).

Data propagation means that inference computes the elements of small tensors, because shapes depend on
them. Its errors are no proof, for two reasons: it stores the elements of all graphs in one table by
name, and treats a matrix as a list. So copies of the model get unique names, and hide elements that it
would get wrong. A node counts as refused only if inference without data propagation refuses it. Other
errors are suspicions, which our own shape rules confirm or drop (`analysis/misuse.py`).
"""

import math
import re
import time
from collections.abc import Collection, Mapping
from functools import cache
from math import prod
from typing import NamedTuple

import onnx
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
)

from ir_scatter.core.element_types import ElementType, from_onnx_number
from ir_scatter.core.model import Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Bounds, Dim, Shape, excludes, narrow
from ir_scatter.formats.onnx.index import (
    ONLY_CONSTANTS,
    Bindings,
    Definition,
    Definitions,
    GraphIndex,
    bound,
    graphs_of,
    is_graph,
    normal_domain,
    schema_of,
    text,
)
from ir_scatter.formats.onnx.inference_process import BARRIER, NUMBERED, ask
from ir_scatter.formats.onnx.tensors import held_type, shape_of

CPU_SECONDS = 20
"""Time limit of one inference, in seconds of CPU time."""

MOST_CALLS = 20_000
"""Limit of function calls after inlining: inference walks a function for every call, and functions that
call others twice multiply quickly. Above the limit, functions are omitted.
"""

_SECONDS_PER_BYTE = 2e-5
"""Time limit of an inference beyond one second, in seconds per byte of the model without weights: a hundred
times the usual need.
"""

_TOTAL_PER_ONE = 2.5
"""Time limit of all inferences of a model, as a multiple of the limit of one inference."""

_MOST_ELEMENTS = 256
"""Limit of elements of a constant whose values inference gets: shapes, axes and the like are small."""

_IR_VERSION = 10
"""IR version of the copies for inference: initializers need not be inputs, functions may have overloads."""

_STAND_IN = "ir_scatter: unknown"
_RENAMED = re.compile(r"ir_scatter:\d+:(.*)", re.DOTALL)
"""Pattern of the names that `make_unique` creates."""

_ELEMENTS_OMITTED = re.compile(r"Data size mismatch\. Tensor:|Cannot parse data from external tensors")
"""Errors that only mean that the copy of the model omits the elements of a constant."""

_REFUSAL = re.compile(
    rf"[^\n]*?, node name: ({NUMBERED}\d+)\): ((?:\[\w+Error\] )*+)(?!Inference error)(.*\S.*)", re.DOTALL
)
"""Pattern of an error of strict inference about one node itself, not about a node of its bodies."""

_UNKNOWN_TYPE = "null"
"""End of an error that only means that the type of an input is unknown."""

_TYPE_ERROR = "[TypeInferenceError]"
"""Start of an error about element types: no proof if a type is unknown, as after a custom operator."""

_INVENTED_SYMBOL = re.compile(r"unk__\d+")


class TensorType(NamedTuple):
    """The known element type and shape of a value; None for unknown."""

    element_type: ElementType | None
    shape: Shape


UNKNOWN = TensorType(None, None)


def declared(value_info: ValueInfoProto | None) -> TensorType:
    return UNKNOWN if value_info is None else tensor_type_of(value_info.type)


def tensor_type_of(type: TypeProto) -> TensorType:
    """Convert a protobuf type to element type and shape. Symbols invented by inference are unknown sizes."""
    message = tensor_message(type)
    if message is None:
        return UNKNOWN
    shape = tuple(map(_dim, message.shape.dim)) if message.HasField("shape") else None
    return TensorType(from_onnx_number(message.elem_type), shape)


def type_of_tensor(tensor: TensorProto) -> TensorType:
    return TensorType(from_onnx_number(tensor.data_type), shape_of(tensor))


def _dim(dim: onnx.TensorShapeProto.Dimension) -> Dim:
    size = dim.dim_value
    if size > 0 or (size == 0 and dim.HasField("dim_value")):
        return size
    symbol = text(dim.dim_param)
    return Bounds(symbol=symbol) if symbol and not _INVENTED_SYMBOL.fullmatch(symbol) else UNKNOWN_DIM


def merge_types(inferred: TensorType, stored: TensorType) -> TensorType:
    """Combine an inferred and a stored type; the inferred one wins a contradiction."""
    shape = inferred.shape if excludes(inferred.shape, stored.shape) else narrow(inferred.shape, stored.shape)
    return TensorType(inferred.element_type or stored.element_type, shape)


def contradict(inferred: TensorType, stored: TensorType) -> bool:
    types = {inferred.element_type, stored.element_type} - {None}
    return len(types) > 1 or excludes(inferred.shape, stored.shape)


def is_equal_without_symbols(left: TypeProto, right: TypeProto) -> bool:
    """Return whether two tensor types have equal element types and sizes. Quick, ignores symbols."""
    if left == right:
        return True
    left_tensor, right_tensor = left.tensor_type, right.tensor_type
    sizes = [[dim.dim_value for dim in tensor.shape.dim] for tensor in (left_tensor, right_tensor)]
    return left_tensor.elem_type == right_tensor.elem_type and sizes[0] == sizes[1]


def tensor_message(type: TypeProto) -> TypeProto.Tensor | None:
    """Return the tensor part of a type; None for a sequence, a map and the like."""
    return type.tensor_type if type.HasField("tensor_type") else None


class Inferred(NamedTuple):
    """The result of shape inference for a graph; `bodies` by (position of the node, attribute name).

    `refusals` are onnx's errors about single nodes, by position. `suspicions` are errors that occur only with
    data propagation. `is_sound` means that onnx accepts every node and every element type.
    """

    types: Mapping[str, TypeProto]
    bodies: Mapping[tuple[int, str], "Inferred"]
    refusals: Mapping[int, str]
    suspicions: Mapping[int, str]
    is_sound: bool


NOTHING = Inferred({}, {}, {}, {}, True)


class Inference:
    """Infers the graphs of one model within a time limit.

    `count` is the number of graphs, `cut_short` the number of those that reached the limit.
    """

    def __init__(self, definitions: Definitions, ir_version: int, *, is_wanted: bool) -> None:
        """Prepare inference with the model's functions. If `is_wanted` is False, `infer` does nothing."""
        self.count = self.cut_short = 0
        self._definitions = definitions
        self._are_inputs_defaults = ir_version >= ONLY_CONSTANTS
        self._is_wanted = is_wanted
        self._inference_copy = cache(_inference_copy)
        self._left = 0.0
        self._propagates = True

    def infer(
        self,
        index: GraphIndex,
        opsets: Mapping[str, int],
        *,
        input_shapes: Mapping[str, Shape] | None = None,
        arguments: Mapping[str, Value | None] | None = None,
        bindings: Bindings | None = None,
    ) -> Inferred:
        """Infer types and shapes of the main graph, or of a function for one call, including bodies.

        `input_shapes` replace those of inputs in the file. `arguments` and `bindings` are the inputs and
        attributes that the call passes to the function.
        """
        if not self._is_wanted:
            return NOTHING
        model = ModelProto(ir_version=_IR_VERSION)
        try:
            inputs, constants = dict(index.inputs), dict[str, TensorProto]()
            for name, shape in (input_shapes or {}).items():
                info = inputs.get(name)
                if info is not None and info.type.tensor_type.elem_type:
                    inputs[name] = _typed(name, info.type.tensor_type.elem_type, shape)
            for name, value in (arguments or {}).items():
                constant = None if value is None else value.constant
                is_seen = constant is not None and prod(constant.shape) <= _MOST_ELEMENTS
                array = constant.load() if constant is not None and is_seen else None
                if array is not None:
                    constants[name] = onnx.numpy_helper.from_array(array)
                if value is None or array is not None:
                    del inputs[name]
                else:
                    number = value.element_type.onnx_number if value.element_type is not None else None
                    inputs[name] = _typed(name, number, value.shape)
            self._fill(model.graph, index, opsets, inputs, constants, bindings or {})
            _import(model, opsets, index)
            are_too_many = self._definitions.count_calls(index) > MOST_CALLS
            for definition in () if are_too_many else self._definitions.needed_by(index):
                model.functions.append(self._inference_copy(definition))
            make_unique(model)
            result, is_late = self._run(model.SerializeToString())
            self.count += 1
            self.cut_short += is_late or are_too_many
            if result is None:
                return NOTHING
            refusals = _refusals(result.doc_string)
            suspicions = _refusals(result.producer_name)
            return _read_back(result.graph, index, refusals, suspicions, is_sound=not result.doc_string)
        except Exception:
            # Names that are not UTF-8, or a message too large for protobuf: keep the stored types.
            return NOTHING

    def _run(self, request: bytes) -> tuple[ModelProto | None, bool]:
        """Return the model with inferred types, or None, and whether the time limit was reached.

        If inference fails with data propagation, it is repeated without. After the first time-out, all other
        graphs are inferred without data propagation.
        """
        limit = min(CPU_SECONDS, max(1, math.ceil(len(request) * _SECONDS_PER_BYTE)))
        if not self.count:
            self._left = _TOTAL_PER_ONE * limit
        is_late = False
        for propagate in (True, False) if self._propagates else (False,):
            if self._left <= 0:
                return None, True
            start = time.monotonic()
            answer = ask((request, propagate, limit), min(self._left, 2.0 * limit))
            took = time.monotonic() - start
            if answer:
                self._left -= took
                return ModelProto.FromString(answer), False
            is_late = took >= min(limit, self._left) * 0.9
            self._left -= took
            self._propagates = self._propagates and not is_late
        return None, is_late

    def _fill(
        self,
        target: GraphProto,
        index: GraphIndex,
        opsets: Mapping[str, int],
        inputs: Mapping[str, ValueInfoProto | None],
        around: Mapping[str, TensorProto],
        bindings: Bindings,
        *,
        is_body: bool = False,
    ) -> None:
        """Copy a graph for inference: inputs, small constants, outputs, and nodes in topological order.

        - Stored types are omitted because they may be stale, except for values that inference cannot infer.
        - Weights become declarations of their types. A Constant with more than `_MOST_ELEMENTS` elements
          becomes an Identity of a declared value.
        - `around` are small constants of outer graphs, which inference does not search itself.
        - A body input with an initializer becomes a constant: no node passes another value.
        """
        are_defaults = self._are_inputs_defaults and not is_body
        types, constants = dict[str, ValueInfoProto](), dict(around)
        calls = {*index.calls}
        unknown = [
            at
            for usage, places in index.usages.items()
            if schema_of(usage.domain, usage.type, opsets) is None
            for at in places
            if at not in calls
        ]
        copies = {at: _opaque_node(index.nodes[at]) for at in unknown}
        for at in unknown:
            types.update(
                (name, index.stored[name]) for name in index.nodes[at].output if name in index.stored
            )
        held = [
            (name, tensor)
            for name, tensor in index.initializers.items()
            if not (name in index.inputs and are_defaults)
        ]
        held += [
            (name, tensor) for at, tensor in index.tensors.items() for name in index.nodes[at].output[:1]
        ]
        for name, tensor in held:
            if prod(tensor.dims) <= _MOST_ELEMENTS and held_type(tensor):
                constants[name] = tensor
            else:
                types[name] = _typed(name, tensor.data_type, shape_of(tensor))
        for name, tensor in constants.items():
            if name not in index.producers:
                target.initializer.append(tensor)
                if tensor.name != name:
                    target.initializer[-1].name = name
        for name, sparse in index.sparse_initializers.items():
            types[name] = _typed(name, sparse.values.data_type, tuple(sparse.dims))
        for name, info in inputs.items():
            default = index.initializers.get(name)
            if default is None or are_defaults:
                if default is not None and (info is None or not info.HasField("type")):
                    info = _typed(name, default.data_type, shape_of(default))
                target.input.append(ValueInfoProto(name=name) if info is None else info)
        for position, node in enumerate(index.nodes):
            if position in copies:
                continue  # inference would not infer anything downstream of an operator that it does not know
            if position in index.bodies or any(attribute.ref_attr_name for attribute in node.attribute):
                copies[position] = self._bound(index, position, opsets, constants, bindings)
            elif position in index.tensors and not constants.keys() >= {*node.output}:
                copies[position] = _opaque_node(node)
                name = next((name for name in node.output[:1] if name in types), "")
                if name and held_type(index.tensors[position]):
                    ghost = _typed(f"{NUMBERED}{position} of ", None, None)
                    ghost.name += name
                    ghost.type.CopyFrom(types[name].type)
                    types[ghost.name] = ghost
                    copies[position] = NodeProto(op_type="Identity", input=[ghost.name], output=node.output)
        target.node.extend([copies.get(at, index.nodes[at]) for at in index.sorted_positions()])
        for name in index.outputs:
            info = types.pop(name, None)
            if info is None and name not in index.producers:
                info = index.stored.get(name)
            target.output.append(ValueInfoProto(name=name) if info is None else info)
        target.value_info.extend(types.values())
        for node in target.node if "ai.onnx" in index.domains else ():
            node.domain = normal_domain(node.domain)
        for info in (*target.input, *target.output, *target.value_info):
            message = tensor_message(info.type)
            for dim in () if message is None else message.shape.dim:
                if dim.dim_value < 0:  # inference would compute with a negative dimension
                    dim.ClearField("dim_value")

    def _bound(
        self,
        index: GraphIndex,
        position: int,
        opsets: Mapping[str, int],
        constants: Mapping[str, TensorProto],
        bindings: Bindings,
    ) -> NodeProto:
        node, bodies = index.nodes[position], index.bodies.get(position, {})
        copy = NodeProto(op_type=node.op_type, domain=node.domain, name=node.name, overload=node.overload)
        copy.input.extend(node.input)
        copy.output.extend(node.output)
        for name, attribute in bound(node, bindings):
            written = copy.attribute.add()
            if not is_graph(attribute):
                written.CopyFrom(attribute)
                written.name = name
                continue
            written.name, written.type = attribute.name, attribute.type
            for label, graph in graphs_of(attribute):
                if label in bodies:
                    body, inner = written.g if label == name else written.graphs.add(), bodies[label]
                    body.name = graph.name
                    captured = sorted(inner.captured & constants.keys(), key=repr)
                    small = {value: constants[value] for value in captured}
                    self._fill(body, inner, opsets, inner.inputs, small, bindings, is_body=True)
        return copy


def _import(target: ModelProto | FunctionProto, opsets: Mapping[str, int], index: GraphIndex) -> None:
    domains = set().union(*(graph.domains for graph in index.all_graphs())) - {"ai.onnx"}
    for domain in sorted({*opsets, *domains}, key=repr):
        target.opset_import.add(domain=domain, version=opsets.get(domain, 1))


def _inference_copy(definition: Definition) -> FunctionProto:
    """Return a copy of a function for inference, with all domains imported and without large constants."""
    copy, index = FunctionProto(), definition.index
    copy.CopyFrom(definition.proto)
    del copy.opset_import[:]
    _import(copy, definition.opsets, index)
    for position, tensor in index.tensors.items():
        if prod(tensor.dims) > _MOST_ELEMENTS or not held_type(tensor):
            del copy.node[position].attribute[:]
            if held_type(tensor):
                typed = TensorProto(data_type=tensor.data_type, dims=tensor.dims)
                copy.node[position].attribute.add(name="value", type=AttributeProto.TENSOR).t.CopyFrom(typed)
    for node in copy.node if "ai.onnx" in index.domains else ():
        node.domain = normal_domain(node.domain)
    make_unique(copy)
    return copy


def make_unique(target: ModelProto | FunctionProto) -> None:
    """Rename values of bodies whose names are also used elsewhere in the model or function.

      If (c) <then = {s = Shape (a)}, else = {s = Shape (b)}>    becomes
      If (c) <then = {s = Shape (a)}, else = {ir_scatter:1:s = Shape (b)}>

    Data propagation stores elements by name in one table for all graphs, and would confuse the two `s`.
    """
    graph = target.graph if isinstance(target, ModelProto) else target
    bodies = [body for node in graph.node for attribute in node.attribute for _, body in graphs_of(attribute)]
    if not bodies:
        return
    used = _names_of(graph)
    waiting: list[tuple[GraphProto, Mapping[str, str]]] = [(body, {}) for body in reversed(bodies)]
    while waiting:
        body, around = waiting.pop()
        names = dict(around)
        for name in sorted(_names_of(body)):
            names[name] = f"{NUMBERED}{len(used)}:{name}" if name in used else name
            used.add(names[name])
        for info in (*body.input, *body.output, *body.initializer, *body.value_info):
            info.name = names.get(info.name, info.name)
        for sparse in body.sparse_initializer:
            sparse.values.name = names.get(sparse.values.name, sparse.values.name)
        for node in body.node:
            for group in (node.input, node.output):
                group[:] = [names.get(name, name) for name in group]
            inner = [graph for attribute in node.attribute for _, graph in graphs_of(attribute)]
            waiting += [(graph, names) for graph in inner]


def _names_of(graph: GraphProto | FunctionProto) -> set[str]:
    """Return the names of all values that a graph defines."""
    names = {name for node in graph.node for name in node.output}
    if isinstance(graph, FunctionProto):
        return names | {*graph.input}
    names.update(tensor.name for tensor in (*graph.input, *graph.initializer))
    names.update(tensor.values.name for tensor in graph.sparse_initializer)
    return names - {""}


def _opaque_node(node: NodeProto) -> NodeProto:
    """Return a node with the same outputs, whose types inference cannot infer."""
    return NodeProto(op_type="Constant", output=node.output, doc_string=_STAND_IN)


class _Refusal(NamedTuple):
    """An error of inference about one node, and whether the error is about types."""

    words: str
    is_of_types: bool


def _refusals(output: str) -> dict[str, _Refusal]:
    """Return the errors about single nodes, by the numbered name that each node got for inference."""
    parts = [_REFUSAL.match(part) for part in output.split("(op_type:")]
    refusals = {
        part[1]: _Refusal(" ".join(part[3].split()), _TYPE_ERROR in part[2])
        for part in reversed(parts)
        if part is not None
    }
    return {
        name: refusal
        for name, refusal in refusals.items()
        if not refusal.words.endswith(_UNKNOWN_TYPE) and not _ELEMENTS_OMITTED.match(refusal.words)
    }


def _read_back(
    graph: GraphProto,
    index: GraphIndex,
    refusals: Mapping[str, _Refusal],
    suspicions: Mapping[str, _Refusal],
    *,
    is_sound: bool,
    around: Collection[str] = (),
) -> Inferred:
    """Return the types that inference wrote into a graph and its bodies.

    `around` are names of outer values with a known type.
    """
    types: dict[str, TypeProto] = {}
    typed = {"", *around, *index.initializers, *(tensor.name for tensor in graph.initializer)}
    has_complaints = bool(refusals or suspicions)
    for group in (graph.input, graph.output, graph.value_info):
        for value in group:
            if value.HasField("type"):
                types[_original(value.name)] = value.type
                if has_complaints and _is_known(value.type):
                    typed.add(value.name)
    bodies, refused, suspected = {}, dict[int, str](), dict[int, str]()
    is_walked = index.bodies or has_complaints
    nodes = [node for node in graph.node if node.doc_string != BARRIER] if is_walked else []
    for node, position in zip(nodes, index.sorted_positions(), strict=False):
        inside = index.bodies.get(position, {})
        for attribute in node.attribute if inside else ():
            for name, body in graphs_of(attribute):
                if name in inside:
                    inner = _read_back(
                        body, inside[name], refusals, suspicions, is_sound=is_sound, around=typed
                    )
                    bodies[position, name] = inner
        if node.doc_string == _STAND_IN:
            continue
        for source, target in ((suspicions, suspected), (refusals, refused)):
            refusal = source.get(node.name)
            if refusal is not None and (not refusal.is_of_types or typed.issuperset(node.input)):
                target[position] = refusal.words
    suspected = {position: words for position, words in suspected.items() if position not in refused}
    return Inferred(types, bodies, refused, suspected, is_sound)


def _is_known(type: TypeProto) -> bool:
    """Return whether a type is complete: it has an element type, or is not a tensor."""
    message = tensor_message(type)
    return type.WhichOneof("value") is not None and (message is None or message.elem_type != 0)


def _original(name: str) -> str:
    """Return the name that a value or node had before `make_unique`."""
    renamed = _RENAMED.fullmatch(name) if name.startswith(NUMBERED) else None
    return name if renamed is None else renamed[1]


def _typed(name: str, onnx_number: int | None, shape: Shape) -> ValueInfoProto:
    written = ValueInfoProto(name=name)
    if onnx_number is not None:
        written.type.tensor_type.elem_type = onnx_number
    if onnx_number is not None and shape is not None:
        written.type.tensor_type.shape.SetInParent()
        for dim in shape:
            added = written.type.tensor_type.shape.dim.add()
            if isinstance(dim, int):
                added.dim_value = dim
            elif dim.symbol is not None:
                added.dim_param = dim.symbol
    return written
