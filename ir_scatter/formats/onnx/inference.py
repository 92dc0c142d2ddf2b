"""Types and shapes that the file does not say, or says wrongly: onnx's shape inference, kept at a distance.

It is native code: files exist that end the process (an assertion in Slice), that ask for all memory
(Concat of a shape with itself, again and again) or for years (functions that call functions twice).
So it is given copies without stored shapes and weights, in a forked process with limits. That process
is kept for the next model: to fork takes longer than to infer a small one.
"""

import atexit
import contextlib
import faulthandler
import math
import os
import re
import signal
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple, NoReturn

import onnx
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TensorShapeProto,
    TypeProto,
    ValueInfoProto,
)

from ir_scatter.core.element_types import ElementType, from_onnx_number
from ir_scatter.core.model import Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Bounds, Dim, Shape, agree, is_static, narrow
from ir_scatter.formats.onnx.index import (
    DEFAULT_DOMAINS,
    Bindings,
    Definition,
    Definitions,
    FunctionKey,
    GraphIndex,
    bound,
    count_nodes,
    graphs_of,
    is_graph,
    kind_of,
    normal_domain,
    text,
)
from ir_scatter.formats.onnx.tensors import SEEN_BY_INFERENCE, is_small_and_sound, shape_of

with contextlib.suppress(ImportError):  # where there is no fork either
    import resource

CPU_SECONDS = 20
"""What one inference may take at most."""

TOTAL_SECONDS = 60.0
"""What all inferences of one model may take at most."""

_SECONDS_PER_BYTE = 2e-5
"""What an inference may take for each byte of the model without its weights, but for the first second: a
hundred times what it takes where functions do not multiply."""

_TOTAL_PER_ONE = 2.5
"""How many times as much all inferences of a model may take together."""

_IDLE_SECONDS = 10.0
_BASE_MEMORY = 1 << 29
_MEMORY_PER_BYTE = 16

_EXPANDED_NODES = 20_000
_EXPANDED_PER_NODE = 100
"""Inference walks a function anew for every call: above this, and above so many for each node that is
written, functions are left out."""

_IR_VERSION = 10
"""Of what is inferred: initializers need not be inputs, functions may have overloads."""

_INVENTED_SYMBOL = re.compile(r"unk__\d+")


class TensorType(NamedTuple):
    """What is known of a value: None where nothing is."""

    element_type: ElementType | None
    shape: Shape


UNKNOWN = TensorType(None, None)


def declared(value_info: ValueInfoProto | None) -> TensorType:
    """Return what a value_info, an input or an output says, word for word."""
    return UNKNOWN if value_info is None else _described(value_info.type)


def inferred(type: TypeProto) -> TensorType:
    """Return what inference says; a symbol that it made up is an unknown dimension."""
    element_type, shape = _described(type)
    if shape is not None and not is_static(shape):
        shape = tuple(UNKNOWN_DIM if _is_invented(dim) else dim for dim in shape)
    return TensorType(element_type, shape)


def best_of(found: TensorType, stored: TensorType) -> TensorType:
    """Return what is known when inference and the file both speak; inference wins a dispute."""
    shape = narrow(found.shape, stored.shape) if agree(found.shape, stored.shape) else found.shape
    return TensorType(found.element_type or stored.element_type, shape)


def tensor_message(type: TypeProto) -> "TypeProto.Tensor | TypeProto.SparseTensor | None":
    """Return the part of a type that holds dimensions; None for a sequence, a map and the like."""
    kind = type.WhichOneof("value")
    if kind == "tensor_type":
        return type.tensor_type
    return type.sparse_tensor_type if kind == "sparse_tensor_type" else None


def _described(type: TypeProto) -> TensorType:
    message = tensor_message(type)
    if message is None:
        return UNKNOWN
    shape = tuple(map(_dim, message.shape.dim)) if message.HasField("shape") else None
    return TensorType(from_onnx_number(message.elem_type), shape)


def _dim(dim: TensorShapeProto.Dimension) -> Dim:
    size = dim.dim_value
    if size > 0 or (size == 0 and dim.HasField("dim_value")):
        return size
    symbol = text(dim.dim_param)
    return Bounds(symbol=symbol) if symbol else UNKNOWN_DIM


