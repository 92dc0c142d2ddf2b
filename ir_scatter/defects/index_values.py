"""Defects: indices that the specification forbids but a device accepts; most are known only at run time."""

from collections.abc import Collection, Iterator
from dataclasses import replace

from ir_scatter.analysis.ranges import bounds_of
from ir_scatter.analysis.requirements import least_sizes
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import EVERYTHING
from ir_scatter.analysis.symbolic import is_always_in_range, is_never_negative, range_conditions
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.shapes import UNKNOWN_DIM, Dim, element_count, lowest
from ir_scatter.core.words import listed
from ir_scatter.defects.base import Defect, Meeting, Probe, Stage, Symptom, Ternary, rank_of
from ir_scatter.defects.element_types import element_type_is
from ir_scatter.ops.general_bounds import ANY, Interval
from ir_scatter.ops.index_values import negative
from ir_scatter.ops.spec import Layout, Role

_OUTSIDE, _NEGATIVE = "index-out-of-range", "negative-index"
_BELOW, _ABOVE = "below", "above"
_FAR = 500_000_000
"""An index so far outside of a small tensor that a write there certainly crashes; in elements."""
_ROW, _ROW_SIZE = "row", 64
_ROW_TYPES = ("i16", "i32", "i64", "u16", "u32", "u64")
_MOST_CONDITIONS = 3
"""Maximum conditions, listed in a finding, under which indices stay in range; `contract` lists all."""
_CLAMP = (Parameter("guard", "clamp"),)


def _outside(form: Probe) -> Iterator[Probe]:
    """Yield variants of a probe on an axis of size 4: one index below the range, and one above it."""
    for side, index in ((_BELOW, -6), (_ABOVE, 6)):
        indices = [index] if form.axis is not None else [[index]]
        yield replace(form, name=f"{form.name}-{side}", indices=indices, breaks=_OUTSIDE)


_FORMS = (
    Probe(_ROW, "ScatterUpdate-3", (4,), None, (1,), 0, "i32"),
    Probe(Layout.SLICES, "ScatterUpdate-3", (4, 3), None, (1, 3), 0),
    Probe(Layout.ELEMENTS, "ScatterElementsUpdate-12", (4,), None, (1,), 0),
    Probe(Layout.TUPLES, "ScatterNDUpdate-3", (4, 3), None, (1, 3), None),
)


@Defect(
    "DEV140",
    "index-out-of-range-taken",
    ("openvino:CPU", "openvino:GPU"),
    Symptom.ACCEPTED_ILLEGAL,
    strikes=Stage.RUN,
    probes=(
        *[probe for form in _FORMS for probe in _outside(form)],
        Probe("row-below-as-negative", "ScatterUpdate-3", (4,), [-1], (1,), 0, "i32", breaks=_NEGATIVE),
        Probe("slices-below-as-negative", "ScatterUpdate-3", (4, 3), [-1], (1, 3), 0, breaks=_NEGATIVE),
        Probe("row-above-far", "ScatterUpdate-3", (4,), [_FAR], (1,), 0, "i32", breaks=_OUTSIDE),
        Probe("elements-below-far", "ScatterElementsUpdate-12", (4,), [-_FAR], (1,), 0, breaks=_OUTSIDE),
    ),
    near=(
        Probe("row-ends", "ScatterUpdate-3", (4,), [0, 3], (2,), 0, "i32"),
        Probe("elements-ends", "ScatterElementsUpdate-12", (4,), [-4, 3], (2,), 0),
        Probe("tuples-ends", "ScatterNDUpdate-3", (4, 3), [[0], [3]], (2, 3), None),
    ),
    avoid="limit indices to their range",
    fixed_by=_CLAMP,
    per_model=Severity.WARNING,
    reads=EVERYTHING,
)
def index_out_of_range_taken(scatter: ScatterNode) -> Meeting | None:
    """The plugin does not check index bounds.

    OpenVINO's CPU plugin checks them with two exceptions: ScatterUpdate on 1-D data of up to 64 integers of
    16 bits or more, such as shapes, and indices below -s (s: the size on the axis) of ScatterElementsUpdate.
    There it writes outside of data, and crashes if the index is far away. The GPU plugin never checks.
    Negative indices of ScatterUpdate are out of range too: no version counts them from the end.
    """
    return _outside_of_range(scatter, index_out_of_range_taken)


