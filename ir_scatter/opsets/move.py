"""Moving a model to another opset: what stands in the way, and the changes to be made."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from onnx import ModelProto

from ir_scatter.errors import UsageError
from ir_scatter.formats.onnx_graph import OnnxGraph
from ir_scatter.formats.onnx_index import FunctionKey, GraphIndex, function_key, index_graph
from ir_scatter.formats.onnx_types import text
from ir_scatter.model import Model, Node
from ir_scatter.ops.onnx_changes import FIRST_OPSET
from ir_scatter.opsets.apply import GraphPlan, Replacement, apply_graphs, move_imports, node_key
from ir_scatter.opsets.checks import check_end, check_start, is_plain
from ir_scatter.opsets.draft import Draft, Refused
from ir_scatter.opsets.lowering import lower_node
from ir_scatter.opsets.passage import NEWEST_OPSET, Passage, passage
from ir_scatter.opsets.place import Place, bodies_of, operators, places
from ir_scatter.opsets.raising import raise_node


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A node that cannot mean the same at the new opset.

    Attributes:
        scope: the path to the node, "If_3:then_branch/Clip_1"; "" for the model itself.
        type: the operator; "" for the model itself.
        reason: why, one sentence without its full stop.
    """

    scope: str
    type: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """A model's way to another opset.

    Attributes:
        opset: where it goes.
        obstacles: what stands in the way; the move may be applied only if there is nothing.
        graph: the changes to the main graph.
        functions: the changes to the functions.
    """

    opset: int
    obstacles: tuple[Obstacle, ...]
    graph: GraphPlan
    functions: dict[FunctionKey, GraphPlan]

    @property
    def changed(self) -> int:
        """Return the number of nodes that become other nodes."""
        return sum(plan.count() for plan in (self.graph, *self.functions.values()))

    def apply(self, proto: ModelProto) -> None:
        """Change the model: the opsets that it and its functions import, and the nodes concerned.

        Nodes are found by what they compute, so that others may have been replaced since the plan
        was made. New nodes must be those of the new opset. The version of the file format stays:
        neither onnx.checker nor onnxruntime nor OpenVINO ties it to the opset.

        Args:
            proto: the model that was planned for, or a copy.

        Raises:
            UsageError: something stands in the way.
        """
        if self.obstacles:
            first = self.obstacles[0]
            raise UsageError(f"the model cannot move to opset {self.opset}: {first.scope}: {first.reason}")
        apply_graphs(proto, self.graph, self.functions)
        move_imports(proto, self.opset)


def plan_move(model: Model, opset: int, *, ignore: Iterable[Node] = ()) -> Move:
    """Find out what must change so that a model means the same at another opset.

    Args:
        model: an ONNX model, as it was read.
        opset: the version of the default domain that is wanted.
        ignore: nodes that are not looked at: they are replaced by nodes of the new opset before the
            move is applied. A node of a function stands for it in all uses of the function.

    Raises:
        UsageError: the opset is not one that the tables and the installed onnx know.
    """
    if not FIRST_OPSET <= opset <= NEWEST_OPSET:
        raise UsageError(f"opset {opset} is not known, expected {FIRST_OPSET} to {NEWEST_OPSET}")
    proto: ModelProto = model.source
    planner = _Planner(opset, frozenset([id(_onnx(node.graph).index.nodes[node.handle]) for node in ignore]))
    graph = planner.graph(_onnx(model.graph), ())
    keys = list(dict.fromkeys(map(function_key, proto.functions)))
    if len(keys) < len(proto.functions):
        planner.obstacles.append(Obstacle("", "", "two of its functions have one name"))
    functions = {}
    for key, function in zip(keys, model.functions, strict=True):
        functions[key] = planner.graph(_onnx(function.definition), tuple(map(_onnx, function.instances)))
    for info in proto.training_info:
        for part in (info.initialization, info.algorithm):
            planner.training(index_graph(part, keys), _opset(_onnx(model.graph)))
    return Move(opset, tuple(planner.obstacles), graph, functions)


