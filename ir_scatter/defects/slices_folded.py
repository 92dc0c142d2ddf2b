"""Defects of OpenVINO's constant folding of ScatterUpdate."""

from math import prod

from ir_scatter.analysis.equal_elements import varying_axes
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.shapes import is_static
from ir_scatter.defects.base import (
    Defect,
    Meeting,
    Probe,
    Stage,
    Symptom,
    Ternary,
    has_elements,
    meets,
    rank_of,
)
from ir_scatter.ops.spec import Layout, Role

_ALL = frozenset(Role)


@Defect(
    "DEV201",
    "one-behind-the-axis-folded",
    ("openvino:fold",),
    Symptom.WRONG_VALUE,
    strikes=Stage.RUN,
    probes=(
        Probe("data", "ScatterUpdate-3", (3, 2, 1), [2, 0], (2, 2, 1), 0, constants=_ALL),
        Probe("indices", "ScatterUpdate-3", (3, 2), [[2], [0]], (2, 1, 2), 0, constants=_ALL),
    ),
    near=(
        Probe("empty", "ScatterUpdate-3", (2, 0, 1), [0, 1], (2, 0, 1), 0, constants=_ALL),
        Probe("first", "ScatterUpdate-3", (3, 1, 2), [2, 0], (2, 1, 2), 0, constants=_ALL),
        Probe("one-index", "ScatterUpdate-3", (3, 2, 1), [2], (1, 2, 1), 0, constants=_ALL),
        Probe("last", "ScatterUpdate-3", (2, 3), [[2], [0]], (2, 2, 1), 1, constants=_ALL),
    ),
    avoid="make an input of the node non-constant, or replace the node by its result",
    reads=frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES, Fact.AXIS, Fact.INDEX_FAULTS, Fact.VALUES}),
)
def one_behind_the_axis_folded(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO folds constant ScatterUpdate nodes wrongly if updates have a dimension of 1 after the axis.

    It writes updates of other positions if there is more than one index, and one of two conditions holds.
    After the axis, data has a dimension of another size and then a dimension of 1, as in [..., 3, 1]; or
    indices end with a dimension of 1, and data has a dimension of another size after the axis. This condition
    was correct in all of 502 random cases with different updates; if all updates are equal, it does not show.
    """
    if scatter.spec.layout is not Layout.SLICES:
        return None
    data, indices, axis = scatter.data_shape, scatter.indices_shape, scatter.axis
    is_misread = Ternary(None, "a dimension after the axis is 1")
    if data is not None and axis is not None and is_static(indices) and is_static(data[axis + 1 :]):
        after = data[axis + 1 :]
        first = next((number for number, dim in enumerate(after) if dim != 1), len(after))
        ends_with_one = len(indices) > 1 and indices[-1] == 1 and first < len(after)
        is_misread = Ternary(prod(indices) > 1 and (1 in after[first:] or ends_with_one))
        if is_misread.truth and (scatter.repeats is not None or data[axis] == 1):
            is_misread = Ternary(None, "updates of one element differ")  # any of them may be the last
        if is_misread.truth:
            is_misread = _updates_differ(scatter)
    return meets(
        "updates have a dimension of 1 after the axis", [is_misread, has_elements(scatter)], Role.UPDATES
    )


def _updates_differ(scatter: ScatterNode) -> Ternary:
    """Return whether it shows that updates of other positions are written; certainly not if all are equal."""
    updates = scatter.updates
    if updates is not None and varying_axes(scatter.facts, updates.value) == frozenset():
        return Ternary(False)
    array = None if updates is None else scatter.facts.array(updates.value)
    if array is not None and len(set(array.ravel().tolist())) == array.size:
        return Ternary(True)
    return Ternary(None, "updates that are exchanged differ")


@Defect(
    "DEV202",
    "scalar-index-of-a-row-folded",
    ("openvino:fold",),
    Symptom.REFUSED,
    strikes=Stage.COMPILE,
    probes=(Probe("0-d", "ScatterUpdate-3", (4,), 2, 9, 0, constants=_ALL),),
    near=(Probe("1-d", "ScatterUpdate-3", (4,), [2], [9], 0, constants=_ALL),),
    avoid="reshape indices to one dimension",
    reads=frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES}),
)
def scalar_index_of_a_row_folded(scatter: ScatterNode) -> Meeting | None:
    """Constant folding of a 0-D index into 1-D data fails with "vector::_M_range_check" at compile time."""
    if scatter.spec.layout is not Layout.SLICES:
        return None
    conditions = [rank_of(scatter.indices_shape, 0, "indices"), rank_of(scatter.data_shape, 1, "data")]
    return meets("indices have no dimensions and data has one", conditions, Role.INDICES)