@Defect(
    "DEV143",
    "refusal-lost-on-one-thread",
    ("openvino:CPU",),
    Symptom.ACCEPTED_ILLEGAL,
    strikes=Stage.RUN,
    probes=tuple(
        replace(form, name=f"{form.name}-alone", threads=1)
        for plain in _FORMS
        for form in _outside(plain)
        if plain.name != _ROW and not (plain.name == Layout.ELEMENTS and form.name.endswith(_BELOW))
    ),
    near=(Probe("legal", "ScatterNDUpdate-3", (4, 3), [[3]], (1, 3), None, threads=1),),
    avoid="run with at least two threads (INFERENCE_NUM_THREADS), or limit indices to their range",
    fixed_by=_CLAMP,
    per_model=Severity.WARNING,
)
def refusal_lost_on_one_thread(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's CPU plugin loses the error about an index that is out of range if it runs on one thread.

    With two threads or more the run is refused: "indices value that points to non-existing output tensor
    element". With one thread the run succeeds, and the output holds arbitrary memory.
    """
    meeting = _outside_of_range(scatter, refusal_lost_on_one_thread)
    when = " and ".join(filter(None, (meeting.when, "one thread computes"))) if meeting else ""
    return meeting and meeting._replace(when=when)


def _outside_of_range(scatter: ScatterNode, defect: Defect) -> Meeting | None:
    """Return a `Meeting` if the indices of a node are out of range, or may be at run time."""
    layout = scatter.spec.layout
    if layout is Layout.SEQUENCE or 0 in {
        element_count(scatter.data_shape),
        element_count(scatter.indices_shape),
    }:
        return None
    bad = scatter.out_of_range
    if scatter.has_constant_indices:
        array = scatter.index_array
        if bad is None and layout is Layout.SLICES and array is not None and scatter.limits is not None:
            bad = negative(array, scatter.limits)
        if bad is not None:
            names = _names(scatter, defect, [_BELOW if bad.value < 0 else _ABOVE], is_near=True)
            reason, when = f"indices hold {bad.value}, which is out of range", ""
        else:
            least = next(least_sizes(scatter), None)
            if least is None:
                return None
            names = _names(scatter, defect, _open_sides(scatter), is_near=True)
            reason, when = least.reason, f"{least.name} is less than {least.size}"
    else:
        names = _names(scatter, defect, _open_sides(scatter))
        reason = "indices are known only when the model runs"
        conditions = range_conditions(scatter, as_declared=True) if names else []
        excluded = f" (not if {listed(conditions)})" if 0 < len(conditions) <= _MOST_CONDITIONS else ""
        when = f"one is out of range{excluded}"
    return Meeting(reason, Role.INDICES, when=when, probes=names) if names else None


def _names(
    scatter: ScatterNode, defect: Defect, sides: Collection[str], *, is_near: bool = False
) -> tuple[str, ...]:
    """Return the names of the probes that show a defect if indices leave the range on these sides."""
    layout = scatter.spec.layout
    forms = [layout.value] if layout is not Layout.SLICES or _is_row(scatter) is not True else []
    if layout is Layout.SLICES and _is_row(scatter) is not False:
        forms.append(_ROW)
    beginnings = tuple([f"{form}-{side}" for form in forms for side in sides])
    names = [probe.name for probe in defect.probes if probe.name.startswith(beginnings)]
    return tuple([name for name in names if not (is_near and name.endswith("far"))])


def _open_sides(scatter: ScatterNode) -> set[str]:
    """Return the sides ("below", "above") on which runtime indices may be out of range."""
    if is_always_in_range(scatter, as_declared=True):
        return set()
    sides, never_counts_from_the_end = set[str](), scatter.spec.layout is Layout.SLICES
    for size, (low, high) in index_bounds(scatter):
        least = lowest(size)
        if low < (0 if never_counts_from_the_end else -least):
            sides.add(_BELOW)
        if high >= least:
            sides.add(_ABOVE)
    return sides


def index_bounds(scatter: ScatterNode) -> list[tuple[Dim, Interval]]:
    """Return, for each coordinate of an index, the size of its dimension and the bounds of its values."""
    layout, data, axis = scatter.spec.layout, scatter.data_shape, scatter.axis
    count = scatter.depth if layout is Layout.TUPLES else 1
    if count is None or scatter.indices is None:
        return [(UNKNOWN_DIM, ANY)]
    first = 0 if layout is Layout.TUPLES else axis
    dims = () if data is None or first is None else data[first : first + count]
    sizes = [*dims, *[UNKNOWN_DIM] * count][:count]
    bounds = bounds_of(scatter.facts, scatter.indices.value, count)
    may_be_negative = any(bound.low < 0 for bound in bounds) and not scatter.has_constant_indices
    if may_be_negative and is_never_negative(scatter, as_declared=True):
        bounds = tuple([Interval(max(bound.low, 0), bound.high) for bound in bounds])
    return [*zip(sizes, bounds, strict=True)]


def _is_row(scatter: ScatterNode) -> bool | None:
    """Return whether data is 1-D and has at most 64 integers, as shapes do; None if unknown."""
    data, indices = rank_of(scatter.data_shape, 1, ""), rank_of(scatter.indices_shape, 1, "")
    count = element_count(scatter.data_shape)
    size = Ternary(None if count is None else count <= _ROW_SIZE)
    type = element_type_is(scatter, *_ROW_TYPES)
    truths = {condition.truth for condition in (data, indices, size, type)}
    return False if False in truths else None if None in truths else True
