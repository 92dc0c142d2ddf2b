"""Rules about the shapes of inputs."""

from dataclasses import replace
from math import prod

from ir_scatter.analysis.requirements import source_of_dim
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.shapes import (
    Shape,
    agree,
    at_most,
    differing_dim,
    element_count,
    is_static,
    lowest,
    show,
    show_dim,
)
from ir_scatter.core.words import counted, listed
from ir_scatter.ops.spec import IndicesLimit, Layout, Role
from ir_scatter.rules.base import Finding, Findings, Rule, newest_version


@Rule(
    "SCT203",
    "updates-shape-mismatch",
    reads={Fact.OPERATOR, Fact.INPUTS, Fact.AXIS, Fact.SHAPES, Fact.CONSTANCY},
)
def updates_shape_mismatch(scatter: ScatterNode) -> Findings:
    """Wrong shape of updates: it does not fit data, indices and axis.

    Why: a runtime either refuses the model or reads past the end of updates.
    Applies to: every operator. The specification of the operator gives the expected shape. A dynamic
    dimension matches any size. For ScatterNDUpdate, updates of one element and any rank are accepted where
    0-D updates are expected.
    Runtimes: OpenVINO refuses it if shapes are static. The reference evaluator of ONNX silently broadcasts
    updates; onnx.checker does not check it.
    Example: data [4, 5], indices [2], axis 0, updates [3, 5]: expected [2, 5].
    Fix: reshape or slice updates; if a dimension is off by one, the axis or the indices are probably wrong
    instead.
    """
    expected = scatter.expected_updates()
    if scatter.updates is None or not expected:
        return
    shape = scatter.updates.shape
    if any(agree(candidate, shape) for candidate in expected):
        return
    if scatter.spec.scalar_updates and () in expected and element_count(shape) in (1, None):
        return
    shapes = " or ".join(dict.fromkeys(map(show, expected)))
    name, formula = scatter.updates.port.name, scatter.spec.updates_formula
    dim = differing_dim(shape, expected[0]) if len(expected) == 1 else None
    label = shapes if dim is None or expected[0] is None else show_dim(expected[0][dim])
    message = f"{name} is {show(shape)}, expected {shapes} = {formula}"
    finding = Finding(message, role=Role.UPDATES, aspect="shape", dim=dim, label=f"expected {label}")
    help = _help_for_size_1(scatter, shape, expected) or _help_for_shape(name, shape, expected[0]).format(
        shapes
    )
    yield replace(finding, help=help)


def _help_for_size_1(scatter: ScatterNode, updates: Shape, expected: list[Shape]) -> str:
    """Return the advice if constant indices were exported for a batch of 1, else "".

    Updates are then too long only where indices have size 1. Slicing them would lose all samples but the
    first.
    """
    target = expected[0] if len(expected) == 1 else None
    if not is_static(updates) or not is_static(target) or len(updates) != len(target):
        return ""
    differing = [dim for dim, (size, goal) in enumerate(zip(updates, target, strict=True)) if size != goal]
    sources = [source_of_dim(scatter, dim) for dim in differing]
    is_exported_for_1 = (
        scatter.has_constant_indices and {target[dim] for dim in differing} == {1} and 0 not in updates
    )
    if not is_exported_for_1 or any(role is not Role.INDICES for role, _ in sources):
        return ""
    dims, noun = listed([str(dim) for _, dim in sources]), "dimension" if len(sources) == 1 else "dimensions"
    total, remaining = prod(updates), prod(target)
    return (
        f"export indices with dynamic {noun} {dims}: they were exported for size 1, and a slice of updates "
        f"would drop {total - remaining} of {counted(total, 'update')}"
    )


def _help_for_shape(name: str, shape: Shape, expected: Shape) -> str:
    """Return the advice to give an input the expected shape, with {} in place of that shape."""
    pairs = [*zip(shape or (), expected or (), strict=False)]
    count = element_count(expected)
    if count is not None and count == element_count(shape):
        is_permuted = sorted(map(str, shape or ())) == sorted(map(str, expected or ()))
        return f"transpose or reshape {name} to {{}}" if is_permuted else f"reshape {name} to {{}}"
    if shape is None or expected is None or len(shape) != len(expected):
        return f"give {name} the shape {{}}"
    if all(dim in (goal, 1) for dim, goal in pairs):
        return f"broadcast {name} to {{}}"
    is_longer = all(at_most(goal, dim) for dim, goal in pairs)
    return f"slice {name} to {{}}" if is_longer else f"give {name} the shape {{}}"


