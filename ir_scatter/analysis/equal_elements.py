"""Proves that elements of a value are equal to each other, for every input of the model.

Equal elements come from fills: ConstantOfShape, a Broadcast of one element, a constant of equal elements. The
rows in `ops/general.py` say which operators preserve equality. Elements with equal bits are equal, so 0.0 and
-0.0 differ.

    x = Broadcast (row [1, 4], shape [3, 4])    elements differ along axis -1 only
    y = Transpose (x)                           unknown: elements may differ along any axis
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ir_scatter.analysis.constants import MAX_NODES, Facts
from ir_scatter.core.graph_walk import follow
from ir_scatter.core.model import Node, Value
from ir_scatter.core.shapes import Shape, element_count, lowest, static
from ir_scatter.ops.general import GeneralOp, find, named
from ir_scatter.ops.spec import Layout

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array

ALIGNED = frozenset({"numpy", "bidirectional"})
"""The modes of Broadcast that align the last dimensions."""

_NUMPY = "numpy"
_MOST_UPSTREAM = 64
"""Limit of values upstream of indices that are searched for a repetition, for each scatter node."""
_MOST_COMPARED = 1 << 20
"""Limit of updates that are compared element by element; more would cost too much for one finding."""

Axes: TypeAlias = frozenset[int]
"""Axes counted from the end (-1 is the last one), because broadcasting aligns shapes there."""


def varying_axes(facts: Facts, value: Value, most: int = MAX_NODES) -> Axes | None:
    """Return the axes along which elements of a value may differ; None if unknown, {} if all are equal.

    At most `most` values upstream are looked at.
    """
    results: dict[Value, _Varying | None] = {}

    def make(value: Value) -> _Varying:
        return _Varying(_axes_of(facts, value, results))

    follow(value, results, _sources, make, most)
    varying = results.get(value)
    return None if varying is None else varying.axes


class _Varying(NamedTuple):
    """The axes of a visited value; a None in its place means that the value was not visited."""

    axes: Axes | None


def _row(value: Value) -> tuple[Node, GeneralOp] | None:
    node = None if value.constant is not None else value.producer
    op = None if node is None or node.bodies else find(node.domain, node.type)
    return None if node is None or op is None else (node, op)


def _sources(value: Value) -> list[Value]:
    """Return the inputs that decide whether the elements of a value are equal."""
    producer = _row(value)
    if producer is None:
        return []
    node, op = producer
    ports = [node.inputs[number] for number in _ports(node, op) if number < len(node.inputs)]
    return [port.value for port in ports if port.value is not None]


def _ports(node: Node, op: GeneralOp) -> tuple[int, ...]:
    if op.fills:
        return ()
    if op.is_elementwise:
        return tuple(range(len(node.inputs)))
    return (0,) if op.is_pointwise else op.moved_inputs(len(node.inputs))


def _axes_of(facts: Facts, value: Value, results: dict[Value, _Varying | None]) -> Axes | None:
    """Return the axes along which a value may vary, by those of its inputs; without axes of size 1."""
    axes, shape = _axes_by_producer(facts, value, results), facts.shape(value)
    if shape is None:
        return axes
    long = frozenset(axis - len(shape) for axis, dim in enumerate(shape) if dim != 1)
    return long if axes is None else axes & long


def _axes_by_producer(facts: Facts, value: Value, results: dict[Value, _Varying | None]) -> Axes | None:
    if value.constant is not None:
        array = facts.array(value)
        return None if array is None else _axes_of_array(array)
    producer = _row(value)
    if producer is None:
        return None
    node, op = producer
    if op.fills:
        return frozenset()
    sources = [results.get(source) for source in _sources(value)]
    axes = [source.axes for source in sources if source is not None and source.axes is not None]
    if not sources or len(axes) < len(sources):
        return None
    joined = frozenset[int]().union(*axes)
    if op.is_elementwise:
        is_aligned = str(node.attributes.get("auto_broadcast", _NUMPY)).lower() in {_NUMPY, "none"}
        return joined if is_aligned or not joined else None
    if op.is_pointwise:
        return joined
    if op.moves is None:  # the node concatenates several values
        return None
    is_aligned = op.aligns and str(node.attributes.get("mode", _NUMPY)).lower() in ALIGNED
    return joined if is_aligned or not joined else None


def repetition(facts: Facts, value: Value, axes: Sequence[int]) -> str:
    """Return why elements that differ in their position on some axes are equal; "" if that is not certain.

    x = Broadcast (row [1, 4], shape [3, 4])    "they are equal along axis 0, which has 3 positions"
    y = Concat (x, x)                           "Concat_1 joins x twice"
    """
    shape = facts.shape(value)
    if shape is None:
        return ""
    varying = varying_axes(facts, value, _MOST_UPSTREAM)
    for axis in axes if varying is not None else ():
        count = lowest(shape[axis])
        if count >= 2 and varying is not None and axis - len(shape) not in varying:
            most = "" if isinstance(shape[axis], int) else "at least "
            return f"they are equal along axis {axis}, which has {most}{count} positions"
    node = value.producer
    if node is None or find(node.domain, node.type) is not named("Concat"):
        return ""
    values = [port.value for port in node.inputs if port.value is not None]
    joined = next((each for number, each in enumerate(values) if each in values[:number]), None)
    inner = None if joined is None else facts.shape(joined)
    written = node.attributes.get("axis")
    if joined is None or inner is None or not isinstance(written, int | str) or not inner:
        return ""
    try:
        axis = int(written) % len(shape)
    except ValueError:
        return ""
    return (
        f"{node.name or node.type} joins {joined.name} twice"
        if axis in axes and lowest(inner[axis]) >= 1
        else ""
    )


def _axes_of_array(array: "Array") -> Axes:
    from ir_scatter.core.arrays import bits_of

    bits, rank = bits_of(array), array.ndim
    return frozenset(
        axis - rank
        for axis in range(rank)
        if array.shape[axis] > 1 and bool((bits != bits.take([0], axis=axis)).any())
    )


def shared_axes(layout: Layout, axis: int | None, indices: Shape, updates: Shape) -> Axes | None:
    """Return the axes of updates that correspond to indices; None if they are unknown.

    Updates of the same target differ in their position on these axes only.
    """
    if indices is None or updates is None or layout is Layout.SEQUENCE:
        return None
    rank = len(updates)
    if layout is Layout.TUPLES:
        return frozenset(range(-rank, len(indices) - 1 - rank))
    if axis is None:
        return None
    count = len(indices) if layout is Layout.SLICES else 1
    return frozenset(range(axis - rank, axis + count - rank))


def are_equal_by_target(
    facts: Facts, value: Value, layout: Layout, axis: int | None, targets: "Array", indices_shape: Shape
) -> bool:
    """Return whether all updates of the same target are proven equal, for constant indices.

    Args:
        facts: facts about the values of the model.
        value: the updates; not more than `_MOST_COMPARED` elements are compared.
        layout: the layout of the operator.
        axis: the axis, None if the operator has none.
        targets: the target number of each index or tuple.
        indices_shape: the shape of the indices.
    """
    import numpy

    shape = static(facts.shape(value))
    count = element_count(shape)
    if shape is None or indices_shape is None or count is None or not 0 < count <= _MOST_COMPARED:
        return False
    axes, array = varying_axes(facts, value), facts.array(value)
    if array is None:
        if axes is None:
            return False
        # Compare without values: elements that may differ get different numbers, elements that are equal
        # share one.
        varying = [size if place - len(shape) in axes else 1 for place, size in enumerate(shape)]
        array = numpy.broadcast_to(numpy.arange(numpy.prod(varying)).reshape(varying), shape)
    if layout is Layout.SLICES:
        if axis is None or axis + len(indices_shape) > len(shape):
            return False
        places = range(axis, axis + len(indices_shape))
        array = numpy.moveaxis(array, places, range(len(indices_shape)))
    if array.size % targets.size:
        return False
    from ir_scatter.core.arrays import bits_of

    rows = bits_of(array).reshape(targets.size, -1)
    order = numpy.argsort(targets, kind="stable")
    is_same = numpy.diff(targets[order]) == 0
    rows = rows[order]
    return not bool((rows[1:] != rows[:-1]).any(axis=1)[is_same].any())
