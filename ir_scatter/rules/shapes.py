"""Which shapes inputs have."""

from dataclasses import replace
from math import prod

from ir_scatter.analysis.requirements import place_of
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
from ir_scatter.rules.base import Finding, Findings, Rule


@Rule(
    "SCT203",
    "updates-shape-mismatch",
    reads={Fact.OPERATOR, Fact.INPUTS, Fact.AXIS, Fact.SHAPES, Fact.CONSTANCY},
)
def updates_shape_mismatch(scatter: ScatterNode) -> Findings:
    """The shape of updates is not the one that data, indices and axis demand.

    Why: a runtime either refuses the model or reads past the end of updates.
    Applies to: every operator. The expected shape is that of the operator's document. Unknown
    dimensions agree with everything. For ScatterNDUpdate one element of any rank may stand for 0-D
    updates.
    Runtimes: OpenVINO refuses it where shapes are static. The reference evaluator of ONNX broadcasts
    it in silence; onnx.checker does not look.
    Example: data [4, 5], indices [2], axis 0, updates [3, 5]: expected [2, 5].
    Fix: reshape or slice updates; if a dimension is off by one, the axis or the indices are wrong
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
    found = Finding(message, role=Role.UPDATES, aspect="shape", dim=dim, label=f"expected {label}")
    help = _for_one(scatter, shape, expected) or _way(name, shape, expected[0]).format(shapes)
    yield replace(found, help=help)


def _for_one(scatter: ScatterNode, updates: Shape, expected: list[Shape]) -> str:
    """Say how to fix updates that are longer only where constant indices have size 1, "" for others.

    Such indices were exported for a batch of 1. To slice updates would lose all but the first of a batch.
    """
    wanted = expected[0] if len(expected) == 1 else None
    if not is_static(updates) or not is_static(wanted) or len(updates) != len(wanted):
        return ""
    differing = [at for at, (size, other) in enumerate(zip(updates, wanted, strict=True)) if size != other]
    places = [place_of(scatter, at) for at in differing]
    is_baked = scatter.has_constant_indices and {wanted[at] for at in differing} == {1} and 0 not in updates
    if not is_baked or any(role is not Role.INDICES for role, _ in places):
        return ""
    dims, many = listed([str(dim) for _, dim in places]), "dimension" if len(places) == 1 else "dimensions"
    total, kept = prod(updates), prod(wanted)
    return (
        f"export indices with {many} {dims} open: they were exported for size 1, and a slice of updates "
        f"would drop {total - kept} of {counted(total, 'update')}"
    )


def _way(name: str, shape: Shape, expected: Shape) -> str:
    """Return what can give an input another shape, which is to be written for {}."""
    pairs = [*zip(shape or (), expected or (), strict=False)]
    count = element_count(expected)
    if count is not None and count == element_count(shape):
        is_turned = sorted(map(str, shape or ())) == sorted(map(str, expected or ()))
        return f"transpose or reshape {name} to {{}}" if is_turned else f"reshape {name} to {{}}"
    if shape is None or expected is None or len(shape) != len(expected):
        return f"give {name} the shape {{}}"
    if all(one in (other, 1) for one, other in pairs):
        return f"broadcast {name} to {{}}"
    is_longer = all(at_most(other, one) for one, other in pairs)
    return f"slice {name} to {{}}" if is_longer else f"give {name} the shape {{}}"


@Rule("SCT206", "rank-too-small", reads={Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES})
def rank_too_small(scatter: ScatterNode) -> Findings:
    """An input has fewer dimensions than the document demands.

    Why: there is no axis, or no tuple of coordinates, so there is nothing that an index could count
    on.
    Applies to: data of every operator (rank 1 at least, 2 for TensorScatter, whose first dimension is
    the batch), indices of the ND operators (rank 1 at least).
    Runtimes: OpenVINO refuses it, or fails at inference; onnxruntime refuses it.
    Example: ScatterUpdate on 0-D data: no axis is legal.
    Fix: add a dimension with Unsqueeze or Reshape.
    """
    for role in (scatter.data, scatter.indices, scatter.updates):
        if role is None or role.shape is None or len(role.shape) >= role.port.min_rank:
            continue
        message = (
            f"{role.port.name} is {show(role.shape)} of rank {len(role.shape)}, "
            f"expected rank {role.port.min_rank} at least"
        )
        help = f"give {role.port.name} rank {role.port.min_rank} with Unsqueeze or Reshape"
        yield Finding(message, role=role.port.role, aspect="shape", help=help)


@Rule("SCT207", "ranks-differ", reads={Fact.OPERATOR, Fact.SHAPES})
def ranks_differ(scatter: ScatterNode) -> Findings:
    """Data and indices have different ranks where the document demands the same.

    Why: the position of an index gives the position in data on every axis but one.
    Applies to: ScatterElementsUpdate, Scatter and ScatterElements.
    Runtimes: OpenVINO and onnxruntime refuse it; onnx.checker does not look.
    Example: data [4, 5], indices [3]: expected rank 2.
    Fix: ScatterUpdate or ScatterND take a list of indices; or unsqueeze and broadcast the indices.
    """
    data, indices = scatter.data_shape, scatter.indices_shape
    if scatter.spec.layout is not Layout.ELEMENTS or data is None or indices is None:
        return
    if len(data) != len(indices):
        message = f"indices is {show(indices)} of rank {len(indices)}, expected rank {len(data)} like data"
        label, help = f"expected rank {len(data)}", f"unsqueeze and broadcast indices to rank {len(data)}"
        found = Finding(message, role=Role.INDICES, aspect="shape", label=label)
        yield found if len(indices) > len(data) else replace(found, help=help)


@Rule("SCT208", "batch-mismatch", reads={Fact.OPERATOR, Fact.INPUTS, Fact.SHAPES})
def batch_mismatch(scatter: ScatterNode) -> Findings:
    """The start positions of a cache are not one per batch.

    Why: every sample of the batch has its own position to write at.
    Applies to: write_indices of TensorScatter: its shape is [batch_size].
    Runtimes: onnxruntime refuses it; no frontend of OpenVINO reads the operator.
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
        help = _way(name, indices, expected).format(show(expected))
        dim = differing_dim(indices, expected)
        yield Finding(message, role=Role.INDICES, aspect="shape", dim=dim, help=help)


