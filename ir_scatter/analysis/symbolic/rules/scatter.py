"""The symbolic facts of a scatter node's output, whose elements are those of data or updates."""

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.symbolic.case import Dims, Query, SymbolSource
from ir_scatter.analysis.symbolic.linear import Linear
from ir_scatter.analysis.symbolic.numbers import MOST_COLUMNS, Cases, TensorNumbers, union
from ir_scatter.analysis.symbolic.rules.shared import rank_of
from ir_scatter.core.model import Node
from ir_scatter.ops.lookup import Lookup
from ir_scatter.ops.spec import Layout, Reduction, Role


def scatter_facts(
    walker: SymbolSource, query: Query, node: Node, lookup: Lookup
) -> Generator[Query, Any, "Dims | TensorNumbers | None"]:
    """Return the dimensions of a scatter node's output, or the facts about its elements; None if unknown."""
    if lookup.spec is None:
        return None
    ports = {role: lookup.spec.port_index(role) for role in (Role.DATA, Role.INDICES, Role.UPDATES)}
    values = {
        role: node.inputs[port].value if port is not None and port < len(node.inputs) else None
        for role, port in ports.items()
    }
    data, updates, indices = values[Role.DATA], values[Role.UPDATES], values[Role.INDICES]
    if data is None:
        return None
    if query.asks_dims:
        shape_of_data: Dims = yield Query(data, True)
        return shape_of_data
    node_facts = ScatterNode(node, lookup, walker.facts)
    first: TensorNumbers = yield Query(data, False)
    second: TensorNumbers = (yield Query(updates, False)) if updates is not None else TensorNumbers()
    dims: Dims = yield Query(data, True)
    if node_facts.reduction not in {Reduction.NONE, Reduction.MIN, Reduction.MAX}:
        return None
    unknown = first.unknown or second.unknown
    result = TensorNumbers(union([first.cases, second.cases]), rank=rank_of(dims), unknown=unknown)
    if indices is None or dims is None:
        return result
    if node_facts.reduction is Reduction.NONE:
        built = yield from _built(node_facts, first, second, dims)
        result = replace(result, columns=built, column_axis=0) if built is not None else result
    axis = node_facts.axis
    places: TensorNumbers = yield Query(indices, False)
    shape: Dims = yield Query(indices, True)
    covers = (
        node_facts.spec.layout is Layout.ELEMENTS and axis is not None and shape == dims
        and axis in places.distinct and axis in second.distinct
    )  # fmt: skip
    if covers and axis is not None and node_facts.reduction is Reduction.NONE:
        # every position along the axis is written once, so its elements are those of updates in another order
        result = replace(
            result, cases=second.cases, distinct=frozenset([axis]), is_unique=len(dims) == 1,
            unknown=second.unknown, conditions=places.conditions | second.conditions,
        )  # fmt: skip
    return result


def _built(
    scatter: ScatterNode, first: TensorNumbers, second: TensorNumbers, dims: Sequence[Linear]
) -> Generator[Query, Any, tuple[Cases, ...] | None]:
    """Return the elements of a short 1-D output; None for others. Scatter nodes may build shapes this way.

    Example: scatter ([1, 1, 1], [1], [n]) is [1, n, 1].
    """
    yield from ()
    places = scatter.index_array
    if len(dims) != 1 or not dims[0].is_constant or places is None or first.columns is None:
        return None
    size = dims[0].constant
    targets = [int(place) for place in places.reshape(-1)]
    if size > MOST_COLUMNS or len(targets) > MOST_COLUMNS or len(first.columns) != size:
        return None
    updates = second.columns
    if updates is None or len(updates) != len(targets):
        updates = (second.cases,) * len(targets)
    columns = [*first.columns]
    for target, cases in zip(targets, updates, strict=True):
        if not -size <= target < size:
            return None
        columns[target] = cases
    return tuple(columns)