def _is_invented(dim: Dim) -> bool:
    symbol = dim.symbol if isinstance(dim, Bounds) else None
    return symbol is not None and _INVENTED_SYMBOL.fullmatch(symbol) is not None


@dataclass(frozen=True, slots=True, eq=False)
class Inferred:
    """What shape inference found out about a graph.

    Attributes:
        types: by name of a value.
        bodies: what it found out about the graphs inside nodes, by position and name.
    """

    types: Mapping[str, TypeProto] = field(default_factory=dict)
    bodies: Mapping[tuple[int, str], "Inferred"] = field(default_factory=dict)


NOTHING = Inferred()


class Inference:
    """Infers the graphs of one model, until its time is used up.

    Attributes:
        definitions: the functions of the model.
        count: how many graphs were inferred, or were to be.
        cut_short: of how many of them not all was looked at, because it would have taken too long.
    """

    def __init__(self, definitions: Definitions, ir_version: int, *, is_wanted: bool) -> None:
        """Take the functions; `is_wanted` is False if nobody will ask for a type."""
        self.definitions = definitions
        self.count = self.cut_short = 0
        self._ir_version = ir_version
        self._is_wanted = is_wanted
        self._prepared: dict[FunctionKey, FunctionProto] = {}
        self._used = self._total = 0.0
        self._propagates = True

    def main_graph(
        self, index: GraphIndex, opsets: Mapping[str, int], input_shapes: Mapping[str, Shape]
    ) -> Inferred:
        """Infer the main graph and the bodies in it, inputs with shapes that replace the file's."""

        def fill(graph: GraphProto) -> None:
            _Copier(self._ir_version).fill(graph, index)
            for value_info in graph.input:
                name, number = text(value_info.name), value_info.type.tensor_type.elem_type
                if number and name in input_shapes:
                    value_info.CopyFrom(_typed(value_info.name, number, input_shapes[name]))

        return self._infer(index, opsets, fill)

    def instance(
        self, definition: Definition, arguments: Mapping[str, Value | None], bindings: Bindings
    ) -> Inferred:
        """Infer one use of a function, with its inputs and attributes as the call gives them."""

        def fill(graph: GraphProto) -> None:
            given = {name: value for name, value in arguments.items() if value is not None}
            constants = _small_constants(given)
            _Copier(self._ir_version, bindings, constants).fill(graph, definition.index)
            del graph.input[:]
            graph.initializer.extend(constants.values())
            for name, value in given.items():
                if name not in constants:
                    number = value.element_type.onnx_number if value.element_type is not None else None
                    graph.input.append(_typed(name, number, value.shape))

        return self._infer(definition.index, definition.opsets, fill)

    def _infer(
        self, index: GraphIndex, opsets: Mapping[str, int], fill: Callable[[GraphProto], None]
    ) -> Inferred:
        if not self._is_wanted:
            return NOTHING
        model = ModelProto(ir_version=_IR_VERSION)
        try:
            fill(model.graph)
            domains = set().union(*(graph.domains for graph in index.all_graphs())) - {"ai.onnx"}
            for domain in sorted({*opsets, *domains}, key=repr):
                model.opset_import.add(domain=domain, version=opsets.get(domain, 1))
            functions = self._functions(index)
            model.functions.extend(functions or ())
            result, is_late = self._run(model.SerializeToString())
            self.count += 1
            self.cut_short += is_late or functions is None
            return NOTHING if result is None else _read_back(result, index)
        except Exception:
            # Names that are not UTF-8, more than protobuf can hold: the stored types remain.
            return NOTHING

    def _functions(self, index: GraphIndex) -> list[FunctionProto] | None:
        """Return the functions that a graph calls, directly or not; None if calls in calls are too many.

        Recursive ones are left out.
        """
        sizes, called = self.definitions.sizes, index.called()
        needed, pending = set[FunctionKey](), [*called]
        while pending:
            key = pending.pop()
            if key in sizes and key not in needed:
                needed.add(key)
                pending += self.definitions[key].callees
        written = count_nodes(index) + sum(count_nodes(self.definitions[key].index) for key in needed)
        if sum(sizes.get(key, 0) for key in called) > max(_EXPANDED_NODES, _EXPANDED_PER_NODE * written):
            return None
        return [self._prepare(definition) for key, definition in self.definitions.items() if key in needed]

    def _prepare(self, definition: Definition) -> FunctionProto:
        """Return a function that inference can read: each domain imported, no large constants."""
        if definition.key in self._prepared:
            return self._prepared[definition.key]
        index = definition.index
        domains = set().union(*(graph.domains for graph in index.all_graphs()))
        copy = self._prepared[definition.key] = FunctionProto()
        copy.CopyFrom(definition.proto)
        del copy.opset_import[:]
        for domain in sorted({*definition.opsets, *domains}, key=repr):
            copy.opset_import.add(domain=domain, version=definition.opsets.get(normal_domain(domain), 1))
        for position, tensor in index.tensors.items():
            if not is_small_and_sound(tensor):
                del copy.node[position].attribute[:]
        for node in copy.node if "ai.onnx" in index.domains else ():
            node.domain = normal_domain(node.domain)
        return copy

    def _run(self, request: bytes) -> tuple[GraphProto | None, bool]:
        """Return the graph with inferred types, None if inference fails; and whether time was up.

        Where it fails with data propagation, it is tried without; once that has used up its time, all
        others are tried without at once.
        """
        limit = min(CPU_SECONDS, max(1, math.ceil(len(request) * _SECONDS_PER_BYTE)))
        self._total = max(self._total, min(TOTAL_SECONDS, _TOTAL_PER_ONE * limit))
        is_late = False
        for propagate in (True, False) if self._propagates else (False,):
            left = min(self._total - self._used, 2.0 * limit)
            if left <= 0:
                return None, True
            start = time.monotonic()
            answer = _ask(request, propagate, left, limit)
            took = time.monotonic() - start
            self._used += took
            if answer:
                return GraphProto.FromString(answer), False
            is_late = took >= min(limit, left) * 0.9
            self._propagates = self._propagates and not is_late
        return None, is_late


