"""Defects of OpenVINO's GPU plugin, measured with the plugin's own code on the CPU OpenCL runtime."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod

from ir_scatter.analysis.scatter_node import Operand, ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.errors import Error
from ir_scatter.core.model import OPENVINO, Model, Node
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.shapes import Dim, Shape, element_count, is_static, lowest, static
from ir_scatter.defects.base import (
    Defect,
    Meeting,
    Probe,
    Stage,
    Symptom,
    Ternary,
    has_elements,
    is_folded,
    meets,
)
from ir_scatter.defects.element_types import are_there, element_type_is
from ir_scatter.defects.index_values import index_bounds
from ir_scatter.defects.shared_memory import is_output
from ir_scatter.formats import dataflow_of
from ir_scatter.ops.general import find, find_analysed
from ir_scatter.ops.spec import IndexRange, Layout, Reduction, Role

_GPU = ("openvino:GPU",)
_EMPTY = frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES, Fact.VALUES})
_TYPES = _EMPTY | {Fact.TYPES}
_SMALL = ("u2", "f4e2m1", "f8e5m2", "f8e8m0")
_REFUSED = {
    Layout.SLICES: _SMALL,
    Layout.TUPLES: (*_SMALL, "f8e4m3"),
    Layout.ELEMENTS: (*_SMALL, "f8e4m3", "i4", "u4", "i8", "u8", "boolean"),
}
_OF_INDICES = ("u2", "i4", "u4", "i8", "u8")
_SUM = {"reduction": "sum"}
_AXIS, _DATA, _INDICES, _UPDATES = (
    frozenset({role}) for role in (Role.AXIS, Role.DATA, Role.INDICES, Role.UPDATES)
)
_BOTH = _AXIS | _INDICES
_OF_FIVE = [[[[[0, 0, 1, 0, 1], [1, 0, 0, 1, 0]], [[1, 1, 0, 0, 0], [0, 1, 1, 1, 1]]]]]
"""Indices of shape [1, 1, 2, 2, 5]."""
_OF_FOUR = [[[0, 1, 0, 1], [1, 0, 1, 1]]]
"""Indices of shape [1, 2, 4]."""
_LARGEST_RANK, _LARGEST_RANK_OF_SLICES = 6, 8
_LEAST_RANK = 4
"""Minimum rank of tensors inside the plugin: it appends dimensions of 1 to data of lower rank."""
_KEEPS_ELEMENTS = frozenset({"Concat", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
"""Operators whose outputs contain every element of their inputs."""
_PARAMETER, _RESULTS = "Parameter", frozenset({"Result"})
_MOST_PARTS = 1000
"""Maximum values upstream of indices that are searched for a negative constant."""
_NEGATED_TWICE = ("Negative", "Negative")
"""Operators that together leave data unchanged, although the plugin computes each of them."""
_CONVERTED_INPUTS = ("f16", "f64")
"""Element types of inputs that the plugin converts to f32, if it computes in f32."""
_BEFORE_FILLED = 2
"""To raise a tensor's rank, the plugin inserts dimensions of 1 after this many leading dimensions."""


