"""Computes the symbolic facts of a value on demand: its dimensions, and facts about its elements.

A rule is a generator that yields queries for facts of other values and is resumed with the answers. So a
chain of 10,000 nodes needs no recursion:

    def add(case):
        left = yield from case.numbers(0)
        right = yield from case.numbers(1)
        return ...

Bodies and functions are entered through their bindings. For a value that a loop carries, the bounds of its
first value are assumed. If the body proves the same bounds for the next value, they hold in every iteration.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.symbolic import rules as _rules  # noqa: F401  # registers the rules
from ir_scatter.analysis.symbolic.case import Dims, NodeCase, Query, SymbolSource, type_range, varying
from ir_scatter.analysis.symbolic.linear import (
    LARGEST_SIZE,
    Knowledge,
    Linear,
    Symbol,
    SymbolKind,
    SymbolRange,
    of_symbol,
)
from ir_scatter.analysis.symbolic.numbers import (
    MOST_COLUMNS,
    UNKNOWN,
    CaseBounds,
    TensorNumbers,
    between,
    exactly,
    union,
)
from ir_scatter.analysis.symbolic.rules.registry import dims_of_output, numbers_of_output
from ir_scatter.analysis.symbolic.rules.scatter import scatter_facts
from ir_scatter.analysis.symbolic.words import quoted
from ir_scatter.core.dataflow import BodyInput, BodySource, Call, Choice, Dataflow, GraphInput, Repeat
from ir_scatter.core.errors import Error, UnreadableModel
from ir_scatter.core.fragment import Fragment
from ir_scatter.core.model import OPENVINO, Node, Value
from ir_scatter.core.shapes import Bounds, Dim, highest, lowest
from ir_scatter.formats import dataflow_of
from ir_scatter.ops.general import WITH_BODIES, find
from ir_scatter.ops.lookup import find as find_scatter

MOST_VALUES = 20_000
"""Maximum values visited for one model, loops included; after that, every value is unknown."""
_MOST_ELEMENTS = 1 << 20
"""Maximum elements of a constant that are compared with each other."""
_MOST_NESTED = 4
"""Maximum nesting of loops whose carried values are analysed."""


Answer: TypeAlias = "Dims | TensorNumbers"
Asking: TypeAlias = Generator[Query, Any, Any]
"""A rule that runs: it yields queries, is sent answers, and returns its own answer."""


class _LoopPlace(NamedTuple):
    """An input or output of a loop's body, by number, with the loop."""

    node: Node
    loop: Repeat
    number: int


