"""What has to be done to compute a model, in which order, and when a value is no longer needed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ir_scatter.core.constants import Constant
from ir_scatter.core.dataflow import Choice, GraphInput, GraphOutput, Key, Link, Nested, Wiring
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import UnknownOperator, UnreadableModel
from ir_scatter.core.model import ONNX, OPENVINO, Model, Node
from ir_scatter.ops.general import GeneralOp, find_computed
from ir_scatter.ops.lookup import Lookup, find


@dataclass(frozen=True, slots=True)
class UnknownOp:
    """An operator that NumPy does not compute.

    Attributes:
        name: its type, as written.
    """

    name: str


Work: TypeAlias = GeneralOp | Lookup | Nested | UnknownOp
"""A general operator with a kernel, the row of a scatter operator, the graphs inside a node, or neither."""

_Opened: TypeAlias = tuple[Link, tuple[Key | None, ...], Work]
MOST_CALLS = 20_000
"""Functions that call functions twice each soon stand for more."""

_NAMED = 3
"""Unknown operators that a message names."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One node, and what is done with it.

    Attributes:
        node: the node.
        inputs: in the order of the document, then what its bodies take from outside.
        outputs: in the order of the document.
        work: a general operator with a kernel, the row of a scatter operator, or the graphs inside the node.
        done: the values that no later step needs.
    """

    node: Node
    inputs: tuple[Key | None, ...]
    outputs: tuple[Key | None, ...]
    work: Work
    done: tuple[Key, ...]


@dataclass(slots=True, eq=False)
class Plan:
    """How to compute one graph.

    Attributes:
        inputs: of the graph.
        captured: the values that come from outside.
        outputs: of the graph.
        constants: those that are needed, by key.
        steps: producers first, only what the outputs need.
        is_body: whether it may be computed more than once.
    """

    inputs: tuple[GraphInput, ...]
    captured: tuple[Key, ...]
    outputs: tuple[GraphOutput, ...]
    is_body: bool
    constants: dict[Key, Constant] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()


Plans: TypeAlias = Mapping[Wiring, Plan]


def wire(model: Model) -> Wiring:
    """Return how the values of a model flow.

    Raises:
        UnknownOperator: functions that call functions stand for more graphs than can be computed.
    """
    from ir_scatter.formats import IR

    if model.format == IR:
        from ir_scatter.formats.openvino import dataflow as openvino_wiring

        return openvino_wiring.wire(model)
    from ir_scatter.formats.onnx import dataflow as onnx_wiring

    count = onnx_wiring.count_calls(model)
    if count > MOST_CALLS:
        message = f"functions are called {count} times, calls in calls counted, expected at most {MOST_CALLS}"
        raise UnknownOperator(f"NumPy does not compute it: {message}", Location(model.path))
    return onnx_wiring.wire(model)


def make_plans(main: Wiring, path: str, *, is_sketch: bool = False) -> Plans:
    """Plan the main graph and every graph inside it.

    Args:
        main: the main graph.
        path: the file, as messages name it.
        is_sketch: whether nodes of no known type may stay, and what nothing produces counts as left
            out: such a plan is not computed as it stands.

    Raises:
        UnknownOperator: some node that the outputs need is of no known type.
    """
    plans: dict[Wiring, Plan] = {}
    unknown: list[Node] = []
    pending = [main]
    while pending:
        wiring = pending.pop()
        plan = Plan(wiring.inputs, wiring.captured, wiring.outputs, is_body=wiring is not main)
        planner = (_Sketcher if is_sketch else _Planner)(wiring, plan.constants, path)
        plan.steps = tuple(planner.steps())
        unknown += planner.unknown
        plans[wiring] = plan
        pending += reversed([body for step in plan.steps for body in bodies_of(step.work)])
    if unknown and not is_sketch:
        raise _unknown_operator(unknown)
    return plans


def bodies_of(work: Work) -> tuple[Wiring, ...]:
    """Return the graphs inside a node."""
    if isinstance(work, Choice):
        return tuple(call.body for call in work.branches.values())
    body = getattr(work, "body", None)
    return () if body is None else (body,)


def show_place(location: Location) -> str:
    """Print where a node stands: `branch:then_body/add (model.xml:12)`."""
    line = "" if location.line is None else f":{location.line}"
    return f"{location.scope} ({location.path}{line})"


def _unknown_operator(nodes: list[Node]) -> UnknownOperator:
    """Name the first node of each type."""
    first: dict[str, Node] = {}
    for node in nodes:
        prefix = "" if node.domain in {OPENVINO, ONNX} else f"{node.domain}::"
        first.setdefault(prefix + node.type, node)
    named = [f"{type} at {show_place(node.location)}" for type, node in list(first.items())[:_NAMED]]
    more = f" and {len(first) - _NAMED} other types" if len(first) > _NAMED else ""
    return UnknownOperator(f"NumPy does not compute {', '.join(named)}{more}", nodes[0].location)


class _Planner:
    """Plans one graph, from its outputs back to its inputs; without recursion, as chains are long."""

    def __init__(self, wiring: Wiring, constants: dict[Key, Constant], path: str) -> None:
        self.wiring = wiring
        self.path = path
        self.constants = constants
        self.unknown: list[Node] = []
        self._known: set[Key] = {*(input.key for input in wiring.inputs), *wiring.captured}
        self._lacking: set[Key] = set()

    def steps(self) -> Iterator[Step]:
        """Yield the steps with the values that each of them is the last to need."""
        ordered = list(self._ordered())
        last: dict[Key, int] = {}
        for number, (link, inputs, _) in enumerate(ordered):
            for key in (*link.outputs, *inputs):
                if key is not None and key not in self.constants:
                    last[key] = number
        kept = {output.key for output in self.wiring.outputs}
        done: list[list[Key]] = [[] for _ in ordered]
        for key, number in last.items():
            if key not in kept:
                done[number].append(key)
        for (link, inputs, work), finished in zip(ordered, done, strict=True):
            found = tuple(None if key in self._lacking else key for key in inputs)
            yield Step(link.node, found, link.outputs, work, tuple(finished))

    def _ordered(self) -> Iterator[_Opened]:
        """Yield the nodes that the outputs need, producers first."""
        pending = [output.key for output in reversed(self.wiring.outputs)]
        opened: dict[Node, _Opened] = {}
        while pending:
            key = pending[-1]
            if self._is_known(key):
                pending.pop()
                continue
            link = self.wiring.link(key)
            if link is None:
                self._lack([key], f"nothing produces {key!r}")
                continue
            is_new = link.node not in opened
            if is_new:
                opened[link.node] = self._open(link)
            found = opened[link.node]
            missing = [source for source in found[1] if source is not None and not self._is_known(source)]
            if missing and not is_new:
                self._lack(missing, f"{link.node.scope} waits for itself or for what nothing produces")
            elif missing:
                pending += reversed(missing)
                continue
            pending.pop()
            self._known.update(output for output in link.outputs if output is not None)
            yield found

    def _is_known(self, key: Key) -> bool:
        if key in self._known:
            return True
        constant = self._constant(key)
        if constant is None:
            return key in self._known
        self.constants[key] = constant
        self._known.add(key)
        return True

    def _constant(self, key: Key) -> Constant | None:
        return self.wiring.constant(key)

    def _lack(self, keys: Sequence[Key], message: str) -> None:
        """Refuse a graph of which some values are not there."""
        raise UnreadableModel("unknown-value", message, Location(self.path))

    def _open(self, link: Link) -> _Opened:
        work = self._work(link.node)
        captured = dict.fromkeys(key for body in bodies_of(work) for key in body.captured)
        return link, (*link.inputs, *captured), work

    def _work(self, node: Node) -> Work:
        """Return what a node is; a node of no known type is remembered."""
        found: Work | None = self.wiring.nested(node)
        lookup = None if found else find(node.domain, node.type, node.opset)
        if found is None and lookup is not None and lookup.spec is not None:
            found = lookup
        if found is None:
            found = find_computed(node.domain, node.type)
        if found is None:
            self.unknown.append(node)
            return UnknownOp(node.type)
        return found


class _Sketcher(_Planner):
    """Plans a graph as far as it can be: whatever is not there counts as left out."""

    def _constant(self, key: Key) -> Constant | None:
        try:
            return self.wiring.constant(key)
        except UnreadableModel as error:
            self._lack([key], str(error))
            return None

    def _lack(self, keys: Sequence[Key], message: str) -> None:
        self._lacking.update(keys)
        self._known.update(keys)

    def _work(self, node: Node) -> Work:
        """Return what a node is; a scatter operator that its opset lacks is the oldest of its name."""
        try:
            found = super()._work(node)
        except UnreadableModel:
            return UnknownOp(node.type)
        lookup = find(node.domain, node.type, node.opset) if isinstance(found, UnknownOp) else None
        return found if lookup is None else replace(lookup, spec=lookup.family[0])
