"""Shapes and element types that follow from inputs, constants and attributes, whatever a file stores.

What an IR stores at ports is a memory: OpenVINO computes it anew. Asked for one value, the propagation goes
back to the inputs of the model, without recursion, and forward again through the operators that
`ops/general.py` describes, through scatter operators, and through bodies.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from ir_scatter.core.dataflow import BodyInput, BodySource, Call, Choice, Dataflow, Repeat, Slice
from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype, from_dtype
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.model import Model, Node, Value, exactly
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

_NAMING = frozenset({Meaning.TARGET, Meaning.RESHAPED, Meaning.LENGTHS})
"""An input of n numbers of these names an output of n dimensions."""

_CUTTING = frozenset({Meaning.BEGIN, Meaning.PADS, Meaning.PADS_BEGIN})
"""Operators with inputs of these keep the rank, unless they have masks."""


_MOST_ROUNDS = 8
"""How often a body is propagated until what its iterations carry stays; a round without end is given up."""

Bodies: TypeAlias = Literal["always", "declared", "first"]


class Known(NamedTuple):
    """What follows for a value; it is `revised` if something in front of it, or it, is stored otherwise.

    Where it is `vague`, a runtime may find out more of the shape: numbers that decide about it are not known.
    """

    shape: Shape = None
    element_type: ElementType | None = None
    revised: bool = False
    vague: bool = False


class _Loop(NamedTuple):
    """A node that repeats its body, with the values around it.

    Attributes:
        outer: the inputs of the node.
        carried: of the inputs of the body that the last iteration makes: what comes in at first, and what the
            body makes of it.
    """

    node: Node
    wiring: Repeat
    outer: Sequence[Value | None]
    carried: Mapping[Value, tuple[Value | None, Value | None]]


class _Part(NamedTuple):
    """A value that another one is, or a slice of; `loop` is what cuts it, puts it together or carries it."""

    value: Value | None
    slice: Slice | None = None
    loop: _Loop | None = None


class Propagation:
    """Finds out what follows for the values of one model, for each once.

    Where nothing contradicts what is stored for a value, and `trusts_stored`, that counts as well.
    `numbers` gives the array of a value that is constant in effect. Bodies are what holds at every iteration,
    or as they are before anything flows in, or at the first iteration.
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
        self._known: dict[Value, Known] = {}
        self._of_nodes: dict[Node, Sequence[Known]] = {}
        self._bodies, self._is_bound = bodies, bodies == "declared"
        self._inside: dict[Value, _Part] = {}
        self._behind: dict[tuple[Node, int], list[_Part]] = {}
        self._assumed: Mapping[Value, Shape] = {}
        self._carried: dict[Node, Mapping[Value, Shape]] = {}
        self._alike: defaultdict[Hashable, dict[tuple[int, ...], dict[Hashable, Sequence[Known]]]]
        self._alike = defaultdict(dict)

    def trust(self, value: Value) -> None:
        self._known[value] = Known(value.shape, value.element_type)

    def known(self, value: Value) -> Known:
        pending, opened = [value], set[Value]()
        while pending:
            value = pending[-1]
            if value in self._known:
                pending.pop()
                continue
            if value not in opened:
                opened.add(value)
                missing = [source for source in self._sources(value) if source not in self._known]
                if missing:
                    pending += missing
                    continue
            pending.pop()
            self._known[value] = Known()  # what a value that depends on itself is
            self._known[value] = self._settled(value)
        return self._known[value]

    def _sources(self, value: Value) -> list[Value]:
        """Return the values that must be known first."""
        if value.constant is not None or is_static(_inferred(value)):
            return []
        parts = self._parts(value)
        if parts is not None:
            return [part.value for part in parts if part.value is not None]
        return [] if value.producer is None else [port.value for port in value.producer.inputs if port.value]

    def _parts(self, value: Value) -> list[_Part] | None:
        """Return what an input of a body, or an output of a node with bodies, is; None for other values."""
        if not self._is_bound:
            self._is_bound = True
            graphs = [self._model.graph]
            graphs += [graph for function in self._model.functions for graph in function.instances]
            for graph in graphs:
                if any(True for _ in graph.walk(WITH_BODIES)):
                    self._bind(FORMATS[self._model.format].dataflow(replace(self._model, graph=graph)))
        if value in self._inside:
            return [self._inside[value]]
        return None if value.producer is None else self._behind.get((value.producer, value.output))

    def _bind(self, flow: Dataflow) -> None:
        """Note what flows into bodies, and out of them."""
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
                    found = call.body.value(call.body.outputs[inner].key)
                    self._behind.setdefault((node, place), []).append(_Part(found))
            if isinstance(nested, Repeat):
                self._bind_loop(node, nested, outer)
            bodies = [call.body for call in calls] + ([nested.body] if isinstance(nested, Repeat) else [])
            for body in bodies:
                self._bind(body)

    def _bind_loop(self, node: Node, wiring: Repeat, outer: Sequence[Value | None]) -> None:
        results = [wiring.body.value(output.key) for output in wiring.body.outputs]
        inputs = [
            *zip(map(wiring.body.value, [one.key for one in wiring.body.inputs]), wiring.inputs, strict=True)
        ]
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
            for inflow in wiring.inputs:  # after no iteration it is what came in
                if inflow.successor == outflow.inner and inflow.outer is not None and not outflow.slice:
                    parts.append(_Part(outer[inflow.outer]))
            self._behind[node, place] = parts

    def _enter(self, inner: Value | None, part: _Part) -> None:
        if inner is not None:
            self._inside[inner] = part

    def _settled(self, value: Value) -> Known:
        """Return what follows, and where nothing speaks against it what is stored as well."""
        inferred = None if value.constant is not None else _inferred(value)
        found = self._derived(value, inferred)
        if inferred is not None and agree(found.shape, inferred):
            found = found._replace(shape=narrow(found.shape, inferred))
        stored = value.shape if value.stored_shape is None else value.stored_shape
        is_wrong = not agree(stored, found.shape) if found.vague else claims_more(stored, found.shape)
        if value.is_input and found.shape is None and stored is not None and self._parts(value) is None:
            is_wrong = True  # declared to have any rank
        revised = found.revised or is_wrong or not _is_same(found.element_type, value.stored_type)
        if not self._trusts_stored or revised:
            return found._replace(revised=revised)
        shape = value.shape if found.shape is None else narrow(found.shape, value.shape)
        return Known(shape, found.element_type or value.element_type)

    def _derived(self, value: Value, inferred: Shape) -> Known:
        if value.constant is not None or is_static(inferred):
            return Known(value.shape, value.element_type)
        parts = self._parts(value)
        node = value.producer
        if parts is not None:
            return _joined([self._of_part(value, part) for part in parts])
        if node is None or value.is_input:
            return Known(value.shape, value.element_type)
        if node not in self._of_nodes:
            self._of_nodes[node] = self._of_node(node)
        outputs = self._of_nodes[node]
        return outputs[value.output] if value.output < len(outputs) else Known()

    def _of_part(self, value: Value, part: _Part) -> Known:
        """Return what follows for a value of one of its sources."""
        if part.value is None:
            return Known()
        found, cut, loop = self._known.get(part.value, Known()), part.slice, part.loop
        shape = found.shape
        if loop is not None and value in loop.carried and self._bodies == "always":
            return found._replace(shape=self._shape_carried(loop, value), vague=True)
        if shape is None or cut is None or loop is None:
            return found
        if value not in self._inside:
            return self._put_together(found, shape, cut, self._trips(loop))
        if not -len(shape) <= cut.axis < len(shape):
            return found._replace(shape=None)
        axis = cut.axis % len(shape)
        size = (cut.part,) if cut.keeps_axis else ()
        return found._replace(shape=(*shape[:axis], *size, *shape[axis + 1 :]))

    @staticmethod
    def _put_together(found: Known, shape: tuple[Dim, ...], cut: Slice, trips: Dim) -> Known:
        """Return what follows for an output that has a part for each iteration."""
        rank = len(shape) + (not cut.keeps_axis)
        if not -rank <= cut.axis < rank:
            return found._replace(shape=None)
        axis = cut.axis % rank
        size = trips if cut.part == 1 else _multiple(trips, abs(cut.part))
        return found._replace(shape=(*shape[:axis], size, *shape[axis + cut.keeps_axis :]), vague=True)

    def _shape_carried(self, loop: _Loop, value: Value) -> Shape:
        """Return the shape of an input of a body that every iteration gives to the next.

        It is what comes in at first, less the dimensions that an iteration changes:

            s = [1, 4]                    comes in
            t = Concat (s, x), axis 0     is [2, 4], so that s is [?, 4]; then t is [?, 4] too

        What is carried in one loop may depend on each other: all of it is followed until nothing changes.
        """
        if value in self._assumed:
            return self._assumed[value]
        if loop.node not in self._carried:
            self._carried[loop.node] = dict.fromkeys(loop.carried)  # for who asks for it meanwhile
            self._carried[loop.node] = self._followed(loop)
        return self._carried[loop.node].get(value)

    def _followed(self, loop: _Loop) -> Mapping[Value, Shape]:
        known = {value: found for value, found in self._known.items() if value not in loop.carried}
        shapes: dict[Value, Shape] | None = None
        for _ in range(_MOST_ROUNDS):
            inside = Propagation(self._model, self._numbers, trusts_stored=self._trusts_stored)
            inside._is_bound, inside._inside, inside._behind = True, self._inside, self._behind
            inside._alike, inside._known = self._alike, dict(known)
            if shapes is None:
                shapes = {
                    value: None if first is None else inside.known(first).shape
                    for value, (first, _) in loop.carried.items()
                }
            inside._assumed = {**self._assumed, **shapes}
            after = {
                value: _joined([Known(shapes[value]), Known() if last is None else inside.known(last)]).shape
                for value, (_, last) in loop.carried.items()
            }
            if after == shapes:
                return after
            shapes = after
        return dict.fromkeys(loop.carried)

    def _trips(self, loop: _Loop) -> Dim:
        """Return how often a loop computes its body, as far as that is known."""
        wiring, limits = loop.wiring, list[Dim]()
        if wiring.trips is not None:
            count = self._whole_number(loop.outer[wiring.trips])
            if count is not None and count >= 0:
                limits.append(count)
        for inflow in wiring.inputs:
            value = None if inflow.outer is None or inflow.slice is None else loop.outer[inflow.outer]
            if value is not None and (shape := self.known(value).shape) is not None:
                limits.append(_part_count(inflow, shape))
        counts = [limit for limit in limits if isinstance(limit, int)]
        if not counts or min(counts) > LARGEST_DIM:
            return limits[0] if len(limits) == 1 and self._never_ends_early(loop) else UNKNOWN_DIM
        is_exact = len(counts) == len(limits) and self._never_ends_early(loop)
        return min(counts) if is_exact else Bounds(0, min(counts)) if min(counts) else 0

    def _never_ends_early(self, loop: _Loop) -> bool:
        """Tell whether no condition ends a loop before its trip count."""
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
        """Return the one number, or truth, that a value is; None if that is not known."""
        array = None if value is None else self._numbers(value)
        is_one = array is not None and array.size == 1 and array.dtype.kind in "biu"
        return int(array.reshape(-1)[0]) if array is not None and is_one else None

    def _of_node(self, node: Node) -> Sequence[Known]:
        """Return what follows for the outputs of a node without bodies."""
        inputs = [
            None if port.value is None else self._known.get(port.value, Known()) for port in node.inputs
        ]
        revised = any(
            known is not None and (known.revised or claims_more(port.stored_shape, known.shape))
            for known, port in zip(inputs, node.inputs, strict=True)
        )
        vague = any(known is not None and (known.vague or known.shape is None) for known in inputs)
        lookup = find_scatter(node.domain, node.type, node.opset)
        if lookup is not None:
            place = lookup.spec.port_index(Role.DATA) if lookup.spec else None
            data = inputs[place] if place is not None and place < len(inputs) else None
            return [Known() if data is None else data._replace(revised=revised)]
        op = find(node.domain, node.type)
        if op is None or node.bodies:
            return [Known(revised=revised)] * len(node.outputs)
        for need in op.constraints_in(node.domain):
            value = node.inputs[need.port].value if need.port < len(inputs) else None
            vague = vague or (need.decides_shape and value is not None and self._numbers(value) is None)
        outputs = self._of_general(op, node, inputs)
        return [known._replace(revised=revised, vague=vague or known.vague) for known in outputs]

    def _of_general(self, op: GeneralOp, node: Node, inputs: Sequence[Known | None]) -> Sequence[Known]:
        """Return what the table says of the outputs, once for nodes alike in all it asks for."""
        one, attributes = _OneNode(op, node, inputs, self._numbers), exactly(node.attributes)
        if attributes is None:
            return one.outputs()
        alike = self._alike[node.domain, node.type, node.opset, attributes, tuple(inputs), one.count]
        for ports, made in alike.items():
            found = made.get(tuple(map(one.integers, ports)))
            if found is not None:
                return found
        outputs = one.outputs()
        alike.setdefault(tuple(one.read), {})[tuple(one.read.values())] = outputs
        return outputs