class Walker(SymbolSource):
    """The symbolic facts of the values of one model, each computed once.

    Attributes:
        given_distinct: inputs whose elements are distinct by the user's conditions.
        merges_names: whether dimensions of inputs with the same name count as equal.
        merged: the dimensions that were replaced by another one of the same name.
        visited: the number of values visited so far.
    """

    def __init__(self, facts: Facts, *, merges_names: bool = False) -> None:
        self.facts = facts
        self.knowledge = Knowledge()
        self.inputs: dict[Value, GraphInput] = {}
        self.cast_inputs: dict[Value, Value] = {}
        self.visited = 0
        self.given_distinct: set[Value] = set()
        self.merges_names = merges_names
        self.merged: dict[Symbol, Symbol] = {}
        self._by_name: dict[str, Symbol] = {}
        self._dims: dict[Value, Dims] = {}
        self._numbers: dict[Value, TensorNumbers] = {}
        self._entries: dict[Value, list[tuple[Value | None, _LoopPlace | None]]] = {}
        self._results: dict[tuple[Node, int], list[tuple[Value | None, _LoopPlace | None]]] = {}
        self._assumed: dict[Value, TensorNumbers] = {}
        self._assumed_dims: dict[Value, Dims] = {}
        self._nested = 0
        model = facts.model
        if model is not None and not isinstance(model.graph, Fragment):
            with suppress(Error):  # a part of the file cannot be read: its values stay unknown
                self._bind(dataflow_of(model))

    # questions

    def dims(self, value: Value) -> Dims:
        """Return the symbolic dimensions of a value, None if its rank is unknown."""
        answer: Dims = self._answer(Query(value, True))
        return answer

    def numbers(self, value: Value) -> TensorNumbers:
        """Return the facts about the elements of a value of integers or booleans."""
        answer: TensorNumbers = self._answer(Query(value, False))
        return answer

    def symbol(self, kind: SymbolKind, value: Value, axis: int = -1) -> Linear:
        """Return a symbol as an expression; its range by type or shape is added to the knowledge."""
        symbol = Symbol(kind, value, axis)
        if symbol not in self.knowledge.ranges:
            self.knowledge.ranges[symbol] = self._range(symbol, value)
        return of_symbol(symbol)

    def _range(self, symbol: Symbol, value: Value) -> SymbolRange:
        if symbol.kind in {SymbolKind.LEAST, SymbolKind.GREATEST}:
            low, high = type_range(self.facts.element_type(value))
            return SymbolRange(low, high)
        if symbol.kind is SymbolKind.SIZE:
            shape = self.facts.shape(value)
            dim: Dim = Bounds() if shape is None or symbol.axis >= len(shape) else shape[symbol.axis]
            high_dim = highest(dim)
            return SymbolRange(lowest(dim), LARGEST_SIZE if high_dim is None else high_dim)
        return SymbolRange(0, LARGEST_SIZE) if symbol.kind is SymbolKind.COUNT else SymbolRange()

    def _answer(self, query: Query) -> Any:
        """Run rules until a query is answered; a query that depends on itself gets an unknown answer."""
        cached = self._cached(query)
        if cached is not _MISSING:
            return cached
        stack: list[tuple[Query, Asking]] = [(query, self._rule(query))]
        opened = {query}
        answer: Any = None
        is_first = True
        while stack:
            current, rule = stack[-1]
            try:
                asked = next(rule) if is_first else rule.send(answer)
            except StopIteration as end:
                answer, is_first = self._store(current, end.value), False
                opened.discard(current)
                stack.pop()
                continue
            except (LookupError, TypeError, ValueError, ZeroDivisionError):  # attributes that make no sense
                answer, is_first = self._store(current, None), False
                opened.discard(current)
                stack.pop()
                continue
            answer, is_first = self._cached(asked), False
            if answer is _MISSING:
                if asked in opened or self.visited >= MOST_VALUES:
                    answer = self._unknown(asked)
                    continue
                self.visited += 1
                stack.append((asked, self._rule(asked)))
                opened.add(asked)
                is_first = True
        return answer

    def _cached(self, query: Query) -> Any:
        value = query.value
        if query.asks_dims:
            if value in self._assumed_dims:
                return self._assumed_dims[value]
            return self._dims.get(value, _MISSING)
        if value in self._assumed:
            return self._assumed[value]
        return self._numbers.get(value, _MISSING)

    def _store(self, query: Query, answer: Any) -> Any:
        if query.asks_dims:
            self._dims[query.value] = self._complete_dims(query.value, answer)
            return self._dims[query.value]
        numbers = answer if isinstance(answer, TensorNumbers) else self._unknown(query)
        if not any(case.lows or case.highs for case in numbers.cases) and numbers.unknown is None:
            numbers = replace(numbers, unknown=query.value)
        self._numbers[query.value] = numbers
        return numbers

    def _unknown(self, query: Query) -> Any:
        """Return the answer without a rule: what the file declares for the value."""
        value = query.value
        if query.asks_dims:
            return self._complete_dims(value, None)
        shape = self.facts.shape(value)
        low, high = type_range(self.facts.element_type(value))
        cases = between(int(low), int(high)) if low == 0 and high == 1 else UNKNOWN
        return TensorNumbers(cases, rank=None if shape is None else len(shape), unknown=value)

    def _complete_dims(self, value: Value, dims: Dims) -> Dims:
        """Return the dimensions, with sizes from the file where it has them, and symbols for unknown ones."""
        shape = self.facts.shape(value)
        if shape is None:
            return dims
        if dims is None or len(dims) != len(shape):
            return tuple(
                Linear(dim) if isinstance(dim, int) else self.size(value, axis)
                for axis, dim in enumerate(shape)
            )
        return tuple(
            Linear(dim) if isinstance(dim, int) else size for dim, size in zip(shape, dims, strict=True)
        )

    def size(self, value: Value, axis: int) -> Linear:
        """Return the size of a dimension as a symbol.

        With `merges_names`, dimensions of inputs with the same name share one symbol; `merged` records that.
        """
        expression = self.symbol(SymbolKind.SIZE, value, axis)
        if not self.merges_names or value not in self.inputs:
            return expression
        shape = self.facts.shape(value)
        dim = None if shape is None else shape[axis]
        name = dim.symbol if isinstance(dim, Bounds) else None
        if not name:
            return expression
        size = Symbol(SymbolKind.SIZE, value, axis)
        first = self._by_name.setdefault(name, size)
        if first != size:
            self.merged[size] = first
        return of_symbol(first)

    # rules of values that no node computes, and of nodes with bodies

    def _rule(self, query: Query) -> Asking:
        value = query.value
        if value in self._entries:
            return self._joined_sources(query, self._entries[value])
        if value.constant is not None and not value.is_input:
            return self._constant(query)
        node = value.producer
        if value in self.inputs or node is None or value.is_input or node.type == "Parameter":
            return self._input_facts(query)
        if (node, value.output) in self._results:
            return self._joined_sources(query, self._results[node, value.output])
        return self._computed(query, node)

    def _constant(self, query: Query) -> Asking:
        yield from ()
        if query.asks_dims:
            return None
        return numbers_of_array(self.facts, query.value)

    def _input_facts(self, query: Query) -> Asking:
        """Return the facts of a model input."""
        if query.asks_dims:
            return None
        dims = yield Query(query.value, True)
        return self.input_numbers(query.value, dims)

    def input_numbers(self, value: Value, dims: Dims) -> TensorNumbers:
        """Return the facts about the elements of an input: two symbols bound them, also in each column."""
        element_type = self.facts.element_type(value)
        if element_type is None or element_type.kind not in {"signed", "unsigned", "boolean"}:
            return TensorNumbers(rank=None if dims is None else len(dims), unknown=value)
        rank = None if dims is None else len(dims)
        single = dims is not None and all(dim == Linear(1) for dim in dims)

        def elements(column: int) -> tuple[CaseBounds, ...]:
            if element_type is not None and element_type.kind == "boolean":
                return between(0, 1)
            low = self.symbol(SymbolKind.LEAST, value, column)
            if single:
                return exactly(low)
            high = self.symbol(SymbolKind.GREATEST, value, column)
            self.knowledge.add(high.minus(low))
            return between(low, high, is_exact=True)

        columns = None
        if dims and dims[-1].is_constant and 1 < dims[-1].constant <= MOST_COLUMNS:
            columns = tuple([elements(column) for column in range(dims[-1].constant)])
            whole = elements(-1)
            for (case,) in columns if element_type.kind != "boolean" else ():
                self.knowledge.add(case.lows[0].minus(whole[0].lows[0]))
                self.knowledge.add(whole[0].highs[0].minus(case.highs[0]))
        return TensorNumbers(
            elements(-1), columns, -1 if rank is None else rank - 1, rank,
            None if dims is None else frozenset(varying(dims)),
            frozenset(range(rank or 0)), rank is not None, origin=value.name,
            unknown=None if value in self.inputs else value,
            conditions=frozenset() if single or value in self.given_distinct
            else frozenset([f"{quoted(self.name(value))} distinct"]),
        )  # fmt: skip

    def give_distinct(self, value: Value, *, rows: bool, axis: int | None) -> None:
        """Assume that all elements of an input are distinct, or its rows, or its elements along an axis."""
        if not rows and axis is None:
            self.given_distinct.add(value)
            self._numbers.pop(value, None)
            return
        facts_before = self.numbers(value)
        last = (facts_before.rank or 1) - 1
        self._numbers[value] = replace(
            facts_before, is_unique=False, conditions=frozenset(),
            distinct=frozenset() if axis is None else frozenset([axis]),
            tuples_axis=last if rows else None,
        )  # fmt: skip

    def name(self, value: Value) -> str:
        """Return the name of a model input; for a value that an input is cast to, the name of that input."""
        declared = self.inputs.get(self.cast_inputs.get(value, value))
        if declared is None:
            return value.name
        named = [name for name in declared.names if not name.isdigit()]
        return (named or declared.names)[0]

    def _computed(self, query: Query, node: Node) -> Asking:
        """Return the facts of a node's output by the rule of its operator."""
        value = query.value
        if not query.asks_dims:
            array = self.facts.array(value)
            if array is not None:
                yield from ()
                return numbers_of_array(self.facts, value)
        lookup = find_scatter(node.domain, node.type, node.opset)
        if lookup is not None:
            return (yield from scatter_facts(self, query, node, lookup))
        op = find(node.domain, node.type)
        if op is None or node.bodies:
            return None
        case = NodeCase(self, node, op, value.output)
        if query.asks_dims:
            shape = self.facts.shape(value)
            if shape is not None and all(isinstance(dim, int) for dim in shape):
                return None
            return (yield from dims_of_output(case))
        return (yield from numbers_of_output(case))

    def _joined_sources(
        self, query: Query, sources: Sequence[tuple[Value | None, _LoopPlace | None]]
    ) -> Asking:
        """Return the facts of a body input, or of an output of a node with bodies, from all its sources."""
        value = query.value
        answers = []
        for source, place in sources:
            if place is not None:
                answer = yield from self._loop_value(query, source, place)
            elif source is None:
                answer = None
            else:
                answer = yield Query(source, query.asks_dims)
            answers.append(answer)
        if query.asks_dims:
            shapes = [answer for answer in answers if answer is not None]
            if len(shapes) < len(answers) or len({len(dims) for dims in shapes}) != 1:
                return None
            return tuple(
                column[0] if len({*column}) == 1 else self.symbol(SymbolKind.SIZE, value, axis)
                for axis, column in enumerate(zip(*shapes, strict=True))
            )
        if any(not isinstance(answer, TensorNumbers) for answer in answers):
            return None
        if len(answers) == 1:
            return answers[0]
        unknown = next((answer.unknown for answer in answers if answer.unknown is not None), None)
        return TensorNumbers(union([answer.cases for answer in answers]), unknown=unknown)

    # loops

    def _loop_value(self, query: Query, source: Value | None, place: _LoopPlace) -> Asking:
        """Return the facts of an input of a loop body, or of an output of a loop, from its source."""
        node, loop, number = place
        is_output = query.value.producer is node and query.value in node.outputs
        if is_output:
            return (yield from self._loop_output(query, source, place))
        inflow = loop.inputs[number]
        if inflow.source is BodySource.ITERATION:
            if query.asks_dims:
                return ()
            trips = yield from self.trips(node, loop)
            high = None if trips is None else trips.minus(1)
            return TensorNumbers(between(0, high), rank=0, origin=f"iterations of {node.name}")
        if inflow.source is BodySource.CONDITION or source is None:
            return () if query.asks_dims else TensorNumbers(between(0, 1), rank=0)
        answer = yield Query(source, query.asks_dims)
        if inflow.source is BodySource.WHOLE or inflow.source is BodySource.CARRIED:
            if inflow.source is BodySource.WHOLE or inflow.successor is None:
                return answer
            return self._carried(query, answer, place)
        cut = inflow.slice
        if query.asks_dims:
            if answer is None or cut is None or not -len(answer) <= cut.axis < len(answer):
                return None
            axis = cut.axis % len(answer)
            part = (Linear(cut.part),) if cut.keeps_axis else ()
            return (*answer[:axis], *part, *answer[axis + 1 :])
        return answer.bounds_only()

    def _loop_output(self, query: Query, source: Value | None, place: _LoopPlace) -> Asking:
        """Return the facts of an output of a loop.

        It is the value of the last iteration, or the concatenation of the values of all iterations.
        """
        node, loop, number = place
        outflow = loop.outputs[number]
        inner = None if source is None else (yield Query(source, query.asks_dims))
        starts = []
        if outflow.slice is None:
            for inflow in loop.inputs:  # without an iteration it is the initial value
                outer = None if inflow.outer is None else node.inputs[inflow.outer].value
                if inflow.successor == outflow.inner and outer is not None:
                    starts.append((yield Query(outer, query.asks_dims)))
        if query.asks_dims:
            if inner is None:
                return None
            if outflow.slice is not None:
                rank = len(inner) + (not outflow.slice.keeps_axis)
                axis = outflow.slice.axis % rank
                size = self.symbol(SymbolKind.SIZE, query.value, axis)
                return (*inner[:axis], size, *inner[axis + outflow.slice.keeps_axis :])
            if any(start is None or len(start) != len(inner) for start in starts):
                return None
            return tuple(
                dim if all(start[axis] == dim for start in starts)
                else self.symbol(SymbolKind.SIZE, query.value, axis)
                for axis, dim in enumerate(inner)
            )  # fmt: skip
        if not isinstance(inner, TensorNumbers):
            return None
        unknown = inner.unknown or next((start.unknown for start in starts if start.unknown), None)
        # numbers of one iteration are not linear in what the next one counts
        cases = union([self._outside_of_body(inner.cases, loop), *[start.cases for start in starts]])
        return TensorNumbers(cases, unknown=unknown)

    def _outside_of_body(self, cases: tuple[CaseBounds, ...], loop: Repeat) -> tuple[CaseBounds, ...]:
        """Return bounds from inside a loop body for use outside; unknown if they depend on the iteration."""
        inside = {loop.body.value(input.key) for input in loop.body.inputs}
        for case in cases:
            for bound in (*case.lows, *case.highs, *case.requires):
                if any(symbol.value in inside for symbol in bound.symbols()):
                    return UNKNOWN
        return cases

    def trips(self, node: Node, loop: Repeat) -> "Generator[Query, Any, Linear | None]":
        """Return the maximum number of iterations of a loop, None if it is unknown."""
        limits: list[Linear] = []
        if loop.trips is not None:
            value = node.inputs[loop.trips].value if loop.trips < len(node.inputs) else None
            numbers = (yield Query(value, False)) if value is not None else None
            if isinstance(numbers, TensorNumbers) and len(numbers.cases) == 1 and numbers.cases[0].highs:
                low = self.knowledge.least(numbers.cases[0].highs[0])
                if node.domain != OPENVINO or low >= 0:  # -1 means unlimited there
                    limits.append(numbers.cases[0].highs[0])
        for inflow in loop.inputs:
            cut = inflow.slice
            value = None if inflow.outer is None or cut is None else node.inputs[inflow.outer].value
            if value is None or cut is None:
                continue
            dims = yield Query(value, True)
            if dims is not None and -len(dims) <= cut.axis < len(dims) and cut.part == 1:
                size = dims[cut.axis]
                if {cut.start, cut.end} == {0, -1}:
                    limits.append(size)
        constants = [limit for limit in limits if limit.is_constant]
        return next(iter(constants or limits), None)

    def _carried(self, query: Query, first: Any, place: _LoopPlace) -> Any:
        """Return the facts of a carried value that hold in every iteration.

        A value that each iteration changes by a constant is a counter:

            i = start; Loop of n: i = i + 2         start <= i <= start + 2 * (n - 1)

        Otherwise the bounds of the first value are assumed; bounds that the body does not prove for the next
        value are dropped.
        """
        node, loop, number = place
        inflow, value = loop.inputs[number], query.value
        assert inflow.successor is not None
        successor = loop.body.value(loop.body.outputs[inflow.successor].key)
        if successor is None or self._nested >= _MOST_NESTED:
            return self._unknown(query)
        if query.asks_dims:
            return self._carried_dims(query, first, successor)
        counted = self._counted(value, successor, first, node, loop)
        if counted is not None:
            return counted
        start = first if isinstance(first, TensorNumbers) else TensorNumbers()
        cases = start.cases
        for _ in range(3):
            assumed = TensorNumbers(cases, rank=start.rank, unknown=start.unknown)
            inside = self._with_assumptions({value: assumed})
            after = inside.numbers(successor)
            self.visited = inside.visited
            kept = _inductive(cases, after.cases, inside.knowledge)
            if kept == cases:
                return assumed
            cases = kept
            if not any(case.lows or case.highs for case in cases):
                break
        return self._unknown(query)

    def _carried_dims(self, query: Query, first: Dims, successor: Value) -> Dims:
        """Return the dimensions of a carried value; new symbols for those that an iteration may change."""
        if first is None:
            return None
        dims = first
        for _ in range(2):
            inside = self._with_assumptions({})
            inside._assumed_dims = {**self._assumed_dims, query.value: dims}
            after = inside.dims(successor)
            self.visited = inside.visited
            if after is None or len(after) != len(dims):
                return self._complete_dims(query.value, None)
            same = tuple(
                dim if dim == later else self.symbol(SymbolKind.SIZE, query.value, axis)
                for axis, (dim, later) in enumerate(zip(dims, after, strict=True))
            )
            if same == dims:
                return dims
            dims = same
        return dims

    def _counted(
        self, value: Value, successor: Value, first: Any, node: Node, loop: Repeat
    ) -> TensorNumbers | None:
        """Return the facts of a carried value that each iteration changes by a constant; None for others."""
        start = first.number if isinstance(first, TensorNumbers) else None
        if start is None:
            return None
        marker = Symbol(SymbolKind.OTHER, value)
        inside = self._with_assumptions({value: TensorNumbers(exactly(of_symbol(marker)), rank=first.rank)})
        after = inside.numbers(successor).number
        trips = inside._answer_all(self.trips(node, loop))
        self.visited = inside.visited
        if after is None:
            return None
        step = after.minus(of_symbol(marker))
        if not step.is_constant:
            return None
        if step.constant == 0:
            return TensorNumbers(exactly(start), rank=first.rank)
        last = None if trips is None else start.plus(trips.minus(1), step.constant)
        ends = (start, last) if step.constant > 0 else (last, start)
        return TensorNumbers(between(*ends), rank=first.rank, origin=f"iterations of {node.name}")

    def _answer_all(self, asking: Asking) -> Any:
        """Run a generator of queries to its end; return its result."""
        answer: Any = None
        try:
            query = next(asking)
            while True:
                answer = self._answer(query)
                query = asking.send(answer)
        except StopIteration as end:
            return end.value

    def _with_assumptions(self, assumed: Mapping[Value, TensorNumbers]) -> "Walker":
        """Return a walker of the same model with assumed facts for some values, and an empty cache."""
        walker = Walker.__new__(Walker)
        walker.facts, walker.knowledge = self.facts, self.knowledge
        walker.inputs, walker.cast_inputs = self.inputs, self.cast_inputs
        walker.given_distinct = self.given_distinct
        walker.merges_names, walker.merged = self.merges_names, self.merged
        walker._by_name = self._by_name
        walker._entries, walker._results = self._entries, self._results
        walker._dims, walker._numbers = {}, {}
        walker._assumed = {**self._assumed, **assumed}
        walker._assumed_dims = self._assumed_dims
        walker._nested, walker.visited = self._nested + 1, self.visited
        return walker

    # bindings

    def _bind(self, main: Dataflow) -> None:
        """Record the model inputs, and the sources of body inputs and of outputs of nodes with bodies."""
        for input in main.inputs:
            value = main.value(input.key)
            if value is not None:
                self.inputs[value] = input
        model = self.facts.model
        assert model is not None
        if not model.functions and not any(True for _ in model.graph.walk(WITH_BODIES)):
            return
        pending = [main]
        while pending:
            flow = pending.pop()
            types = None if model.functions else WITH_BODIES
            for node in flow.graph.walk(types):
                if node.graph is not flow.graph:
                    continue
                try:
                    nested = flow.nested(node)
                except UnreadableModel:
                    continue
                if isinstance(nested, Repeat):
                    self._bind_loop(node, nested)
                    pending.append(nested.body)
                    continue
                calls: list[Call] = []
                if isinstance(nested, Choice):
                    calls = [*nested.branches.values()]
                elif isinstance(nested, Call):
                    calls = [nested]
                for call in calls:
                    self._bind_call(node, call)
                    pending.append(call.body)

    def _bind_call(self, node: Node, call: Call) -> None:
        for input, number in zip(call.body.inputs, call.inputs, strict=True):
            inner = call.body.value(input.key)
            if inner is not None:
                outer = None if number is None else node.inputs[number].value
                self._entries.setdefault(inner, []).append((outer, None))
        for place, inner_number in enumerate(call.outputs):
            result = call.body.value(call.body.outputs[inner_number].key)
            self._results.setdefault((node, place), []).append((result, None))

    def _bind_loop(self, node: Node, loop: Repeat) -> None:
        for number, (input, inflow) in enumerate(zip(loop.body.inputs, loop.inputs, strict=True)):
            inner = loop.body.value(input.key)
            if inner is not None:
                self._entries[inner] = [(_outer(node, inflow), _LoopPlace(node, loop, number))]
        for place, outflow in enumerate(loop.outputs):
            result = loop.body.value(loop.body.outputs[outflow.inner].key)
            self._results[node, place] = [(result, _LoopPlace(node, loop, place))]


