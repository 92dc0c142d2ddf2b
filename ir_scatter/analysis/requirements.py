"""Finds sizes that dynamic dimensions must have, because other inputs of a node require them.

    data [N, 5], indices 0 to 8         N must be 9 or more
    indices [1, 1], updates [batch, 1]  batch must be 1

Two nodes may require contradicting sizes of one dimension: then no input of the model is legal.
"""

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.relative_sizes import DimSize, RelativeSizes
from ir_scatter.analysis.scatter_node import ScatterNode, scatter_nodes
from ir_scatter.core.diagnostics import Part, Related, Side
from ir_scatter.core.model import OPENVINO, FileDefect, Model
from ir_scatter.core.shapes import Bounds, Dim, agree_dims, is_static, lowest, show
from ir_scatter.ops.spec import Layout, Role


class Requirement(NamedTuple):
    """A required size of one dimension of an input, and the reason: "indices hold 8".

    Without `is_exact`, a larger size is legal too.
    """

    role: Role
    dim: int
    name: str
    size: int
    is_exact: bool
    reason: str

    def __str__(self) -> str:
        return f"{self.name} must be {self.size}{'' if self.is_exact else ' or more'}"

    @property
    def rule(self) -> str:
        """The name of the rule that reports the requirement."""
        return "open-dimension-fixed" if self.is_exact else "least-size"


class _Demand(NamedTuple):
    """A requirement, converted to the upstream dimension from which the input's dimension is computed.

    The input's dimension is the upstream one plus `offset`.
    """

    scatter: ScatterNode
    requirement: Requirement
    offset: int

    @property
    def size(self) -> int:
        return self.requirement.size - self.offset

    def contradicts(self, demand: "_Demand") -> bool:
        """Return whether no size satisfies both demands."""
        is_exact, is_demand_exact = self.requirement.is_exact, demand.requirement.is_exact
        if is_exact and is_demand_exact:
            return self.size != demand.size
        return (is_exact and self.size < demand.size) or (is_demand_exact and demand.size < self.size)

    def applies_with(self, demand: "_Demand") -> bool:
        """Return whether the node of this demand runs whenever the node of `demand` runs."""
        node, reach = self.scatter.node, self.scatter.reach
        is_within = node.graph is demand.scatter.node.graph or not reach.skippable
        return node is not demand.scatter.node and is_within and not reach.is_never


def contradictions(model: Model, facts: Facts) -> Iterator[FileDefect]:
    """Yield a defect for each node that requires another size of a dimension than an earlier node.

    Both must require it of the same dimension of the same value. Equal dimension symbols of two inputs are
    not enough: runtimes accept different sizes for them.
    """
    demands: dict[DimSize, list[_Demand]] = {}
    reported = set[tuple[str, str]]()
    for scatter in scatter_nodes(model, facts):
        if scatter.lookup.spec is None or all(is_static(operand.shape) for operand in scatter.operands()):
            continue
        for requirement in chain(fixed_sizes(scatter), least_sizes(scatter)):
            operand = scatter.operand(requirement.role)
            sizes = facts.result_of(RelativeSizes)
            relative = None if operand is None else sizes.size_of(operand.value, requirement.dim)
            if relative is None:
                continue
            demand = _Demand(scatter, requirement, relative.offset)
            earlier = demands.setdefault(relative.size, [])
            contrary = [
                first for first in earlier if first.contradicts(demand) and first.applies_with(demand)
            ]
            earlier.append(demand)
            defect = _contradiction(demand, contrary[0]) if contrary else None
            place = (scatter.node.location.scope, "" if defect is None else defect.message)
            if defect is not None and place not in reported:  # report a function once, not for each call
                reported.add(place)
                yield defect


def _contradiction(demand: _Demand, earlier: _Demand) -> FileDefect | None:
    """Return the defect for two contradicting demands; None if the node of the second never runs."""
    scatter, requirement, first = demand.scatter, demand.requirement, earlier.requirement
    node, condition = scatter.node, scatter.reach.when
    if scatter.reach.is_never:
        return None
    size = f"{earlier.size + demand.offset}{'' if first.is_exact else ' or more'}"
    name, location = earlier.scatter.node.name, earlier.scatter.node.location
    message = f"{requirement}, as {requirement.reason}, and {size}, as {first.reason} in {name}"
    port = scatter.spec.port_index(requirement.role)
    span = None if port is None else node.graph.span_of(node, Part(Side.INPUT, port))
    related = (Related(f'{scatter.lookup.type} "{name}" requires {size}', location),)
    return FileDefect(
        requirement.rule,
        f"{message}{condition and f', if {condition}'}",
        node.location,
        node,
        port_index=port,
        span=span,
        related=related,
        is_refused=not condition,
        is_tolerated=bool(condition),
    )