@Rule("SCT209", "tuple-too-long", reads={Fact.OPERATOR, Fact.SHAPES})
def tuple_too_long(scatter: ScatterNode) -> Findings:
    """A tuple of coordinates has more numbers than data has dimensions.

    Why: there is no dimension that the last numbers could count on.
    Applies to: the ND operators: k, the last dimension of indices, is at most the rank of data.
    Runtimes: OpenVINO and onnxruntime refuse it; onnx.checker does not look.
    Example: data [4], indices [5]: k = 5 > 1. A list of positions must be [5, 1].
    Fix: unsqueeze the last dimension of indices, as most such indices are a list of positions.
    """
    data, indices = scatter.data_shape, scatter.indices_shape
    if scatter.spec.layout is not Layout.TUPLES or data is None or not indices:
        return
    if lowest(indices[-1]) > len(data):
        message = (
            f"indices is {show(indices)}, so k is {show(indices[-1:])[1:-1]}, "
            f"expected at most {len(data)}, the rank of data {show(data)}"
        )
        help = f"give each tuple {len(data)} coordinates at most"
        if len(data) == 1:
            help = f"reshape indices to {show((*indices, 1))}: each index a tuple of one coordinate"
        found = Finding(message, role=Role.INDICES, aspect="shape", dim=len(indices) - 1)
        yield replace(found, label=f"expected at most {len(data)}", help=help)


@Rule("SCT210", "indices-longer-than-data", reads={Fact.OPERATOR, Fact.AXIS, Fact.SHAPES})
def indices_longer_than_data(scatter: ScatterNode) -> Findings:
    """Indices are longer than data on a dimension other than the axis.

    Why: off the axis the position of an index is the position in data, and there is none.
    Applies to: ScatterElementsUpdate, Scatter and ScatterElements.
    Runtimes: OpenVINO's CPU plugin writes outside its memory and may end the process; onnxruntime
    refuses it.
    Example: data [3, 4], indices [2, 5], axis 0: on dimension 1 expected at most 4.
    Fix: slice indices and updates to the size of data; if the long dimension is the one meant, the
    axis is wrong.
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
        help = f"slice indices and updates to {show(fitting)}, or look whether the axis is the one meant"
        found = Finding(message, role=Role.INDICES, aspect="shape", help=help)
        dim = off_axis[0] if len(off_axis) == 1 else None
        label = show(fitting) if dim is None else show_dim(fitting[dim])
        yield replace(found, dim=dim, label=f"expected at most {label}")


@Rule(
    "SCT211",
    "indices-longer-on-axis",
    reads={Fact.OPERATOR, Fact.AXIS, Fact.SHAPES},
    mended_by="--from {type} --to {type}",
)
def indices_longer_on_axis(scatter: ScatterNode) -> Findings:
    """Indices are longer than data on the axis, which this version forbids.

    Why: the text demands that no dimension of indices exceeds data's; some target is named twice.
    Applies to: ScatterElementsUpdate-3. Version 12 and ONNX allow it. A warning, as runtimes take it
    as meant.
    Runtimes: OpenVINO's CPU and GPU plugins compute it like version 12.
    Example: data [3], indices [5].
    Fix: use version="opset12", whose text allows it; `ir-scatter convert` writes it.
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
        found = Finding(message, role=Role.INDICES, aspect="shape", help=help)
        yield replace(found, dim=longer[0] if scatter.axis is None else scatter.axis)


@Rule("SCT305", "empty-indices", Severity.NOTE, reads={Fact.OPERATOR, Fact.SHAPES})
def empty_indices(scatter: ScatterNode) -> Findings:
    """Indices are empty, or hold empty tuples.

    Why: with no index nothing is written, and the node only copies data. With tuples of no
    coordinates (k = 0) each update is the whole tensor by the formula of the shapes; no document says
    so.
    Applies to: every operator, where data has elements.
    Runtimes: all copy data for empty indices. For k = 0 onnxruntime and OpenVINO's constant folding
    replace the whole tensor, OpenVINO's CPU plugin leaves data alone.
    Example: indices of shape [0].
    Fix: remove the node if it was not meant to be empty.
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
