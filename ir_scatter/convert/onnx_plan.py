"""Which opset an ONNX model has in the end, and what its scatter nodes become there."""

from collections.abc import Iterator, Sequence

from ir_scatter.convert.engine import Engine
from ir_scatter.convert.plan import Plan, Task, moved, successor
from ir_scatter.convert.selection import Candidate
from ir_scatter.core.errors import UsageError
from ir_scatter.core.model import ONNX, OpKey
from ir_scatter.ops.lookup import find
from ir_scatter.ops.scatter_onnx import LATEST_OPSET
from ir_scatter.ops.spec import OpSpec
from ir_scatter.rewrites import leads_to


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
