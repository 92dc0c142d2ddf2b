"""Plans the conversion of an ONNX model to another opset: version steps, node changes, obstacles."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import onnx
from onnx import ModelProto
from onnx.defs import OpSchema

from ir_scatter.convert.opset.adapters import ADAPTERS, AdaptedNode, CannotAdapt
from ir_scatter.core.errors import UsageError
from ir_scatter.core.model import Model, Node
from ir_scatter.core.words import counted
from ir_scatter.formats.base import NewNodes, OpsetMove
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.formats.onnx.index import GraphIndex, function_key, text
from ir_scatter.ops.onnx_versions import FIRST_OPSET, INCOMPATIBLE, NO_WAY_BACK, RENAMED, WIDENED
from ir_scatter.ops.scatter_onnx import LATEST_OPSET

_OLDEST_BACK = 11
"""Nodes are not converted back across changes of this opset, the first one with the target operators."""

NEWEST_OPSET: int = min(onnx.defs.onnx_opset_version(), LATEST_OPSET)
"""The newest opset that both the installed onnx and our tables know."""


class Obstacle(NamedTuple):
    """A node without an equivalent in the new opset; scope and type are "" for the model itself."""

    scope: str
    type: str
    reason: str


@dataclass(frozen=True, eq=False)
class Move(OpsetMove):
    """The changes of a model for another opset; it can be written only if there are no obstacles."""

    obstacles: tuple[Obstacle, ...]


def plan_move(model: Model, opset: int, *, ignore: Iterable[Node] = ()) -> Move:
    """Return the changes that keep the results of an ONNX model at another opset of the default domain.

    Nodes in `ignore` are replaced by patches for the new opset. A node of a function is planned once, for all
    calls of the function.
    """
    if not FIRST_OPSET <= opset <= NEWEST_OPSET:
        raise UsageError(f"opset {opset} is unknown, expected {FIRST_OPSET} to {NEWEST_OPSET}")
    proto: ModelProto = model.source
    planner = _Planner(opset, frozenset([(_onnx(node.graph).index, node.handle) for node in ignore]))
    planner.definition(_onnx(model.graph))
    keys = list(dict.fromkeys(map(function_key, proto.functions)))
    if len(keys) < len(proto.functions):
        planner.obstacles.append(Obstacle("", "", "two of its functions have the same name"))
    for function in model.functions:
        planner.definition(_onnx(function.definition), tuple(map(_onnx, function.instances)))
    opset_of_model = _opset(_onnx(model.graph)) or opset
    for info in proto.training_info:
        for part in (info.initialization, info.algorithm):
            for graph in GraphIndex(part, keys).all_graphs():
                for type in map(text, graph.by_type):
                    path = version_path(type, opset_of_model, opset)
                    if isinstance(path, str) or not path.is_open:
                        reason = (
                            f"training_info is not converted, and contains {type}, which would have to change"
                        )
                        planner.obstacles.append(Obstacle("", type, reason))
    return Move(opset, planner.changes, tuple(planner.obstacles))


def lowest_opset(model: Model, at_least: int, *, ignore: Collection[Node] = ()) -> int | None:
    """Return the lowest opset, at least `at_least` and the model's own, to which the model can be converted.

    None without one.
    """
    graphs = [_onnx(model.graph), *(_onnx(function.definition) for function in model.functions)]
    opsets = [opset for opset in map(_opset, graphs) if opset is not None]
    if not opsets or min(opsets) >= at_least:
        return _opset(graphs[0]) or at_least
    candidates = range(max(at_least, *opsets, FIRST_OPSET), NEWEST_OPSET + 1)
    return next((opset for opset in candidates if not plan_move(model, opset, ignore=ignore).obstacles), None)


class _Planner:
    def __init__(self, target: int, ignored: frozenset[tuple[GraphIndex, int]]) -> None:
        self.target, self.ignored = target, ignored
        self.obstacles: list[Obstacle] = []
        self.changes: dict[tuple[GraphIndex, int], NewNodes] = {}

    def definition(self, definition: OnnxGraph, uses: tuple[OnnxGraph, ...] = ()) -> None:
        """Plan the main graph, or a function with a graph for each of its signatures."""
        opset = _opset(definition)
        if opset == self.target or not any(graph.by_type for graph in definition.index.all_graphs()):
            return
        if opset is not None and 1 <= opset <= NEWEST_OPSET:
            self._graph(uses or (definition,), opset)
            return
        problem = "does not say its opset" if opset is None else f"has opset {opset}"
        reason = f"{problem}, expected one of {FIRST_OPSET} to {NEWEST_OPSET}"
        if opset is not None and opset > NEWEST_OPSET:
            reason += ": operators of newer opsets may have changed and were not checked"
        self.obstacles.append(Obstacle(definition.scope.rstrip("/"), "", reason))

    def _graph(self, graphs: tuple[OnnxGraph, ...], opset: int) -> None:
        index = graphs[0].index
        calls = set(index.calls)
        for type, positions in index.by_type.items():
            path = version_path(text(type), opset, self.target)
            if not isinstance(path, str) and path.is_free:
                continue
            for position in positions:
                if position in calls or (index, position) in self.ignored:
                    continue
                try:
                    if isinstance(path, str):
                        raise CannotAdapt(path)
                    adapted = AdaptedNode(graphs, position, target=self.target, is_up=path.is_up)
                    _adapt(adapted, path)
                except CannotAdapt as error:
                    node = graphs[0].node(position)
                    self.obstacles.append(Obstacle(node.scope, node.type, str(error)))
                    continue
                if adapted.is_changed:
                    self.changes[index, position] = NewNodes(adapted.nodes, adapted.new_names, adapted.gone)
        for position, names in index.bodies.items():
            for name in names:
                bodies = [graph.bodies_of(graph.node(position))[name] for graph in graphs]
                self._graph(tuple(map(_onnx, bodies)), opset)


# The versions of an operator


class VersionStep(NamedTuple):
    """Two consecutive versions of an operator."""

    older: OpSchema
    newer: OpSchema

    @property
    def key(self) -> tuple[str, int]:
        return self.older.name, self.newer.since_version

    @property
    def only_widens(self) -> bool:
        return self.older.name in WIDENED.get(self.newer.since_version, ())

    @property
    def is_known(self) -> bool:
        has_adapters = any((*self.key, up) in ADAPTERS for up in (True, False))
        return self.only_widens or has_adapters or self.key in INCOMPATIBLE or self.key in NO_WAY_BACK


@dataclass(frozen=True, eq=False)
class VersionPath:
    """The versions of an operator between two opsets; without steps if both opsets have the same version."""

    start: OpSchema
    end: OpSchema
    steps: tuple[VersionStep, ...]
    is_up: bool

    @cached_property
    def new_attributes(self) -> frozenset[str]:
        attributes = frozenset().union(*(schema.attributes for step in self.steps for schema in step))
        return attributes - self.start.attributes.keys()

    @cached_property
    def lost_attributes(self) -> frozenset[str]:
        return frozenset(self.start.attributes) - self.end.attributes.keys()

    @cached_property
    def is_open(self) -> bool:
        """Whether every node that is legal in its own version can stay unchanged."""
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
        """Whether every node, legal or not, can stay unchanged."""
        says_the_same = not self.new_attributes and self.start.max_input == self.end.max_input
        return not self.steps or (self.is_open and says_the_same)


@cache
def version_path(type: str, opset: int, target: int) -> VersionPath | str:
    """Return the path of an ONNX operator from one opset to another, or the reason why there is none."""
    versions = versions_of(type)
    start = versions.get(max((version for version in versions if version <= opset), default=0))
    if not versions:
        return f"{type} is not an operator of ONNX"
    if start is None:
        return f"{type} is new in opset {min(versions)}, expected an operator of opset {opset}"
    if target < min(versions):
        return f"{type} is new in opset {min(versions)}"
    steps: list[VersionStep] = []
    end, is_up = start, target >= opset
    while True:
        versions, here = versions_of(end.name), end.since_version
        if is_up:
            version = min((at for at in versions if here < at <= target), default=None)
            if version is None:
                break
            step = VersionStep(end, versions_of(RENAMED.get((end.name, version), end.name))[version])
        elif here > target:
            step = VersionStep(versions[max(at for at in versions if at < here)], end)
        else:
            break
        if not step.is_known and step.newer.since_version <= FIRST_OPSET:
            return f"versions before opset {FIRST_OPSET} are unknown, and this is {_show(step.older)}"
        if not step.is_known:
            return f"it is unknown whether {_show(step.newer)} computes the same as {_show(step.older)}"
        if not is_up and step.newer.since_version <= _OLDEST_BACK:
            return f"no node is converted back to {_show(step.older)}, from before opset {_OLDEST_BACK}"
        steps.append(step)
        end = step.newer if is_up else step.older
    return VersionPath(start, end, tuple(steps), is_up)


@cache
def versions_of(type: str) -> dict[int, OpSchema]:
    """Return the versions of an operator of the default domain, newest first; {} for an unknown one."""
    schemas: dict[int, OpSchema] = {}
    limit = NEWEST_OPSET
    while limit > 0:
        try:
            schema = onnx.defs.get_schema(type, limit, "")
        except onnx.defs.SchemaError:
            break
        schemas[schema.since_version] = schema
        limit = schema.since_version - 1
    return schemas


@cache
def _accepts_all(old: OpSchema, new: OpSchema) -> bool:
    """Return whether the new version accepts every combination of types that the old one accepts."""
    return all(
        before.types <= after.types for before, after in _ports(old, new)
    ) and not new_type_constraints(old, new)


def new_type_constraints(old: OpSchema, new: OpSchema) -> frozenset[str]:
    """Return the type variables that require equal types of several ports only in the new version."""
    before = {port.name: port.type_str for port in (*old.inputs, *old.outputs)}
    groups: dict[str, set[str]] = defaultdict(set)
    for old_port, port in _ports(old, new):
        # A port with a single type has no choice, and a list that is not homogeneous holds values of any
        # types.
        if len(port.types) > 1 and port.is_homogeneous:
            groups[port.type_str].add(before.get(port.name, old_port.type_str))
    return frozenset(name for name, olds in groups.items() if len(olds) > 1)


def _ports(
    old: OpSchema, new: OpSchema
) -> Iterator[tuple[OpSchema.FormalParameter, OpSchema.FormalParameter]]:
    yield from zip(old.inputs, new.inputs, strict=False)
    yield from zip(old.outputs, new.outputs, strict=False)


# The conversion of one node


def _adapt(node: AdaptedNode, path: VersionPath) -> None:
    version, most = _show(path.start), path.start.max_input
    for attribute in node.proto.attribute:
        if attribute.name in path.new_attributes:
            problem = f"its attribute {attribute.name} is undefined in {version}"
            raise CannotAdapt(f"{problem}, but has a meaning in newer versions")
    if any(node.proto.input[most:]):
        raise CannotAdapt(
            f"it has {counted(len(node.proto.input), 'input')}, expected at most {most} in {version}"
        )
    for step in path.steps:
        reason = INCOMPATIBLE.get(step.key) or (not path.is_up and NO_WAY_BACK.get(step.key))
        if reason:
            raise CannotAdapt(reason)
        for adapt in ADAPTERS.get((*step.key, path.is_up), ()):
            adapt(node)
        if path.is_up and step.key in RENAMED:
            node.proto.op_type = step.newer.name
        if not path.is_up:
            _drop_defaults(node, step)
    _check_end(node, path.start, path.end, path.lost_attributes)


def _drop_defaults(node: AdaptedNode, step: VersionStep) -> None:
    """Remove attributes that the older version lacks, if their value is its fixed behaviour."""
    for name, attribute in step.newer.attributes.items():
        if name in step.older.attributes or not node.has(name):
            continue
        value, default = node.attribute(name), attribute.default_value
        same = onnx.helper.get_attribute_value(default) if default.name else None
        if isinstance(same, bytes):
            same = same.decode()
        if same is None or value != same:
            raise CannotAdapt(f"its attribute {name} is {value}, which {_show(step.older)} cannot express")
        node.erase(name)


def _check_end(node: AdaptedNode, start: OpSchema, end: OpSchema, lost: Collection[str]) -> None:
    """Refuse a node with inputs, outputs, attributes or types that the final version does not accept."""
    proto, version = node.proto, _show(end)
    for attribute in proto.attribute:
        if attribute.name in lost:
            raise CannotAdapt(f"{version} has no attribute {attribute.name}")
    for name, declared in end.attributes.items():
        if declared.required and not node.has(name):
            raise CannotAdapt(f"{version} needs the attribute {name}")
    sides = (
        ("inputs", proto.input, start.inputs, end.inputs, end.min_input, end.max_input),
        ("outputs", proto.output, start.outputs, end.outputs, end.min_output, end.max_output),
    )
    for noun, names, _, _, least, most in sides:
        if not least <= len(names) <= most:
            expected = f"at least {least}" if len(names) < least else f"at most {most}"
            raise CannotAdapt(f"it has {len(names)} {noun}, expected {expected} in {version}")
    for name, port in zip(proto.input, end.inputs, strict=False):
        if not name and port.option == OpSchema.FormalParameterOption.Single:
            raise CannotAdapt(f"{version} needs {port.name}, which is omitted")
    if _accepts_all(start, end):
        return
    coupled, types = new_type_constraints(start, end), dict[str, str]()
    for _, names, olds, news, _, _ in sides:
        for number, name in enumerate(names):
            if not name or name in node.new_names:
                continue
            port = news[min(number, len(news) - 1)]
            old = olds[min(number, len(olds) - 1)] if olds else None
            if old is not None and old.types <= port.types and port.type_str not in coupled:
                continue
            type = node.type_text(name)
            if type is None:
                raise CannotAdapt(f"{version} does not accept every type, and that of {port.name} is unknown")
            if type not in port.types:
                raise CannotAdapt(f"{version} does not accept {type} for {port.name}")
            if port.is_homogeneous and types.setdefault(port.type_str, type) != type:
                raise CannotAdapt(f"{version} needs one type for all of {port.type_str}, and there are two")


def _show(schema: OpSchema) -> str:
    return f"{schema.name}-{schema.since_version}"


def _onnx(graph: object) -> OnnxGraph:
    assert isinstance(graph, OnnxGraph), "only an ONNX model has an opset to move to"
    return graph


def _opset(graph: OnnxGraph) -> int | None:
    return graph.shared.opsets.get("")
