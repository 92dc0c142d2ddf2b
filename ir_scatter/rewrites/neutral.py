"""The value that a reduction starts from where old values take no part in it."""

from typing import TYPE_CHECKING, Any

from ir_scatter.core.element_types import ElementType, dtype
from ir_scatter.core.model import Value
from ir_scatter.core.shapes import Shape
from ir_scatter.ops.spec import Reduction
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.refusals import Reason, Refusal
from ir_scatter.rewrites.view import View

if TYPE_CHECKING:
    import numpy as np


def neutral(view: View, build: Builder, dims: Value, shape: Shape) -> "Value | Refusal":
    """Return the value that changes no update, repeated to a shape, as it is computed and as it is known."""
    type = view.data.element_type
    if type is None:
        return Refusal(Reason.TYPE_UNKNOWN, "the element type of data is not known, expected one")
    found = neutral_value(type, view.reduction)
    if found is None:
        message = f"reduction {view.reduction} of {type.name} starts from no value"
        return Refusal(Reason.NO_SUCH_REDUCTION, message)
    start = build.constant(found, "start_value", type)
    return build.broadcast(start, dims, "start_values", shape)


def neutral_value(type: ElementType, reduction: Reduction) -> Any:
    """Return the value that changes nothing, None if there is none."""
    known = dtype(type)
    if known is None or reduction in {Reduction.NONE, Reduction.MEAN, Reduction.SUB}:
        return None
    if type.kind == "boolean":
        return reduction in {Reduction.PROD, Reduction.MIN}
    if reduction is Reduction.PROD:
        return known.type(1)
    if reduction is Reduction.SUM:
        zero = known.type(-0.0) if type.kind == "float" else known.type(0)
        return zero if zero == zero else None  # a type without a zero gives NaN
    return _end(known, type, is_greatest=reduction is Reduction.MIN)


def _end(known: "np.dtype[Any]", type: ElementType, *, is_greatest: bool) -> Any:
    """Return the greatest or the least value of a type."""
    import ml_dtypes
    import numpy

    if type.kind == "float":
        largest = known.type(float("inf"))
        if not numpy.isinf(largest.astype(numpy.float32)):
            largest = ml_dtypes.finfo(known).max  # type: ignore[no-untyped-call]
        least = known.type(-largest)
        if least != least:  # there are no negative values
            least = ml_dtypes.finfo(known).smallest_normal  # type: ignore[no-untyped-call]
        return largest if is_greatest else least
    if type.kind in {"signed", "unsigned"}:
        limits = ml_dtypes.iinfo(known)  # type: ignore[no-untyped-call]
        return known.type(limits.max if is_greatest else limits.min)
    return None
