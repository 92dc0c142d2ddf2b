"""What is asked for, and what that means for a model: which nodes are to become what, and in which opset."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ir_scatter.analysis.conditions import Condition, judge
from ir_scatter.analysis.scatter_node import ScatterNode, scatter_nodes
from ir_scatter.analysis.signature import signature
from ir_scatter.convert.conversion import Refused
from ir_scatter.convert.rewriter import Rewriter
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import UsageError
from ir_scatter.core.model import ONNX, OPENVINO, Function, Model, Node, OpKey
from ir_scatter.ops.lookup import SPECS, find, scatter_types
from ir_scatter.ops.scatter_onnx import LATEST_OPSET
from ir_scatter.ops.spec import OpSpec
from ir_scatter.rewrites import all_rewrites, leads_to
from ir_scatter.rewrites.refusals import Reason

if TYPE_CHECKING:
    from ir_scatter.convert.opset.apply import Move, Obstacle

_DIALECTS = {ONNX: "ONNX", OPENVINO: "OpenVINO"}


class Candidate(NamedTuple):
    """One scatter node as the file holds it.

    Attributes:
        node: in a function that of the definition.
        sites: the node seen by role, once for each signature of the function that it is in; where
            they do not look alike, what is known whatever the signature comes first.
    """

    node: Node
    sites: tuple[ScatterNode, ...]

    @property
    def spec(self) -> OpSpec | None:
        """Its row, None if its opset does not contain it."""
        return self.sites[0].lookup.spec

    @property
    def key(self) -> OpKey | None:
        """The key of its row."""
        spec = self.spec
        return None if spec is None else spec.key


class Task(NamedTuple):
    """One node and what it is to become.

    Attributes:
        candidate: the node.
        target: the row that is wanted.
        opset: the opset that its new nodes belong to; None in an IR.
    """

    candidate: Candidate
    target: OpSpec
    opset: int | None


class Plan(NamedTuple):
    """What is to be done.

    Attributes:
        tasks: in the order of the file.
        move: what becomes of other nodes where an ONNX model moves to another opset; None if it stays.
        obstacles: nodes that would mean something else there.
    """

    tasks: tuple[Task, ...]
    move: "Move | None" = None
    obstacles: tuple[Refused, ...] = ()


def make_plan(
    rewriter: Rewriter, to: str | None, sources: Collection[str], nodes: Sequence[str], opset: int | None
) -> Plan:
    """Choose nodes, targets and the opset; see `ir_scatter.convert`.

    Raises:
        UsageError: a name, an operator or an opset does not exist.
    """
    model = rewriter.model
    if opset is not None and model.domain != ONNX:
        raise UsageError("an opset is chosen for ONNX models only: each layer of an IR has its own")
    found = _candidates(rewriter)
    if nodes:
        found = _matching(found, nodes)
    if sources:
        keys = _find_sources(model, sources)
        found = [one for one in found if one.key in keys]
    rows = _find_targets(model, to) if to is not None else None
    if rows is not None and model.domain != ONNX:
        rows = rows[-1:]
    is_explicit = bool(sources or nodes)
    specs = {one.key: one.spec for one in found}
    wanted = {key: _rows_for(spec, rows, is_explicit=is_explicit) for key, spec in specs.items()}
    if model.domain == ONNX:
        return _onnx_plan(model, found, opset, wanted)
    return Plan(tuple(Task(one, row[-1], None) for one in found if (row := wanted[one.key])))


# The scatter nodes of a model


def _candidates(rewriter: Rewriter) -> list[Candidate]:
    """Return every scatter node, in the order of the file."""
    model = rewriter.model
    found = [Candidate(site.node, (site,)) for site in scatter_nodes(model.graph, rewriter.check.facts)]
    for function in model.functions:
        found += _of_function(rewriter, function)
    return found


def _of_function(rewriter: Rewriter, function: Function) -> Iterator[Candidate]:
    types = scatter_types(rewriter.model.domain)
    walks = [list(instance.walk(types)) for instance in function.instances]
    for number, node in enumerate(function.definition.walk(types)):
        own = rewriter.site(node)
        sites = [rewriter.site(walk[number]) for walk in walks if number < len(walk)]
        known = [site for site in sites if site is not None]
        if own is None:
            continue
        if not known or any(_looks(site) != _looks(known[0]) for site in known):
            known.insert(0, own)
        yield Candidate(node, tuple(known))


def _looks(site: ScatterNode) -> object:
    """Return what decides the form of a node; what is not known to be like another one is like no other."""
    key = signature(site)
    if key is None:
        return site
    array, proven = site.index_array, [judge(condition, site) for condition in Condition]
    return key, None if array is None else array.tobytes(), proven


def _matching(found: Sequence[Candidate], patterns: Sequence[str]) -> list[Candidate]:
    """Return the nodes that a pattern names: literally, or else as a glob."""
    names = [(one.node.name, one.node.scope) for one in found]
    chosen: set[int] = set()
    for pattern in patterns:
        named = [at for at, both in enumerate(names) if pattern in both]
        named = named or [
            at for at, both in enumerate(names) if any(fnmatchcase(name, pattern) for name in both)
        ]
        if not named:
            raise UsageError(f"no scatter node is named {pattern!r}; `ir-scatter inspect` lists them")
        chosen.update(named)
    return [found[at] for at in sorted(chosen)]


# Operators by the names that users write


@cache
def _targets() -> tuple[OpSpec, ...]:
    """Return the rows that some rewrite leads to."""
    return tuple({rewrite.target.key: rewrite.target for rewrite in all_rewrites()}.values())


def _find_targets(model: Model, text: str) -> tuple[OpSpec, ...]:
    """Return the rows that a target names, oldest first: one with a version, all of a type without."""
    known = [spec for spec in _targets() if _is_named(spec.key, text)]
    fitting = sorted(
        (spec for spec in known if spec.key.domain == model.domain), key=lambda row: row.key.version
    )
    if fitting:
        return tuple(fitting)
    names = [str(key) for key in sorted(spec.key for spec in _targets()) if key.domain == model.domain]
    what = f"is no target in {_DIALECTS[model.domain]}" if known else "is no target"
    raise UsageError(f"{text!r} {what}, expected one of {', '.join(names)}, or one without its version")


def _find_sources(model: Model, texts: Collection[str]) -> frozenset[OpKey]:
    keys = sorted(key for key in SPECS if key.domain == model.domain)
    found: set[OpKey] = set()
    for text in texts:
        named = {key for key in keys if _is_named(key, text)}
        if not named:
            raise UsageError(
                f"{text!r} is no scatter operator of {_DIALECTS[model.domain]}, expected one of "
                f"{', '.join(map(str, keys))}, or one without its version"
            )
        found |= named
    return frozenset(found)


def _is_named(key: OpKey, text: str) -> bool:
    return text.lower() in {str(key).lower(), key.type.lower()}


def _successor(spec: OpSpec | None) -> OpSpec | None:
    """Return the newest row of what replaces a deprecated operator, None if nothing does."""
    if spec is None or spec.deprecated_by is None:
        return None
    wanted = spec.deprecated_by
    fitting = [row for row in _targets() if row.key[:2] == wanted[:2]]
    return max(fitting, key=lambda row: row.key.version, default=None)


# The opset of an ONNX model

_Wanted: TypeAlias = Mapping[OpKey | None, Sequence[OpSpec] | None]
"""The rows that nodes of a row may become; None if they are not concerned."""


def _onnx_plan(model: Model, chosen: Sequence[Candidate], opset: int | None, wanted: _Wanted) -> Plan:
    if opset is not None and not 1 <= opset <= LATEST_OPSET:
        raise UsageError(f"the opset is {opset}, expected 1 to {LATEST_OPSET}")
    meant = [one for one in chosen if wanted[one.key] is not None]
    possible = list({row.key: row for found in wanted.values() for row in found or ()}.values())
    current = model.opset_imports.get(ONNX)
    if opset is not None:
        _demand_possible(opset, possible)
    elif current is not None:
        opset = _nearest_opset(model, current, possible, meant)
    if opset == current or opset is None or current is None:
        return Plan(tuple(_onnx_tasks(meant, wanted, None)))
    tasks = tuple(_onnx_tasks(chosen, wanted, opset))
    return moved(tasks, model, opset, [task.candidate.node for task in tasks])


def _rows_for(
    spec: OpSpec | None, rows: Sequence[OpSpec] | None, *, is_explicit: bool
) -> Sequence[OpSpec] | None:
    if rows is None:
        following = _successor(spec)
        return None if following is None else _family(following)
    is_meant = is_explicit or spec is None or any(leads_to(spec.key, row.key) for row in rows)
    return rows if is_meant else None


def _demand_possible(opset: int, possible: Sequence[OpSpec]) -> None:
    """Demand that the opset that is asked for contains what is wanted."""
    if possible and not any(opset in row.opsets for row in possible):
        names = " and ".join(_named(possible))
        first, last = (end([opset for row in possible for opset in row.opsets]) for end in (min, max))
        raise UsageError(f"opset {opset} has no {names}, expected opset {first} to {last}")


def _nearest_opset(model: Model, current: int, possible: Sequence[OpSpec], meant: Sequence[Candidate]) -> int:
    """Return the opset that a model has in the end if none is asked for."""
    opsets = {opset for row in possible for opset in row.opsets if isinstance(opset, int)}
    if not opsets or current in opsets:
        return current
    nearest = min(opsets, key=lambda opset: (abs(opset - current), opset))
    if nearest < current:
        return nearest
    from ir_scatter.convert.opset.path import lowest_opset

    return lowest_opset(model, nearest, ignore=[one.node for one in meant]) or nearest


def _onnx_tasks(chosen: Sequence[Candidate], wanted: _Wanted, final: int | None) -> Iterator[Task]:
    """Yield what each node becomes; in another opset its version may change, whether meant or not."""
    for one in chosen:
        opset = final if final is not None else one.node.opset
        if not isinstance(opset, int):
            continue
        rows = wanted[one.key]
        if rows is None:
            lookup = find(one.node.domain, one.node.type, opset)
            rows = [lookup.spec] if lookup is not None and lookup.spec is not None else []
        row = next((row for row in rows if opset in row.opsets), rows[-1] if rows else None)
        if row is not None and row.key != one.key:
            yield Task(one, row, opset)


def moved(tasks: tuple[Task, ...], model: Model, opset: int, replaced: Sequence[Node]) -> Plan:
    """Return a plan with the move of the whole model to another opset.

    Args:
        tasks: what becomes of scatter nodes.
        model: an ONNX model.
        opset: where it moves.
        replaced: the nodes that become nodes of that opset by themselves.
    """
    from ir_scatter.convert.opset.path import plan_move

    move = plan_move(model, opset, ignore=replaced)
    return Plan(tasks, move, tuple(_obstacle(one, model.path) for one in move.obstacles))


def _obstacle(found: "Obstacle", path: str) -> Refused:
    """Say that a node would mean something else in the new opset."""
    name, reason = found.scope.rpartition("/")[2], found.reason
    message = reason if reason.startswith(found.type) else f"{found.type}: {reason}"
    return Refused(Reason.OPSET, message, name, Location(path, scope=found.scope), type=found.type)


def _named(rows: Sequence[OpSpec]) -> list[str]:
    """Return the names of rows; the type alone if all its versions are among them."""
    keys = {row.key for row in rows}
    is_whole = [keys >= {other.key for other in _family(row)} for row in rows]
    names = [row.key.type if whole else str(row.key) for row, whole in zip(rows, is_whole, strict=True)]
    return list(dict.fromkeys(names))


def _family(spec: OpSpec) -> tuple[OpSpec, ...]:
    lookup = find(spec.key.domain, spec.key.type, spec.opsets[0])
    assert lookup is not None
    return lookup.family
