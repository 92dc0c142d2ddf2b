"""Which nodes are to become what, and in which opset."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from ir_scatter.analysis.scatter_node import Site
from ir_scatter.convert.conversion import Refused
from ir_scatter.convert.rewriter import Engine
from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import UsageError
from ir_scatter.core.model import ONNX, OPENVINO, Function, Model, Node, OpKey
from ir_scatter.ops import SPECS, find, scatter_types
from ir_scatter.ops.scatter_onnx import LATEST_OPSET
from ir_scatter.ops.spec import OpSpec
from ir_scatter.rewrites import all_rewrites, leads_to
from ir_scatter.rewrites.conditions import Condition, judge
from ir_scatter.rewrites.refusals import Reason

if TYPE_CHECKING:
    from ir_scatter.convert.opset.apply import Move, Obstacle


# The scatter nodes of a model, and those that are meant.
class Candidate(NamedTuple):
    """One scatter node as the file holds it.

    Attributes:
        node: in a function that of the definition.
        sites: the node seen by role, once for each signature of the function that it is in; where
            they do not look alike, what is known whatever the signature comes first.
    """

    node: Node
    sites: tuple[Site, ...]

    @property
    def key(self) -> OpKey | None:
        """Return its row's key, None if its opset does not contain it."""
        spec = self.sites[0].lookup.spec
        return None if spec is None else spec.key


def candidates(engine: Engine) -> list[Candidate]:
    """Return every scatter node, in the order of the file."""
    model, found = engine.model, []
    types = scatter_types(model.domain)
    for node in model.graph.walk(types):
        site = engine.site(node)
        if site is not None:
            found.append(Candidate(node, (site,)))
    for function in model.functions:
        found += _of_function(engine, function, types)
    return found


def _of_function(engine: Engine, function: Function, types: frozenset[str]) -> Iterator[Candidate]:
    walks = [list(instance.walk(types)) for instance in function.instances]
    for number, node in enumerate(function.definition.walk(types)):
        own = engine.site(node)
        sites = [engine.site(walk[number]) for walk in walks if number < len(walk)]
        known = [site for site in sites if site is not None]
        if own is None:
            continue
        if not known or any(_looks(site) != _looks(known[0]) for site in known):
            known.insert(0, own)
        yield Candidate(node, tuple(known))


def _looks(site: Site) -> object:
    """Return what decides the form of a node; what is not known to be like another one is like no other."""
    if site.lookup.spec is None or site.signature is None:
        return site
    array, proven = site.index_array, [judge(condition, site) for condition in Condition]
    return site.signature, None if array is None else array.tobytes(), proven


def matching(found: Sequence[Candidate], patterns: Sequence[str]) -> list[Candidate]:
    """Return the nodes that a pattern names: literally, or else as a glob.

    Raises:
        UsageError: a pattern names none.
    """
    chosen: set[int] = set()
    for pattern in patterns:
        named = {n for n, one in enumerate(found) if pattern in _names(one.node)}
        if not named:
            named = {
                n
                for n, one in enumerate(found)
                if any(fnmatchcase(name, pattern) for name in _names(one.node))
            }
        if not named:
            raise UsageError(f"no scatter node is named {pattern!r}; `ir-scatter inspect` lists them")
        chosen |= named
    return [one for number, one in enumerate(found) if number in chosen]


def _names(node: Node) -> tuple[str, str]:
    return node.name, node.scope


# What is to become what: targets and sources by the names that users write.
_DIALECTS = {ONNX: "ONNX", OPENVINO: "OpenVINO"}


@cache
def targets() -> tuple[OpSpec, ...]:
    """Return the rows that some rewrite leads to."""
    return tuple({rewrite.target.key: rewrite.target for rewrite in all_rewrites()}.values())


def find_targets(model: Model, text: str) -> tuple[OpSpec, ...]:
    """Return the rows that a target names, oldest first: one with a version, all of a type without.

    Raises:
        UsageError: there are none, or none in the model's dialect.
    """
    known = [spec for spec in targets() if _is_named(spec.key, text)]
    fitting = sorted((spec for spec in known if spec.key.domain == model.domain), key=_version)
    if fitting:
        return tuple(fitting)
    names = [str(key) for key in sorted(spec.key for spec in targets()) if key.domain == model.domain]
    what = f"is no target in {_DIALECTS[model.domain]}" if known else "is no target"
    raise UsageError(f"{text!r} {what}, expected one of {', '.join(names)}, or one without its version")


