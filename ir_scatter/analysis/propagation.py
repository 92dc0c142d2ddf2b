"""Infers shapes and element types from model inputs, constants and attributes; ignores stored ones.

The shapes and types that an IR stores at ports may be stale: OpenVINO recomputes them. To infer one value,
its upstream values are visited back to the model inputs, without recursion. Shapes and types are then
inferred forward, through the operators in `ops/general.py`, scatter operators, and bodies.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from ir_scatter.core.dataflow import BodyInput, BodySource, Call, Choice, Dataflow, Repeat, Slice
from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype, from_dtype
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.model import Model, Node, Value, exact_key
from ir_scatter.core.shapes import (
    LARGEST_DIM,
    UNKNOWN_DIM,
    Bounds,
    Dim,
    Shape,
    agree,
    claims_more,
    is_static,
    narrow,
)
from ir_scatter.formats import FORMATS
from ir_scatter.ops.constraints import Meaning
from ir_scatter.ops.general import WITH_BODIES, GeneralOp, find, output_shapes
from ir_scatter.ops.general_shapes import ShapeCase, ShapesDiffer, dims_of, reduction, sizes_of
from ir_scatter.ops.lookup import find as find_scatter
from ir_scatter.ops.lookup import opset_number
from ir_scatter.ops.spec import Role

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

_SHAPE_GIVING = frozenset({Meaning.TARGET, Meaning.RESHAPED, Meaning.LENGTHS})
"""An input of n numbers with one of these meanings gives an output of rank n."""

_RANK_KEEPING = frozenset({Meaning.BEGIN, Meaning.PADS, Meaning.PADS_BEGIN})
"""Operators with an input of one of these meanings keep the rank, unless they have masks."""


_MOST_ROUNDS = 8
"""Limit of rounds to find a fixpoint of the shapes that a loop carries; beyond, they are unknown."""

Bodies: TypeAlias = Literal["always", "declared", "first"]


class ValueInfo(NamedTuple):
    """The inferred shape and element type of a value.

    Attributes:
        revised: the file stores another shape or type for the value, or for a value upstream.
        vague: a runtime may infer a more precise shape, as it may know numbers that are unknown here.
    """

    shape: Shape = None
    element_type: ElementType | None = None
    revised: bool = False
    vague: bool = False


class _Loop(NamedTuple):
    """A loop node with its inputs, and the values carried from iteration to iteration.

    Attributes:
        outer: the inputs of the node.
        carried: carried input of the body -> (its initial value, the body output that replaces it).
    """

    node: Node
    wiring: Repeat
    outer: Sequence[Value | None]
    carried: Mapping[Value, tuple[Value | None, Value | None]]


class _Part(NamedTuple):
    """The source of a body input, or of an output of a node with bodies.

    It is a value, or the slice of it in `loop`.
    """

    value: Value | None
    slice: Slice | None = None
    loop: _Loop | None = None


class Propagation:
    """Infers shapes and element types of the values of one model, each once.

    Args:
        model: the model.
        numbers: returns the elements of a value that is computed from constants, else None.
        trusts_stored: whether the stored shape of a value makes the inferred one more precise.
        bodies: the meaning of results inside bodies: valid in every iteration ("always"), for the declared
            inputs of the bodies ("declared"), or in the first iteration ("first").
    """

    def __init__(
        self,
        model: Model,
        numbers: "Callable[[Value], Array | None]",
        *,
        trusts_stored: bool,
        bodies: Bodies = "always",
    ) -> None:
        self._model, self._numbers, self._trusts_stored = model, numbers, trusts_stored
        self._infos: dict[Value, ValueInfo] = {}
        self._node_infos: dict[Node, Sequence[ValueInfo]] = {}
        self._bodies, self._is_bound = bodies, bodies == "declared"
        self._body_inputs: dict[Value, _Part] = {}
        self._node_outputs: dict[tuple[Node, int], list[_Part]] = {}
        self._assumed: Mapping[Value, Shape] = {}
        self._carried: dict[Node, Mapping[Value, Shape]] = {}
        self._cache: defaultdict[Hashable, dict[tuple[int, ...], dict[Hashable, Sequence[ValueInfo]]]]
        self._cache = defaultdict(dict)

    def trust(self, value: Value) -> None:
        """Use the stored shape and type of a value instead of inferring them."""
        self._infos[value] = ValueInfo(value.shape, value.element_type)

    def info(self, value: Value) -> ValueInfo:
        """Return the inferred shape and element type of a value."""
        pending, opened = [value], set[Value]()
        while pending:
            value = pending[-1]
            if value in self._infos:
                pending.pop()
                continue
            if value not in opened:
                opened.add(value)
                missing = [source for source in self._sources(value) if source not in self._infos]
                if missing:
                    pending += missing
                    continue
            pending.pop()
            self._infos[value] = ValueInfo()  # while inferring, for a value that depends on itself
            self._infos[value] = self._infer(value)
        return self._infos[value]

    def _sources(self, value: Value) -> list[Value]:
        """Return the values from which a value is inferred."""
        if value.constant is not None or is_static(_graph_shape(value)):
            return []
        parts = self._parts(value)
        if parts is not None:
            return [part.value for part in parts if part.value is not None]
        return [] if value.producer is None else [port.value for port in value.producer.inputs if port.value]

    def _parts(self, value: Value) -> list[_Part] | None:
        """Return the sources of a body input, or of an output of a node with bodies; None for others."""
        if not self._is_bound:
            self._is_bound = True
            graphs = [self._model.graph]
            graphs += [graph for function in self._model.functions for graph in function.instances]
            for graph in graphs:
                if any(True for _ in graph.walk(WITH_BODIES)):
                    self._bind(FORMATS[self._model.format].dataflow(replace(self._model, graph=graph)))
        if value in self._body_inputs:
            return [self._body_inputs[value]]
        return None if value.producer is None else self._node_outputs.get((value.producer, value.output))

    def _bind(self, flow: Dataflow) -> None:
        """Record the sources of body inputs, and of outputs of nodes with bodies."""
        for node in flow.graph.walk(WITH_BODIES):
            if node.graph is not flow.graph:
                continue
            try:
                nested = flow.nested(node)
            except UnreadableModel:
                continue
            outer = [port.value for port in node.inputs]
            calls = list(nested.branches.values()) if isinstance(nested, Choice) else []
            calls += [nested] if isinstance(nested, Call) else []
            for call in calls:
                for input, number in zip(call.body.inputs, call.inputs, strict=True):
                    self._enter(call.body.value(input.key), _Part(None if number is None else outer[number]))
                for place, inner in enumerate(call.outputs):
                    result = call.body.value(call.body.outputs[inner].key)
                    self._node_outputs.setdefault((node, place), []).append(_Part(result))
            if isinstance(nested, Repeat):
                self._bind_loop(node, nested, outer)
            bodies = [call.body for call in calls] + ([nested.body] if isinstance(nested, Repeat) else [])
            for body in bodies:
                self._bind(body)

    def _bind_loop(self, node: Node, wiring: Repeat, outer: Sequence[Value | None]) -> None:
        results = [wiring.body.value(output.key) for output in wiring.body.outputs]
        body_inputs = [wiring.body.value(input.key) for input in wiring.body.inputs]
        inputs = [*zip(body_inputs, wiring.inputs, strict=True)]
        carried = {
            inner: (None if inflow.outer is None else outer[inflow.outer], results[inflow.successor])
            for inner, inflow in inputs
            if inner is not None and inflow.source is BodySource.CARRIED and inflow.successor is not None
        }
        loop = _Loop(node, wiring, outer, carried)
        for inner, inflow in inputs:
            if (
                inflow.source in {BodySource.WHOLE, BodySource.CARRIED, BodySource.PART}
                and inflow.outer is not None
            ):
                self._enter(inner, _Part(outer[inflow.outer], inflow.slice, loop))
        for place, outflow in enumerate(wiring.outputs):
            parts = [_Part(results[outflow.inner], outflow.slice, loop)]
            for inflow in wiring.inputs:  # without an iteration, the output is the initial value
                if inflow.successor == outflow.inner and inflow.outer is not None and not outflow.slice:
                    parts.append(_Part(outer[inflow.outer]))
            self._node_outputs[node, place] = parts

    def _enter(self, inner: Value | None, part: _Part) -> None:
        if inner is not None:
            self._body_inputs[inner] = part

    def _infer(self, value: Value) -> ValueInfo:
        """Infer the shape and type of a value; stored ones that do not contradict make them more precise."""
        shape_by_onnx = None if value.constant is not None else _graph_shape(value)
        info = self._propagate(value, shape_by_onnx)
        if shape_by_onnx is not None and agree(info.shape, shape_by_onnx):
            info = info._replace(shape=narrow(info.shape, shape_by_onnx))
        stored = value.shape if value.stored_shape is None else value.stored_shape
        is_wrong = not agree(stored, info.shape) if info.vague else claims_more(stored, info.shape)
        if value.is_input and info.shape is None and stored is not None and self._parts(value) is None:
            is_wrong = True  # the input is declared with any rank
        revised = info.revised or is_wrong or not _is_same(info.element_type, value.stored_type)
        if not self._trusts_stored or revised:
            return info._replace(revised=revised)
        shape = value.shape if info.shape is None else narrow(info.shape, value.shape)
        return ValueInfo(shape, info.element_type or value.element_type)

    def _propagate(self, value: Value, shape_by_onnx: Shape) -> ValueInfo:
        """Infer the shape and type of a value from its producer or its sources, without the stored ones."""
        if value.constant is not None or is_static(shape_by_onnx):
            return ValueInfo(value.shape, value.element_type)
        parts = self._parts(value)
        node = value.producer
        if parts is not None:
            return _join([self._part_info(value, part) for part in parts])
        if node is None or value.is_input:
            return ValueInfo(value.shape, value.element_type)
        if node not in self._node_infos:
            self._node_infos[node] = self._infer_node(node)
        outputs = self._node_infos[node]
        return outputs[value.output] if value.output < len(outputs) else ValueInfo()

    def _part_info(self, value: Value, part: _Part) -> ValueInfo:
        """Return the shape and type of a value by one of its sources."""
        if part.value is None:
            return ValueInfo()
        info, cut, loop = self._infos.get(part.value, ValueInfo()), part.slice, part.loop
        shape = info.shape
        if loop is not None and value in loop.carried and self._bodies == "always":
            return info._replace(shape=self._carried_shape(loop, value), vague=True)
        if shape is None or cut is None or loop is None:
            return info
        if value not in self._body_inputs:
            return self._concatenated_info(info, shape, cut, self._trips(loop))
        if not -len(shape) <= cut.axis < len(shape):
            return info._replace(shape=None)
        axis = cut.axis % len(shape)
        size = (cut.part,) if cut.keeps_axis else ()
        return info._replace(shape=(*shape[:axis], *size, *shape[axis + 1 :]))

    @staticmethod
    def _concatenated_info(info: ValueInfo, shape: tuple[Dim, ...], cut: Slice, trips: Dim) -> ValueInfo:
        """Return the shape and type of a loop output that concatenates the parts of all iterations."""
        rank = len(shape) + (not cut.keeps_axis)
        if not -rank <= cut.axis < rank:
            return info._replace(shape=None)
        axis = cut.axis % rank
        size = trips if cut.part == 1 else _multiple(trips, abs(cut.part))
        return info._replace(shape=(*shape[:axis], size, *shape[axis + cut.keeps_axis :]), vague=True)

    def _carried_shape(self, loop: _Loop, value: Value) -> Shape:
        """Return the shape of a carried body input that holds in all iterations.

        It is the initial shape; a dimension that an iteration changes becomes dynamic:

            s = [1, 4]                    initially
            t = Concat (s, x), axis 0     is [2, 4], so s becomes [?, 4]; then t is [?, 4] too: a fixpoint

        Carried values of a loop may depend on each other, so all of them are iterated together.
        """
        if value in self._assumed:
            return self._assumed[value]
        if loop.node not in self._carried:
            self._carried[loop.node] = dict.fromkeys(loop.carried)  # unknown while they are iterated
            self._carried[loop.node] = self._carried_fixpoint(loop)
        return self._carried[loop.node].get(value)

    def _carried_fixpoint(self, loop: _Loop) -> Mapping[Value, Shape]:
        """Return the shapes of all values that a loop carries; all None after `_MOST_ROUNDS` rounds."""
        outside = {value: info for value, info in self._infos.items() if value not in loop.carried}
        shapes: dict[Value, Shape] | None = None
        for _ in range(_MOST_ROUNDS):
            inside = Propagation(self._model, self._numbers, trusts_stored=self._trusts_stored)
            inside._is_bound = True
            inside._body_inputs, inside._node_outputs = self._body_inputs, self._node_outputs
            inside._cache, inside._infos = self._cache, dict(outside)
            if shapes is None:
                shapes = {
                    value: None if first is None else inside.info(first).shape
                    for value, (first, _) in loop.carried.items()
                }
            inside._assumed = {**self._assumed, **shapes}
            after = {
                value: _join(
                    [ValueInfo(shapes[value]), ValueInfo() if last is None else inside.info(last)]
                ).shape
                for value, (_, last) in loop.carried.items()
            }
            if after == shapes:
                return after
            shapes = after
        return dict.fromkeys(loop.carried)

    def _trips(self, loop: _Loop) -> Dim:
        """Return the number of iterations of a loop as a dimension: exact, bounded or unknown."""
        wiring, limits = loop.wiring, list[Dim]()
        if wiring.trips is not None:
            count = self._whole_number(loop.outer[wiring.trips])
            if count is not None and count >= 0:
                limits.append(count)
        for inflow in wiring.inputs:
            value = None if inflow.outer is None or inflow.slice is None else loop.outer[inflow.outer]
            if value is not None and (shape := self.info(value).shape) is not None:
                limits.append(_part_count(inflow, shape))
        counts = [limit for limit in limits if isinstance(limit, int)]
        if not counts or min(counts) > LARGEST_DIM:
            return limits[0] if len(limits) == 1 and self._never_ends_early(loop) else UNKNOWN_DIM
        is_exact = len(counts) == len(limits) and self._never_ends_early(loop)
        return min(counts) if is_exact else Bounds(0, min(counts)) if min(counts) else 0

    def _never_ends_early(self, loop: _Loop) -> bool:
        """Return whether no condition can end a loop before its trip count."""
        wiring = loop.wiring
        begins = wiring.condition is None or self._whole_number(loop.outer[wiring.condition]) == 1
        if wiring.goes_on is None or not begins:
            return begins
        last = wiring.body.value(wiring.body.outputs[wiring.goes_on].key)
        passed = [
            wiring.body.value(input.key)
            for input, inflow in zip(wiring.body.inputs, wiring.inputs, strict=True)
            if inflow.source is BodySource.CONDITION
        ]
        while last is not None and last not in passed and last.producer is not None:
            op = find(last.producer.domain, last.producer.type)
            if op is None or not op.copies or not last.producer.inputs:
                break
            last = last.producer.inputs[0].value
        return last in passed or self._whole_number(last) == 1

    def _whole_number(self, value: Value | None) -> int | None:
        """Return the integer or boolean of a one-element value; None if it is unknown."""
        array = None if value is None else self._numbers(value)
        is_scalar = array is not None and array.size == 1 and array.dtype.kind in "biu"
        return int(array.reshape(-1)[0]) if array is not None and is_scalar else None

    def _infer_node(self, node: Node) -> Sequence[ValueInfo]:
        """Return the shapes and types of the outputs of a node without bodies."""
        inputs = [
            None if port.value is None else self._infos.get(port.value, ValueInfo()) for port in node.inputs
        ]
        revised = any(
            info is not None and (info.revised or claims_more(port.stored_shape, info.shape))
            for info, port in zip(inputs, node.inputs, strict=True)
        )
        vague = any(info is not None and (info.vague or info.shape is None) for info in inputs)
        lookup = find_scatter(node.domain, node.type, node.opset)
        if lookup is not None:
            place = lookup.spec.port_index(Role.DATA) if lookup.spec else None
            data = inputs[place] if place is not None and place < len(inputs) else None
            return [ValueInfo() if data is None else data._replace(revised=revised)]
        op = find(node.domain, node.type)
        if op is None or node.bodies:
            return [ValueInfo(revised=revised)] * len(node.outputs)
        for constraint in op.constraints_in(node.domain):
            value = node.inputs[constraint.port].value if constraint.port < len(inputs) else None
            vague = vague or (constraint.decides_shape and value is not None and self._numbers(value) is None)
        outputs = self._infer_general(op, node, inputs)
        return [info._replace(revised=revised, vague=vague or info.vague) for info in outputs]

    def _infer_general(
        self, op: GeneralOp, node: Node, inputs: Sequence[ValueInfo | None]
    ) -> Sequence[ValueInfo]:
        """Infer the shapes and types of a general operator's outputs; results are shared by equal nodes.

        Nodes are equal if their operators, attributes, input shapes and input types are equal, and also the
        input values that the inference has read.
        """
        inference, attributes = _NodeInference(op, node, inputs, self._numbers), exact_key(node.attributes)
        if attributes is None:
            return inference.outputs()
        key = node.domain, node.type, node.opset, attributes, tuple(inputs), inference.count
        for ports, by_numbers in self._cache[key].items():
            outputs = by_numbers.get(tuple(map(inference.integers, ports)))
            if outputs is not None:
                return outputs
        outputs = inference.outputs()
        self._cache[key].setdefault(tuple(inference.read), {})[tuple(inference.read.values())] = outputs
        return outputs


class _NodeInference:
    """Infers shapes and types of the outputs of one general operator node.

    Attributes:
        read: the numbers of the inputs that were read, by port; None for unknown numbers.
    """

    def __init__(
        self,
        op: GeneralOp,
        node: Node,
        inputs: Sequence[ValueInfo | None],
        numbers: "Callable[[Value], Array | None]",
    ) -> None:
        self.op, self.node, self.inputs, self.count = op, node, inputs, len(node.outputs)
        constraints = op.constraints_in(node.domain)
        self.constraints = [constraint for constraint in constraints if constraint.port < len(inputs)]
        self.read: dict[int, tuple[int, ...] | None] = {}
        self._numbers = numbers

    def outputs(self) -> list[ValueInfo]:
        """Return the shape and type of each output; only the rank if the shape rule gives no shape."""
        by_rule = self._shapes()
        rank = self._rank() if None in by_rule else None
        by_rank: Shape = None if rank is None else (UNKNOWN_DIM,) * rank
        shapes = [by_rank if shape is None else shape for shape in by_rule]
        return [
            ValueInfo(shape, type, vague=rule_shape is None)
            for rule_shape, shape, type in zip(by_rule, shapes, self._types()[: self.count], strict=True)
        ]

    def integers(self, port: int) -> tuple[int, ...] | None:
        """Return the numbers of an input that is computed from constants, and record that they were read."""
        if port not in self.read:
            value = self.node.inputs[port].value if port < len(self.node.inputs) else None
            array = None if value is None else self._numbers(value)
            is_whole = array is not None and array.dtype.kind in "iu"
            self.read[port] = tuple(array.reshape(-1).tolist()) if array is not None and is_whole else None
        return self.read[port]

    def _integers(self, port: int) -> list[int] | None:
        numbers = self.integers(port)
        return None if numbers is None else [*numbers]

    def _shapes(self) -> list[Shape]:
        """Return the output shapes by the operator's shape rule; None for unknown ones."""
        unknown: list[Shape] = [None] * self.count
        if any(info is not None and info.shape is None for info in self.inputs):
            return unknown
        if self.op.reads_shapes_only:
            arrays = self._compute(default_float=True)
            return unknown if arrays is None else [(*arrays[0].shape,), *unknown][: self.count]
        sizes = [None if info is None else sizes_of(info.shape) for info in self.inputs]
        case = ShapeCase(sizes, self._integers, self.node.attributes, self.count)
        try:
            shapes = output_shapes(self.node.domain, self.node.type, case) or []
        except ShapesDiffer:
            return unknown
        return [*[None if shape is None else dims_of(shape) for shape in shapes], *unknown][: self.count]

    def _rank(self) -> int | None:
        """Return the rank of an output whose shape is unknown; None if the rank is unknown too."""
        if self.op.rank is not None:
            return self.op.rank
        for constraint in self.constraints:
            info, data = self.inputs[constraint.port], self.inputs[constraint.of]
            gives_shape = constraint.meaning in _SHAPE_GIVING and constraint.first == 0
            if gives_shape and info and is_static(info.shape):
                ranks = [info.shape[0]] if len(info.shape) == 1 else []
                if (
                    constraint.meaning is Meaning.TARGET and data
                ):  # the output has the larger rank in every mode
                    ranks.append(-1 if data.shape is None else len(data.shape))
                return None if not ranks or min(ranks) < 0 else max(ranks)
            keeps_rank = constraint.meaning in _RANK_KEEPING and "begin_mask" not in self.node.attributes
            if keeps_rank and data is not None:
                return None if data.shape is None else len(data.shape)
        return None

    def _types(self) -> list[ElementType | None]:
        """Return the element types of the outputs: by a moved input, by the kernel, or by the table."""
        op, unknown = self.op, list[ElementType | None]([None] * self.count)
        types = [None if info is None else info.element_type for info in self.inputs]
        if (op.moves != () and not op.copies) or op.shape is reduction:
            place = op.moves[0] if op.moves else 0
            return [types[place]] * self.count if place < len(types) else unknown
        if op.kernel_in(self.node.domain):
            # If an input type is unknown, run with a float and an integer: equal output types are certain.
            is_unknown = any(info is not None and info.element_type is None for info in self.inputs)
            outputs = [
                self._compute(default_float=default_float) or []
                for default_float in ((True, False) if is_unknown else (True,))
            ]
            pairs = zip(outputs[0], outputs[-1], strict=False)
            by_kernel = [
                from_dtype(left.dtype) if left.dtype == right.dtype else None for left, right in pairs
            ]
            return [*by_kernel, *unknown][: self.count]
        if op.makes in ELEMENT_TYPES:
            return [ELEMENT_TYPES[op.makes]] * self.count
        return [types[0], *unknown[1:]] if op.shape is not None and not op.makes and types else unknown

    def _compute(self, *, default_float: bool) -> "Sequence[Array] | None":
        """Run the kernel on inputs of one element; unknown element types become f32, or i64."""
        import numpy

        from ir_scatter.ops import general_kernels

        unknown = numpy.dtype(numpy.float32 if default_float else numpy.int64)
        axes = {constraint.port for constraint in self.constraints if constraint.meaning is Meaning.DIMENSION}
        arrays: list[Array | None] = []
        for port, info in enumerate(self.inputs):
            type = None if info is None or info.element_type is None else dtype(info.element_type)
            number = numpy.full((), port not in axes, type or unknown)
            rank = 0 if info is None or info.shape is None else len(info.shape)
            arrays.append(None if info is None else number.reshape((1,) * rank))
        try:
            return general_kernels.compute(
                self.op, self.node.domain, arrays, self.node.attributes,
                opset=opset_number(self.node), output_count=self.count,
            )  # fmt: skip
        except general_kernels.UnsupportedCase:
            return None