@Rule("SCT206", "rank-too-small", reads={Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES})
def rank_too_small(scatter: ScatterNode) -> Findings:
    """Rank too small: an input has fewer dimensions than the specification requires.

    Why: without an axis or a tuple of coordinates, an index refers to nothing.
    Applies to: data of every operator (rank 1 or more; 2 or more for TensorScatter, whose first dimension is
    the batch), indices of the ND operators (rank 1 or more).
    Runtimes: OpenVINO refuses it, or fails at inference; onnxruntime refuses it.
    Example: ScatterUpdate on 0-D data: no axis is legal.
    Fix: add a dimension with Unsqueeze or Reshape.
    """
    for operand in (scatter.data, scatter.indices, scatter.updates):
        if operand is None or operand.shape is None or len(operand.shape) >= operand.port.min_rank:
            continue
        port = operand.port
        message = (
            f"{port.name} is {show(operand.shape)} of rank {len(operand.shape)}, "
            f"expected rank {port.min_rank} at least"
        )
        help = f"give {port.name} rank {port.min_rank} with Unsqueeze or Reshape"
        yield Finding(message, role=port.role, aspect="shape", help=help)


@Rule("SCT207", "ranks-differ", reads={Fact.OPERATOR, Fact.SHAPES})
def ranks_differ(scatter: ScatterNode) -> Findings:
    """Data and indices have different ranks, but the specification requires equal ranks.

    Why: the position of an index is its target's position in data, except on the axis.
    Applies to: ScatterElementsUpdate, Scatter and ScatterElements.
    Runtimes: OpenVINO and onnxruntime refuse it; onnx.checker does not check it.
    Example: data [4, 5], indices [3]: expected rank 2.
    Fix: use ScatterUpdate or ScatterND, which accept a list of indices, or unsqueeze and broadcast indices.
    """
    data, indices = scatter.data_shape, scatter.indices_shape
    if scatter.spec.layout is not Layout.ELEMENTS or data is None or indices is None:
        return
    if len(data) != len(indices):
        message = f"indices is {show(indices)} of rank {len(indices)}, expected rank {len(data)} like data"
        label, help = f"expected rank {len(data)}", f"unsqueeze and broadcast indices to rank {len(data)}"
        finding = Finding(message, role=Role.INDICES, aspect="shape", label=label)
        yield finding if len(indices) > len(data) else replace(finding, help=help)


@Rule("SCT208", "batch-mismatch", reads={Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES})
def batch_mismatch(scatter: ScatterNode) -> Findings:
    """write_indices does not have one start position per sample of the batch.

    Why: each sample of the batch is written at its own position.
    Applies to: write_indices of TensorScatter: its shape is [batch_size].
    Runtimes: onnxruntime refuses it; no frontend of OpenVINO supports the operator.
    Example: past_cache [8, 32, 2048, 128], write_indices [1]: expected [8].
    Fix: expand write_indices to the batch.
    """
    data, indices = scatter.data_shape, scatter.indices_shape
    if scatter.spec.layout is not Layout.SEQUENCE or scatter.indices is None or not data:
        return
    expected = data[:1]
    if not agree(indices, expected):
        name = scatter.indices.port.name
        message = f"{name} is {show(indices)}, expected {show(expected)} = [batch_size]"
        help = _help_for_shape(name, indices, expected).format(show(expected))
        dim = differing_dim(indices, expected)
        yield Finding(message, role=Role.INDICES, aspect="shape", dim=dim, help=help)


@Rule("SCT209", "tuple-too-long", reads={Fact.OPERATOR, Fact.SHAPES})
def tuple_too_long(scatter: ScatterNode) -> Findings:
    """Too many coordinates: an index tuple is longer than the rank of data.

    Why: the last coordinates belong to no dimension of data.
    Applies to: the ND operators: k, the last dimension of indices, is at most the rank of data.
    Runtimes: OpenVINO and onnxruntime refuse it; onnx.checker does not check it.
    Example: data [4], indices [5]: k = 5 > 1. A list of positions must be [5, 1].
    Fix: reshape indices to [..., 1] if they are a list of positions, which is the usual cause.
    """
    data, indices = scatter.data_shape, scatter.indices_shape
    if scatter.spec.layout is not Layout.TUPLES or data is None or not indices:
        return
    if lowest(indices[-1]) > len(data):
        message = (
            f"indices is {show(indices)}, so k is {show(indices[-1:])[1:-1]}, "
            f"expected at most {len(data)}, the rank of data {show(data)}"
        )
        help = f"use at most {counted(len(data), 'coordinate')} per tuple"
        if len(data) == 1:
            help = f"reshape indices to {show((*indices, 1))}: one coordinate per tuple"
        finding = Finding(message, role=Role.INDICES, aspect="shape", dim=len(indices) - 1)
        yield replace(finding, label=f"expected at most {len(data)}", help=help)