def least_sizes(scatter: ScatterNode) -> Iterator[Requirement]:
    """Yield the sizes above 1 that constant indices require of dynamic dimensions of data."""
    array, data = scatter.index_array, scatter.data_shape
    layout, axis = scatter.spec.layout, scatter.axis
    if array is None or not array.size or data is None or scatter.limits is None:
        return
    first = 0 if layout is Layout.TUPLES else axis
    if first is None:
        return
    columns, run = array.reshape(-1, len(scatter.limits)), _run_length(scatter)
    for number in range(columns.shape[1]):
        dim, low, high = first + number, int(columns[:, number].min()), int(columns[:, number].max())
        size, index = max((high + run, high), (-low if scatter.wraps else 0, low))
        name = _dimension_name(scatter, Role.DATA, dim, data[dim])
        if name and size > 1 and lowest(data[dim]) < size and agree_dims(data[dim], Bounds(size)):
            reason = f"indices hold {index}"
            if run > 1:
                reason += f", from which updates write {run} positions"
            yield Requirement(Role.DATA, dim, name, size, False, reason)


def _run_length(scatter: ScatterNode) -> int:
    """Return the least number of positions that one index writes: for a cache, the length of updates."""
    updates, data, axis = scatter.updates, scatter.data_shape, scatter.axis
    if scatter.spec.layout is not Layout.SEQUENCE or updates is None or axis is None or data is None:
        return 1
    shape = updates.shape
    return max(1, lowest(shape[axis])) if shape is not None and len(shape) == len(data) else 1


def fixed_sizes(scatter: ScatterNode) -> Iterator[Requirement]:
    """Yield the sizes that static dimensions of one input require of dynamic dimensions of another.

    A dynamic dimension without a symbol may always have the required size: shape inference may only have
    failed to compute it. It is reported only if constant indices require the size.
    """
    expected, updates = scatter.expected_updates(), scatter.updates.shape if scatter.updates else None
    if updates is None or len(expected) != 1 or expected[0] is None or len(updates) != len(expected[0]):
        return
    reason = f"updates is {show(updates)}, {scatter.spec.updates_formula} is {show(expected[0])}"
    for at, (dim, goal) in enumerate(zip(updates, expected[0], strict=True)):
        if isinstance(dim, Bounds) and isinstance(goal, int) and agree_dims(dim, goal):
            role, place, size, dynamic = Role.UPDATES, at, goal, dim
        elif isinstance(goal, Bounds) and isinstance(dim, int) and agree_dims(dim, goal):
            role, place, size, dynamic = *source_of_dim(scatter, at), dim, goal
        else:
            continue
        is_from_constant = scatter.has_constant_indices and source_of_dim(scatter, at)[0] is Role.INDICES
        name = _dimension_name(scatter, role, place, dynamic)
        if name and (dynamic.symbol or is_from_constant):
            yield Requirement(role, place, name, size, True, reason)


def source_of_dim(scatter: ScatterNode, at: int) -> tuple[Role, int]:
    """Return the (input, dimension) that gives dimension `at` of updates, by the operator's shape formula."""
    layout, rank = scatter.spec.layout, len(scatter.indices_shape or ())
    if layout is Layout.ELEMENTS:
        return Role.INDICES, at
    if layout is Layout.TUPLES:
        depth = scatter.depth or 0
        return (Role.INDICES, at) if at < rank - 1 else (Role.DATA, at - (rank - 1) + depth)
    axis = scatter.axis or 0
    if layout is Layout.SLICES and axis <= at < axis + rank:
        return Role.INDICES, at - axis
    return Role.DATA, at if at < axis or layout is Layout.SEQUENCE else at - rank + 1


def _dimension_name(scatter: ScatterNode, role: Role, at: int, dim: Dim) -> str:
    """Return the name of a dynamic dimension for messages; "" if callers may be unable to choose its size.

    OpenVINO infers all shapes that it stores, so a dynamic one can be chosen. In ONNX only a symbol shows
    that.
    """
    if isinstance(dim, int):
        return ""
    if dim.symbol:
        return dim.symbol
    index = scatter.spec.port_index(role)
    is_certain = scatter.node.domain == OPENVINO and index is not None
    return f"dimension {at} of {scatter.spec.ports[index].name}" if is_certain and index is not None else ""
