"""Whether the reason of a refusal is true: one question for each code, asked of one actual case.

What a file proves holds for every case that it allows, so that it must hold for the one at hand.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from ir_scatter.analysis.conditions import Condition
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.core.shapes import Dim, static
from ir_scatter.ops.spec import IndicesLimit, Layout, OpSpec, Reduction, Role
from ir_scatter.rewrites.base import Rewrite
from ir_scatter.rewrites.refusals import Reason, Refusal
from tests.rewrites.forms import indices_equal, opset_of, targets_differ


@dataclass(frozen=True)
class Refused:
    """A refusal of a node as the file shows it, and an actual case of the node: its arrays and its axis."""

    refusal: Refusal
    site: ScatterNode
    rewrite: Rewrite
    promises: Collection[Condition]
    arrays: Mapping[Role, Any]
    axis: int | None

    @property
    def target(self) -> OpSpec:
        return self.rewrite.target

    @property
    def is_lost(self) -> bool:
        """Tell whether the target cannot say how updates meet old values."""
        reduction = self.site.reduction
        if reduction is Reduction.NONE:
            return False
        is_dropped = self.site.attribute("use_init_val") is False
        return reduction not in self.target.reductions.values() or (
            is_dropped and self.target.attribute("use_init_val") is None
        )

    @property
    def becomes_slices(self) -> bool:
        return self.site.spec.layout is Layout.ELEMENTS and self.target.layout is Layout.SLICES

    @property
    def other_axes(self) -> list[int]:
        rank = self.arrays[Role.DATA].ndim
        return [place for place in range(rank) if place != (self.axis or 0) % rank]


def demand_true(refused: Refused) -> None:
    """Demand that what a refusal says is so."""
    refusal = refused.refusal
    question = _QUESTIONS.get(refusal.code)
    assert question is not None, f"{refusal.code} of a legal node with a rewrite: {refusal.message}"
    assert question(refused), f"not true: {refusal.code} {refusal.message}"


def _no_such_reduction(refused: Refused) -> bool:
    """Only where the type itself stands in the way.

    A difference needs negative values or a wider type to be a sum; a sum from nothing needs a zero.
    """
    data, reduction = refused.site.data, refused.site.reduction
    assert data is not None
    assert data.element_type is not None
    type = data.element_type.name
    assert type in refused.refusal.message
    if not refused.is_lost:
        return False
    if not refused.site.spec.key.domain:
        opset = opset_of(refused.target)
        is_narrow = data.element_type.kind in {"signed", "unsigned"} and data.element_type.bits < 32
        return data.element_type.kind == "complex" or (is_narrow and opset is not None and opset < 14)
    if reduction is Reduction.SUB:
        return type == "u64"
    return reduction is Reduction.SUM and type == "f8e8m0"


def _unknown(refused: Refused) -> bool:
    """Only what is needed, was not promised and is not to be seen in the file."""
    (condition,) = (one for one in Condition if one in refused.refusal.message)
    if condition is Condition.FULL:
        return refused.becomes_slices and condition not in refused.promises and not _reaches(refused)
    if condition is Condition.EQUAL:
        is_seen = refused.site.index_array is not None or _is_one_list(refused.site)
        return (
            refused.becomes_slices
            and condition not in refused.promises
            and not (is_seen and _reaches(refused))
        )
    if condition in refused.promises or _is_decided(refused.site):
        return False
    count = _count(refused.site)
    return condition is Condition.UNIQUE and refused.is_lost and (count is None or count > 1)


def _reaches(refused: Refused) -> bool:
    """Tell whether the file says that indices are as long as data on every other axis."""
    data, indices = refused.site.data_shape, refused.site.indices_shape
    if data is None or indices is None or refused.site.axis is None:
        return False
    return all(isinstance(data[place], int) and data[place] == indices[place] for place in refused.other_axes)


def _is_decided(site: ScatterNode) -> bool:
    """Tell whether constant indices say it all: negative ones count on a size that may not be known."""
    array, shape = site.index_array, site.data_shape
    if array is None:
        return False
    if site.spec.layout is not Layout.TUPLES and site.axis is None:
        return False
    if not array.size or int(array.min()) >= 0:
        return True
    if shape is None:
        return False
    dims = shape[: array.shape[-1]] if site.spec.layout is Layout.TUPLES else (shape[site.axis or 0],)
    return static(dims) is not None


def _violated(refused: Refused) -> bool:
    message = refused.refusal.message
    if "positions" in message and "unique" in message:
        return refused.is_lost and _is_longer(refused)
    if "unique" in message:
        return refused.is_lost and not targets_differ(refused.site.spec, refused.arrays, refused.axis)
    assert refused.axis is not None
    is_so = refused.becomes_slices and not indices_equal(refused.arrays, refused.axis)
    if "reach" not in message:
        return is_so and refused.site.index_array is not None
    shapes = [refused.arrays[role].shape for role in (Role.DATA, Role.INDICES)]
    return is_so and any(shapes[0][place] != shapes[1][place] for place in refused.other_axes)


def _type_unknown(refused: Refused) -> bool:
    data = refused.site.data
    return data is not None and data.element_type is None and refused.is_lost


def _target_forbids(refused: Refused) -> bool:
    """Only where the text of the target forbids the type, the sizes or the reduction of it."""
    data, port, target = refused.site.data, refused.target.port(Role.DATA), refused.target
    assert data is not None
    assert port is not None
    type = None if data.element_type is None else data.element_type.name
    if type is not None and type not in port.element_types:
        return f" {target.show_type(ELEMENT_TYPES[type])}" in refused.refusal.message
    excluded = target.reduction_excludes.get(refused.site.reduction or Reduction.NONE, frozenset())
    return type in excluded or (
        target.layout is Layout.ELEMENTS
        and target.indices_limit is IndicesLimit.EVERYWHERE
        and _is_longer(refused)
    )


def _is_longer(refused: Refused) -> bool:
    """Tell whether there are more indices than positions, counted as the target counts them."""
    data, indices = (refused.arrays[role].shape for role in (Role.DATA, Role.INDICES))
    if refused.site.spec.layout is Layout.TUPLES:
        return bool(prod(indices[:-1]) > prod(data[: indices[-1]]))
    assert refused.axis is not None
    if refused.site.spec.layout is Layout.SLICES:
        return bool(prod(indices) > data[refused.axis])
    return bool(indices[refused.axis] > data[refused.axis])


def _no_form(refused: Refused) -> bool:
    shape = refused.arrays[Role.INDICES].shape
    return refused.becomes_slices and any(shape[place] == 0 for place in refused.other_axes)


_QUESTIONS: Mapping[Reason, Callable[[Refused], bool]] = {
    Reason.NO_SUCH_REDUCTION: _no_such_reduction,
    Reason.CONDITION_UNKNOWN: _unknown,
    Reason.CONDITION_VIOLATED: _violated,
    Reason.TYPE_UNKNOWN: _type_unknown,
    Reason.TARGET_BREAKS_RULES: _target_forbids,
    Reason.NO_FORM: _no_form,
}
"""CVT101 to CVT103 and CVT109 have no business with a legal node that a rewrite leads from."""


def _count(site: ScatterNode) -> int | None:
    """Return how many elements of one line, tuples or indices there are; None if not known."""
    shape = site.indices_shape
    if shape is None:
        return None
    dims: tuple[Dim, ...] = shape
    if site.spec.layout is Layout.TUPLES:
        dims = shape[:-1]
    elif site.spec.layout is Layout.ELEMENTS:
        if 0 in shape:
            return 0
        if site.axis is None:
            return None
        dims = (shape[site.axis],)
    if 0 in dims:
        return 0
    known = static(dims)
    return None if known is None else prod(known)


def _is_one_list(site: ScatterNode) -> bool:
    shape, axis = site.indices_shape, site.axis
    if shape is None or axis is None:
        return False
    return all(dim == 1 for place, dim in enumerate(shape) if place != axis)
