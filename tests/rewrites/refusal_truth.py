"""Whether the reason of a refusal is true: one question for each code, asked of shapes, types and texts."""

from collections.abc import Callable, Collection, Mapping
from math import prod
from typing import Any

import numpy as np

from ir_scatter.ops.spec import IndicesLimit, Layout, OpSpec, Reduction, Role
from ir_scatter.rewrites.conditions import Condition
from ir_scatter.rewrites.refusals import Reason, Refusal
from ir_scatter.rewrites.rewrite import Rewrite
from ir_scatter.shapes import Dim, Shape
from ir_scatter.site import Site

_Question = Callable[[Refusal, Site, Rewrite, Collection[Condition]], bool]


def demand_true(refusal: Refusal, site: Site, rewrite: Rewrite, promises: Collection[Condition]) -> None:
    """Demand that what a refusal says is so."""
    question = _QUESTIONS.get(refusal.code)
    assert question is not None, f"{refusal.code} of a legal node with a rewrite: {refusal.message}"
    assert question(refusal, site, rewrite, promises), f"not true: {refusal.code} {refusal.message}"


def lacks(site: Site, target: OpSpec) -> bool:
    """Tell whether a row cannot say how updates meet old values."""
    reduction = site.reduction
    is_lost = reduction is not Reduction.NONE and reduction not in target.reductions.values()
    is_dropped = reduction is not Reduction.NONE and site.attribute("use_init_val") is False
    return is_lost or (is_dropped and target.attribute("use_init_val") is None)


def _no_such_reduction(refusal: Refusal, site: Site, rewrite: Rewrite, _: Collection[Condition]) -> bool:
    """Only where the type itself stands in the way.

    A difference needs negative values or a wider type to be a sum, a mean a wider type to sum up in;
    a sum from nothing needs a zero.
    """
    type, reduction = site.data.element_type if site.data else None, site.reduction
    assert type is not None
    assert type.name in refusal.message
    if not lacks(site, rewrite.target):
        return False
    if reduction is Reduction.SUB:
        return type.name == "u64"
    if reduction is Reduction.MEAN:
        return type.name in {"i64", "u64"}
    return reduction is Reduction.SUM and type.name == "f8e8m0"


def _unknown(refusal: Refusal, site: Site, rewrite: Rewrite, promises: Collection[Condition]) -> bool:
    (condition,) = (one for one in Condition if one in refusal.message)
    if condition in promises or site.index_array is not None:
        return False
    if condition is Condition.UNIQUE:
        count = target_count(site)
        return lacks(site, rewrite.target) and (count is None or count > 1)
    return condition is Condition.EQUAL and _changes_layout(site, rewrite) and not _is_one_list(site)


def _violated(refusal: Refusal, site: Site, rewrite: Rewrite, _: Collection[Condition]) -> bool:
    if "reach" in refusal.message:
        data, indices = site.data_shape, site.indices_shape
        assert data is not None
        assert indices is not None
        pairs = [pair for place, pair in enumerate(zip(data, indices, strict=True)) if place != site.axis]
        return _changes_layout(site, rewrite) and any(_differ(*pair) for pair in pairs)
    if "unique" in refusal.message:
        count, room = target_count(site), target_room(site)
        is_crowded = count is not None and room is not None and count > room
        return lacks(site, rewrite.target) and (is_crowded or _repeats(site))
    return _changes_layout(site, rewrite) and _differ_elsewhere(site)


def _type_unknown(refusal: Refusal, site: Site, rewrite: Rewrite, _: Collection[Condition]) -> bool:
    assert "type" in refusal.message
    return site.data is not None and site.data.element_type is None and lacks(site, rewrite.target)


def _target_forbids(refusal: Refusal, site: Site, rewrite: Rewrite, _: Collection[Condition]) -> bool:
    """Only where the text of the target forbids the type, the sizes or the reduction of it."""
    target, data = rewrite.target, site.data
    port = target.port(Role.DATA)
    assert data is not None
    assert port is not None
    type = None if data.element_type is None else data.element_type.name
    if type is not None and type not in port.element_types:
        return f" {_shown(type, target)}" in refusal.message
    excluded = target.reduction_excludes.get(site.reduction or Reduction.NONE, frozenset())
    return _is_too_long(site, target) or type in excluded


def _is_too_long(site: Site, target: OpSpec) -> bool:
    """Tell whether the new node would have more indices than positions on the axis."""
    if target.layout is not Layout.ELEMENTS or target.indices_limit is not IndicesLimit.EVERYWHERE:
        return False
    shape, sizes = site.indices_shape, site.data_shape
    if site.spec.layout is not Layout.ELEMENTS:
        count, rooms = target_count(site), _rooms(site)
        return count is not None and bool(rooms) and all(count > room for room in rooms)
    if shape is None or sizes is None:
        return False
    pairs = [*zip(shape, sizes, strict=True)]
    return any(
        _least(dim) > _most(size) for dim, size in (pairs if site.axis is None else [pairs[site.axis]])
    )


