"""Finds out whether a node is computed always, sometimes or never, and which values can be folded.

A node is computed if an output of the model depends on it (`UseKind`), and if all bodies around it run. A
body that may not run is *skippable* (`SkippableBody`). Runtimes differ in how much of this they detect, and
when; this module describes the model only.

    reachability = facts.result_of(reachability_of)
    reachability.reach(node).extent      # ALWAYS, MAYBE or NEVER
    reachability.folding(value)          # YES, MAYBE or NO

Uses are propagated upstream, from outputs to inputs and into and out of bodies. Each value is visited once
for each kind of use, so the cost is linear in the number of edges.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, Flag, StrEnum, auto
from math import inf
from typing import TypeAlias

from ir_scatter.analysis.constants import Facts
from ir_scatter.core.dataflow import BodySource, Choice, Dataflow, Nested, Repeat, Slice
from ir_scatter.core.errors import Error, UnreadableModel
from ir_scatter.core.fragment import Fragment
from ir_scatter.core.model import OPENVINO, Graph, Node, Value
from ir_scatter.core.shapes import element_count, is_static
from ir_scatter.formats import dataflow_of
from ir_scatter.ops.general import Arithmetic, find, named
from ir_scatter.ops.lookup import find as find_scatter
from ir_scatter.ops.spec import Role

_SINKS = frozenset({"Assign"})
"""Nodes that change the state of a model: they are computed even without consumers."""

_READERS = frozenset({"ReadValue"})
"""Nodes that read the state of a model."""

_MOST_EASY = 1_000
"""Limit of nodes between a shape and the stored shapes that it follows from; beyond, a runtime may not
infer it."""


class UseKind(Flag):
    """How the outputs of a model use a value; several kinds may apply."""

    UNREAD = auto()
    """No output depends on the value: no node reads it, or only nodes whose result is not used."""
    STATIC_SHAPE = auto()
    """Its shape is read, and is known from the file: stored, or following from stored shapes and
    constants."""
    STATIC_COUNT = auto()
    """Its element count is read, and is known from the file."""
    EMPTY_PART = auto()
    """It is an empty input of a Concat."""
    INFERRED_SHAPE = auto()
    """Its shape is read, and is known before a run only by inference or through a body: not every runtime
    knows it."""
    SHAPE = auto()
    """Its shape is read, and is known only at run time; or the value has no elements."""
    NUMBERS = auto()
    """Its elements are read."""
    STATE = auto()
    """Its elements go into a state that no output of the model depends on."""


_UNCOMPUTED = UseKind.UNREAD | UseKind.STATIC_SHAPE | UseKind.STATIC_COUNT | UseKind.EMPTY_PART
"""Uses that need no computation."""


class Extent(StrEnum):
    """Whether a node is computed in all, some or no runs of a model."""

    ALWAYS = "always"
    MAYBE = "maybe"
    NEVER = "never"


class SkipReason(Enum):
    """Why a body may not run; the value is the condition under which it runs, for messages."""

    NOT_TAKEN = "the branch is taken, which its constant condition rules out"
    NO_TRIPS = "the loop runs, which a constant rules out"
    SKIPPED = "the loop is read, which a condition stored as false rules out"
    FOLDED_CHOICE = "the branch is taken (its condition may be constant)"
    CHOICE = "the branch is taken"
    TRIPS = "the loop runs"

    @property
    def is_certain(self) -> bool:
        """Whether the body is proven never to run."""
        return self in {SkipReason.NOT_TAKEN, SkipReason.NO_TRIPS, SkipReason.SKIPPED}


@dataclass(frozen=True, slots=True)
class SkippableBody:
    """An If or loop that contains a node, and whose body may not run."""

    reason: SkipReason
    node: Node


@dataclass(frozen=True, slots=True)
class Reach:
    """The conditions under which a node is computed.

    Attributes:
        uses: how the node's outputs are used.
        skippable: the Ifs and loops around it whose bodies may not run, outermost first.
    """

    uses: UseKind = UseKind.NUMBERS
    skippable: tuple[SkippableBody, ...] = ()

    @property
    def extent(self) -> Extent:
        if not self.uses & ~_UNCOMPUTED or any(body.reason.is_certain for body in self.skippable):
            return Extent.NEVER
        return Extent.MAYBE if self.skippable else Extent.ALWAYS

    @property
    def is_never(self) -> bool:
        """Whether the node is never computed."""
        return self.extent is Extent.NEVER

    @property
    def when(self) -> str:
        """The condition under which the node is computed, "the branch is taken"; "" for always and never."""
        conditions = dict.fromkeys(body.reason.value for body in self.skippable)
        return " and ".join(conditions) if self.extent is Extent.MAYBE else ""


class Folding(StrEnum):
    """Whether a runtime that folds constants can compute a value before the model runs."""

    YES = "yes"
    MAYBE = "maybe"
    NO = "no"


_STRENGTH = (Folding.NO, Folding.MAYBE, Folding.YES)


@dataclass(frozen=True, slots=True)
class _Binding:
    """The source of a body input; `is_counted` is whether the trip count of its loop is constant."""

    outer: Value | None
    source: BodySource
    successor: Value | None = None
    is_counted: bool = True


@dataclass(frozen=True, slots=True)
class _Counter:
    """A body input of a loop that may count iterations, with all values that decide when the loop ends.

    Attributes:
        body: the graph of the body.
        start: the value in the first iteration; None for the iteration number, which starts at 0.
        successor: the value in the next iteration; None for the iteration number.
        trips: the maximum number of iterations; None if only conditions or slices end the loop.
        begins, goes_on: the conditions before the first iteration, and after each.
        cuts: the values that the loop iterates over, with their slices.
    """

    body: Graph
    start: Value | None
    successor: Value | None
    trips: Value | None
    cuts: tuple[tuple[Value, Slice], ...]
    begins: Value | None
    goes_on: Value | None


_Context: TypeAlias = tuple[str, tuple[SkippableBody, ...]]
"""The scope of a graph, as written in the file, and the Ifs and loops around it."""


class Reachability:
    """The reach of all nodes and the folding of all values of one model.

    Bodies that cannot be read are assumed to run.
    """

    def __init__(self, facts: Facts, main: Dataflow) -> None:
        self._facts = facts
        self._is_openvino = facts.model is not None and facts.model.domain == OPENVINO
        self._uses: dict[Value, UseKind] = {}
        self._pending: list[tuple[Value, UseKind]] = []
        self._node_uses: dict[Node, UseKind] = {}
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
        self._needed: dict[Node, list[Value]] = {}
        """Values besides the results of its bodies without which a loop or an If is not folded. The first
        condition of a loop with a constant trip count is not one of them: OpenVINO's GPU plugin unrolls the
        loop whatever that condition is."""
        self._main_inputs = {main.value(input.key) for input in main.inputs}
        flows = self._bind(main)
        roots = [main.value(output.key) for output in main.outputs]
        self._record_use(roots, UseKind.NUMBERS)
        self._use_states(flows)
        for flow in flows:
            for node in _nodes_of(flow.graph):
                if node not in self._node_uses and node.type not in _SINKS:
                    self._node_uses[node] = UseKind.UNREAD
                    self._record_use([*_inputs(node), *self._body_results(node)], UseKind.UNREAD)
        self._record_functions(flows)

    def reach(self, node: Node) -> Reach:
        """Return the conditions under which a node is computed; for a node of a function, by any call."""
        if node.graph in self._contexts:
            return Reach(self._node_uses.get(node, UseKind.NUMBERS), self._contexts[node.graph][1])
        calls = self._by_scope.get((node.graph.scope, node.handle), [])
        if not calls:
            return Reach()
        uses = calls[0].uses
        for call in calls:
            uses |= call.uses
        return Reach(uses, min((call.skippable for call in calls), key=_count_skippable))

    def copies(self, node: Node) -> list[Node]:
        """Return the instances of a node at run time: itself, or one for each call of its function."""
        if node.graph in self._contexts:
            return [node]
        return self._copies.get((node.graph.scope, node.handle), [])

    def inflows(self, value: Value) -> list[Value] | None:
        """Return the values that a body input receives in the iterations, whole or in slices.

        [] for an input of the model; None if the loop itself computes the value, or if it is unknown.
        """
        if value in self._main_inputs:
            return []
        binding = self._bindings.get(value)
        if (
            binding is None
            or binding.outer is None
            or binding.source in {BodySource.ITERATION, BodySource.CONDITION}
        ):
            return None
        if binding.source is not BodySource.CARRIED:
            return [binding.outer]
        return None if binding.successor is None else [binding.outer, binding.successor]

    def outer_source(self, value: Value) -> tuple[Value, BodySource] | None:
        """Return the value outside of a body from which a body input comes, and the kind of source.

        In a loop it is the value of the first iteration. None for values that are not body inputs, for
        iteration numbers and for loop conditions.
        """
        binding = self._bindings.get(value)
        return None if binding is None or binding.outer is None else (binding.outer, binding.source)

    def results(self, value: Value) -> list[Value]:
        """Return the values inside bodies from which an output of an If, a loop or a function call comes.

        [] for other values, and for outputs that concatenate all iterations.
        """
        key = None if value.producer is None else (value.producer, value.output)
        return [] if key is None or key in self._stacked else self._results.get(key, [])

    def folding(self, value: Value) -> Folding:
        """Return whether a value depends on constants only, so that a runtime may fold it."""
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
        """Return whether all inputs of a node depend on constants only."""
        return self._weakest(_inputs(node))

    def counted_numbers(self, value: Value, reader: Graph) -> list[tuple[int, str]]:
        """Return (number, iteration) pairs: numbers that a body input certainly has when `reader` reads it.

        The input counts iterations, or starts with a constant and changes by a constant in each iteration.
        `reader`, a graph, must run in each iteration. The "last" iteration is known if constants alone end
        the loop, or a comparison of this number with a constant:

            i = 0; while i < 10: Body (i); i = i + 3      (0, "first"), (9, "last")
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
        """Return whether a graph is a body, or runs whenever this surrounding body runs."""
        if reader is body:
            return True
        contexts = self._contexts.get(reader), self._contexts.get(body)
        return contexts[0] is not None and contexts[1] is not None and contexts[0][1] == contexts[1][1]

    def _increment(self, value: Value, successor: Value) -> float | None:
        """Return the constant that each iteration adds to a carried value; None if it adds no constant."""
        node = self._original(successor).producer
        op = None if node is None or node.bodies else find(node.domain, node.type)
        if node is None or op is None or len(node.inputs) != 2:
            return None
        left, right = (None if port.value is None else self._original(port.value) for port in node.inputs)
        if op.arithmetic is Arithmetic.SUM and value in {left, right}:
            return self._number(right if left is value else left)
        if op.arithmetic is Arithmetic.DIFFERENCE and left is value:
            number = self._number(right)
            return None if number is None else -number
        return None

    def _original(self, value: Value) -> Value:
        """Return the value of which a value is a copy, with the same elements and element type."""
        while value.constant is None and value.producer is not None and not value.producer.bodies:
            node = value.producer
            op = find(node.domain, node.type)
            source = node.inputs[0].value if op is not None and op.copies and node.inputs else None
            if source is None or self._facts.element_type(source) != self._facts.element_type(value):
                break
            value = source
        return value

    def _count(self, counter: _Counter, value: Value, start: int, increment: int) -> int | None:
        """Return the number of iterations of a loop; None if it is unknown, or may be 0."""
        limits = [self._part_count(value, cut) for value, cut in counter.cuts]
        if counter.trips is not None:
            number = self._number(counter.trips)
            if number is None or not number.is_integer():
                return None
            if number >= 0 or not self._is_openvino:  # in an IR, -1 means no limit
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
        """Return the number of parts of a sliced loop input, None if it is unknown."""
        shape = self._facts.shape(value)
        size = shape[cut.axis] if shape is not None and -len(shape) <= cut.axis < len(shape) else None
        if not isinstance(size, int) or not size or cut.part < 1:
            return None
        first, last = (end + size if end < 0 else end for end in (cut.start, cut.end))
        return (abs(last - first) + 1) // cut.part if {first, last} <= {*range(size)} else None

    def _count_until(self, counter: _Counter, value: Value, start: int, increment: int) -> float | None:
        """Return the number of iterations until a counter reaches the constant it is compared with.

        `inf` if it never does; None if the loop has another condition.
        """
        node = None if counter.goes_on is None else self._original(counter.goes_on).producer
        op = None if node is None or node.bodies else find(node.domain, node.type)
        is_less, is_at_most = op is named("Less"), op is named("LessEqual")
        if node is None or len(node.inputs) != 2 or not (is_less or is_at_most):
            return None
        compared, end = node.inputs[0].value, self._number(node.inputs[1].value)
        if compared is None or end is None or not end.is_integer() or counter.successor is None:
            return None
        compared = self._original(compared)
        if compared not in {value, self._original(counter.successor)}:
            return None
        first = start if compared is value else start + increment
        missing = int(end) + is_at_most - first
        if missing <= 0:
            return 1
        return 1 + -(-missing // increment) if increment > 0 else inf

    def _is_true(self, value: Value | None) -> bool:
        """Return whether a condition is always true: a true constant, maybe carried unchanged by a loop."""
        visited = set[Value]()
        while value is not None and value not in visited:
            visited.add(value)
            number = self._number(value)
            if number is not None:
                return bool(number)
            binding, node = self._bindings.get(value), value.producer
            if binding is not None:
                if binding.source is BodySource.CONDITION:  # the condition is true whenever the body runs
                    return True
                if (
                    binding.source is not BodySource.CARRIED
                    or binding.outer is None
                    or not self._number(binding.outer)
                ):
                    return False
                if binding.successor is None or binding.successor in visited:
                    return True
                value = binding.successor
                continue
            op = None if node is None or node.bodies else find(node.domain, node.type)
            is_copy = node is not None and op is not None and op.copies and bool(node.inputs)
            value = node.inputs[0].value if node is not None and is_copy else None
        return False

    def _weakest(self, values: Iterable[Value]) -> Folding:
        return min(map(self.folding, values), key=_STRENGTH.index, default=Folding.YES)

    # Bodies

    def _bind(self, main: Dataflow) -> list[Dataflow]:
        """Record inputs, outputs and skippable bodies of all graphs; return the main graph and all bodies."""
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

        def argument(number: int | None) -> Value | None:
            return None if number is None or number >= len(outer) else outer[number]

        if isinstance(nested, Repeat):
            body = nested.body
            results = [body.value(output.key) for output in body.outputs]
            reason, trips = self._loop_skip_reason(nested, node, argument), argument(nested.trips)
            has_constant_count = trips is not None and self._number(trips) is not None
            for input, inflow in zip(body.inputs, nested.inputs, strict=True):
                value = body.value(input.key)
                successor = None if inflow.successor is None else results[inflow.successor]
                self._carried.setdefault(node, []).append(successor)
                if value is not None:
                    # OpenVINO unrolls a loop with a constant trip count, whatever its first condition
                    is_counted = reason is not SkipReason.TRIPS or has_constant_count
                    binding = _Binding(argument(inflow.outer), inflow.source, successor, is_counted)
                    self._bindings[value] = binding
                    self._record_counter(value, binding, body.graph, nested, argument, results)
            for place, outflow in enumerate(nested.outputs):
                self._record_result(node, place, results[outflow.inner])
                if outflow.slice is not None:
                    self._stacked.add((node, place))
            controls = [argument(nested.trips), argument(nested.condition)]
            controls.append(None if nested.goes_on is None else results[nested.goes_on])
            needed = controls[::2] if has_constant_count else controls
            self._needed[node] = [value for value in needed if value is not None]
            self._conditions[node] = [value for value in controls if value is not None]
            self._enter(flow, node, body, reason)
            yield body
            return
        calls = nested.branches if isinstance(nested, Choice) else {None: nested}
        condition = argument(nested.condition) if isinstance(nested, Choice) else None
        self._conditions[node] = self._needed[node] = [] if condition is None else [condition]
        for truth, call in calls.items():
            body = call.body
            for input, number in zip(body.inputs, call.inputs, strict=True):
                value = body.value(input.key)
                if value is not None:
                    self._bindings[value] = _Binding(argument(number), BodySource.WHOLE)
            for place, inner in enumerate(call.outputs):
                self._record_result(node, place, body.value(body.outputs[inner].key))
            self._enter(
                flow, node, body, None if truth is None else self._branch_skip_reason(condition, truth=truth)
            )
            yield body

    def _record_counter(
        self,
        value: Value,
        binding: _Binding,
        body: Graph,
        loop: Repeat,
        argument: Callable[[int | None], Value | None],
        results: Sequence[Value | None],
    ) -> None:
        """Record a body input that may count iterations, if all values that end the loop are known."""
        is_carried = binding.source is BodySource.CARRIED and binding.outer and binding.successor
        goes_on = None if loop.goes_on is None else results[loop.goes_on]
        is_ended_by_unknown = loop.goes_on is not None and goes_on is None
        if is_ended_by_unknown or (binding.source is not BodySource.ITERATION and not is_carried):
            return
        trips, begins = argument(loop.trips), argument(loop.condition)
        cuts = [(argument(inflow.outer), inflow.slice) for inflow in loop.inputs if inflow.slice is not None]
        present = tuple([(whole, cut) for whole, cut in cuts if whole is not None])
        if len(present) == len(cuts) and (loop.trips is None or trips is not None):
            outer = binding.outer if is_carried else None
            successor = binding.successor if is_carried else None
            self._counters[value] = _Counter(body, outer, successor, trips, present, begins, goes_on)

    def _record_result(self, node: Node, place: int, value: Value | None) -> None:
        results = self._results.setdefault((node, place), [])
        if value is not None:
            results.append(value)

    def _enter(self, flow: Dataflow, node: Node, body: Dataflow, reason: SkipReason | None) -> None:
        """Record the scope of a body and the skippable bodies around it.

        The scope of a function is written as in the file, the same for all calls.
        """
        scope, skippable = self._contexts[flow.graph]
        is_function = body.graph.scope.startswith(flow.graph.scope) and node.domain not in {"", OPENVINO}
        written = f"{body.graph.name}/" if is_function else scope + body.graph.scope[len(flow.graph.scope) :]
        more = () if reason is None else (SkippableBody(reason, node),)
        self._contexts[body.graph] = written, (*skippable, *more)

    def _number(self, value: Value | None) -> float | None:
        """Return the number of a one-element constant, also behind body inputs; None if unknown."""
        while value is not None and value in self._bindings:
            binding = self._bindings[value]
            value = binding.outer if binding.source is BodySource.WHOLE else None
        array = None if value is None else self._facts.array(value)
        return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None

    def _branch_skip_reason(self, condition: Value | None, *, truth: bool) -> SkipReason | None:
        """Return why the branch for `truth` may not be taken; None if it always is."""
        number = self._number(condition)
        if number is not None:
            return None if bool(number) is truth else SkipReason.NOT_TAKEN
        is_fed = condition is None or self.folding(condition) is Folding.NO
        return SkipReason.CHOICE if is_fed else SkipReason.FOLDED_CHOICE

    def _loop_skip_reason(
        self, loop: Repeat, node: Node, argument: Callable[[int | None], Value | None]
    ) -> SkipReason | None:
        """Return why the body of a loop may not run; None if it runs at least once.

        A loop without a trip count iterates over slices of an input; runtimes refuse empty ones.
        """
        trips, condition = argument(loop.trips), argument(loop.condition)
        count = None if trips is None else self._number(trips)
        if node.domain != OPENVINO and self._is_stored_false(condition):
            return SkipReason.SKIPPED
        if count is not None and (count == 0 or (count < 0 and node.domain != OPENVINO)):
            return SkipReason.NO_TRIPS
        begins = None if condition is None else self._number(condition)
        if begins == 0:
            return SkipReason.NO_TRIPS
        is_certain = (trips is None or count is not None) and (condition is None or begins is not None)
        return None if is_certain else SkipReason.TRIPS

    def _is_stored_false(self, value: Value | None) -> bool:
        """Return whether a condition is false: a constant of the same graph, or an Identity of one."""
        while value is not None and value.constant is None and value.producer is not None:
            node = value.producer
            if find(node.domain, node.type) is not named("Identity") or not node.inputs:
                break
            value = node.inputs[0].value
        if value is None or value.constant is None:
            return False
        return self._number(value) == 0

    # Uses

    def _record_use(self, values: Iterable[Value | None], use: UseKind) -> None:
        """Record a kind of use of values, and the resulting uses of all values upstream."""
        self._pending += [(value, use) for value in values if value is not None]
        while self._pending:
            value, uses = self._pending.pop()
            previous = self._uses.get(value, UseKind(0))
            new = uses & ~previous
            if not new:
                continue
            self._uses[value] = previous | new
            for bit in new:
                self._pending += self._upstream(value, bit)

    def _use_states(self, flows: Sequence[Dataflow]) -> None:
        """Record the uses of values that are assigned to states.

        They are used as numbers if an output of the model depends on the state.
        """
        sinks = [sink for flow in flows for sink in _nodes_of(flow.graph, _SINKS)]
        readers = [node for flow in flows for node in _nodes_of(flow.graph, _READERS)]
        while sinks:
            is_read = {
                _variable(node) for node in readers if self._node_uses.get(node, UseKind(0)) & ~_UNCOMPUTED
            }
            reached = [sink for sink in sinks if _variable(sink) in is_read]
            if not reached:
                break
            sinks = [sink for sink in sinks if sink not in reached]
            self._record_use([value for sink in reached for value in _inputs(sink)], UseKind.NUMBERS)
        self._record_use([value for sink in sinks for value in _inputs(sink)], UseKind.STATE)

    def _upstream(self, value: Value, use: UseKind) -> Iterator[tuple[Value, UseKind]]:
        """Yield the direct sources of a value with a kind of use, and the resulting kind for each."""
        if use is UseKind.NUMBERS and element_count(self._facts.shape(value)) == 0:
            use = UseKind.SHAPE  # the value has no elements
        binding, node = self._bindings.get(value), value.producer
        if binding is not None:
            sources = (binding.outer, binding.successor)
            yield from ((source, use) for source in sources if source is not None)
            return
        if node is None:
            return
        self._node_uses[node] = self._node_uses.get(node, UseKind(0)) | use
        results = self._results.get((node, value.output))
        if results is not None:
            is_run = bool(use & (UseKind.NUMBERS | UseKind.SHAPE | UseKind.STATE))
            of_control = UseKind.NUMBERS if is_run and use is not UseKind.STATE else use
            yield from ((result, use) for result in results)
            yield from ((control, of_control) for control in self._conditions[node])
            for carried in self._carried.get(node, ()):  # computed even if no output of the loop returns it
                if carried is not None:
                    yield carried, UseKind.SHAPE if is_run else use
            return
        for source in _inputs(node):
            yield source, self._use_of_input(node, source, use)

    def _body_results(self, node: Node) -> Iterator[Value]:
        """Yield the results of the bodies of a node (If, loop or function call)."""
        for place in range(len(node.outputs)):
            yield from self._results.get((node, place), ())

    def _use_of_input(self, node: Node, source: Value, use: UseKind) -> UseKind:
        """Return the kind of use of a node's input, given that of the node's output."""
        if use & (_UNCOMPUTED | UseKind.INFERRED_SHAPE):
            return use
        if use is UseKind.STATE:
            as_numbers = self._use_of_input(node, source, UseKind.NUMBERS)
            return use if as_numbers is UseKind.NUMBERS else as_numbers
        lookup, shape = find_scatter(node.domain, node.type, node.opset), self._facts.shape(source)
        if lookup is not None:
            place = lookup.spec.port_index(Role.DATA) if lookup.spec else None
            is_data = place is not None and place < len(node.inputs) and node.inputs[place].value is source
            return use if is_data else UseKind.NUMBERS
        op = find(node.domain, node.type)
        if op is None:
            return UseKind.NUMBERS
        if op.reads_shapes_only:
            if not is_static(shape):
                is_inferred = op.rank == 1 and is_static(self._facts.with_propagation().shape(source))
                return UseKind.INFERRED_SHAPE if is_inferred else UseKind.SHAPE
            if op.rank != 1:
                return UseKind.STATIC_COUNT
            return UseKind.STATIC_SHAPE if self._is_easily_inferred(source) else UseKind.INFERRED_SHAPE
        if use is UseKind.SHAPE and op.is_elementwise:
            return use
        if op is named("Concat") and element_count(shape) == 0:
            return UseKind.EMPTY_PART
        ports = [number for number, port in enumerate(node.inputs) if port.value is source]
        moved = {0} if op.keeps_shape else set(op.moved_inputs(len(node.inputs)))
        return use if moved.issuperset(ports) else UseKind.NUMBERS

    def _is_easily_inferred(self, value: Value) -> bool:
        """Return whether a shape is stored, or follows from stored shapes and constants outside of bodies."""
        pending, visited = [value], set[Value]()
        while pending:
            current = pending.pop()
            if current in visited or current.constant is not None or is_static(current.stored_shape):
                continue
            visited.add(current)
            node = current.producer
            if node is None and is_static(current.shape):
                continue
            if node is None or (node, current.output) in self._results or len(visited) > _MOST_EASY:
                return False
            lookup = find_scatter(node.domain, node.type, node.opset)
            place = lookup.spec.port_index(Role.DATA) if lookup is not None and lookup.spec else None
            pending += _inputs(node) if place is None else _inputs(node)[place : place + 1]
        return True

    def _record_functions(self, flows: Sequence[Dataflow]) -> None:
        """Record the nodes of functions by their place in the file, as each call has nodes of its own."""
        for flow in flows:
            scope, skippable = self._contexts[flow.graph]
            if scope == flow.graph.scope:
                continue
            for node in _nodes_of(flow.graph):
                reach = Reach(self._node_uses.get(node, UseKind.UNREAD), skippable)
                self._by_scope.setdefault((scope, node.handle), []).append(reach)
                self._copies.setdefault((scope, node.handle), []).append(node)

    # Folding

    def _sources(self, value: Value) -> list[Value]:
        """Return the values from which a value is folded."""
        binding, node = self._bindings.get(value), value.producer
        if value.constant is not None:
            return []
        if binding is not None:
            return [] if binding.outer is None else [binding.outer]
        if node is None:
            return []
        results = self._results.get((node, value.output))
        return _inputs(node) if results is None else [*self._needed.get(node, ()), *results]

    def _fold(self, value: Value) -> Folding:
        """Return whether a value can be computed before the model runs, given the folding of its sources."""
        binding, node = self._bindings.get(value), value.producer
        if value.constant is not None:
            return Folding.YES
        if binding is not None:
            if binding.outer is None:
                is_counter = binding.source is BodySource.ITERATION and binding.is_counted
                return Folding.MAYBE if is_counter else Folding.NO
            outer = self._folding.get(binding.outer, Folding.NO)
            if binding.source is BodySource.WHOLE:
                return outer
            return _at_most_maybe(outer) if binding.is_counted else Folding.NO
        if node is None or value.is_input:
            return Folding.NO
        foldings = [self._folding.get(source, Folding.NO) for source in self._sources(value)]
        weakest = min(foldings, key=_STRENGTH.index, default=Folding.NO)
        if (node, value.output) in self._results:
            return _at_most_maybe(weakest)
        op = find(node.domain, node.type)
        if op is not None and op.reads_shapes_only:
            shape_foldings = map(self._fold_of_shape, _inputs(node))
            return min(shape_foldings, key=_STRENGTH.index, default=Folding.YES)
        if find_scatter(node.domain, node.type, node.opset) is not None:
            return weakest
        is_folded = None if op is None else op.is_folded
        if is_folded is False:
            return Folding.NO
        return weakest if is_folded else _at_most_maybe(weakest)

    def _fold_of_shape(self, value: Value) -> Folding:
        """Return whether a shape is known before a run; MAYBE if only some dimensions are dynamic."""
        is_dynamic = self._facts.is_dynamic(value)
        if is_dynamic is False:
            return Folding.YES
        shape = self._facts.with_propagation().shape(value)
        has_sizes = shape is None or any(isinstance(dim, int) for dim in shape)
        return Folding.NO if is_dynamic and not has_sizes else Folding.MAYBE


def reachability_of(facts: Facts) -> Reachability | None:
    """Return the reachability of a model's nodes; None if its graphs cannot be read.

    Use `facts.result_of(reachability_of)`, which computes it once for each model.
    """
    if facts.model is None or isinstance(facts.model.graph, Fragment):  # the nodes belong to no model
        return None
    try:
        return Reachability(facts, dataflow_of(facts.model))
    except Error:  # a part of the file cannot be read
        return None


def _nodes_of(graph: Graph, types: frozenset[str] | None = None) -> Iterator[Node]:
    """Yield the nodes of a graph, without those in its bodies."""
    return (node for node in graph.walk(types) if node.graph is graph)


def _variable(node: Node) -> str:
    """Return the name of the state that a node reads or writes."""
    return str(node.attributes.get("variable_id", ""))


def _inputs(node: Node) -> list[Value]:
    return [port.value for port in node.inputs if port.value is not None]


def _at_most_maybe(folding: Folding) -> Folding:
    return min(folding, Folding.MAYBE, key=_STRENGTH.index)


def _count_skippable(skippable: Sequence[SkippableBody]) -> int:
    """Return the number of skippable bodies, as a sort key; bodies that never run count twice."""
    return sum(2 if body.reason.is_certain else 1 for body in skippable)