def lowest_opset(model: Model, at_least: int, *, ignore: Collection[Node] = ()) -> int | None:
    """Return the lowest opset that a model can move to, None if there is none.

    Args:
        model: an ONNX model, as it was read.
        at_least: the lowest that will do; a model that is there or above stays where it is, and a
            model is never lowered.
        ignore: as `plan_move` takes it.
    """
    graphs = [_onnx(model.graph), *(_onnx(function.definition) for function in model.functions)]
    opsets = [opset for opset in map(_opset, graphs) if opset is not None]
    if not opsets or min(opsets) >= at_least:
        return _opset(graphs[0]) or at_least
    first = max(at_least, *opsets, FIRST_OPSET)
    candidates = range(first, NEWEST_OPSET + 1)
    return next((opset for opset in candidates if not plan_move(model, opset, ignore=ignore).obstacles), None)


class _Planner:
    """Collects changes and obstacles."""

    def __init__(self, target: int, passed: frozenset[int]) -> None:
        self.target = target
        self.passed = passed
        self.obstacles: list[Obstacle] = []

    def graph(self, definition: OnnxGraph, instances: tuple[OnnxGraph, ...]) -> GraphPlan:
        """Plan the main graph or a function, and the bodies in it."""
        opset = _opset(definition)
        graphs = instances or (definition,)
        if opset == self.target or not _has_operators(definition.index):
            return GraphPlan()
        if opset is None or not 1 <= opset <= NEWEST_OPSET:
            what = "does not say its opset" if opset is None else f"has opset {opset}"
            self._refuse(definition, f"{what}, expected one of {FIRST_OPSET} to {NEWEST_OPSET}")
            return GraphPlan()
        return self._graph(graphs, opset)

    def training(self, index: GraphIndex, opset: int | None) -> None:
        """Refuse graphs for training that would have to change."""
        for graph in index.all_graphs():
            for type in graph.by_type:
                way = passage(text(type), opset or self.target, self.target)
                if not way.is_same and not way.is_open:
                    reason = (
                        f"training_info is left as it is, and holds {text(type)}, which would have to change"
                    )
                    self.obstacles.append(Obstacle("", text(type), reason))

    def _refuse(self, definition: OnnxGraph, reason: str) -> None:
        self.obstacles.append(Obstacle(definition.scope.rstrip("/"), "", reason))

    def _graph(self, graphs: tuple[OnnxGraph, ...], opset: int) -> GraphPlan:
        plan = GraphPlan()
        index, at = graphs[0].index, places(graphs)
        for type, positions in operators(graphs[0]):
            way = passage(type, opset, self.target)
            if way.is_same or way.is_free:
                continue
            for position in positions:
                if id(index.nodes[position]) in self.passed:
                    continue
                replacement = self._node(at(position), way)
                if replacement is not None:
                    plan.add(index.nodes[position], replacement)
        for position in index.bodies:
            for name, bodies in bodies_of(at(position)).items():
                plan.add_body(node_key(index.nodes[position]), name, self._graph(bodies, opset))
        return plan

    def _node(self, place: Place, way: Passage) -> Replacement | None:
        """Return what takes the place of a node, None if it stays or cannot go."""
        try:
            return self._moved(place, way)
        except Refused as refusal:
            self.obstacles.append(Obstacle(place.scope, text(place.proto.op_type), str(refusal)))
            return None

    def _moved(self, place: Place, way: Passage) -> Replacement | None:
        if way.problem:
            raise Refused(way.problem)
        if way.is_open and is_plain(place.proto, way):
            return None
        check_start(place.proto, way)
        draft = Draft(place, self.target)
        for step in way.steps:
            (raise_node if step.is_up else lower_node)(draft, step)
        check_end(draft, way)
        return Replacement.of(draft) if draft.is_changed else None


def _onnx(graph: object) -> OnnxGraph:
    assert isinstance(graph, OnnxGraph), "only an ONNX model has an opset to move to"
    return graph


def _opset(graph: OnnxGraph) -> int | None:
    return graph.shared.opsets.get("")


def _has_operators(index: GraphIndex) -> bool:
    return any(graph.by_type for graph in index.all_graphs())