def _small_constants(given: Mapping[str, Value]) -> dict[str, TensorProto]:
    """Return the arguments that inference may see the contents of."""
    found = {}
    for name, value in given.items():
        if value.constant is not None and prod(value.constant.shape) <= SEEN_BY_INFERENCE:
            array = value.constant.load()
            if array is not None:
                found[name] = onnx.numpy_helper.from_array(array, name)
    return found


def _read_back(graph: GraphProto, index: GraphIndex) -> Inferred:
    """Collect what inference wrote into a graph and into the bodies of its nodes."""
    types: dict[str, TypeProto] = {}
    for group in (graph.input, graph.output, graph.value_info):
        types.update((known.name, known.type) for known in group if known.HasField("type"))
    bodies = {}
    for copied, position in enumerate(index.sorted_positions() if index.bodies else ()):
        inside = index.bodies.get(position, {})
        for attribute in graph.node[copied].attribute if inside else ():
            for name, body in graphs_of(attribute):
                if name in inside:
                    bodies[position, name] = _read_back(body, inside[name])
    return Inferred(types, bodies)


# What inference is given


class _Copier:
    """Copies graphs for inference, nodes in topological order.

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
            bindings: what a call gives for the attributes of a function; None outside of functions.
            arguments: what a call gives for inputs of a function, where it is small and constant.
        """
        self._arguments = arguments or {}
        self._are_inputs_defaults = ir_version >= 4
        self._is_function = bindings is not None
        self._bindings = bindings or {}
        self._scopes: list[GraphIndex] = []

    def fill(self, target: GraphProto, index: GraphIndex) -> None:
        """Copy inputs, small constants, nodes and outputs."""
        self._scopes.append(index)
        for name, value_info in index.inputs.items():
            tensor = index.initializers.get(name)
            if tensor is None or self._are_inputs_defaults:
                if tensor is not None and (value_info is None or not value_info.HasField("type")):
                    value_info = _typed(name, tensor.data_type, shape_of(tensor))
                target.input.append(_sound(value_info or ValueInfoProto(name=name)))
        known = self._initializers(target, index)
        known.update(_unknowable(index))
        special = self._special(index)
        target.node.extend(
            [
                self._node(index, position, known) if position in special else index.nodes[position]
                for position in index.sorted_positions()
            ]
        )
        for name in index.outputs:
            declared = known.pop(name, None)
            if declared is None and name not in index.producers:
                declared = index.stored.get(name)
            target.output.append(_sound(declared or ValueInfoProto(name=name)))
        target.value_info.extend(map(_sound, known.values()))
        self._scopes.pop()

    def _initializers(self, target: GraphProto, index: GraphIndex) -> dict[str, ValueInfoProto]:
        """Copy small constants; of all others the type is enough, and all that is safe."""
        known, small = {}, list[TensorProto]()
        for name, tensor in index.initializers.items():
            if self._are_inputs_defaults and name in index.inputs:
                continue
            if is_small_and_sound(tensor):
                small.append(tensor)
            else:
                known[name] = _typed(name, tensor.data_type, shape_of(tensor))
        target.initializer.extend(small)
        for name, sparse in index.sparse_initializers.items():
            known[name] = ValueInfoProto(name=name)
            _write_dims(known[name].type.sparse_tensor_type, sparse.values.data_type, tuple(sparse.dims))
        return known

    def _special(self, index: GraphIndex) -> set[int]:
        """Return the nodes that hold graphs, refer to attributes of a call, or may be large."""
        found = {*index.bodies, *index.tensors}
        for position, node in enumerate(index.nodes) if self._is_function else ():
            if any(attribute.ref_attr_name for attribute in node.attribute):
                found.add(position)
        if "ai.onnx" in index.domains:
            found.update(at for at, node in enumerate(index.nodes) if node.domain == "ai.onnx")
        return found

    def _node(self, index: GraphIndex, position: int, known: dict[str, ValueInfoProto]) -> NodeProto:
        node, tensor = index.nodes[position], index.tensors.get(position)
        is_large = tensor is not None and not is_small_and_sound(tensor)
        if tensor is not None and is_large:
            for name in node.output[:1]:
                known[name] = _typed(name, tensor.data_type, shape_of(tensor))
        domain = normal_domain(node.domain)
        copy = NodeProto(op_type=node.op_type, domain=domain, name=node.name, overload=node.overload)
        copy.input.extend(node.input)
        copy.output.extend(node.output)
        for name, attribute in bound(node, self._bindings):
            if is_graph(attribute):
                self._bodies(copy, index.bodies.get(position, {}), attribute)
            elif not is_large or name != "value":
                written = copy.attribute.add()
                written.CopyFrom(attribute)
                written.name = name
        return copy

    def _bodies(self, node: NodeProto, bodies: Mapping[str, GraphIndex], attribute: AttributeProto) -> None:
        written = node.attribute.add(name=attribute.name, type=attribute.type)
        for name, graph in graphs_of(attribute):
            if name not in bodies:
                continue
            is_single = attribute.HasField("g") and name == text(attribute.name)
            copy = written.g if is_single else written.graphs.add()
            copy.name = graph.name
            for taken in sorted(bodies[name].captured, key=repr):
                # A body is given the small constants around it: inference does not look for them there.
                tensor = self._constant_around(taken)
                if tensor is not None and is_small_and_sound(tensor):
                    initializer = copy.initializer.add()
                    initializer.CopyFrom(tensor)
                    initializer.name = taken
            self.fill(copy, bodies[name])

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


