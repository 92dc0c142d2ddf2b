"""The way of a model to another opset: which versions lie between, and what stands in the way."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from typing import NamedTuple

import onnx
from onnx import ModelProto, NodeProto
from onnx.defs import OpSchema

from ir_scatter.convert.opset.adapters import ADAPTERS
from ir_scatter.convert.opset.apply import AdaptedNode, CannotAdapt, GraphChanges, Move, Obstacle, node_key
from ir_scatter.core.errors import UsageError
from ir_scatter.core.model import Model, Node
from ir_scatter.core.shapes import counted
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.formats.onnx.index import FunctionKey, GraphIndex, function_key, index_graph, text
from ir_scatter.ops.onnx_versions import FIRST_OPSET, INCOMPATIBLE, NO_WAY_BACK, RENAMED, WIDENED

NEWEST_OPSET: int = onnx.defs.onnx_opset_version()
"""The newest opset that the installed onnx knows."""


class Step(NamedTuple):
    """Two versions of an operator, one after the other."""

    older: OpSchema
    newer: OpSchema

    @property
    def key(self) -> tuple[str, int]:
        """What the tables call it."""
        return self.older.name, self.newer.since_version

    @property
    def only_widens(self) -> bool:
        """Whether every node keeps its meaning in the newer version."""
        type, version = self.key
        return type in WIDENED.get(version, ())

    @property
    def is_known(self) -> bool:
        """Whether the two versions were compared."""
        has_adapters = any((*self.key, up) in ADAPTERS for up in (True, False))
        return self.only_widens or has_adapters or self.key in INCOMPATIBLE or self.key in NO_WAY_BACK


@dataclass(frozen=True, eq=False)
class VersionPath:
    """The versions of an operator between two opsets.

    Attributes:
        start: the schema where it begins.
        end: the schema where it ends.
        steps: the versions between; none if both opsets hold the same version.
        is_up: whether it goes to newer versions.
    """

    start: OpSchema
    end: OpSchema
    steps: tuple[Step, ...]
    is_up: bool

    @cached_property
    def new_attributes(self) -> frozenset[str]:
        """The attributes that the version at the start does not know, and another one does."""
        known = frozenset().union(*(schema.attributes for step in self.steps for schema in step))
        return known - self.start.attributes.keys()

    @cached_property
    def lost_attributes(self) -> frozenset[str]:
        """The attributes that the version at the start knows, and the one at the end does not."""
        return frozenset(self.start.attributes) - self.end.attributes.keys()

    @cached_property
    def is_open(self) -> bool:
        """Whether every node can go as it is, if it says nothing that its own version does not know."""
        start, end = self.start, self.end
        return (
            end.min_input <= start.min_input
            and end.max_input >= start.max_input
            and end.min_output <= start.min_output
            and end.max_output >= start.max_output
            and not self.lost_attributes
            and all(step.only_widens for step in self.steps)
            and _accepts_all(start, end)
        )

    @cached_property
    def is_free(self) -> bool:
        """Whether every node can go as it is, whatever it says."""
        says_the_same = not self.new_attributes and self.start.max_input == self.end.max_input
        return not self.steps or (self.is_open and says_the_same)

    def excess(self, node: NodeProto) -> str:
        """Say what a node has that its own version does not know, and that would get a meaning, else ""."""
        here, most = _show(self.start), self.start.max_input
        for attribute in node.attribute:
            if attribute.name in self.new_attributes:
                return f"its attribute {attribute.name} means nothing in {here}, and something else there"
        if len(node.input) > most and any(node.input[most:]):
            return f"it has {counted(len(node.input), 'input')}, expected at most {most} in {here}"
        return ""

    def keeps(self, node: NodeProto) -> bool:
        """Tell whether a node can go as it is, without a closer look."""
        return self.is_open and len(node.input) <= self.start.max_input and not self.excess(node)


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
    graph = planner.definition(_onnx(model.graph), ())
    keys = list(dict.fromkeys(map(function_key, proto.functions)))
    if len(keys) < len(proto.functions):
        planner.obstacles.append(Obstacle("", "", "two of its functions have one name"))
    functions: dict[FunctionKey, GraphChanges] = {}
    for key, function in zip(keys, model.functions, strict=True):
        functions[key] = planner.definition(_onnx(function.definition), tuple(map(_onnx, function.instances)))
    for info in proto.training_info:
        for part in (info.initialization, info.algorithm):
            planner.training(index_graph(part, keys), _opset(_onnx(model.graph)) or opset)
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
    candidates = range(max(at_least, *opsets, FIRST_OPSET), NEWEST_OPSET + 1)
    return next((opset for opset in candidates if not plan_move(model, opset, ignore=ignore).obstacles), None)


class _Planner:
    """Collects changes and obstacles."""

    def __init__(self, target: int, ignored: frozenset[int]) -> None:
        self.target, self.ignored = target, ignored
        self.obstacles: list[Obstacle] = []

    def definition(self, definition: OnnxGraph, uses: tuple[OnnxGraph, ...]) -> GraphChanges:
        """Plan the main graph or a function, which has a graph for each signature it is called with."""
        opset = _opset(definition)
        if opset == self.target or not any(graph.by_type for graph in definition.index.all_graphs()):
            return GraphChanges()
        if opset is None or not 1 <= opset <= NEWEST_OPSET:
            what = "does not say its opset" if opset is None else f"has opset {opset}"
            reason = f"{what}, expected one of {FIRST_OPSET} to {NEWEST_OPSET}"
            self.obstacles.append(Obstacle(definition.scope.rstrip("/"), "", reason))
            return GraphChanges()
        return self._graph(uses or (definition,), opset)

    def training(self, index: GraphIndex, opset: int) -> None:
        """Refuse graphs for training that would have to change."""
        for graph in index.all_graphs():
            for type in map(text, graph.by_type):
                path = version_path(type, opset, self.target)
                if isinstance(path, str) or not path.is_open:
                    reason = f"training_info is left as it is, and holds {type}, which would have to change"
                    self.obstacles.append(Obstacle("", type, reason))

    def _graph(self, graphs: tuple[OnnxGraph, ...], opset: int) -> GraphChanges:
        changes = GraphChanges()
        index = graphs[0].index
        calls = set(index.calls)
        read_names = cache(partial(_read_names, index))
        for type, positions in index.by_type.items():
            path = version_path(text(type), opset, self.target)
            if not isinstance(path, str) and path.is_free:
                continue
            for position in positions:
                node = index.nodes[position]
                if position in calls or id(node) in self.ignored:
                    continue
                if isinstance(path, str):
                    self._refuse(graphs[0], position, path)
                elif not path.keeps(node):
                    adapted = AdaptedNode(graphs, position, read_names, target=self.target, is_up=path.is_up)
                    try:
                        _adapt(adapted, path)
                    except CannotAdapt as error:
                        self._refuse(graphs[0], position, str(error))
                        continue
                    if adapted.is_changed:
                        changes.replacements.setdefault(node_key(node), []).append(adapted)
        for position, names in index.bodies.items():
            key = node_key(index.nodes[position])
            for name in names:
                bodies = [graph.bodies_of(graph.node(position))[name] for graph in graphs]
                found = self._graph(tuple(map(_onnx, bodies)), opset)
                if found.count():
                    changes.bodies.setdefault(key, {})[name] = found
        return changes

    def _refuse(self, graph: OnnxGraph, position: int, reason: str) -> None:
        node = graph.node(position)
        self.obstacles.append(Obstacle(node.scope, node.type, reason))


def _adapt(node: AdaptedNode, path: VersionPath) -> None:
    """Take a node along a path.

    Raises:
        CannotAdapt: the node cannot mean the same at its end.
    """
    excess = path.excess(node.proto)
    if excess:
        raise CannotAdapt(excess)
    for step in path.steps:
        reason = INCOMPATIBLE.get(step.key) or (not path.is_up and NO_WAY_BACK.get(step.key))
        if reason:
            raise CannotAdapt(reason)
        for adapt in ADAPTERS.get((*step.key, path.is_up), ()):
            adapt(node)
        if not path.is_up:
            _drop_defaults(node, step)
        elif step.key in RENAMED:
            node.proto.op_type = step.newer.name
    _check_end(node, path)


def _drop_defaults(node: AdaptedNode, step: Step) -> None:
    """Take away the attributes that the older version does not know, if they say what it does."""
    for name, attribute in step.newer.attributes.items():
        if name in step.older.attributes or not node.has(name):
            continue
        value, default = node.attribute(name), attribute.default_value
        same = onnx.helper.get_attribute_value(default) if default.name else None
        if isinstance(same, bytes):
            same = same.decode()
        if same is None or value != same:
            raise CannotAdapt(f"its attribute {name} is {value}, which {_show(step.older)} cannot say")
        node.erase(name)


def _check_end(node: AdaptedNode, path: VersionPath) -> None:
    """Refuse a node that has what the version at the end does not take."""
    end, proto = path.end, node.proto
    for attribute in proto.attribute:
        if attribute.name in path.lost_attributes:
            raise CannotAdapt(f"{_show(end)} has no attribute {attribute.name}")
    for name, attribute in end.attributes.items():
        if attribute.required and not node.has(name):
            raise CannotAdapt(f"{_show(end)} asks for the attribute {name}")
    for what, names, least, most in (
        ("inputs", proto.input, end.min_input, end.max_input),
        ("outputs", proto.output, end.min_output, end.max_output),
    ):
        if not least <= len(names) <= most:
            expected = f"at least {least}" if len(names) < least else f"at most {most}"
            raise CannotAdapt(f"it has {len(names)} {what}, expected {expected} in {_show(end)}")
    for name, port in zip(proto.input, end.inputs, strict=False):
        if not name and port.option == OpSchema.FormalParameterOption.Single:
            raise CannotAdapt(f"{_show(end)} asks for {port.name}, which is left out")
    if not _accepts_all(path.start, end):
        _check_types(node, path.start, end)


def _check_types(node: AdaptedNode, start: OpSchema, end: OpSchema) -> None:
    coupled = couplings(start, end)
    types: dict[str, str] = {}
    for olds, news, names in (
        (start.inputs, end.inputs, node.proto.input),
        (start.outputs, end.outputs, node.proto.output),
    ):
        for number, name in enumerate(names):
            if not name or name in node.new_names:
                continue
            port = news[min(number, len(news) - 1)]
            old = olds[min(number, len(olds) - 1)] if olds else None
            if old is not None and old.types <= port.types and port.type_str not in coupled:
                continue
            type = node.type_text(name)
            if type is None:
                raise CannotAdapt(
                    f"{_show(end)} does not take every type, and that of {port.name} is not known"
                )
            if type not in port.types:
                raise CannotAdapt(f"{_show(end)} does not take {type} for {port.name}")
            if port.is_homogeneous and types.setdefault(port.type_str, type) != type:
                raise CannotAdapt(f"{_show(end)} takes one type for all of {port.type_str}, and finds two")


@lru_cache(maxsize=4096)
def version_path(type: str, opset: int, target: int) -> VersionPath | str:
    """Return the way of an operator of the default domain from one opset to another; else why there is none.

    Args:
        type: its type in the model.
        opset: where it is, one that the installed onnx knows.
        target: where it should be, one that the installed onnx knows.
    """
    versions = versions_of(type)
    start = versions.get(max((version for version in versions if version <= opset), default=0))
    if not versions:
        return f"{type} is no operator of ONNX"
    if start is None:
        return f"{type} is new in opset {min(versions)}, expected an operator of opset {opset}"
    if target < min(versions):
        return f"{type} is new in opset {min(versions)}"
    steps: list[Step] = []
    end, is_up = start, target >= opset
    while (step := _next(end, target, is_up=is_up)) is not None:
        if not step.is_known and step.newer.since_version <= FIRST_OPSET:
            return f"nothing is known of versions before opset {FIRST_OPSET}, and this is {_show(step.older)}"
        if not step.is_known:
            return f"whether {_show(step.newer)} means what {_show(step.older)} does is not known"
        steps.append(step)
        end = step.newer if is_up else step.older
    return VersionPath(start, end, tuple(steps), is_up)


def _next(schema: OpSchema, target: int, *, is_up: bool) -> Step | None:
    """Return the next step to an opset, None if the version there is reached."""
    versions, here = versions_of(schema.name), schema.since_version
    if not is_up:
        return None if here <= target else Step(versions[max(at for at in versions if at < here)], schema)
    version = min((at for at in versions if here < at <= target), default=None)
    if version is None:
        return None
    return Step(schema, versions_of(RENAMED.get((schema.name, version), schema.name))[version])


def _show(schema: OpSchema) -> str:
    return f"{schema.name}-{schema.since_version}"


@lru_cache(maxsize=4096)
def _accepts_all(old: OpSchema, new: OpSchema) -> bool:
    """Tell whether a version takes every combination of types that another one takes."""
    ports = [(old.inputs, new.inputs), (old.outputs, new.outputs)]
    pairs = [pair for olds, news in ports for pair in zip(olds, news, strict=False)]
    return all(before.types <= after.types for before, after in pairs) and not couplings(old, new)


def couplings(old: OpSchema, new: OpSchema) -> frozenset[str]:
    """Return the type names of a version whose ports need not have one type in another version."""
    before = {port.name: port.type_str for port in (*old.inputs, *old.outputs)}
    groups: dict[str, set[str]] = {}
    for old_port, port in [
        *zip(old.inputs, new.inputs, strict=False),
        *zip(old.outputs, new.outputs, strict=False),
    ]:
        # A port of one type has no choice, and a list that is not homogeneous holds values of any types.
        if len(port.types) > 1 and port.is_homogeneous:
            groups.setdefault(port.type_str, set()).add(before.get(port.name, old_port.type_str))
    return frozenset(name for name, olds in groups.items() if len(olds) > 1)


@lru_cache(maxsize=1024)
def versions_of(type: str) -> dict[int, OpSchema]:
    """Return the versions of an operator of the default domain, newest first; none if it is none."""
    found: dict[int, OpSchema] = {}
    limit = NEWEST_OPSET
    while limit > 0:
        try:
            schema = onnx.defs.get_schema(type, limit, "")
        except onnx.defs.SchemaError:
            break
        found[schema.since_version] = schema
        limit = schema.since_version - 1
    return found


def _read_names(index: GraphIndex) -> set[str]:
    names = set(index.outputs)
    for node in index.nodes:
        names.update(node.input)
    for bodies in index.bodies.values():
        for body in bodies.values():
            names |= body.captured
    return names


def _onnx(graph: object) -> OnnxGraph:
    assert isinstance(graph, OnnxGraph), "only an ONNX model has an opset to move to"
    return graph


def _opset(graph: OnnxGraph) -> int | None:
    return graph.shared.opsets.get("")