def _rooms(site: Site) -> list[float]:
    """Return the room on the axis; where that is not known, on each that the shapes allow."""
    room, data, indices = target_room(site), site.data_shape, site.indices_shape
    if room is not None:
        return [room]
    if site.spec.layout is not Layout.SLICES or data is None or indices is None or site.updates is None:
        return []
    updates = site.updates.shape
    places = [n for n in range(len(data)) if data[:n] + indices + data[n + 1 :] == updates]
    return [_most(data[place]) for place in places]


def _no_form(_: Refusal, site: Site, rewrite: Rewrite, __: Collection[Condition]) -> bool:
    shape = site.indices_shape
    return (
        _changes_layout(site, rewrite)
        and shape is not None
        and any(dim == 0 for place, dim in enumerate(shape) if place != site.axis)
    )


_QUESTIONS: Mapping[Reason, _Question] = {
    Reason.NO_SUCH_REDUCTION: _no_such_reduction,
    Reason.CONDITION_UNKNOWN: _unknown,
    Reason.CONDITION_VIOLATED: _violated,
    Reason.TYPE_UNKNOWN: _type_unknown,
    Reason.TARGET_BREAKS_RULES: _target_forbids,
    Reason.NO_FORM: _no_form,
}
"""CVT101 to CVT103 and CVT109 have no business with a legal node that a rewrite leads from."""


def target_count(site: Site) -> int | None:
    """Return how many elements of one line, tuples or indices there are; None if not known."""
    shape = site.indices_shape
    if shape is None:
        return None
    if site.spec.layout is Layout.TUPLES:
        dims: tuple[Dim, ...] = shape[:-1]
    elif site.spec.layout is Layout.ELEMENTS:
        if site.axis is None:
            return None
        dims = (shape[site.axis],)
    else:
        dims = shape
    if 0 in dims:
        return 0
    return prod(dims) if all(isinstance(dim, int) for dim in dims) else None  # type: ignore[arg-type]


def target_room(site: Site) -> int | None:
    """Return how many there can be without meeting; None if not known."""
    shape = site.data_shape
    if shape is None or (site.spec.layout is not Layout.TUPLES and site.axis is None):
        return None
    if site.spec.layout is not Layout.TUPLES:
        size = shape[site.axis or 0]
        return size if isinstance(size, int) else None
    dims = shape[: site.depth]
    if site.depth is None or not all(isinstance(dim, int) for dim in dims):
        return None
    return prod(dims)  # type: ignore[arg-type]


def _repeats(site: Site) -> bool:
    array, shape = site.index_array, site.data_shape
    if array is None or shape is None:
        return False
    if site.spec.layout is Layout.TUPLES:
        rows = array.reshape(-1, array.shape[-1]) % np.array(shape[: array.shape[-1]])
        return len({tuple(row) for row in rows.tolist()}) < len(rows)
    counted = array % shape[site.axis or 0]
    if site.spec.layout is Layout.SLICES:
        return len(set(counted.reshape(-1).tolist())) < counted.size
    return bool((np.diff(np.sort(counted, site.axis), axis=site.axis) == 0).any())


def _differ_elsewhere(site: Site) -> bool:
    array, axis = site.index_array, site.axis
    assert array is not None
    assert axis is not None
    lines = np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
    return bool((lines != lines[:, :1]).any())


def _changes_layout(site: Site, rewrite: Rewrite) -> bool:
    return site.spec.layout is Layout.ELEMENTS and rewrite.target.layout is Layout.SLICES


def _is_one_list(site: Site) -> bool:
    shape, axis = site.indices_shape, site.axis
    if shape is None or axis is None:
        return False
    return all(dim == 1 for place, dim in enumerate(shape) if place != axis)


def _differ(left: Dim, right: Dim) -> bool:
    return _least(left) > _most(right) or _least(right) > _most(left)


def _least(dim: Dim) -> float:
    return dim if isinstance(dim, int) else dim.low


def _most(dim: Dim) -> float:
    if isinstance(dim, int):
        return dim
    return float("inf") if dim.high is None else dim.high


def _shown(type: str, target: OpSpec) -> str:
    from ir_scatter.elements import ELEMENT_TYPES

    return target.show_type(ELEMENT_TYPES[type])


def reason_of(outcome: Any) -> str:
    """Return the code of an outcome, "" if it is none."""
    return str(outcome.code) if isinstance(outcome, Refusal) else ""


def shape_is_static(shape: Shape) -> bool:
    return shape is not None and all(isinstance(dim, int) for dim in shape)
