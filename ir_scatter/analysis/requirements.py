"""Sizes that the inputs of a node demand of dimensions that the model leaves open.

data [N, 5], indices 0 to 8         N must be 9 or more
indices [1, 1], updates [batch, 1]  batch must be 1

Two nodes may demand sizes of one dimension that exclude each other: then no input of the model is legal.
"""

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.relative_sizes import RelativeSizes, Size
from ir_scatter.analysis.scatter_node import ScatterNode, scatter_nodes
from ir_scatter.core.diagnostics import Part, Related, Side
from ir_scatter.core.model import OPENVINO, Defect, Model
from ir_scatter.core.shapes import Bounds, Dim, agree_dims, is_static, lowest, show
from ir_scatter.ops.spec import Layout, Role


class Requirement(NamedTuple):
    """What one dimension of an input must be, and why: "indices hold 8"."""

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
        """The name of the rule that reports it."""
        return "open-dimension-fixed" if self.is_exact else "least-size"


class _Demand(NamedTuple):
    """What a node demands of a size, which is that of the dimension less an offset."""

    scatter: ScatterNode
    requirement: Requirement
    offset: int

    @property
    def size(self) -> int:
        return self.requirement.size - self.offset

    def excludes(self, other: "_Demand") -> bool:
        """Tell whether no size is what both demand."""
        is_exact, is_other_exact = self.requirement.is_exact, other.requirement.is_exact
        if is_exact and is_other_exact:
            return self.size != other.size
        return (is_exact and self.size < other.size) or (is_other_exact and other.size < self.size)

    def is_met_before(self, other: "_Demand") -> bool:
        """Tell whether this node is computed in each run in which another one is."""
        node, reach = self.scatter.node, self.scatter.reach
        is_within = node.graph is other.scatter.node.graph or not reach.barriers
        return node is not other.scatter.node and is_within and not reach.is_never


def contradictions(model: Model, facts: Facts) -> Iterator[Defect]:
    """Yield where a node demands a size of a dimension that an earlier node excludes.

    The dimension is one of one value: inputs that name a dimension alike may have different sizes there.
    """
    demands: dict[Size, list[_Demand]] = {}
    reported = set[tuple[str, str]]()
    for scatter in scatter_nodes(model, facts):
        if scatter.lookup.spec is None or all(is_static(operand.shape) for operand in scatter.operands()):
            continue
        for requirement in chain(fixed_sizes(scatter), least_sizes(scatter)):
            operand = scatter.operand(requirement.role)
            sizes = facts.derived(RelativeSizes)
            relative = None if operand is None else sizes.size_of(operand.value, requirement.dim)
            if relative is None:
                continue
            demand = _Demand(scatter, requirement, relative.offset)
            earlier = demands.setdefault(relative.size, [])
            contrary = [one for one in earlier if one.excludes(demand) and one.is_met_before(demand)]
            earlier.append(demand)
            defect = _contradiction(demand, contrary[0]) if contrary else None
            place = (scatter.node.location.scope, "" if defect is None else defect.message)
            if defect is not None and place not in reported:  # a function is written once
                reported.add(place)
                yield defect


def _contradiction(demand: _Demand, earlier: _Demand) -> Defect | None:
    """Return what is reported of two nodes that exclude each other; None if the second is never computed."""
    scatter, requirement, first = demand.scatter, demand.requirement, earlier.requirement
    node, when = scatter.node, scatter.reach.when
    if scatter.reach.is_never:
        return None
    size = f"{earlier.size + demand.offset}{'' if first.is_exact else ' or more'}"
    name, location = earlier.scatter.node.name, earlier.scatter.node.location
    message = f"{requirement}, as {requirement.reason}, and {size}, as {first.reason} in {name}"
    port = scatter.spec.port_index(requirement.role)
    span = None if port is None else node.graph.span_of(node, Part(Side.INPUT, port))
    related = (Related(f'{scatter.lookup.type} "{name}" demands {size}', location),)
    return Defect(
        requirement.rule,
        f"{message}{when and f', if {when}'}",
        node.location,
        node,
        port_index=port,
        span=span,
        related=related,
        is_refused=not when,
        is_tolerated=bool(when),
    )


def least_sizes(scatter: ScatterNode) -> Iterator[Requirement]:
    """Yield the sizes that constant indices demand of data; 1 goes without saying."""
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
        name = _name(scatter, Role.DATA, dim, data[dim])
        if name and size > 1 and lowest(data[dim]) < size and agree_dims(data[dim], Bounds(size)):
            reason = f"indices hold {index}"
            if run > 1:
                reason += f", from which updates write {run} positions"
            yield Requirement(Role.DATA, dim, name, size, False, reason)


def _run_length(scatter: ScatterNode) -> int:
    """Return how many positions each index stands for at least: in a cache as many as updates are long."""
    updates, data, axis = scatter.updates, scatter.data_shape, scatter.axis
    if scatter.spec.layout is not Layout.SEQUENCE or updates is None or axis is None or data is None:
        return 1
    shape = updates.shape
    return max(1, lowest(shape[axis])) if shape is not None and len(shape) == len(data) else 1


def fixed_sizes(scatter: ScatterNode) -> Iterator[Requirement]:
    """Yield the sizes that static dimensions of other inputs demand.

    A dimension without a symbol may be open because a shape was computed, and always be what it must be: it
    counts only where constant indices are what demands it.
    """
    expected, updates = scatter.expected_updates(), scatter.updates.shape if scatter.updates else None
    if updates is None or len(expected) != 1 or expected[0] is None or len(updates) != len(expected[0]):
        return
    reason = f"updates is {show(updates)}, {scatter.spec.updates_formula} is {show(expected[0])}"
    for at, (dim, other) in enumerate(zip(updates, expected[0], strict=True)):
        if isinstance(dim, Bounds) and isinstance(other, int) and agree_dims(dim, other):
            role, place, size, known = Role.UPDATES, at, other, dim
        elif isinstance(other, Bounds) and isinstance(dim, int) and agree_dims(dim, other):
            role, place, size, known = *place_of(scatter, at), dim, other
        else:
            continue
        is_baked = scatter.has_constant_indices and place_of(scatter, at)[0] is Role.INDICES
        name = _name(scatter, role, place, known)
        if name and (known.symbol or is_baked):
            yield Requirement(role, place, name, size, True, reason)


def place_of(scatter: ScatterNode, at: int) -> tuple[Role, int]:
    """Return of which input a dimension of updates comes, by the formula of the layout."""
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


def _name(scatter: ScatterNode, role: Role, at: int, dim: Dim) -> str:
    """Return how to call an open dimension, "" if it may be open only because a shape could not be inferred.

    OpenVINO infers all shapes that it stores; of an ONNX model only a symbol is a size that a caller chooses.
    """
    if isinstance(dim, int):
        return ""
    if dim.symbol:
        return dim.symbol
    index = scatter.spec.port_index(role)
    is_certain = scatter.node.domain == OPENVINO and index is not None
    return f"dimension {at} of {scatter.spec.ports[index].name}" if is_certain and index is not None else ""