def _unknowable(index: GraphIndex) -> dict[str, ValueInfoProto]:
    """Return the stored types of outputs of nodes that inference does not know."""
    known = {at for type, places in index.by_type.items() if onnx.defs.has(text(type)) for at in places}
    known.update(index.calls)
    producers = index.producers
    return {
        name: one
        for name, one in index.stored.items()
        if name in producers and producers[name][0] not in known
    }


def _listed_tensor(node: NodeProto) -> TensorProto | None:
    """Return the tensor that the whole numbers of a Constant node stand for."""
    if node.op_type != "Constant" or node.domain not in DEFAULT_DOMAINS:
        return None
    for attribute in node.attribute:
        kind = kind_of(attribute)
        if kind in (AttributeProto.INT, AttributeProto.INTS) and not attribute.ref_attr_name:
            numbers = list(attribute.ints) if kind == AttributeProto.INTS else [attribute.i]
            dims = [len(numbers)] if kind == AttributeProto.INTS else []
            return TensorProto(data_type=TensorProto.INT64, dims=dims, int64_data=numbers)
    return None


def _typed(name: str, onnx_number: int | None, shape: Shape) -> ValueInfoProto:
    """Return the declaration of a tensor, without a type if its element type is not known."""
    written = ValueInfoProto(name=name)
    if onnx_number is not None:
        _write_dims(written.type.tensor_type, onnx_number, shape)
    return written