def _multiple(dim: Dim, factor: int) -> Dim:
    if isinstance(dim, int):
        return dim * factor
    return Bounds(dim.low * factor, None if dim.high is None else dim.high * factor)


def _part_count(inflow: BodyInput, shape: tuple[Dim, ...]) -> Dim:
    """Return the number of parts of a sliced loop input."""
    cut = inflow.slice
    if cut is None or not -len(shape) <= cut.axis < len(shape) or cut.part < 1:
        return UNKNOWN_DIM
    size = shape[cut.axis]
    if not isinstance(size, int):
        is_whole = cut.part == 1 and {cut.start, cut.end} == {0, -1}
        return size if is_whole else UNKNOWN_DIM
    first, last = (end + size if end < 0 else end for end in (cut.start, cut.end))
    return (abs(last - first) + 1 if size else 0) // cut.part


def _join(infos: Sequence[ValueInfo]) -> ValueInfo:
    """Return the shape and type that are valid for each of several alternatives."""
    revised, types = any(info.revised for info in infos), {info.element_type for info in infos}
    vague = any(info.vague or info.shape is None for info in infos)
    type = types.pop() if len(types) == 1 else None
    shapes = [info.shape for info in infos]
    if any(shape is None or len(shape) != len(shapes[0] or ()) for shape in shapes):
        return ValueInfo(None, type, revised)
    columns = zip(*[shape for shape in shapes if shape is not None], strict=True)
    dims: list[Dim] = [column[0] if len({*column}) == 1 else UNKNOWN_DIM for column in columns]
    return ValueInfo(tuple(dims), type, revised, vague)


def _graph_shape(value: Value) -> Shape:
    """Return the shape inferred by onnx when the file was read; None in an IR, or if unknown."""
    return None if value.producer is None else value.producer.graph.inferred_shape(value)


def _is_same(inferred: ElementType | None, stored: ElementType | None) -> bool:
    return inferred is None or stored is None or inferred is stored
