"""OpenVINO's constant folding of slices."""

from math import prod

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.shapes import is_static
from ir_scatter.defects.base import (
    Defect,
    Known,
    Meeting,
    Probe,
    Stage,
    Symptom,
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
    avoid="keep an input from being constant, or fold the node with NumPy",
    reads=frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES, Fact.AXIS, Fact.INDEX_FAULTS}),
)
def one_behind_the_axis_folded(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO folds slices of constants wrongly where updates have a dimension of 1 behind the axis.

    Where there is more than one index, and a dimension of 1 of data stands behind the axis and another
    size, or indices end with a dimension of 1 in front of such a size, updates of other places are taken.
    All of 502 drawn cases, right and wrong, are told apart by that.
    """
    if scatter.spec.layout is not Layout.SLICES:
        return None
    data, indices, axis = scatter.data_shape, scatter.indices_shape, scatter.axis
    found = Known(None, "a dimension behind the axis is 1")
    if data is not None and axis is not None and is_static(indices) and is_static(data[axis + 1 :]):
        behind = data[axis + 1 :]
        first = next((number for number, dim in enumerate(behind) if dim != 1), len(behind))
        ends_with_one = len(indices) > 1 and indices[-1] == 1 and first < len(behind)
        found = Known(prod(indices) > 1 and (1 in behind[first:] or ends_with_one))
        if found.truth and (scatter.repeats is not None or data[axis] == 1):
            found = Known(None, "updates of one target differ")  # any of them may be the last
    return meets(
        "updates have a dimension of 1 behind the axis", [found, has_elements(scatter)], Role.UPDATES
    )


@Defect(
    "DEV202",
    "scalar-index-of-a-row-folded",
    ("openvino:fold",),
    Symptom.REFUSED,
    strikes=Stage.COMPILE,
    probes=(Probe("0-d", "ScatterUpdate-3", (4,), 2, 9, 0, constants=_ALL),),
    near=(Probe("1-d", "ScatterUpdate-3", (4,), [2], [9], 0, constants=_ALL),),
    avoid="give indices one dimension",
    reads=frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES}),
)
def scalar_index_of_a_row_folded(scatter: ScatterNode) -> Meeting | None:
    """Folding a 0-D index into 1-D data ends with "vector::_M_range_check", and the model is not compiled."""
    if scatter.spec.layout is not Layout.SLICES:
        return None
    conditions = [rank_of(scatter.indices_shape, 0, "indices"), rank_of(scatter.data_shape, 1, "data")]
    return meets("indices have no dimensions and data has one", conditions, Role.INDICES)