def _write_dims(target: "TypeProto.Tensor | TypeProto.SparseTensor", onnx_number: int, shape: Shape) -> None:
    target.elem_type = onnx_number
    if shape is None:
        return
    target.shape.SetInParent()
    for dim in shape:
        written = target.shape.dim.add()
        if isinstance(dim, int):
            written.dim_value = dim
        elif dim.symbol is not None:
            written.dim_param = dim.symbol


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


# The process that infers


class _Child:
    """A forked process that infers one model after another."""

    def __init__(self) -> None:
        from multiprocessing.connection import Pipe

        self._connection, other = Pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # fork with threads: 3.12 on
            self._pid = os.fork()
        if self._pid == 0:
            _serve(other)
        other.close()

    def ask(self, question: tuple[bytes, bool, int], seconds: float) -> bytes | None:
        """Return the answer, None if there is none in time.

        Raises:
            OSError: the process has ended, so that it was not asked.
        """
        self._connection.send(question)
        try:
            return self._connection.recv_bytes() if self._connection.poll(seconds) else None
        except (EOFError, OSError):
            return None

    def end(self) -> None:
        """End the process, whatever it does."""
        self._connection.close()
        with contextlib.suppress(OSError):
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)


_idle: list[_Child] = []
"""Processes that nothing is asked of at the moment: one, or one for each thread that reads models."""


def end_children() -> None:
    """End the processes that infer."""
    while _idle:
        _idle.pop().end()


atexit.register(end_children)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)


def _ask(request: bytes, propagate: bool, seconds: float, limit: int) -> bytes | None:
    """Return the serialized graph with inferred types; None or nothing if that does not work."""
    if not hasattr(os, "fork"):
        return _infer_here(request, propagate)
    while True:
        is_kept = bool(_idle)
        try:
            child = _idle.pop() if is_kept else _Child()
        except OSError:
            return None
        answer = None
        try:
            answer = child.ask((request, propagate, limit), seconds)
            is_kept = False
        except OSError:
            pass
        finally:
            if answer is None:
                child.end()
        if answer is not None:
            _idle.append(child)
            return answer
        if not is_kept:  # a new one would end over the same question
            return None


def _serve(connection: Any) -> NoReturn:
    """Answer until the parent ends, or asks nothing for long: nothing of the parent may run here."""
    try:
        _leave_parent(connection.fileno())
        while connection.poll(_IDLE_SECONDS):
            request, propagate, limit = connection.recv()
            _limit(len(request), limit)
            connection.send_bytes(_infer_here(request, propagate) or b"")
    finally:
        os._exit(0)


def _leave_parent(kept: int) -> None:
    """Let go of files that others wait for, and keep the last words of the process off the terminal."""
    faulthandler.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGPROF):
        signal.signal(number, signal.SIG_DFL)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nowhere, standard)
    os.closerange(3, kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit(size: int, seconds: int) -> None:
    """Bound processor time, by a signal that ends the process, and memory beyond what is used already."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    with contextlib.suppress(OSError, ValueError):
        with open("/proc/self/statm", encoding="ascii") as file:
            mapped = int(file.read().split()[0]) * resource.getpagesize()
        most = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (mapped + _BASE_MEMORY + _MEMORY_PER_BYTE * size, most))


def _infer_here(request: bytes, propagate: bool) -> bytes | None:
    try:
        graph = onnx.shape_inference.infer_shapes(
            request, check_type=False, strict_mode=False, data_prop=propagate
        ).graph
        del graph.initializer[:]  # the types are asked for
        return bytes(graph.SerializeToString())
    except Exception:
        # Whatever it is that native code does not like: the stored shapes remain.
        return None