@Rule("SCT210", "indices-longer-than-data", reads={Fact.OPERATOR, Fact.AXIS, Fact.SHAPES})
def indices_longer_than_data(scatter: ScatterNode) -> Findings:
    """Indices are longer than data on a dimension other than the axis.

    Why: on those dimensions the position of an index is its position in data, which does not exist.
    Applies to: ScatterElementsUpdate, Scatter and ScatterElements.
    Runtimes: OpenVINO's CPU plugin writes outside of the tensor and may crash; onnxruntime refuses it.
    Example: data [3, 4], indices [2, 5], axis 0: on dimension 1 expected at most 4.
    Fix: slice indices and updates to the size of data; if the longer dimension should be the axis, correct
    the axis.
    """
    if scatter.spec.indices_limit is IndicesLimit.NOWHERE:
        return
    data, longer = scatter.data_shape, scatter.longer_dimensions()
    if scatter.written_axis is not None:
        off_axis = [dim for dim in longer if dim != scatter.axis] if scatter.axis is not None else []
    else:
        off_axis = longer if len(longer) > 1 else []
    if off_axis:
        axes = ", ".join(map(str, off_axis))
        message = (
            f"indices is {show(scatter.indices_shape)}, longer than data {show(data)} on dimension {axes}, "
            f"expected at most data's size off the axis"
        )
        pairs = enumerate(zip(scatter.indices_shape or (), data or (), strict=True))
        fitting = tuple(size if at in off_axis else index for at, (index, size) in pairs)
        help = f"slice indices and updates to {show(fitting)}, or check the axis"
        finding = Finding(message, role=Role.INDICES, aspect="shape", help=help)
        dim = off_axis[0] if len(off_axis) == 1 else None
        label = show(fitting) if dim is None else show_dim(fitting[dim])
        yield replace(finding, dim=dim, label=f"expected at most {label}")


@Rule("SCT211", "indices-longer-on-axis", reads={Fact.OPERATOR, Fact.AXIS, Fact.SHAPES})
def indices_longer_on_axis(scatter: ScatterNode) -> Findings:
    """Indices are longer than data on the axis, which this version does not allow.

    Why: the specification requires that no dimension of indices exceeds that of data; some target repeats.
    Applies to: ScatterElementsUpdate-3. Version 12 and ONNX allow it. A warning, because runtimes compute it
    as intended.
    Runtimes: OpenVINO's CPU and GPU plugins compute it like version 12.
    Example: data [3], indices [5].
    Fix: use version="opset12", which allows it; `ir-scatter convert` does that.
    """
    if scatter.spec.indices_limit is not IndicesLimit.EVERYWHERE:
        return
    longer = scatter.longer_dimensions()
    on_axis = scatter.axis in longer if scatter.written_axis is not None else len(longer) == 1
    if on_axis:
        message = (
            f"indices is {show(scatter.indices_shape)}, longer than data {show(scatter.data_shape)} "
            f"on the axis {longer[0] if scatter.axis is None else scatter.axis}, expected at most data's size"
        )
        help = f"{scatter.lookup.family[-1].key} allows it"
        finding = Finding(message, role=Role.INDICES, aspect="shape", help=help)
        dim = longer[0] if scatter.axis is None else scatter.axis
        yield replace(finding, dim=dim, fixed_by=newest_version(scatter))


@Rule("SCT305", "empty-indices", Severity.NOTE, reads={Fact.OPERATOR, Fact.SHAPES})
def empty_indices(scatter: ScatterNode) -> Findings:
    """Indices are empty, or consist of empty tuples.

    Why: without an index nothing is written, and the node only copies data. With tuples of 0 coordinates
    (k = 0) the shape formula implies that each update replaces the whole tensor; no specification says so.
    Applies to: every operator, if data is not empty.
    Runtimes: all copy data for empty indices. For k = 0 onnxruntime and OpenVINO's constant folding
    replace the whole tensor, OpenVINO's CPU plugin does not change data.
    Example: indices of shape [0].
    Fix: remove the node, or correct indices if they should not be empty.
    """
    shape = scatter.indices_shape
    if not shape or 0 not in shape or 0 in (scatter.data_shape or ()):
        return
    if scatter.spec.layout is Layout.TUPLES and 0 not in shape[:-1]:
        message = f"indices is {show(shape)}, so k is 0: runtimes differ on what is written"
    else:
        message = f"indices is {show(shape)}: nothing is written"
    dim = shape.index(0) if shape.count(0) == 1 else None
    yield Finding(message, role=Role.INDICES, aspect="shape", dim=dim)