@Defect(
    "DEV301",
    "axis-not-constant-refused",
    _GPU,
    Symptom.REFUSED,
    strikes=Stage.COMPILE,
    probes=(
        Probe("slices", "ScatterUpdate-3", (3, 2), [1], (1, 2), 0, constants=frozenset()),
        Probe("elements", "ScatterElementsUpdate-12", (3, 2), (1, 2), (1, 2), 0, constants=frozenset()),
    ),
    near=(
        Probe("constant", "ScatterUpdate-3", (3, 2), [1], (1, 2), 0),
        Probe("nothing", "ScatterUpdate-3", (5,), (0,), (0,), 0, constants=_DATA),
    ),
    avoid="make the axis a constant",
    stays=True,
)
def axis_not_constant_refused(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's GPU plugin needs a constant axis: otherwise "Unsupported parameter nodes type".

    A node with empty indices is usually removed before: if its data is computed, or its output feeds other
    nodes.
    """
    spec = scatter.spec.axis
    if spec is None or spec.attribute is not None or scatter.written_axis is not None:
        return None
    return meets("the axis is not a constant", [_is_kept(scatter)], Role.AXIS)


def _is_kept(scatter: ScatterNode) -> Ternary:
    """Return whether OpenVINO keeps a node in the compiled model; it may remove one with empty indices.

    It replaces a node that writes nothing by its data, except for ScatterElementsUpdate of opset 12 and ONNX.
    It keeps such a node if its data is an input, and its output an output, of its graph. It may keep one
    whose data comes from a node with several outputs, or is also an output. Constant data is folded. An input
    of a type that the plugin converts does not count as one, because a Convert follows it.
    """
    data, layout = scatter.data, scatter.spec.layout
    is_plain = scatter.spec.key.domain == OPENVINO and len(scatter.spec.reductions) <= 1
    is_never_left_out = layout is Layout.ELEMENTS and not is_plain
    updates = scatter.updates.shape if scatter.updates is not None else None
    if data is None or is_never_left_out or 0 not in map(element_count, (scatter.indices_shape, updates)):
        return Ternary(True)
    is_graph_output = _is_graph_output(scatter.node)
    may_be_graph_output = is_graph_output or any(map(_may_vanish, _consumers(scatter.node)))
    if is_folded(scatter, data.value) is True or not may_be_graph_output:
        return Ternary(False)
    source, unknown = data.value.producer, Ternary(None, "OpenVINO keeps a node that writes nothing")
    if source is None or source.type == _PARAMETER:
        is_main = scatter.facts.model is None or scatter.node.graph is scatter.facts.model.graph
        is_converted = element_type_is(scatter, *_CONVERTED_INPUTS).truth is not False
        return Ternary(True) if is_main and is_graph_output and not is_converted else unknown
    is_lone = len(source.outputs) == 1 and not _is_graph_output(source) and not _may_vanish(source)
    return Ternary(False) if is_lone else unknown


def _may_vanish(node: Node) -> bool:
    """Return whether OpenVINO may replace a node by its input: it computes nothing, like Reshape."""
    op = find(node.domain, node.type)
    return op is not None and bool(op.view or op.copies)


def _consumers(node: Node) -> Iterator[Node]:
    """Yield the nodes of the same graph that read an output of a node."""
    for reader in node.graph.walk():
        if any(port.value is not None and port.value.producer is node for port in reader.inputs):
            yield reader


def _is_graph_output(node: Node) -> bool:
    """Return whether an output of a node is an output of its graph."""
    if any(is_output(value, node.graph) for value in node.outputs):
        return True
    read = [port.value for result in node.graph.walk(_RESULTS) for port in result.inputs]
    return any(value is not None and value.producer is node for value in read)


def _is_compiled(scatter: ScatterNode) -> Ternary:
    """Return whether a node is compiled: always in the main graph, in a body unless its data is empty."""
    model = scatter.facts.model
    if element_count(scatter.data_shape) == 0 and model is not None and scatter.node.graph is not model.graph:
        return Ternary(None, "its body is compiled although data is empty")
    return _is_kept(scatter)


@Defect(
    "DEV302",
    "large-rank-refused",
    _GPU,
    Symptom.REFUSED,
    strikes=Stage.COMPILE,
    probes=(
        Probe("slices", "ScatterUpdate-3", (1, 1, 1, 1, 1, 1, 2), [1], (1, 1, 1, 1, 1, 1, 1), 6),
        Probe("tuples", "ScatterNDUpdate-3", (2, 1, 1, 1, 1, 1, 1), [[1]], (1, 1, 1, 1, 1, 1, 1), None),
    ),
    near=(Probe("six", "ScatterUpdate-3", (1, 1, 1, 1, 1, 2), [1], (1, 1, 1, 1, 1, 1), 5),),
    avoid="reshape data to at most six dimensions",
)
def large_rank_refused(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's GPU plugin refuses inputs of more than six dimensions, except updates of ScatterUpdate.

    Updates of ScatterUpdate with seven or eight dimensions give correct results. A node with empty data is
    refused in the main graph, but not in a body.
    """
    ranks = {port.port.role: None if port.shape is None else len(port.shape) for port in scatter.operands()}
    for role, rank in ranks.items():
        is_slice = scatter.spec.layout is Layout.SLICES and role is Role.UPDATES
        if rank is not None and rank > (_LARGEST_RANK_OF_SLICES if is_slice else _LARGEST_RANK):
            return meets(f"{role.value} has rank {rank}", [_is_compiled(scatter)], role)
    return None


@Defect(
    "DEV303",
    "element-types-refused",
    _GPU,
    Symptom.REFUSED,
    strikes=Stage.COMPILE,
    probes=(
        *(
            Probe(f"slices-{type}", "ScatterUpdate-3", (4,), [2], (1,), 0, type)
            for type in _REFUSED[Layout.SLICES]
        ),
        *(
            Probe(f"elements-{type}", "ScatterElementsUpdate-12", (4,), [2], (1,), 0, type)
            for type in _REFUSED[Layout.ELEMENTS]
        ),
        *(
            Probe(f"tuples-{type}", "ScatterNDUpdate-3", (4,), [[2]], (1,), None, type)
            for type in _REFUSED[Layout.TUPLES]
        ),
    ),
    near=(
        Probe("slices-i8", "ScatterUpdate-3", (4,), [2], (1,), 0, "i8"),
        Probe("elements-f16", "ScatterElementsUpdate-12", (4,), [2], (1,), 0, "f16"),
        Probe("tuples-u8", "ScatterNDUpdate-3", (4,), [[2]], (1,), None, "u8"),
        Probe("nothing", "ScatterUpdate-3", (3, 4), (0,), (0, 4), 0, "f8e5m2", constants=_AXIS | _DATA),
    ),
    avoid="cast to f16 or i32 before the node and back after it",
)
def element_types_refused(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's GPU plugin has no kernel for these types: "No layout format available".

    This also refuses nodes without anything to write, unless OpenVINO removes the node before.
    """
    is_refused = element_type_is(scatter, *_REFUSED.get(scatter.spec.layout, ()))
    operand = scatter.data
    type = operand.element_type.name if operand is not None and operand.element_type else "of a small type"
    return meets(f"data is {type}", [is_refused, _is_compiled(scatter)], Role.DATA)


@Defect(
    "DEV304",
    "index-types-refused",
    _GPU,
    Symptom.REFUSED,
    strikes=Stage.COMPILE,
    probes=(
        *(Probe(type, "ScatterElementsUpdate-12", (4,), [1], (1,), 0, "f32", type) for type in _OF_INDICES),
        Probe("slices-u2", "ScatterUpdate-3", (4,), [1], (1,), 0, "f32", "u2"),
    ),
    near=(Probe("slices-u8", "ScatterUpdate-3", (4,), [2], (1,), 0, "f32", "u8"),),
    avoid="convert indices to i32",
)
def index_types_refused(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's GPU plugin refuses ScatterElementsUpdate indices below 16 bits, and u2 indices anywhere."""
    types = _OF_INDICES if scatter.spec.layout is Layout.ELEMENTS else ("u2",)
    is_refused = element_type_is(scatter, *types, role=Role.INDICES)
    return meets("indices are of a small type", [is_refused, _is_compiled(scatter)], Role.INDICES)


@Defect(
    "DEV305",
    "reduction-of-tuples-refused",
    _GPU,
    Symptom.REFUSED,
    strikes=Stage.COMPILE,
    probes=tuple(
        Probe(word, "ScatterNDUpdate-15", (4,), [[2]], (1,), None, attributes={"reduction": word})
        for word in ("sum", "sub", "prod", "min", "max")
    ),
    near=(
        Probe("none", "ScatterNDUpdate-15", (4,), [[2]], (1,), None),
        Probe("nothing", "ScatterNDUpdate-15", (3, 4), (0, 2), (0,), None, attributes=_SUM, constants=_DATA),
        Probe(
            "nothing-of-computed",
            "ScatterNDUpdate-15",
            (3, 4),
            (0, 2),
            (0,),
            None,
            attributes=_SUM,
            before=("Abs",),
        ),
    ),
    avoid="convert it to ScatterElementsUpdate",
)
def reduction_of_tuples_refused(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's GPU plugin supports ScatterNDUpdate only without a reduction: it "is not supported".

    A node with empty indices is usually removed before: if its data is computed, or its output feeds other
    nodes.
    """
    if scatter.spec.layout is not Layout.TUPLES or scatter.reduction in {None, Reduction.NONE}:
        return None
    return meets(f"the reduction is {scatter.attribute('reduction')}", [_is_kept(scatter)])


@Defect(
    "DEV306",
    "negative-tuples-written-elsewhere",
    _GPU,
    Symptom.WRONG_VALUE,
    strikes=Stage.RUN,
    may_crash=True,
    probes=(
        Probe("two", "ScatterNDUpdate-15", (2, 3), [[-1, -2]], (1,), None),
        Probe("row", "ScatterNDUpdate-15", (3, 4), [[-1]], (1, 4), None),
        Probe("open", "ScatterNDUpdate-15", (4,), [[-1]], (1,), None, shapes="dynamic"),
        Probe("eight", "ScatterNDUpdate-15", (8,), [[-1]], (1,), None),
        Probe("two-forbidden", "ScatterNDUpdate-3", (2, 3), [[-1, -2]], (1,), None, breaks="negative-index"),
        Probe("row-forbidden", "ScatterNDUpdate-3", (3, 4), [[-1]], (1, 4), None, breaks="negative-index"),
    ),
    near=(
        Probe("negative", "ScatterNDUpdate-15", (4,), [[-1]], (1,), None),
        Probe("last-of-four", "ScatterNDUpdate-15", (3, 4), [[1, -1]], (1,), None),
        Probe("last-of-five", "ScatterNDUpdate-15", (2, 2, 2, 2, 5), [[0, 1, 0, 1, -1]], (1,), None),
        Probe("one-element", "ScatterNDUpdate-15", (1,), [[-1]], (1,), None),
        Probe("positive", "ScatterNDUpdate-15", (2, 3), [[1, 2]], (1,), None),
    ),
    avoid="add the size to negative indices before the node",
    fixed_by=(Parameter("guard", "wrap"),),
    per_model=Severity.WARNING,
)
def negative_tuples_written_elsewhere(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's GPU plugin does not count negative indices of ScatterNDUpdate from the end.

    Instead of the size it adds the rank that data has inside the plugin, at least 4. The target is right only
    if the size happens to equal that rank, or data has one element. Otherwise it writes elsewhere, even
    outside of data. Release 2026.0.0 adds nothing, and nearly always writes elsewhere. In versions that
    forbid negative indices the CPU plugin and constant folding count them from the end, so a model that works
    there fails on the GPU plugin.
    """
    if scatter.spec.layout is not Layout.TUPLES:
        return None
    ends = "" if scatter.spec.index_range is IndexRange.WRAPPING else "-forbidden"
    array, shape = scatter.index_array, scatter.data_shape
    negative = [size for size, (low, _) in index_bounds(scatter) if low < 0]
    is_negative = Ternary(bool(negative) if array is None else bool((array < 0).any()))
    if array is None and negative:
        is_negative = Ternary(_has_negative_part(scatter) or None, "an index is negative")
    is_elsewhere = Ternary(None, "a size of data differs from its rank")
    if shape is not None:
        added = max(len(shape), _LEAST_RANK)
        is_right = element_count(shape) == 1 or all(size == added for size in negative)
        is_elsewhere = Ternary(not (is_static(shape) and is_right))
    conditions = [is_negative, is_elsewhere]
    meeting = meets("indices may be negative", conditions, Role.INDICES)
    return meeting and meeting._replace(
        probes=(f"two{ends}", f"row{ends}", *([] if ends else ["open", "eight"]))
    )


def _has_negative_part(scatter: ScatterNode) -> bool:
    """Return whether runtime indices contain a constant part with a negative number."""
    indices = scatter.indices
    is_signed = (
        indices is not None and indices.element_type is not None and indices.element_type.kind == "signed"
    )
    pending = [indices.value] if indices is not None and is_signed else []
    for _ in range(_MOST_PARTS):
        if not pending:
            break
        value = pending.pop()
        array, node = scatter.facts.whole_numbers(value), value.producer
        if array is not None:
            if (array < 0).any():
                return True
            continue
        op = None if node is None else find_analysed(node.domain, node.type)
        if node is not None and op is not None and (op.copies or op.type in _KEEPS_ELEMENTS):
            moved = op.moved_inputs(len(node.inputs))
            sources = [node.inputs[number].value for number in moved]
            pending += [source for source in sources if source is not None]
    return False


@Defect(
    "DEV307",
    "nothing-to-write-leaves-nothing",
    _GPU,
    Symptom.WRONG_VALUE,
    strikes=Stage.RUN,
    probes=(
        Probe("slices", "ScatterUpdate-3", (3, 4), (0,), (0, 4), 0),
        Probe("elements", "ScatterElementsUpdate-12", (2, 3), (0, 3), (0, 3), 0),
    ),
    near=(
        Probe("one", "ScatterUpdate-3", (3, 4), (1,), (1, 4), 0),
        Probe("tuples", "ScatterNDUpdate-3", (3, 4), (0, 1), (0, 4), None),
        Probe("computed-tuples", "ScatterNDUpdate-3", (3, 4), (0, 1), (0, 4), None, before=_NEGATED_TWICE),
        Probe("open", "ScatterUpdate-3", (3, 4), (0,), (0, 4), 0, shapes="bounded", constants=_BOTH),
        Probe("constant", "ScatterUpdate-3", (3, 4), (0,), (0, 4), 0, constants=_AXIS | _DATA),
        Probe("constant-elements", "ScatterElementsUpdate-3", (5,), (0,), (0,), 0, constants=_AXIS | _DATA),
        Probe("computed", "ScatterUpdate-3", (3, 4), (0,), (0, 4), 0, before=("Abs",)),
        Probe("computed-elements", "ScatterElementsUpdate-3", (5,), (0,), (0,), 0, before=("Abs",)),
    ),
    avoid="leave the node out if indices are empty",
    stays=True,
)
def nothing_to_write_leaves_nothing(scatter: ScatterNode) -> Meeting | None:
    """With empty indices OpenVINO's GPU plugin leaves the output uninitialised instead of copying data.

    It copies data for ScatterNDUpdate, and if a shape of the node is dynamic; dynamic shapes of other inputs
    of the model do not matter. ScatterUpdate and ScatterElementsUpdate-3 are removed before, unless their
    data is an input and their output an output of the model. Converting to ScatterNDUpdate does not help, as
    the plugin refuses Unsqueeze of empty indices: "Output shape is not provided".
    """
    if scatter.spec.layout is Layout.TUPLES or element_count(scatter.indices_shape) != 0:
        return None
    conditions = [has_elements(scatter), _is_static_node(scatter), _is_kept(scatter)]
    return meets("indices are empty", conditions, Role.INDICES)


@Defect(
    "DEV308",
    "negative-axis-of-slices",
    _GPU,
    Symptom.WRONG_VALUE,
    strikes=Stage.RUN,
    probes=(
        Probe("row", "ScatterUpdate-3", (3,), [2], (1,), -1),
        Probe("last", "ScatterUpdate-3", (2, 3), [2, 0], (2, 2), -1),
        Probe("first", "ScatterUpdate-3", (2, 3), [1], (1, 3), -2),
        Probe("one-taken-for-more", "ScatterUpdate-3", (2, 1, 4), [0], (2, 1, 4), -2),
        Probe("open", "ScatterUpdate-3", (2, 3, 4), [1, 2], (2, 2, 4), -2, shapes="dynamic"),
    ),
    near=(
        Probe("positive", "ScatterUpdate-3", (2, 3), [2, 0], (2, 2), 1),
        Probe("four", "ScatterUpdate-3", (2, 3, 4, 5), [2, 0], (2, 2, 4, 5), -3),
        Probe("one", "ScatterUpdate-3", (2, 3, 1), [0], (2, 3, 1), -1),
        Probe("elements", "ScatterElementsUpdate-3", (2, 3), [[2], [0]], (2, 1), -1),
    ),
    avoid="count the axis from the front",
    reads=frozenset({Fact.OPERATOR, Fact.INPUTS, Fact.AXIS, Fact.SHAPES}),
)
def negative_axis_of_slices(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's GPU plugin counts a negative axis of ScatterUpdate from the end of four dimensions.

    It appends dimensions of 1 to data of lower rank, and so uses the wrong axis: -1 of [2, 3] becomes the
    last axis of [2, 3, 1, 1]. The output is right if the sizes on both axes are 1.
    """
    axis, shape = scatter.written_axis, scatter.data_shape
    if scatter.spec.layout is not Layout.SLICES or axis is None or axis >= 0:
        return None
    is_wrong_axis = Ternary(None, f"data has fewer than {_LEAST_RANK} dimensions")
    if shape is not None:
        sizes = (*shape, *[1] * (_LEAST_RANK - len(shape)))
        both = (shape[axis], sizes[axis]) if len(shape) < _LEAST_RANK else ()
        is_right = all(size == 1 for size in both)
        is_unknown = not any(lowest(size) > 1 for size in both)
        truth = False if is_right else None if is_unknown else True
        is_wrong_axis = Ternary(truth, "a size on the axis is not 1")
    return meets(f"the axis is {axis}", [is_wrong_axis, has_elements(scatter)], Role.AXIS)


@Defect(
    "DEV309",
    "constant-rows",
    _GPU,
    Symptom.WRONG_VALUE,
    strikes=Stage.RUN,
    probes=(
        Probe("indices", "ScatterElementsUpdate-12", (4,), [1, 0], (2,), 0, constants=_BOTH),
        Probe("updates", "ScatterElementsUpdate-12", (4,), [1, 0], (2,), 0, constants=_AXIS | _UPDATES),
        Probe("data", "ScatterElementsUpdate-12", (4,), [2], (1,), 0, constants=_AXIS | _DATA),
        Probe("slices-data", "ScatterUpdate-3", (4,), [1, 0], (2,), 0, constants=_AXIS | _DATA),
        Probe("tuples-data", "ScatterNDUpdate-3", (4,), [[1], [0]], (2,), None, constants=_DATA),
        Probe(
            "tuples-updates", "ScatterNDUpdate-3", (2, 3), [[1, 2], [0, 1]], (2,), None, constants=_UPDATES
        ),
        Probe("tuples-indices", "ScatterNDUpdate-3", (2, 3), [1, 2], (), None, constants=_INDICES),
    ),
    near=(
        Probe("open", "ScatterElementsUpdate-12", (4,), [1, 0], (2,), 0, shapes="dynamic", constants=_BOTH),
        Probe("one", "ScatterElementsUpdate-12", (4,), [2], (1,), 0, constants=_BOTH),
        Probe("column", "ScatterElementsUpdate-12", (4, 1), [[1], [0]], (2, 1), 0, constants=_AXIS | _DATA),
        Probe("first", "ScatterElementsUpdate-12", (4,), [0], (1,), 0, constants=_AXIS | _DATA),
        Probe("equal", "ScatterNDUpdate-3", (2, 3), [[1, 2], [0, 1]], [5, 5], None, constants=_UPDATES),
        Probe("slices", "ScatterUpdate-3", (4,), [1, 0], (2,), 0, constants=_BOTH | _UPDATES),
    ),
    avoid="give the constant a second dimension, or pass it as an input",
)
def constant_rows(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's GPU plugin treats a 1-D constant as shape [1, n], but a 1-D input as shape [n, 1].

    If a node has both, their elements do not correspond. This matters for data of ScatterUpdate, for all
    inputs of ScatterElementsUpdate, and for ScatterNDUpdate for data, updates, and indices that are a single
    tuple. It does not happen if an input of the model has a dynamic shape. The first element of data is
    always right, and so are equal updates of ScatterNDUpdate, and a single tuple whose coordinates after the
    first have dimensions of 1. If data and updates of ScatterElementsUpdate are such constants, the updates
    are written in order from the first position on.

    The output may become 2-D: if another operator reads it, the run fails with "Unexpected elements count for
    output tensor" or "Unexpected layout of input memory", or the process crashes.
    """
    layout, indices = scatter.spec.layout, scatter.indices_shape
    roles = [Role.DATA] if layout is Layout.SLICES else [Role.DATA, Role.INDICES, Role.UPDATES]
    if layout is Layout.TUPLES and indices is not None and len(indices) == 1:
        roles.remove(Role.UPDATES)
    if layout is Layout.TUPLES and _are_equal(scatter, Role.UPDATES):
        roles = [role for role in roles if role is not Role.UPDATES]
    rows = [role for role in roles if _is_constant_row(scatter, role)]
    meet_again = rows == [Role.INDICES, Role.UPDATES] and element_count(scatter.data_shape) == 1
    if not rows or meet_again or layout is Layout.SEQUENCE or element_count(indices) == 0:
        return None
    if layout is Layout.TUPLES and rows == [Role.INDICES] and _has_one_coordinate(scatter):
        return None
    is_elsewhere = Ternary(True)
    array = scatter.index_array
    if layout is Layout.ELEMENTS and rows == [Role.DATA] and element_count(indices) == 1:
        is_elsewhere = Ternary(None if array is None else bool(array.any()), "the index is not 0")
    elif layout is Layout.ELEMENTS and rows == [Role.DATA, Role.UPDATES]:
        order = None if array is None else array.reshape(-1).tolist()
        is_elsewhere = Ternary(
            None if order is None else order != [*range(len(order))], "indices are not in order"
        )
    conditions = [is_elsewhere, _is_all_static(scatter)]
    meeting = meets(f"{rows[0].value} is a 1-D constant", conditions, rows[0])
    return meeting and meeting._replace(is_likely=conditions[1].truth is True)


def _has_one_coordinate(scatter: ScatterNode) -> bool:
    """Return whether only the first coordinate of a 1-D index can be other than 0, which the plugin reads."""
    data, indices = scatter.data_shape, scatter.indices_shape
    if data is None or indices is None or len(indices) != 1 or not isinstance(indices[0], int):
        return False
    return element_count(data[1 : indices[0]]) == 1


def _are_equal(scatter: ScatterNode, role: Role) -> bool:
    operand = scatter.operand(role)
    array = None if operand is None else scatter.facts.array(operand.value)
    return array is not None and array.size > 0 and bool((array == array.reshape(-1)[0]).all())


def _is_constant_row(scatter: ScatterNode, role: Role) -> bool:
    """Return whether an input is a 1-D constant with more than one element."""
    operand = scatter.operand(role)
    if operand is None or operand.shape is None or len(operand.shape) != 1 or operand.shape[0] in {0, 1}:
        return False
    return is_folded(scatter, operand.value) is True


def _is_all_static(scatter: ScatterNode) -> Ternary:
    """Return whether all shapes of the model are static; otherwise the plugin uses other kernels.

    A shape that could not be inferred is unknown, not dynamic.
    """
    model, when = scatter.facts.model, "no shape of the model is dynamic"
    is_static_model = None if model is None else _is_static_model(model)
    if is_static_model is False:
        return Ternary(False)
    is_static_node = _is_static_node(scatter).truth
    return Ternary(is_static_model if is_static_node else is_static_node, when)


def _is_dynamic(scatter: ScatterNode, operand: Operand) -> Ternary:
    """Return whether the shape of an input is dynamic; unknown if it could not be inferred."""
    return Ternary(scatter.facts.is_dynamic(operand.value), f"the shape of {operand.port.name} is dynamic")


def _is_static_node(scatter: ScatterNode) -> Ternary:
    """Return whether the shapes of all inputs of a node are static; unknown if one could not be inferred."""
    dynamic = [scatter.facts.is_dynamic(operand.value) for operand in scatter.operands()]
    return Ternary(False if True in dynamic else None if None in dynamic else True, "its shapes are static")


@lru_cache(1)
def _is_static_model(model: Model) -> bool | None:
    try:
        return all(is_static(input.shape) for input in dataflow_of(model).inputs)
    except Error:
        return None


@Defect(
    "DEV310",
    "lone-coordinate",
    _GPU,
    Symptom.WRONG_VALUE,
    strikes=Stage.RUN,
    may_crash=True,
    probes=(
        Probe("row", "ScatterNDUpdate-3", (4,), [2], (), None, constants=_INDICES),
        Probe("slice", "ScatterNDUpdate-3", (2, 3), [1], (3,), None),
        Probe("slices", "ScatterNDUpdate-15", (2, 3, 4), [1], (3, 4), None),
    ),
    near=(
        Probe("open", "ScatterNDUpdate-3", (4,), [2], (), None, shapes="dynamic"),
        Probe("two", "ScatterNDUpdate-3", (2, 3), [1, 2], (), None),
        Probe("list", "ScatterNDUpdate-3", (4,), [[2]], (1,), None),
        Probe("first", "ScatterNDUpdate-3", (4,), [0], (), None),
        Probe("five", "ScatterNDUpdate-3", (2, 1, 2, 1, 2), [1], (1, 2, 1, 2), None),
        Probe("six", "ScatterNDUpdate-15", (2, 2, 2, 1, 2, 2), [1], (2, 2, 1, 2, 2), None),
    ),
    avoid="give indices a second dimension of 1",
)
def lone_coordinate(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's GPU plugin writes to the wrong place if indices have shape [1]: one tuple, one coordinate.

    This does not happen if an input of the model has a dynamic shape, or data has more than four dimensions.
    The place may be outside of memory: a probe crashed in 1 of 20 runs.
    """
    shape, array = scatter.data_shape, scatter.index_array
    if scatter.spec.layout is not Layout.TUPLES or scatter.indices_shape != (1,) or not shape:
        return None
    if len(shape) > _LEAST_RANK:
        return None
    is_right = len(shape) == 2 and _is_constant_row(scatter, Role.UPDATES)
    if element_count(shape) == 1 or is_right:
        return None
    is_column = element_count(shape[1:]) == 1
    is_moved = None if array is None else int(array[0]) not in {0, -lowest(shape[0])}
    is_elsewhere = Ternary(is_moved if is_column else True, "the index is not 0")
    conditions = [is_elsewhere, has_elements(scatter), _is_all_static(scatter)]
    meeting = meets("indices are one tuple with one coordinate", conditions, Role.INDICES)
    return meeting and meeting._replace(is_likely=conditions[2].truth is True)


@Defect(
    "DEV311",
    "four-bits-of-open-shapes-refused",
    _GPU,
    Symptom.REFUSED,
    strikes=Stage.RUN,
    probes=(
        Probe("tuples", "ScatterNDUpdate-3", (4,), [[2]], (1,), None, "i4", shapes="dynamic"),
        Probe("slices", "ScatterUpdate-3", (3,), [2], (1,), 0, "u4", shapes="bounded"),
        Probe("indices", "ScatterUpdate-3", (4,), [2, 1], (2,), 0, "f32", "i4", shapes="dynamic"),
    ),
    near=(
        Probe("static", "ScatterNDUpdate-3", (3,), [[2]], (1,), None, "i4"),
        Probe("static-indices", "ScatterUpdate-3", (4,), [2, 1], (2,), 0, "f32", "i4"),
        Probe(
            "constant", "ScatterNDUpdate-3", (4,), [[2]], (1,), None, "i4", shapes="dynamic", constants=_DATA
        ),
    ),
    avoid="make all shapes static, or declare the input of the model as i8",
    stays=True,
    remains="the device refuses the input itself, whatever operator reads it",
    reads=_TYPES,
)
def four_bits_of_open_shapes_refused(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's GPU plugin validates 4-bit inputs of dynamic shape as if each element took one byte.

    The run fails with "Size of input device tensor (=2) is expected to be greater or equal to user tensor".
    """
    meetings = list[Meeting]()
    for operand in (scatter.indices, scatter.data):
        if operand is not None and scatter.spec.layout is not Layout.ELEMENTS:
            has_four_bits = element_type_is(scatter, "i4", "u4", role=operand.port.role)
            conditions = [has_four_bits, _is_dynamic(scatter, operand), are_there(operand)]
            reason = f"{operand.port.name} of a dynamic shape has 4-bit elements"
            meetings += filter(None, [meets(reason, conditions, operand.port.role)])
    meeting = min(reversed(meetings), key=lambda meeting: bool(meeting.when), default=None)
    return meeting and meeting._replace(is_likely=True)


@Defect(
    "DEV312",
    "lone-slice-of-open-shapes",
    _GPU,
    Symptom.WRONG_VALUE,
    strikes=Stage.RUN,
    probes=(
        Probe("matrix", "ScatterNDUpdate-3", (2, 2, 3), [1], (2, 3), shapes="dynamic"),
        Probe("row", "ScatterNDUpdate-3", (4, 1, 2), [2], (1, 2), shapes="bounded"),
        Probe("cube", "ScatterNDUpdate-15", (4, 2, 1, 2), [0], (2, 1, 2), shapes="dynamic"),
        Probe("five", "ScatterNDUpdate-3", (2, 1, 3, 3, 1), [1], (1, 3, 3, 1), shapes="dynamic"),
    ),
    near=(
        Probe("list", "ScatterNDUpdate-3", (2, 2, 3), [[1]], (1, 2, 3), shapes="dynamic"),
        Probe("square", "ScatterNDUpdate-3", (4, 2, 2), [3], (2, 2), shapes="dynamic"),
        Probe("column", "ScatterNDUpdate-3", (3, 4, 1), [1], (4, 1), shapes="dynamic"),
        Probe("cube-of-rows", "ScatterNDUpdate-3", (4, 1, 4, 1), [2], (1, 4, 1), shapes="dynamic"),
    ),
    avoid="make the shape of updates static, or give indices a second dimension of 1",
)
def lone_slice_of_open_shapes(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's GPU plugin permutes the elements of a slice if indices have shape [1]: a single coordinate.

    This happens if the shape of updates is dynamic, and that of data or indices too. 2-D updates are right if
    both sizes are equal, or the second is 1.
    """
    updates, rest = scatter.updates, (scatter.data, scatter.indices)
    if scatter.spec.layout is not Layout.TUPLES or updates is None or scatter.depth not in {None, 1}:
        return None
    ranks = [None if shape is None else len(shape) for shape in (scatter.data_shape, scatter.indices_shape)]
    if ranks[0] in {0, 1, 2} or ranks[1] not in {None, 1}:
        return None
    dynamic = [True if operand is None else _is_dynamic(scatter, operand).truth for operand in rest]
    conditions = [
        _is_dynamic(scatter, updates),
        Ternary(
            True if True in dynamic else None if None in dynamic else False,
            "that of data or indices is dynamic",
        ),
        Ternary(scatter.depth == 1 or None, "indices are one coordinate"),
        Ternary(None, "the sizes of a slice differ"),
        has_elements(scatter),
    ]
    return meets("the shape of updates is dynamic and may be that of one slice", conditions, Role.UPDATES)


@Defect(
    "DEV313",
    "table-of-tuples-of-open-shapes",
    _GPU,
    Symptom.WRONG_VALUE,
    strikes=Stage.RUN,
    may_crash=True,
    probes=(
        Probe("elements", "ScatterNDUpdate-3", (3, 4), [[[0, 3]], [[1, 0]]], (2, 1), shapes="dynamic"),
        Probe("slices", "ScatterNDUpdate-15", (3, 4, 2), [[[0, 3]], [[1, 0]]], (2, 1, 2), shapes="bounded"),
        Probe("first", "ScatterNDUpdate-3", (2, 1, 1, 4), [[[1, 0]]], (1, 1, 1, 4), shapes="dynamic"),
        Probe("three", "ScatterNDUpdate-3", (1, 4, 2), [[[0, 0, 1]]], (1, 1), shapes="dynamic"),
    ),
    near=(
        Probe("list", "ScatterNDUpdate-3", (3, 4), [[0, 3], [1, 0]], (2,), shapes="dynamic"),
        Probe("one-coordinate", "ScatterNDUpdate-3", (4, 2), [[[3], [1]]], (1, 2, 2), shapes="dynamic"),
        Probe("four", "ScatterNDUpdate-3", (3, 3), [[[[1, 2]]]], (1, 1, 1), shapes="dynamic"),
        Probe("static", "ScatterNDUpdate-3", (3, 4), [[[0, 3]], [[1, 0]]], (2, 1)),
        Probe("first-of-elements", "ScatterNDUpdate-3", (4, 2), [[[1, 0]]], (1, 1), shapes="dynamic"),
    ),
    avoid="make the last dimension of indices static",
)
def table_of_tuples_of_open_shapes(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's GPU plugin reads only the first coordinate of each index tuple if indices are 3-D.

    This happens if the last dimension of indices is dynamic. The other coordinates count as 0, so only
    elements whose other coordinates are 0 are written correctly; slices never are. It may write outside of
    memory: a probe crashed in 4 of 20 runs.
    """
    indices, data, updates = scatter.indices_shape, scatter.data_shape, scatter.updates
    is_known = scatter.depth is not None or (indices is not None and len(indices) != 3)
    if scatter.spec.layout is not Layout.TUPLES or is_known or updates is None or scatter.indices is None:
        return None
    is_deep, is_slice = None, False
    if indices is not None and data is not None and updates.shape is not None:
        depth = len(data) + len(indices) - 1 - len(updates.shape)
        is_deep, is_slice = depth > 1, (element_count(data[depth:]) or 0) > 1
    conditions = [
        _is_dynamic(scatter, scatter.indices),
        Ternary(None if indices is None else True, "indices have three dimensions"),
        Ternary(is_deep, "a tuple has more than one coordinate"),
        Ternary(is_slice or None, "a coordinate after the first is not 0"),
        has_elements(scatter),
    ]
    return meets("the number of coordinates is dynamic", conditions, Role.INDICES)


@Defect(
    "DEV314",
    "mixed-ranks-of-tuples",
    _GPU,
    Symptom.WRONG_VALUE,
    strikes=Stage.RUN,
    probes=(
        Probe("indices", "ScatterNDUpdate-3", (2, 2, 2, 2, 2), [[[1, 1]], [[0, 1]]], (2, 1, 2, 2, 2)),
        Probe("indices-of-six", "ScatterNDUpdate-15", (1, 2, 2, 2, 2, 2), [[[0, 1, 0, 1]]], (1, 1, 2, 2)),
        Probe("more-of-indices", "ScatterNDUpdate-3", (3,), [[[[[2]]], [[[1]]]]], (1, 2, 1, 1)),
        Probe("elements", "ScatterNDUpdate-15", (1, 2, 1, 2), [[[[[0, 1, 0, 1]]]]], (1, 1, 1, 1), None, "i8"),
        Probe("updates", "ScatterNDUpdate-3", (3, 3, 3), [[[[0], [2], [1]]]], (1, 1, 3, 3, 3)),
        Probe("fewer-of-updates", "ScatterNDUpdate-3", (2, 2, 2, 2, 2), _OF_FIVE, (1, 1, 2, 2)),
    ),
    near=(
        Probe("list", "ScatterNDUpdate-3", (2, 2, 2, 2, 2), [[0, 1, 0, 1, 1], [1, 0, 0, 0, 1]], (2,)),
        Probe("column", "ScatterNDUpdate-3", (2, 2, 2, 2, 2), [[[1]], [[0]]], (2, 1, 2, 2, 2, 2)),
        Probe(
            "alike",
            "ScatterNDUpdate-15",
            (2, 2, 2, 2, 2),
            [[[[[0, 1, 0, 1]], [[1, 0, 0, 1]]]]],
            (1, 1, 2, 1, 2),
        ),
        Probe("updates-in-order", "ScatterNDUpdate-3", (3, 3, 3), [[[[2]], [[0]]]], (1, 2, 1, 3, 3)),
        Probe("updates-of-one", "ScatterNDUpdate-3", (3, 1, 3), [[[[0], [2], [1]]]], (1, 1, 3, 1, 3)),
        Probe("constant", "ScatterNDUpdate-3", (2, 2, 2, 2, 2), _OF_FOUR, (1, 2, 2), constants=_INDICES),
        Probe(
            "one-fed", "ScatterNDUpdate-3", (2, 2, 2, 2, 2), _OF_FOUR, (1, 2, 2), constants=_DATA | _UPDATES
        ),
        Probe(
            "open",
            "ScatterNDUpdate-3",
            (2, 2, 2, 2, 2),
            [[[[1, 1]], [[0, 1]]]],
            (1, 2, 1, 2, 2, 2),
            shapes="dynamic",
        ),
    ),
    avoid="flatten indices to two dimensions, and the same dimensions of updates to one",
)
def mixed_ranks_of_tuples(scatter: ScatterNode) -> Meeting | None:
    """OpenVINO's GPU plugin misreads inputs of ScatterNDUpdate that it stores with different ranks.

    Inside the plugin a tensor has rank 4, 5 or 6. If non-constant inputs differ in that rank, indices and
    updates are stored with the rank of data. To raise the rank, dimensions of 1 are inserted after the first
    two dimensions; to lower it, the dimensions after the first two are merged. The kernel still uses the
    original dimensions. So indices of lower rank are misread unless all dimensions after the first two are 1.
    Updates are misread unless the dimensions that they share with indices keep their strides. Indices of
    higher rank than data are read out of bounds: some results are right by accident (62 of 80 random nodes
    whose other inputs are constants or of the same rank). Apart from these, the condition predicted right and
    wrong correctly for all of 1,000 random nodes with static shapes, of any element type. If a shape of the
    model is dynamic, the plugin keeps all dimensions, and the result is right.
    """
    operands = [scatter.operand(role) for role in (Role.DATA, Role.INDICES, Role.UPDATES)]
    if scatter.spec.layout is not Layout.TUPLES or None in operands:
        return None
    data, indices, updates = shapes = [operand.shape for operand in operands if operand is not None]
    if 0 in map(element_count, shapes) or indices == ():
        return None
    fed = [operand for operand in operands if operand is not None and not is_folded(scatter, operand.value)]
    is_static_model = _is_all_static(scatter)
    if data is None or indices is None or updates is None:
        unknown = Ternary(None if len(fed) > 1 else False, "ranks above 4 differ")
        return meets("ranks of inputs are unknown", [unknown, is_static_model], Role.INDICES)
    rank, misread = _stored_rank(data), list[tuple[Role, Ternary]]()
    is_mixed = len({_stored_rank(operand.shape) for operand in fed}) > 1
    for operand in fed if is_mixed else ():
        if operand.port.role is Role.INDICES:
            moved = _are_coordinates_moved(indices, rank)
            misread.append((Role.INDICES, Ternary(moved, "a dimension of indices after the second is not 1")))
        elif operand.port.role is Role.UPDATES:
            moved = _are_updates_moved(updates, len(indices) - 1, rank)
            misread.append((Role.UPDATES, Ternary(moved, "updates have dimensions of other sizes than 1")))
    if not is_mixed and _stored_rank(indices) > rank:
        misread.append((Role.INDICES, Ternary(None, "coordinates are read out of bounds")))
    reason = f"data has {len(data)} dimensions, indices {len(indices)} and updates {len(updates)}"
    meetings = [meets(reason, [moved, is_static_model], role) for role, moved in misread]
    return min(filter(None, meetings), key=lambda meeting: bool(meeting.when), default=None)


def _stored_rank(shape: Shape) -> int:
    return max(len(shape or ()), _LEAST_RANK)


def _are_coordinates_moved(indices: Sequence[Dim], rank: int) -> bool | None:
    """Return whether storing indices with the rank of data displaces coordinates; None if unknown."""
    stored = _stored_rank(tuple(indices))
    if stored >= rank:
        return stored > rank
    sizes = [static((dim,)) for dim in indices[_BEFORE_FILLED:]]
    if any(size is not None and size != (1,) for size in sizes):
        return True
    return None if None in sizes else False


def _are_updates_moved(updates: Sequence[Dim], count: int, rank: int) -> bool | None:
    """Return whether storing updates with another rank displaces their first `count` dimensions.

    rank 5 stored with rank 6:    [a, b, c, d, e] -> [a, b, 1, c, d, e]
    rank 6 stored with rank 5:    [a, b, c, d, e, f] -> [a, b, c * d, e, f]
    """
    stored = _stored_rank(tuple(updates))
    if stored == rank or count <= _BEFORE_FILLED:
        return False
    sizes = static(tuple(updates))
    if sizes is None:
        return None
    dims = [*sizes, *[1] * (stored - len(sizes))]
    if stored < rank:
        moved = [*dims[:_BEFORE_FILLED], *[1] * (rank - stored), *dims[_BEFORE_FILLED:]]
    else:
        end = stored - rank + _BEFORE_FILLED + 1
        moved = [*dims[:_BEFORE_FILLED], prod(dims[_BEFORE_FILLED:end]), *dims[end:]]
    strides, new = _strides(dims), _strides(moved)
    is_lost = count >= rank and prod(dims[count:]) > 1
    return is_lost or any(
        dims[place] > 1 and (place >= rank or strides[place] != new[place]) for place in range(count)
    )


def _strides(dims: Sequence[int]) -> list[int]:
    return [prod(dims[place + 1 :]) for place in range(len(dims))]