def find_sources(model: Model, texts: Collection[str]) -> frozenset[OpKey]:
    """Return the rows that sources name.

    Raises:
        UsageError: one names none.
    """
    found: set[OpKey] = set()
    for text in texts:
        named = {key for key in SPECS if key.domain == model.domain and _is_named(key, text)}
        if not named:
            known = ", ".join(str(key) for key in sorted(SPECS) if key.domain == model.domain)
            raise UsageError(
                f"{text!r} is no scatter operator of {_DIALECTS[model.domain]}, expected one of {known}, "
                "or one without its version"
            )
        found |= named
    return frozenset(found)


def _is_named(key: OpKey, text: str) -> bool:
    return text.lower() in {str(key).lower(), key.type.lower()}


def _version(spec: OpSpec) -> int:
    return spec.key.version


@dataclass(frozen=True, slots=True)
class Wish:
    """What the caller asks for; see `ir_scatter.convert`."""

    to: str | None = None
    sources: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    opset: int | None = None
    assume: tuple[str, ...] = ()
    keeps_negative: bool = False


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


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What is to be done.

    Attributes:
        tasks: in the order of the file.
        opset: the opset that an ONNX model moves to; None if it stays.
        move: what that does to other nodes.
        obstacles: nodes that would mean something else there.
    """

    tasks: tuple[Task, ...]
    opset: int | None = None
    move: "Move | None" = None
    obstacles: tuple[Refused, ...] = ()


def make_plan(engine: Engine, wish: Wish) -> Plan:
    """Choose nodes, targets and the opset.

    Raises:
        UsageError: a name, an operator or an opset does not exist.
    """
    model, opset, to, sources, nodes = engine.model, wish.opset, wish.to, wish.sources, wish.nodes
    if opset is not None and model.domain != ONNX:
        raise UsageError("an opset is chosen for ONNX models only: each layer of an IR has its own")
    every = candidates(engine)
    named = matching(every, nodes) if nodes else every
    keys = find_sources(model, sources) if sources else None
    chosen = [one for one in named if keys is None or one.key in keys]
    rows = find_targets(model, to) if to is not None else None
    if model.domain != ONNX:
        is_explicit = bool(sources or nodes)
        return Plan(tuple(_ir_tasks(chosen, rows, is_explicit=is_explicit)))

    return OnnxPlanner(engine, rows, opset, is_explicit=bool(sources or nodes)).plan(chosen)


def _ir_tasks(
    chosen: Sequence[Candidate], rows: Sequence[OpSpec] | None, *, is_explicit: bool
) -> "list[Task]":
    tasks = []
    for one in chosen:
        spec = one.sites[0].lookup.spec
        target = rows[-1] if rows is not None else successor(spec)
        if target is None:
            continue
        if is_explicit or spec is None or leads_to(spec.key, target.key):
            tasks.append(Task(one, target, None))
    return tasks


def successor(spec: OpSpec | None) -> OpSpec | None:
    """Return the newest row of what replaces a deprecated operator, None if nothing does."""
    if spec is None or spec.deprecated_by is None:
        return None
    wanted = spec.deprecated_by
    fitting = [row for row in targets() if row.key[:2] == wanted[:2]]
    return max(fitting, key=lambda row: row.key.version, default=None)


def moved(plan: Plan, model: Model, opset: int, replaced: Sequence[Node]) -> Plan:
    """Return a plan with the move of the whole model to another opset.

    Args:
        plan: the tasks.
        model: an ONNX model.
        opset: where it moves.
        replaced: the nodes that become nodes of that opset by themselves.
    """
    from ir_scatter.convert.opset.path import plan_move

    move = plan_move(model, opset, ignore=replaced)
    found = tuple(_obstacle(one, model.path) for one in move.obstacles)
    return Plan(plan.tasks, opset, move, found)


def with_left(plan: Plan, model: Model, replaced: Sequence[Node]) -> Plan:
    """Return a plan in which all nodes but some, which are replaced, move as they are."""
    return plan if plan.opset is None else moved(plan, model, plan.opset, replaced)


def _obstacle(found: "Obstacle", path: str) -> Refused:
    """Say that a node would mean something else in the new opset."""
    name, reason = found.scope.rpartition("/")[2], found.reason
    message = reason if reason.startswith(found.type) else f"{found.type}: {reason}"
    return Refused(Reason.OPSET, message, name, Location(path, scope=found.scope), type=found.type)


# Which opset an ONNX model has in the end, and what its scatter nodes become there.
class OnnxPlanner:
    """Plans the conversion of one ONNX model."""

    def __init__(
        self, engine: Engine, rows: Sequence[OpSpec] | None, opset: int | None, *, is_explicit: bool
    ) -> None:
        """Make a planner.

        Args:
            engine: rewrites nodes of the model.
            rows: the rows of the operator that is wanted; None: deprecated ones are replaced.
            opset: the one that is asked for.
            is_explicit: whether the user named nodes or operators.
        """
        self.engine, self.rows, self.opset, self.is_explicit = engine, rows, opset, is_explicit
        self.current = engine.model.opset_imports.get(ONNX)
        self._wanted_of: dict[OpKey | None, Sequence[OpSpec] | None] = {}
        if opset is not None and not 1 <= opset <= LATEST_OPSET:
            raise UsageError(f"the opset is {opset}, expected 1 to {LATEST_OPSET}")

    def plan(self, chosen: Sequence[Candidate]) -> Plan:
        """Return what is to be done with the nodes that were chosen.

        Raises:
            UsageError: the wanted operator is not in the opset that is asked for.
        """
        meant = [one for one in chosen if self._wanted(one) is not None]
        final = self._final(meant)
        if final == self.current or final is None or self.current is None:
            return Plan(tuple(self._tasks(meant, None)))
        tasks = tuple(self._tasks(chosen, final))
        return moved(Plan(tasks), self.engine.model, final, [task.candidate.node for task in tasks])

    def _wanted(self, one: Candidate) -> Sequence[OpSpec] | None:
        """Return the rows that a node may become; None if it is not concerned."""
        spec = one.sites[0].lookup.spec
        key = None if spec is None else spec.key
        if key not in self._wanted_of:
            self._wanted_of[key] = self._rows_for(spec)
        return self._wanted_of[key]

    def _rows_for(self, spec: OpSpec | None) -> Sequence[OpSpec] | None:
        if self.rows is None:
            following = successor(spec)
            return None if following is None else _family(following)
        if self.is_explicit or spec is None:
            return self.rows
        return self.rows if any(leads_to(spec.key, row.key) for row in self.rows) else None

    def _final(self, meant: Sequence[Candidate]) -> int | None:
        """Return the opset that the model has in the end."""
        current = self.current
        if self.opset is not None or current is None:
            self._demand(meant)
            return self.opset
        rows = self._rows_of(meant)
        possible = {opset for row in rows for opset in row.opsets if isinstance(opset, int)}
        if not possible or current in possible:
            return current
        nearest = min(possible, key=lambda opset: (abs(opset - current), opset))
        if nearest < current:
            return nearest
        from ir_scatter.convert.opset.path import lowest_opset

        replaced = [one.node for one in meant]
        return lowest_opset(self.engine.model, nearest, ignore=replaced) or nearest

    def _rows_of(self, meant: Sequence[Candidate]) -> list[OpSpec]:
        """Return the rows that some nodes may become, each once."""
        wanted = {id(rows): rows for rows in map(self._wanted, meant) if rows}
        return list({row.key: row for rows in wanted.values() for row in rows}.values())

    def _demand(self, meant: Sequence[Candidate]) -> None:
        """Demand that the opset that is asked for contains what is wanted."""
        rows = self._rows_of(meant)
        if rows and self.opset is not None and not any(self.opset in row.opsets for row in rows):
            names = " and ".join(_named(rows))
            first, last = (end([opset for row in rows for opset in row.opsets]) for end in (min, max))
            raise UsageError(f"opset {self.opset} has no {names}, expected opset {first} to {last}")

    def _tasks(self, chosen: Sequence[Candidate], final: int | None) -> Iterator[Task]:
        """Yield what each node becomes; in another opset its version may change, whether meant or not."""
        rows: dict[tuple[int, int], OpSpec | None] = {}
        for one in chosen:
            node, lookup = one.node, one.sites[0].lookup
            opset = final if final is not None else node.opset
            if not isinstance(opset, int):
                continue
            key = id(lookup), opset
            if key not in rows:
                rows[key] = self._row(one, opset)
            row = rows[key]
            if row is not None:
                yield Task(one, row, opset)

    def _row(self, one: Candidate, opset: int) -> OpSpec | None:
        """Return the row that a node becomes in an opset, None if it is that already."""
        wanted = self._wanted(one)
        if wanted is None:
            lookup = find(one.node.domain, one.node.type, opset)
            wanted = [lookup.spec] if lookup is not None and lookup.spec is not None else []
        row = next((row for row in wanted if opset in row.opsets), None)
        row = row or (wanted[-1] if wanted else None)
        return None if row is None or row.key == one.key else row


def _named(rows: Sequence[OpSpec]) -> list[str]:
    """Return the names of rows; the type alone if all its versions are among them."""
    found: dict[str, None] = {}
    for row in rows:
        is_whole = {other.key for other in rows} >= {other.key for other in _family(row)}
        found[row.key.type if is_whole else str(row.key)] = None
    return list(found)


def _family(spec: OpSpec) -> tuple[OpSpec, ...]:
    lookup = find(spec.key.domain, spec.key.type, spec.opsets[0])
    assert lookup is not None
    return lookup.family
