"""What OpenVINO's GPU plugin refuses or gets wrong; seen on its stand-in, which is the plugin's own code."""

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.shapes import Shape, element_count, is_static
from ir_scatter.defects.base import Defect, Known, Meeting, Probe, Symptom, has_elements, meets
from ir_scatter.defects.element_types import element_type_is
from ir_scatter.defects.index_values import index_bounds
from ir_scatter.ops.spec import IndexRange, Layout, Reduction, Role

_GPU = ("openvino:GPU",)
_TYPES = frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.TYPES, Fact.SHAPES})
_SMALL = ("u2", "f4e2m1", "f8e5m2", "f8e8m0")
_REFUSED = {
    Layout.SLICES: _SMALL,
    Layout.TUPLES: (*_SMALL, "f8e4m3"),
    Layout.ELEMENTS: (*_SMALL, "f8e4m3", "i4", "u4", "i8", "u8", "boolean"),
}
_OF_INDICES = ("u2", "i4", "u4", "i8", "u8")
_LARGEST_RANK = 6


@Defect(
    "DEV301",
    "axis-not-constant-refused",
    _GPU,
    Symptom.REFUSED,
    probes=(
        Probe("slices", "ScatterUpdate-3", (3, 2), [1], (1, 2), 0, constants=frozenset()),
        Probe("elements", "ScatterElementsUpdate-12", (3, 2), (1, 2), (1, 2), 0, constants=frozenset()),
    ),
    near=(Probe("constant", "ScatterUpdate-3", (3, 2), [1], (1, 2), 0),),
    avoid="make the axis a constant",
    stays=True,
    reads=frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.AXIS}),
)
def axis_not_constant_refused(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's GPU plugin needs the axis when it compiles: "Unsupported parameter nodes type"."""
    if (
        scatter.spec.axis is None
        or scatter.spec.axis.attribute is not None
        or scatter.written_axis is not None
    ):
        return None
    return Meeting("the axis is no constant", Role.AXIS)


@Defect(
    "DEV302",
    "large-rank-refused",
    _GPU,
    Symptom.REFUSED,
    probes=(
        Probe("slices", "ScatterUpdate-3", (1, 1, 1, 1, 1, 1, 2), [1], (1, 1, 1, 1, 1, 1, 1), 6),
        Probe("tuples", "ScatterNDUpdate-3", (2, 1, 1, 1, 1, 1, 1), [[1]], (1, 1, 1, 1, 1, 1, 1), None),
    ),
    near=(Probe("six", "ScatterUpdate-3", (1, 1, 1, 1, 1, 2), [1], (1, 1, 1, 1, 1, 1), 5),),
    avoid="reshape data to six dimensions at most",
    reads=frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES}),
)
def large_rank_refused(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's GPU plugin has no tensors of more than six dimensions there."""
    ranks = {port.port.role: None if port.shape is None else len(port.shape) for port in scatter.operands()}
    for role, rank in ranks.items():
        if rank is not None and rank > _LARGEST_RANK:
            return Meeting(f"{role.value} has rank {rank}", role)
    return None


@Defect(
    "DEV303",
    "element-types-refused",
    _GPU,
    Symptom.REFUSED,
    probes=(
        *(
            Probe(f"slices-{one}", "ScatterUpdate-3", (4,), [2], (1,), 0, one)
            for one in _REFUSED[Layout.SLICES]
        ),
        *(
            Probe(f"elements-{one}", "ScatterElementsUpdate-12", (4,), [2], (1,), 0, one)
            for one in _REFUSED[Layout.ELEMENTS]
        ),
        *(
            Probe(f"tuples-{one}", "ScatterNDUpdate-3", (4,), [[2]], (1,), None, one)
            for one in _REFUSED[Layout.TUPLES]
        ),
    ),
    near=(
        Probe("slices-i8", "ScatterUpdate-3", (4,), [2], (1,), 0, "i8"),
        Probe("elements-f16", "ScatterElementsUpdate-12", (4,), [2], (1,), 0, "f16"),
        Probe("tuples-u8", "ScatterNDUpdate-3", (4,), [[2]], (1,), None, "u8"),
    ),
    avoid="convert to f16 or i32 in front of the node, and back behind it",
    reads=_TYPES,
)
def element_types_refused(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's GPU plugin has no kernel of these types: "No layout format available"."""
    found = element_type_is(scatter, Role.DATA, *_REFUSED.get(scatter.spec.layout, ()))
    operand = scatter.data
    known = operand.element_type.name if operand is not None and operand.element_type else "of a small type"
    return meets(f"data is {known}", [found, has_elements(scatter)], Role.DATA)


@Defect(
    "DEV304",
    "index-types-refused",
    _GPU,
    Symptom.REFUSED,
    probes=(
        *(Probe(one, "ScatterElementsUpdate-12", (4,), [1], (1,), 0, "f32", one) for one in _OF_INDICES),
        Probe("slices-u2", "ScatterUpdate-3", (4,), [1], (1,), 0, "f32", "u2"),
    ),
    near=(Probe("slices-u8", "ScatterUpdate-3", (4,), [2], (1,), 0, "f32", "u8"),),
    avoid="convert indices to i32",
    reads=_TYPES,
)
def index_types_refused(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's GPU plugin takes indices of i16, i32, i64 and their unsigned ones for elements."""
    types = _OF_INDICES if scatter.spec.layout is Layout.ELEMENTS else ("u2",)
    found = element_type_is(scatter, Role.INDICES, *types)
    return meets("indices are of a small type", [found, has_elements(scatter)], Role.INDICES)


@Defect(
    "DEV305",
    "reduction-of-tuples-refused",
    _GPU,
    Symptom.REFUSED,
    probes=tuple(
        Probe(word, "ScatterNDUpdate-15", (4,), [[2]], (1,), None, attributes={"reduction": word})
        for word in ("sum", "sub", "prod", "min", "max")
    ),
    near=(Probe("none", "ScatterNDUpdate-15", (4,), [[2]], (1,), None),),
    avoid="convert it to elements",
    reads=frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.ATTRIBUTES}),
)
def reduction_of_tuples_refused(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's GPU plugin has tuples with reduction none only: the operator "is not supported"."""
    if scatter.spec.layout is not Layout.TUPLES or scatter.reduction in {None, Reduction.NONE}:
        return None
    return Meeting(f"the reduction of tuples is {scatter.attribute('reduction')}")


@Defect(
    "DEV306",
    "negative-tuples-written-elsewhere",
    _GPU,
    Symptom.WRONG_VALUE,
    probes=(
        Probe("two", "ScatterNDUpdate-15", (2, 3), [[-1, -2]], (1,), None),
        Probe("row", "ScatterNDUpdate-15", (3, 4), [[-1]], (1, 4), None),
        Probe("open", "ScatterNDUpdate-15", (4,), [[-1]], (1,), None, shapes="dynamic"),
        Probe("two-forbidden", "ScatterNDUpdate-3", (2, 3), [[-1, -2]], (1,), None, breaks="negative-index"),
        Probe("row-forbidden", "ScatterNDUpdate-3", (3, 4), [[-1]], (1, 4), None, breaks="negative-index"),
    ),
    near=(
        Probe("negative", "ScatterNDUpdate-15", (4,), [[-1]], (1,), None),
        Probe("positive", "ScatterNDUpdate-15", (2, 3), [[1, 2]], (1,), None),
    ),
    avoid="add the size to negative indices in front of the node (`ir-scatter convert --guard wrap`)",
    per_model=Severity.WARNING,
)
def negative_tuples_written_elsewhere(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's GPU plugin does not count negative indices of tuples from the end.

    Unless data is a row of a known size, it writes in front of the place that is meant, outside of data too.
    Where the version forbids them CPU and folding count them from the end: what works there does not here.
    """
    if scatter.spec.layout is not Layout.TUPLES:
        return None
    ends = "" if scatter.spec.index_range is IndexRange.WRAPPING else "-forbidden"
    array = scatter.index_array
    if array is not None:
        found = Known(bool((array < 0).any()))
    else:
        lows = [low for _, (low, _) in index_bounds(scatter)]
        found = Known(None if any(low is None or low < 0 for low in lows) else False, "an index is negative")
    shape = scatter.data_shape
    is_more = Known(
        None if shape is None else len(shape) > 1 or not is_static(shape), "data is no static row"
    )
    conditions = [found, is_more]
    meeting = meets("indices of tuples may be negative", conditions, Role.INDICES)
    return meeting and meeting._replace(probes=(f"two{ends}", f"row{ends}", *([] if ends else ["open"])))


@Defect(
    "DEV307",
    "nothing-to-write-leaves-nothing",
    _GPU,
    Symptom.WRONG_VALUE,
    probes=(
        Probe("slices", "ScatterUpdate-3", (3, 4), (0,), (0, 4), 0),
        Probe("elements", "ScatterElementsUpdate-12", (2, 3), (0, 3), (0, 3), 0),
    ),
    near=(Probe("one", "ScatterUpdate-3", (3, 4), (1,), (1, 4), 0),),
    avoid="leave the node out where indices are empty",
    reads=frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES}),
)
def nothing_to_write_leaves_nothing(scatter: ScatterNode) -> Meeting | None:
    """Without indices OpenVINO's GPU plugin runs nothing, and does not even copy data to the output."""
    count = element_count(scatter.indices_shape)
    if scatter.indices is None or (count is None and not _may_be_empty(scatter.indices_shape)):
        return None
    found = Known(None if count is None else count == 0, "indices are empty")
    return meets("indices are empty", [found, has_elements(scatter)], Role.INDICES)


def _may_be_empty(shape: Shape) -> bool:
    """Tell whether a bound says that there may be no elements; of what is not bounded nothing is said."""
    return shape is not None and any(
        not isinstance(dim, int) and dim.low == 0 and dim.high is not None for dim in shape
    )
