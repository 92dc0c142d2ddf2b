"""Legal inputs for one node, as it stands in its model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from ir_scatter.analysis.conditions import Condition
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.convert.rewriter import Promises
from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype
from ir_scatter.core.errors import NoInputs
from ir_scatter.core.shapes import show
from ir_scatter.inputs import Case
from ir_scatter.inputs.numbers import draw
from ir_scatter.inputs.operators import draw_indices, try_features
from ir_scatter.inputs.shapes import CaseShapes
from ir_scatter.inputs.shapes_like import Misfit, draw_shapes_like
from ir_scatter.ops import targets
from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.ops.spec import IndexRange, Layout, Reduction, Role
from ir_scatter.rewrites.base import Rewrite, View

MOST_ELEMENTS = 1 << 24
"""Inputs with more of them are not made: what is computed from them takes some hundred bytes for each."""


class TooLarge(NoInputs):
    """Inputs would take too much memory."""


_F32, _I64 = ELEMENT_TYPES["f32"], ELEMENT_TYPES["i64"]


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """Inputs of one node.

    Attributes:
        inputs: as they are numbered.
        arguments: those of `evaluate`, attributes included.
        data: the input of that role.
    """

    inputs: tuple[Array | None, ...]
    arguments: Mapping[str, Any]
    data: Array


def draw_inputs(
    random: np.random.Generator,
    way: Sequence[Rewrite],
    site: ScatterNode,
    promises: Promises,
    number: int,
    *,
    keeps_constants: bool,
    is_tight: bool = False,
) -> Given:
    """Draw inputs that are legal and keep what is proven and promised of the node.

    Targets differ where nothing says what happens when they do not. Three cases in a row hold
    negative, first, last and repeated indices where all of that is allowed.

    Args:
        random: where randomness comes from.
        way: the rewrites, which have conditions.
        site: the node.
        promises: what the user vouches for.
        number: of the case.
        keeps_constants: whether indices that are constant stay as they are.
        is_tight: whether every dimension that is not known is to be the least possible one.

    Raises:
        Misfit: no such shapes were found.
        TooLarge: they would take too much memory.
        NoInputs: NumPy has no type for an input.
    """
    view = View(site, promises.conditions, promises.keeps_negative)
    wanted = {condition for rewrite in way for condition in rewrite.requires(view, rewrite.target)}
    is_unique = view.reduction is Reduction.NONE or Condition.UNIQUE in wanted
    is_full = Condition.EQUAL in wanted
    shapes = draw_shapes_like(random, site, is_unique=is_unique, is_full=is_full, is_tight=is_tight)
    _demand_fit(site, shapes, wanted)
    case = _blank(random, site, shapes, view.reduction)
    if case.indices is None:
        return _given(site, case)
    indices = _constant(site, shapes, wanted) if keeps_constants else None
    if indices is None:
        indices = _indices(random, view, case, shapes, wanted, number, is_unique=is_unique)
    return _given(site, replace(case, indices=indices))


def _demand_fit(site: ScatterNode, shapes: CaseShapes, wanted: set[Condition]) -> None:
    """Demand that there are targets enough, and memory for all that is computed from the inputs."""
    if Condition.UNIQUE in wanted and shapes.indices is not None and not _has_room(site, shapes):
        raise Misfit
    count = sum(prod(shape) for shape in (shapes.data, shapes.indices, shapes.updates) if shape is not None)
    if count > MOST_ELEMENTS:
        raise TooLarge(
            f"with data of {show(shapes.data)} there are more than {MOST_ELEMENTS} elements to compute, "
            "too many; --verify 0 converts it without"
        )


def _blank(random: np.random.Generator, site: ScatterNode, shapes: CaseShapes, reduction: Reduction) -> Case:
    """Return a case whose indices are still to be drawn."""
    type = (site.data.element_type if site.data else None) or _F32
    index_type = (site.indices.element_type if site.indices else None) or _I64
    return Case(
        site.spec,
        draw(random, type, shapes.data),
        None if shapes.indices is None else np.zeros(shapes.indices, np.int64),
        draw(random, type, shapes.updates),
        shapes.axis,
        {},
        type,
        index_type,
        reduction,
    )


def _indices(
    random: np.random.Generator,
    view: View,
    case: Case,
    shapes: CaseShapes,
    wanted: set[Condition],
    number: int,
    *,
    is_unique: bool,
) -> Array:
    """Draw indices that keep the conditions."""
    assert shapes.indices is not None
    is_unique = is_unique and _has_room(view.site, shapes)
    if Condition.EQUAL in wanted and case.spec.layout is Layout.ELEMENTS:
        column = tuple(dim if axis == shapes.axis else min(dim, 1) for axis, dim in enumerate(shapes.indices))
        one = CaseShapes(shapes.data, column, column, shapes.axis)
        found = draw_indices(random, case, one, is_unique=is_unique)
        found = try_features(random, case, found, number, is_unique=is_unique)
        found = np.broadcast_to(found, shapes.indices)
    else:
        found = draw_indices(random, case, shapes, is_unique=is_unique)
        found = try_features(random, case, found, number, is_unique=is_unique)
    is_signed = case.index_type.kind == "signed"
    if view.may_be_negative or not found.size or not is_signed:
        return found
    sizes = shapes.data[: shapes.indices[-1]] if shapes.axis is None else shapes.data[shapes.axis]
    return targets.from_front(found, sizes).astype(found.dtype)


def _constant(site: ScatterNode, shapes: CaseShapes, wanted: set[Condition]) -> Array | None:
    """Return the indices that the file holds, None if it holds none."""
    array = site.index_array
    if array is not None and Condition.UNIQUE in wanted and _repeat(site, shapes, array):
        raise Misfit
    return array


def _repeat(site: ScatterNode, shapes: CaseShapes, indices: Array) -> bool:
    """Tell whether constant indices name a target again with the sizes that were drawn."""
    layout = site.spec.layout
    limits = targets.sizes(layout, shapes.data, shapes.axis, indices.shape)
    return targets.repeats(layout, shapes.axis, indices, limits, wraps=True) is not None


def _has_room(site: ScatterNode, shapes: CaseShapes) -> bool:
    """Tell whether there are enough targets for all indices to differ."""
    assert shapes.indices is not None
    layout = site.spec.layout
    if 0 in shapes.indices and layout is not Layout.TUPLES:
        return True
    if layout is Layout.TUPLES:
        *leading, depth = shapes.indices
        return prod(leading) <= prod(shapes.data[:depth])
    if shapes.axis is None or layout is Layout.SEQUENCE:
        return False
    size = shapes.data[shapes.axis]
    if layout is Layout.ELEMENTS:
        return shapes.indices[shapes.axis] <= size
    return prod(shapes.indices) <= size


def _given(site: ScatterNode, case: Case) -> Given:
    """Put arrays in the order of the node's inputs."""
    spec = site.spec
    arrays: dict[Role, Array | None] = {
        Role.DATA: case.data, Role.INDICES: case.indices, Role.UPDATES: case.updates
    }  # fmt: skip
    axis = site.operand(Role.AXIS)
    of_axis = spec.axis.attribute if spec.axis else None
    if axis is not None:
        arrays[Role.AXIS] = _axis(axis.shape, axis.element_type, case.axis or 0, site)
    _share(site, arrays)
    arguments: dict[str, Any] = {role.value: array for role, array in arrays.items()}
    if case.indices is not None and spec.index_range is IndexRange.NON_NEGATIVE and site.wraps:
        # The text forbids them and every runtime takes them as meant: so does what must come out.
        arguments[Role.INDICES.value] = _from_front(case, arrays[Role.INDICES])
    if of_axis is not None:
        arguments["axis"] = case.axis
    for row in spec.attributes:
        if row.name != of_axis:
            arguments[row.name] = site.attribute(row.name)
    count = len(site.node.inputs)
    data = arrays[Role.DATA]
    assert data is not None
    return Given(tuple(arrays.get(port.role) for port in spec.ports[:count]), arguments, data)


def _from_front(case: Case, indices: Array | None) -> Array | None:
    """Return indices of one axis counted from the front."""
    if indices is None or indices.dtype.kind != "i" or case.spec.layout is Layout.TUPLES:
        return indices
    return targets.from_front(indices, case.data.shape[case.axis_from_front])


def _share(site: ScatterNode, arrays: dict[Role, Array | None]) -> None:
    """Give inputs that are one value of the model one array."""
    seen: dict[int, Array | None] = {}
    for role in (Role.AXIS, Role.INDICES, Role.DATA, Role.UPDATES):
        operand = site.operand(role)
        if operand is None:
            continue
        own = arrays[role]
        array = seen.setdefault(id(operand.value), own)
        if array is not None and own is not None and array.shape != own.shape:
            raise Misfit
        arrays[role] = array


def _axis(shape: Any, type: ElementType | None, axis: int, site: ScatterNode) -> Array:
    written = site.written_axis
    number = axis if written is None else written
    dims = () if shape is None else tuple(1 for _ in shape)
    known = dtype(type or _I64)
    return np.full(dims, number, known)


__all__ = ["MOST_ELEMENTS", "Given", "Misfit", "TooLarge", "draw_inputs"]