class _OneNode:
    """One use of a general operator: its outputs, given what is known of its inputs.

    `read` holds the inputs whose numbers were asked for, with what they are.
    """

    def __init__(
        self,
        op: GeneralOp,
        node: Node,
        inputs: Sequence[Known | None],
        numbers: "Callable[[Value], Array | None]",
    ) -> None:
        self.op, self.node, self.inputs, self.count = op, node, inputs, len(node.outputs)
        constraints = op.constraints_in(node.domain)
        self.constraints = [need for need in constraints if need.port < len(inputs)]
        self.read: dict[int, tuple[int, ...] | None] = {}
        self._numbers = numbers

    def outputs(self) -> list[Known]:
        said = self._shapes()
        rank = self._rank() if None in said else None
        least: Shape = None if rank is None else (UNKNOWN_DIM,) * rank
        shapes = [least if shape is None else shape for shape in said]
        return [
            Known(shape, type, vague=rule is None)
            for rule, shape, type in zip(said, shapes, self._types()[: self.count], strict=True)
        ]

    def integers(self, port: int) -> tuple[int, ...] | None:
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
        """Return what the shape rule says, which takes unknown sizes as well."""
        none: list[Shape] = [None] * self.count
        if any(known is not None and known.shape is None for known in self.inputs):
            return none
        if self.op.reads_shapes_only:
            arrays = self._computed(float_is=True)
            return none if arrays is None else [(*arrays[0].shape,), *none][: self.count]
        sizes = [None if known is None else sizes_of(known.shape) for known in self.inputs]
        case = ShapeCase(sizes, self._integers, self.node.attributes, self.count)
        try:
            found = output_shapes(self.node.domain, self.node.type, case) or []
        except ShapesDiffer:
            return none
        return [*[None if shape is None else dims_of(shape) for shape in found], *none][: self.count]

    def _rank(self) -> int | None:
        """Return the rank of the output where no more can be said of its shape."""
        if self.op.rank is not None:
            return self.op.rank
        for need in self.constraints:
            named, data = self.inputs[need.port], self.inputs[need.of]
            if need.meaning in _NAMING and need.first == 0 and named and is_static(named.shape):
                ranks = [named.shape[0]] if len(named.shape) == 1 else []
                if need.meaning is Meaning.TARGET and data:  # the output has the larger rank in any mode
                    ranks.append(-1 if data.shape is None else len(data.shape))
                return None if not ranks or min(ranks) < 0 else max(ranks)
            if need.meaning in _CUTTING and "begin_mask" not in self.node.attributes and data is not None:
                return None if data.shape is None else len(data.shape)
        return None

    def _types(self) -> list[ElementType | None]:
        op, none = self.op, list[ElementType | None]([None] * self.count)
        types = [None if known is None else known.element_type for known in self.inputs]
        if (op.moves != () and not op.copies) or op.shape is reduction:
            place = op.moves[0] if op.moves else 0
            return [types[place]] * self.count if place < len(types) else none
        if op.kernel_in(self.node.domain):
            is_open = any(known is not None and known.element_type is None for known in self.inputs)
            outputs = [
                self._computed(float_is=float_is) or []
                for float_is in ((True, False) if is_open else (True,))
            ]
            pairs = zip(outputs[0], outputs[-1], strict=False)
            made = [from_dtype(left.dtype) if left.dtype == right.dtype else None for left, right in pairs]
            return [*made, *none][: self.count]
        if op.makes in ELEMENT_TYPES:
            return [ELEMENT_TYPES[op.makes]] * self.count
        return [types[0], *none[1:]] if op.shape is not None and not op.makes and types else none

    def _computed(self, *, float_is: bool) -> "Sequence[Array] | None":
        """Run the kernel on one element for each input, of a float type or not where none is known."""
        import numpy

        from ir_scatter.ops import general_kernels

        unknown = numpy.dtype(numpy.float32 if float_is else numpy.int64)
        axes = {need.port for need in self.constraints if need.meaning is Meaning.DIMENSION}
        arrays: list[Array | None] = []
        for port, known in enumerate(self.inputs):
            type = None if known is None or known.element_type is None else dtype(known.element_type)
            number = numpy.full((), port not in axes, type or unknown)
            rank = 0 if known is None or known.shape is None else len(known.shape)
            arrays.append(None if known is None else number.reshape((1,) * rank))
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
    """Return into how many parts an input of a loop is cut."""
    cut = inflow.slice
    if cut is None or not -len(shape) <= cut.axis < len(shape) or cut.part < 1:
        return UNKNOWN_DIM
    size = shape[cut.axis]
    if not isinstance(size, int):
        is_whole = cut.part == 1 and {cut.start, cut.end} == {0, -1}
        return size if is_whole else UNKNOWN_DIM
    first, last = (end + size if end < 0 else end for end in (cut.start, cut.end))
    return (abs(last - first) + 1 if size else 0) // cut.part


def _joined(found: Sequence[Known]) -> Known:
    """Return what holds for a value that is one of several."""
    revised, types = any(known.revised for known in found), {known.element_type for known in found}
    vague = any(known.vague or known.shape is None for known in found)
    type = types.pop() if len(types) == 1 else None
    shapes = [known.shape for known in found]
    if any(shape is None or len(shape) != len(shapes[0] or ()) for shape in shapes):
        return Known(None, type, revised)
    columns = zip(*[shape for shape in shapes if shape is not None], strict=True)
    dims: list[Dim] = [column[0] if len({*column}) == 1 else UNKNOWN_DIM for column in columns]
    return Known(tuple(dims), type, revised, vague)


def _inferred(value: Value) -> Shape:
    return None if value.producer is None else value.producer.graph.inferred_shape(value)


def _is_same(found: ElementType | None, stored: ElementType | None) -> bool:
    return found is None or stored is None or found is stored
