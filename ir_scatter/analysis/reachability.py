"""Which nodes of a model are computed when it runs: always, maybe (and when), or never; and which are folded.

A node is computed if an output of the model depends on it (`Use`), and if no node around it keeps its body
from running (`Barrier`). Which of these a runtime sees, and whether before it compiles, differs: here are
the facts of the model alone.

    reachability = facts.derived(reachability_of)
    reachability.reach(node).extent      # ALWAYS, MAYBE or NEVER
    reachability.folding(value)          # YES, MAYBE or NO

Uses are followed backwards, from outputs to inputs and in and out of bodies. Each value is visited once for
each kind of use, so that the cost is linear in the number of edges.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, Flag, StrEnum, auto
from math import inf
from typing import TypeAlias

from ir_scatter.analysis.constants import Facts
from ir_scatter.core.dataflow import Choice, Dataflow, Nested, Repeat, Slice, Source
from ir_scatter.core.errors import Error, UnreadableModel
from ir_scatter.core.fragment import Fragment
from ir_scatter.core.model import OPENVINO, Graph, Node, Value
from ir_scatter.core.shapes import element_count, is_static
from ir_scatter.formats import dataflow_of
from ir_scatter.ops.general import Arithmetic, find, named
from ir_scatter.ops.lookup import find as find_scatter
from ir_scatter.ops.spec import Role

_SINKS = frozenset({"Assign"})
"""Nodes that change the state of a model: they are computed though nothing reads them."""

_MOST_EASY = 1_000
"""Nodes between a shape and the stored ones that it follows from; beyond, it may not be inferred."""


class Use(Flag):
    """What the outputs of a model need of a value; a value may be used in several ways."""

    UNREAD = auto()
    """Nodes read it on which no output depends, or no node reads it."""
    STATIC_SHAPE = auto()
    """Its shape is read, which the file stores, or which follows from stored shapes and constants."""
    STATIC_COUNT = auto()
    """The number of its elements is read, and the file says that number."""
    EMPTY_PART = auto()
    """A part of it that is known to have no elements is joined to others."""
    INFERRED_SHAPE = auto()
    """Its shape is read, which only inference makes static, or goes through a body: a runtime may know it."""
    SHAPE = auto()
    """Its shape is read, which is known when the model runs; or parts that have no elements are."""
    NUMBERS = auto()
    """Its elements are read."""


_UNCOMPUTED = Use.UNREAD | Use.STATIC_SHAPE | Use.STATIC_COUNT | Use.EMPTY_PART


class Extent(StrEnum):
    """How often a node is computed when a model runs."""

    ALWAYS = "always"
    MAYBE = "maybe"
    NEVER = "never"


class BarrierKind(Enum):
    """Why the body that holds a node may not run; the value says when it does."""

    NOT_TAKEN = "the branch is taken, which a constant condition excludes"
    NO_TRIPS = "the loop runs, which a constant excludes"
    SKIPPED = "the loop is read, which a condition that is stored as false excludes"
    FOLDED_CHOICE = "the branch is taken, by a condition that may be constant"
    CHOICE = "the branch is taken"
    TRIPS = "the loop runs"

    @property
    def is_certain(self) -> bool:
        """Whether it is known that the body does not run."""
        return self in {BarrierKind.NOT_TAKEN, BarrierKind.NO_TRIPS, BarrierKind.SKIPPED}


@dataclass(frozen=True, slots=True)
class Barrier:
    """An If or a loop around a node, whose body does not run, or maybe not."""

    kind: BarrierKind
    node: Node


@dataclass(frozen=True, slots=True)
class Reach:
    """What decides whether a node is computed.

    Attributes:
        uses: what is needed of its outputs.
        barriers: of the nodes around it, the outermost first.
    """

    uses: Use = Use.NUMBERS
    barriers: tuple[Barrier, ...] = ()

    @property
    def extent(self) -> Extent:
        if not self.uses & ~_UNCOMPUTED or any(barrier.kind.is_certain for barrier in self.barriers):
            return Extent.NEVER
        return Extent.MAYBE if self.barriers else Extent.ALWAYS

    @property
    def is_never(self) -> bool:
        """Whether it is not computed in any run."""
        return self.extent is Extent.NEVER

    @property
    def when(self) -> str:
        """When it is computed, if that depends on a run: "the branch is taken"; "" otherwise."""
        whens = dict.fromkeys(barrier.kind.value for barrier in self.barriers)
        return " and ".join(whens) if self.extent is Extent.MAYBE else ""


class Folding(StrEnum):
    """Whether a runtime that folds constants can compute a value before the model runs."""

    YES = "yes"
    MAYBE = "maybe"
    NO = "no"


_STRENGTH = (Folding.NO, Folding.MAYBE, Folding.YES)


@dataclass(frozen=True, slots=True)
class _Binding:
    """The value around a body that an input of the body is; of a loop whether its trips are constant."""

    outer: Value | None
    source: Source
    successor: Value | None = None
    is_counted: bool = True


@dataclass(frozen=True, slots=True)
class _Counter:
    """An input of the body of a loop that starts with a number and may change by one in each iteration.

    Attributes:
        body: the graph of the body.
        start: the value in the first iteration; None for the number of the iteration, which is 0.
        successor: the value in the next iteration; None for the number of the iteration.
        trips: how many iterations there are at most; None if only conditions and parts end the loop.
        begins, goes_on: the conditions before the first iteration, and after each.
        cuts: the values of which each iteration gets a part.
    """

    body: Graph
    start: Value | None
    successor: Value | None
    trips: Value | None
    cuts: tuple[tuple[Value, Slice], ...]
    begins: Value | None
    goes_on: Value | None


_Context: TypeAlias = tuple[str, tuple[Barrier, ...]]


class Reachability:
    """Answers for one model which nodes are computed, and which values are folded.

    Of a model whose bodies cannot be read as a whole nothing is excluded.
    """

    def __init__(self, facts: Facts, main: Dataflow) -> None:
        self._facts = facts
        self._is_openvino = facts.model is not None and facts.model.domain == OPENVINO
        self._uses: dict[Value, Use] = {}
        self._pending: list[tuple[Value, Use]] = []
        self._node_uses: dict[Node, Use] = {}
        self._bindings: dict[Value, _Binding] = {}
        self._results: dict[tuple[Node, int], list[Value]] = {}
        self._stacked: set[tuple[Node, int]] = set()
        self._conditions: dict[Node, list[Value]] = {}
        self._carried: dict[Node, list[Value | None]] = {}
        self._contexts: dict[Graph, _Context] = {}
        self._counters: dict[Value, _Counter] = {}
        self._by_scope: dict[tuple[str, object], list[Reach]] = {}
        self._copies: dict[tuple[str, object], list[Node]] = {}
        self._folding: dict[Value, Folding] = {}
        self._given = {main.value(input.key) for input in main.inputs}
        flows = self._bind(main)
        roots = [main.value(output.key) for output in main.outputs]
        for flow in flows:
            roots += [value for sink in _nodes_of(flow.graph, _SINKS) for value in _inputs(sink)]
        self._follow(roots, Use.NUMBERS)
        for flow in flows:
            for node in _nodes_of(flow.graph):
                if node not in self._node_uses and node.type not in _SINKS:
                    self._node_uses[node] = Use.UNREAD
                    self._follow([*_inputs(node), *self._inside(node)], Use.UNREAD)
        self._note_functions(flows)

    def reach(self, node: Node) -> Reach:
        """Return what decides whether a node is computed; of a function, by all of its calls."""
        if node.graph in self._contexts:
            return Reach(self._node_uses.get(node, Use.NUMBERS), self._contexts[node.graph][1])
        calls = self._by_scope.get((node.graph.scope, node.handle), [])
        if not calls:
            return Reach()
        uses = calls[0].uses
        for call in calls:
            uses |= call.uses
        return Reach(uses, min((call.barriers for call in calls), key=_obstruction))

    def copies(self, node: Node) -> list[Node]:
        """Return a node as the model runs it: itself, or of a function one for each call."""
        if node.graph in self._contexts:
            return [node]
        return self._copies.get((node.graph.scope, node.handle), [])

    def inflows(self, value: Value) -> list[Value] | None:
        """Return the values that an input of a body is, or is a part of, in one iteration or another.

        An empty list for an input of the model; None if the loop itself computes it, or if it is not known.
        """
        if value in self._given:
            return []
        binding = self._bindings.get(value)
        if binding is None or binding.outer is None or binding.source in {Source.ITERATION, Source.CONDITION}:
            return None
        if binding.source is not Source.CARRIED:
            return [binding.outer]
        return None if binding.successor is None else [binding.outer, binding.successor]

    def entry(self, value: Value) -> tuple[Value, Source] | None:
        """Return the value around a body that an input of the body is first, or is a part of.

        None for values that are no input of a body, and for what counts iterations or tells them to go on.
        """
        binding = self._bindings.get(value)
        return None if binding is None or binding.outer is None else (binding.outer, binding.source)

    def results(self, value: Value) -> list[Value]:
        """Return the values of the bodies of its producer, one of which a value is.

        An empty list for what no body gives, and for what is put together from all iterations.
        """
        key = None if value.producer is None else (value.producer, value.output)
        return [] if key is None or key in self._stacked else self._results.get(key, [])

    def folding(self, value: Value) -> Folding:
        """Return whether a value follows from constants alone, whoever computes it."""
        path = {value: iter(self._sources(value))}
        while path:
            current = next(reversed(path))
            source = next(path[current], None)
            if source is None:
                del path[current]
                self._folding[current] = self._fold(current)
            elif source not in self._folding and source not in path:
                path[source] = iter(self._sources(source))
        return self._folding[value]

    def folds(self, node: Node) -> Folding:
        """Return whether all inputs of a node follow from constants alone."""
        return self._weakest(_inputs(node))

    def counted_numbers(self, value: Value, reader: Graph) -> list[tuple[int, str]]:
        """Return numbers that an input of a body certainly is when a graph reads it, and in which iteration.

        It counts iterations, or starts with a constant to which each iteration adds one. The graph must be
        computed in each iteration. The "last" iteration is known if constants alone end the loop, or a
        comparison of this number with a constant.
        """
        counter = self._counters.get(value)
        if counter is None or not self._is_always_within(reader, counter.body):
            return []
        start = 0.0 if counter.successor is None else self._number(counter.start)
        if start is None or not start.is_integer():
            return []
        numbers = [] if counter.successor is None else [(int(start), "first")]
        increment = 1.0 if counter.successor is None else self._increment(value, counter.successor)
        if increment is None or not increment.is_integer():
            return numbers
        count = self._count(counter, value, int(start), int(increment))
        if count is not None:
            numbers.append((int(start) + int(increment) * (count - 1), "last"))
        return numbers

    def _is_always_within(self, reader: Graph, body: Graph) -> bool:
        """Tell whether a graph is computed whenever a body around it is, or is that body."""
        if reader is body:
            return True
        contexts = self._contexts.get(reader), self._contexts.get(body)
        return contexts[0] is not None and contexts[1] is not None and contexts[0][1] == contexts[1][1]

    def _increment(self, value: Value, successor: Value) -> float | None:
        """Return the constant by which a value differs in the next iteration."""
        node = self._uncopied(successor).producer
        op = None if node is None or node.bodies else find(node.domain, node.type)
        if node is None or op is None or len(node.inputs) != 2:
            return None
        left, right = (None if port.value is None else self._uncopied(port.value) for port in node.inputs)
        if op.arithmetic is Arithmetic.SUM and value in {left, right}:
            return self._number(right if left is value else left)
        if op.arithmetic is Arithmetic.DIFFERENCE and left is value:
            number = self._number(right)
            return None if number is None else -number
        return None

    def _uncopied(self, value: Value) -> Value:
        """Return the value whose numbers another one has, in the same element type."""
        while value.constant is None and value.producer is not None and not value.producer.bodies:
            node = value.producer
            op = find(node.domain, node.type)
            source = node.inputs[0].value if op is not None and op.copies and node.inputs else None
            if source is None or self._facts.element_type(source) != self._facts.element_type(value):
                break
            value = source
        return value

    def _count(self, counter: _Counter, value: Value, start: int, increment: int) -> int | None:
        """Return how many iterations a loop has that runs at least once, None if that is not known."""
        limits = [self._part_count(value, cut) for value, cut in counter.cuts]
        if counter.trips is not None:
            number = self._number(counter.trips)
            if number is None or not number.is_integer():
                return None
            if number >= 0 or not self._is_openvino:  # -1 is no limit in an IR
                limits.append(int(number))
        if any(limit is None or limit < 1 for limit in limits):
            return None
        most = min((limit for limit in limits if limit is not None), default=None)
        if counter.goes_on is None or self._is_true(counter.goes_on):
            is_begun = counter.begins is None or self._is_true(counter.begins)
            return most if is_begun else None
        until = self._count_until(counter, value, start, increment)
        count = until if until is None or most is None else min(until, most)
        return None if count is None or count == inf else int(count)

    def _part_count(self, value: Value, cut: Slice) -> int | None:
        """Return of how many parts a value consists, None if that is not known."""
        shape = self._facts.shape(value)
        size = shape[cut.axis] if shape is not None and -len(shape) <= cut.axis < len(shape) else None
        if not isinstance(size, int) or not size or cut.part < 1:
            return None
        first, last = (end + size if end < 0 else end for end in (cut.start, cut.end))
        return (abs(last - first) + 1) // cut.part if {first, last} <= {*range(size)} else None

    def _count_until(self, counter: _Counter, value: Value, start: int, increment: int) -> float | None:
        """Return after how many iterations the number is not less than a constant any more; inf if always.

        None if the loop ends for another reason.
        """
        node = None if counter.goes_on is None else self._uncopied(counter.goes_on).producer
        op = None if node is None or node.bodies else find(node.domain, node.type)
        is_less, is_at_most = op is named("Less"), op is named("LessEqual")
        if node is None or len(node.inputs) != 2 or not (is_less or is_at_most):
            return None
        compared, end = node.inputs[0].value, self._number(node.inputs[1].value)
        if compared is None or end is None or not end.is_integer() or counter.successor is None:
            return None
        compared = self._uncopied(compared)
        if compared not in {value, self._uncopied(counter.successor)}:
            return None
        first = start if compared is value else start + increment
        missing = int(end) + is_at_most - first
        if missing <= 0:
            return 1
        return 1 + -(-missing // increment) if increment > 0 else inf

    def _is_true(self, value: Value | None) -> bool:
        """Tell whether a condition is always true: a constant, or one that a loop passes on unchanged."""
        seen = set[Value]()
        while value is not None and value not in seen:
            seen.add(value)
            number = self._number(value)
            if number is not None:
                return bool(number)
            binding, node = self._bindings.get(value), value.producer
            if binding is not None:
                if binding.source is Source.CONDITION:  # otherwise the body does not run
                    return True
                if (
                    binding.source is not Source.CARRIED
                    or binding.outer is None
                    or not self._number(binding.outer)
                ):
                    return False
                if binding.successor is None or binding.successor in seen:
                    return True
                value = binding.successor
                continue
            op = None if node is None or node.bodies else find(node.domain, node.type)
            is_copy = node is not None and op is not None and op.copies and bool(node.inputs)
            value = node.inputs[0].value if node is not None and is_copy else None
        return False

    def _weakest(self, values: Iterable[Value]) -> Folding:
        return min(map(self.folding, values), key=_STRENGTH.index, default=Folding.YES)

    # how bodies are bound

    def _bind(self, main: Dataflow) -> list[Dataflow]:
        """Note what flows into and out of bodies, and what keeps them from running; return all graphs."""
        flows, pending = list[Dataflow](), [main]
        self._contexts[main.graph] = main.graph.scope, ()
        while pending:
            flow = pending.pop()
            flows.append(flow)
            for node in _nodes_of(flow.graph):
                try:
                    nested = flow.nested(node)
                except UnreadableModel:
                    continue
                if nested is not None:
                    pending += self._bind_node(flow, node, nested)
        return flows

    def _bind_node(self, flow: Dataflow, node: Node, nested: Nested) -> Iterator[Dataflow]:
        outer = [port.value for port in node.inputs]

        def given(number: int | None) -> Value | None:
            return None if number is None or number >= len(outer) else outer[number]

        if isinstance(nested, Repeat):
            body = nested.body
            results = [body.value(output.key) for output in body.outputs]
            begins = self._trips(nested, node, given)
            for input, inflow in zip(body.inputs, nested.inputs, strict=True):
                value = body.value(input.key)
                successor = None if inflow.successor is None else results[inflow.successor]
                self._carried.setdefault(node, []).append(successor)
                if value is not None:
                    is_counted = begins is not BarrierKind.TRIPS
                    binding = _Binding(given(inflow.outer), inflow.source, successor, is_counted)
                    self._bindings[value] = binding
                    self._note_counter(value, binding, body.graph, nested, given, results)
            for place, outflow in enumerate(nested.outputs):
                self._note_result(node, place, results[outflow.inner])
                if outflow.slice is not None:
                    self._stacked.add((node, place))
            controls = [given(nested.trips), given(nested.condition)]
            controls.append(None if nested.goes_on is None else results[nested.goes_on])
            self._conditions[node] = [value for value in controls if value is not None]
            self._enter(flow, node, body, begins)
            yield body
            return
        calls = nested.branches if isinstance(nested, Choice) else {None: nested}
        condition = given(nested.condition) if isinstance(nested, Choice) else None
        self._conditions[node] = [] if condition is None else [condition]
        for truth, call in calls.items():
            body = call.body
            for input, number in zip(body.inputs, call.inputs, strict=True):
                value = body.value(input.key)
                if value is not None:
                    self._bindings[value] = _Binding(given(number), Source.WHOLE)
            for place, inner in enumerate(call.outputs):
                self._note_result(node, place, body.value(body.outputs[inner].key))
            self._enter(flow, node, body, None if truth is None else self._choice(condition, truth=truth))
            yield body

    def _note_counter(
        self,
        value: Value,
        binding: _Binding,
        body: Graph,
        loop: Repeat,
        given: Callable[[int | None], Value | None],
        results: Sequence[Value | None],
    ) -> None:
        """Note an input of a body that may count iterations, if it is known what ends the loop."""
        is_carried = binding.source is Source.CARRIED and binding.outer and binding.successor
        goes_on = None if loop.goes_on is None else results[loop.goes_on]
        is_ended_by_unknown = loop.goes_on is not None and goes_on is None
        if is_ended_by_unknown or (binding.source is not Source.ITERATION and not is_carried):
            return
        trips, begins = given(loop.trips), given(loop.condition)
        cuts = [(given(inflow.outer), inflow.slice) for inflow in loop.inputs if inflow.slice is not None]
        known = tuple([(whole, cut) for whole, cut in cuts if whole is not None])
        if len(known) == len(cuts) and (loop.trips is None or trips is not None):
            outer = binding.outer if is_carried else None
            successor = binding.successor if is_carried else None
            self._counters[value] = _Counter(body, outer, successor, trips, known, begins, goes_on)

    def _note_result(self, node: Node, place: int, value: Value | None) -> None:
        found = self._results.setdefault((node, place), [])
        if value is not None:
            found.append(value)

    def _enter(self, flow: Dataflow, node: Node, body: Dataflow, kind: BarrierKind | None) -> None:
        """Note in which scope a body is as functions are written, and what keeps it from running."""
        scope, barriers = self._contexts[flow.graph]
        is_function = body.graph.scope.startswith(flow.graph.scope) and node.domain not in {"", OPENVINO}
        written = f"{body.graph.name}/" if is_function else scope + body.graph.scope[len(flow.graph.scope) :]
        more = () if kind is None else (Barrier(kind, node),)
        self._contexts[body.graph] = written, (*barriers, *more)

    def _number(self, value: Value | None) -> float | None:
        """Return the one number that a value is, through the inputs of bodies; None if it is not known."""
        while value is not None and value in self._bindings:
            binding = self._bindings[value]
            value = binding.outer if binding.source is Source.WHOLE else None
        array = None if value is None else self._facts.array(value)
        return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None

    def _choice(self, condition: Value | None, *, truth: bool) -> BarrierKind | None:
        """Return what keeps a branch from being taken, None if it always is."""
        number = self._number(condition)
        if number is not None:
            return None if bool(number) is truth else BarrierKind.NOT_TAKEN
        is_fed = condition is None or self.folding(condition) is Folding.NO
        return BarrierKind.CHOICE if is_fed else BarrierKind.FOLDED_CHOICE

    def _trips(
        self, loop: Repeat, node: Node, given: Callable[[int | None], Value | None]
    ) -> BarrierKind | None:
        """Return what keeps the body of a loop from running, None if it runs at least once.

        A loop without a trip count takes the parts of an input: runtimes refuse inputs without parts.
        """
        trips, condition = given(loop.trips), given(loop.condition)
        count = None if trips is None else self._number(trips)
        if node.domain != OPENVINO and self._is_stored_false(condition):
            return BarrierKind.SKIPPED
        if count is not None and (count == 0 or (count < 0 and node.domain != OPENVINO)):
            return BarrierKind.NO_TRIPS
        begins = None if condition is None else self._number(condition)
        if begins == 0:
            return BarrierKind.NO_TRIPS
        is_known = (trips is None or count is not None) and (condition is None or begins is not None)
        return None if is_known else BarrierKind.TRIPS

    def _is_stored_false(self, value: Value | None) -> bool:
        """Tell whether a condition is a constant false in the same graph, or a copy of one."""
        while value is not None and value.constant is None and value.producer is not None:
            node = value.producer
            if find(node.domain, node.type) is not named("Identity") or not node.inputs:
                break
            value = node.inputs[0].value
        if value is None or value.constant is None:
            return False
        return self._number(value) == 0

    # what is used

    def _follow(self, values: Iterable[Value | None], use: Use) -> None:
        """Propagate a use of some values to all that they depend on."""
        self._pending += [(value, use) for value in values if value is not None]
        while self._pending:
            value, uses = self._pending.pop()
            known = self._uses.get(value, Use(0))
            new = uses & ~known
            if not new:
                continue
            self._uses[value] = known | new
            for bit in new:
                self._pending += self._upstream(value, bit)

    def _upstream(self, value: Value, use: Use) -> Iterator[tuple[Value, Use]]:
        """Yield the values that one depends on, and how they are used for a use of it."""
        if use is Use.NUMBERS and element_count(self._facts.shape(value)) == 0:
            use = Use.SHAPE  # it has no elements
        binding, node = self._bindings.get(value), value.producer
        if binding is not None:
            yield from ((one, use) for one in (binding.outer, binding.successor) if one is not None)
            return
        if node is None:
            return
        self._node_uses[node] = self._node_uses.get(node, Use(0)) | use
        results = self._results.get((node, value.output))
        if results is not None:
            is_run = bool(use & (Use.NUMBERS | Use.SHAPE))
            yield from ((result, use) for result in results)
            yield from ((control, Use.NUMBERS if is_run else use) for control in self._conditions[node])
            for carried in self._carried.get(node, ()):  # computed though no output of the loop gives it
                if carried is not None:
                    yield carried, Use.SHAPE if is_run else use
            return
        for source in _inputs(node):
            yield source, self._use_of_input(node, source, use)

    def _inside(self, node: Node) -> Iterator[Value]:
        """Yield what the bodies of a node give."""
        for place in range(len(node.outputs)):
            yield from self._results.get((node, place), ())

    def _use_of_input(self, node: Node, source: Value, use: Use) -> Use:
        """Return how a node uses an input, if its output is used in some way."""
        if use & (_UNCOMPUTED | Use.INFERRED_SHAPE):
            return use
        lookup, shape = find_scatter(node.domain, node.type, node.opset), self._facts.shape(source)
        if lookup is not None:
            place = lookup.spec.port_index(Role.DATA) if lookup.spec else None
            is_data = place is not None and place < len(node.inputs) and node.inputs[place].value is source
            return use if is_data else Use.NUMBERS
        op = find(node.domain, node.type)
        if op is None:
            return Use.NUMBERS
        if op.reads_shapes_only:
            if not is_static(shape):
                is_inferred = op.rank == 1 and is_static(self._facts.propagating().shape(source))
                return Use.INFERRED_SHAPE if is_inferred else Use.SHAPE
            if op.rank != 1:
                return Use.STATIC_COUNT
            return Use.STATIC_SHAPE if self._is_easily_inferred(source) else Use.INFERRED_SHAPE
        if use is Use.SHAPE and op.is_elementwise:
            return use
        if op is named("Concat") and element_count(shape) == 0:
            return Use.EMPTY_PART
        ports = [number for number, port in enumerate(node.inputs) if port.value is source]
        moved = {0} if op.keeps_shape else set(op.moved_inputs(len(node.inputs)))
        return use if moved.issuperset(ports) else Use.NUMBERS

    def _is_easily_inferred(self, value: Value) -> bool:
        """Tell whether a shape is stored, or follows from stored ones and constants not through a body."""
        pending, seen = [value], set[Value]()
        while pending:
            current = pending.pop()
            if current in seen or current.constant is not None or is_static(current.stored_shape):
                continue
            seen.add(current)
            node = current.producer
            if node is None and is_static(current.shape):
                continue
            if node is None or (node, current.output) in self._results or len(seen) > _MOST_EASY:
                return False
            pending += _inputs(node)
        return True

    def _note_functions(self, flows: Sequence[Dataflow]) -> None:
        """Note nodes of functions as they are written, since each call has nodes of its own."""
        for flow in flows:
            scope, barriers = self._contexts[flow.graph]
            if scope == flow.graph.scope:
                continue
            for node in _nodes_of(flow.graph):
                reach = Reach(self._node_uses.get(node, Use.UNREAD), barriers)
                self._by_scope.setdefault((scope, node.handle), []).append(reach)
                self._copies.setdefault((scope, node.handle), []).append(node)

    # what is folded

    def _sources(self, value: Value) -> list[Value]:
        """Return the values that decide whether one is folded."""
        binding, node = self._bindings.get(value), value.producer
        if value.constant is not None:
            return []
        if binding is not None:
            return [] if binding.outer is None else [binding.outer]
        if node is None:
            return []
        results = self._results.get((node, value.output), [])
        return [*_inputs(node), *results]

    def _fold(self, value: Value) -> Folding:
        """Return whether a value is folded, whose sources are known."""
        binding, node = self._bindings.get(value), value.producer
        if value.constant is not None:
            return Folding.YES
        if binding is not None:
            if binding.outer is None:
                is_counter = binding.source is Source.ITERATION and binding.is_counted
                return Folding.MAYBE if is_counter else Folding.NO
            outer = self._folding.get(binding.outer, Folding.NO)
            if binding.source is Source.WHOLE:
                return outer
            return _at_most_maybe(outer) if binding.is_counted else Folding.NO
        if node is None or value.is_input:
            return Folding.NO
        known = [self._folding.get(source, Folding.NO) for source in self._sources(value)]
        weakest = min(known, key=_STRENGTH.index, default=Folding.NO)
        if (node, value.output) in self._results:
            return _at_most_maybe(weakest)
        op = find(node.domain, node.type)
        if op is not None and op.reads_shapes_only:
            found = map(self._fold_of_shape, _inputs(node))
            return min(found, key=_STRENGTH.index, default=Folding.YES)
        if find_scatter(node.domain, node.type, node.opset) is not None:
            return weakest
        is_folded = None if op is None else op.is_folded
        if is_folded is False:
            return Folding.NO
        return weakest if is_folded else _at_most_maybe(weakest)

    def _fold_of_shape(self, value: Value) -> Folding:
        """Return whether the shape of a value is folded; of one that is open in part, parts may be."""
        is_open = self._facts.is_open(value)
        if is_open is False:
            return Folding.YES
        shape = self._facts.propagating().shape(value)
        has_sizes = shape is None or any(isinstance(dim, int) for dim in shape)
        return Folding.NO if is_open and not has_sizes else Folding.MAYBE


def reachability_of(facts: Facts) -> Reachability | None:
    """Return which nodes of the model of some facts are computed; None if its graph cannot be followed.

    `facts.derived(reachability_of)` computes it once for each model.
    """
    if facts.model is None or isinstance(facts.model.graph, Fragment):  # nodes on their own
        return None
    try:
        return Reachability(facts, dataflow_of(facts.model))
    except Error:  # of a file that cannot be read as a whole
        return None


def _nodes_of(graph: Graph, types: frozenset[str] | None = None) -> Iterator[Node]:
    """Yield the nodes of a graph without those of its bodies."""
    return (node for node in graph.walk(types) if node.graph is graph)


def _inputs(node: Node) -> list[Value]:
    return [port.value for port in node.inputs if port.value is not None]


def _at_most_maybe(folding: Folding) -> Folding:
    return min(folding, Folding.MAYBE, key=_STRENGTH.index)


def _obstruction(barriers: Sequence[Barrier]) -> int:
    """Return what barriers are ordered by: certain ones keep more from running than others."""
    return sum(2 if barrier.kind.is_certain else 1 for barrier in barriers)