_MISSING = object()


def _outer(node: Node, inflow: BodyInput) -> Value | None:
    return (
        None if inflow.outer is None or inflow.outer >= len(node.inputs) else node.inputs[inflow.outer].value
    )


def _inductive(
    before: Sequence[CaseBounds], after: Sequence[CaseBounds], knowledge: Knowledge
) -> tuple[CaseBounds, ...]:
    """Return the bounds of `before` that also hold for `after`, as one case."""
    lows = [
        low
        for low in before[0].lows
        if all(any(knowledge.proves(end.minus(low)) for end in case.lows) for case in (*before, *after))
    ]
    highs = [
        high
        for high in before[0].highs
        if all(any(knowledge.proves(high.minus(end)) for end in case.highs) for case in (*before, *after))
    ]
    if any(case.may_wrap and (not case.lows or not case.highs) for case in after):
        return UNKNOWN
    if len(before) == 1 and len(lows) == len(before[0].lows) and len(highs) == len(before[0].highs):
        return tuple(before)
    return (CaseBounds(tuple(lows), tuple(highs)),)


def numbers_of_array(facts: Facts, value: Value) -> TensorNumbers | None:
    """Return the facts about the elements of a constant integer tensor; None for other tensors."""
    import numpy

    array = facts.whole_numbers(value)
    if array is None:
        floats = facts.array(value)
        if floats is None or floats.dtype.kind != "f" or floats.size > _MOST_ELEMENTS:
            return None
        wide = floats.astype(numpy.float64)
        if not bool(numpy.isfinite(wide).all()) or bool((wide != numpy.floor(wide)).any()):
            return None
        if floats.size and float(numpy.abs(wide).max()) > 2**53:
            return None
        array = wide.astype(numpy.int64)
    if array.dtype.kind == "b":
        array = array.astype(numpy.int64)
    if not array.size:
        return TensorNumbers(exactly(0), rank=array.ndim, varying=frozenset(), origin=value.name)

    def cases(part: Any) -> tuple[CaseBounds, ...]:
        return between(int(part.min()), int(part.max()), is_exact=True)

    rank = array.ndim
    columns = None
    if rank and array.shape[-1] <= MOST_COLUMNS:
        columns = tuple([cases(array[..., column]) for column in range(array.shape[-1])])
    is_small = array.size <= _MOST_ELEMENTS
    axes = range(rank) if is_small else ()
    changing = frozenset(
        [axis for axis in axes if bool((numpy.take(array, [0], axis) != array).any())]
        if is_small else range(rank)
    )  # fmt: skip
    distinct = []
    for axis in axes:
        ordered = numpy.sort(array, axis)
        if not bool((numpy.diff(ordered, axis=axis) == 0).any()):
            distinct.append(axis)
    is_unique = is_small and numpy.unique(array).size == array.size
    tuples_axis = None
    if is_small and rank >= 2:
        rows = array.reshape(-1, array.shape[-1])
        tuples_axis = rank - 1 if numpy.unique(rows, axis=0).shape[0] == rows.shape[0] else None
    return TensorNumbers(
        cases(array), columns, rank - 1, rank, changing, frozenset(distinct), is_unique, tuples_axis,
        origin="constant",
    )  # fmt: skip
