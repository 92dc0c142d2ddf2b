"""The updates that hit one element, and where it is open what becomes of them."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy

from ir_scatter.ops.kernels.ranges import whole_numbers
from ir_scatter.ops.kernels.scatter import scatter
from ir_scatter.ops.kernels.targets import find_targets
from ir_scatter.ops.kernels.task import Task
from ir_scatter.ops.spec import Layout, Reduction

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array


def find_candidates(
    task: Task,
    shape: tuple[int, ...],
    indices: "Array | None",
    updates: "Array",
    position: tuple[int, ...],
) -> "Array":
    """Return the updates that hit one element, in row-major order of legal indices.

    Args:
        task: layout, axis and how indices count.
        shape: that of data.
        indices: as given.
        updates: as given.
        position: one coordinate from 0 for each dimension of data.

    Returns:
        A new 1-D array.
    """
    if task.layout is Layout.SEQUENCE:
        return _sequence(task, shape, indices, updates, position)
    assert indices is not None
    numbers = whole_numbers(indices)
    return numpy.array(_FAMILIES[task.layout](task, shape, numbers, updates, position), copy=True)


def _hit(numbers: "Array", size: int, coordinate: int) -> "Array":
    """Tell which index values name a coordinate."""
    named: Array = numbers == coordinate
    return named if numbers.dtype.kind == "u" else named | (numbers == coordinate - size)


def _elements(
    task: Task, shape: tuple[int, ...], indices: "Array", updates: "Array", position: tuple[int, ...]
) -> "Array":
    axis = task.axis
    line: tuple[Any, ...] = (*position[:axis], slice(None), *position[axis + 1 :])
    if any(
        part >= size for n, (part, size) in enumerate(zip(position, indices.shape, strict=True)) if n != axis
    ):
        return updates.reshape(-1)[:0]
    found: Array = updates[line][_hit(indices[line], shape[axis], position[axis])]
    return found


def _tuples(
    task: Task, shape: tuple[int, ...], indices: "Array", updates: "Array", position: tuple[int, ...]
) -> "Array":
    depth = indices.shape[-1]
    named = numpy.ones(indices.shape[:-1], numpy.bool_)
    for column in range(depth):
        named &= _hit(indices[..., column], shape[column], position[column])
    updates = updates.reshape(indices.shape[:-1] + shape[depth:])
    found: Array = updates[(named, *position[depth:])]
    return found


def _slices(
    task: Task, shape: tuple[int, ...], indices: "Array", updates: "Array", position: tuple[int, ...]
) -> "Array":
    axis = task.axis
    named = _hit(indices, shape[axis], position[axis])
    part = updates[position[:axis]][(..., *position[axis + 1 :])]
    found: Array = part[named] if indices.ndim else part.reshape(1)[named.reshape(1)]
    return found


def _sequence(
    task: Task,
    shape: tuple[int, ...],
    indices: "Array | None",
    updates: "Array",
    position: tuple[int, ...],
) -> "Array":
    axis, size = task.axis, shape[task.axis]
    start = 0 if indices is None else int(indices[position[0]])
    number = position[axis] - start
    if task.is_circular:
        number %= size
    place: tuple[Any, ...] = (*position[:axis], slice(None), *position[axis + 1 :])
    line: Array = updates[place]
    found = line[number : number + 1].copy() if number >= 0 else line[:0].copy()
    return found


_FAMILIES: dict[
    Layout,
    Callable[[Task, tuple[int, ...], "Array", "Array", tuple[int, ...]], "Array"],
] = {Layout.ELEMENTS: _elements, Layout.TUPLES: _tuples, Layout.SLICES: _slices}


def is_candidate(
    task: Task,
    values: "Array",
    indices: "Array | None",
    updates: "Array",
    absolute: float = 0.0,
    relative: float = 0.0,
) -> "Array":
    """Tell for each element of an output whether some update that hits it has this value.

    Args:
        task: layout, axis and how indices count; updates are taken one by one.
        values: of the shape of data, of the dtype of updates.
        indices: as given.
        updates: as given.
        absolute: how far the value of a number may be off.
        relative: how far it may be off in proportion to the update.

    Returns:
        Booleans of the shape of data.
    """
    every = replace(task, reduction=Reduction.SUM)
    numbers = None if indices is None else whole_numbers(indices)
    targets = find_targets(every, values.shape, numbers, updates.shape)
    found = numpy.zeros((targets.rows, targets.width), numpy.bool_)
    if targets.count and targets.width:
        rows = numpy.ascontiguousarray(values).reshape(targets.rows, targets.width)
        source = updates.reshape(targets.count, targets.width)
        for part, base, places in targets.blocks():
            new, old = source[part], rows[base:][places]
            same = is_near(new, old, absolute, relative)
            numpy.logical_or.at(found[base:], places, same)
    return found.reshape(values.shape)


def is_near(new: "Array", old: "Array", absolute: float, relative: float) -> "Array":
    """Tell where values are those of updates, NaN being one of them."""
    with numpy.errstate(all="ignore"):
        same: Array = (new == old) | ((new != new) & (old != old))
        if absolute or relative:
            distance = abs(old.astype(numpy.complex128) - new.astype(numpy.complex128))
            same = same | (distance <= absolute + relative * abs(new).astype(numpy.float64))
    return same


def contested_by_nan(
    task: Task, data: "Array", indices: "Array | None", updates: "Array", values: "Array", hits: "Array"
) -> "Array":
    """Tell into which elements of a min or max both NaN and numbers go.

    No document says what becomes of NaN there: what stays depends on the order of the operands.

    Args:
        task: what was computed.
        data: as given.
        indices: as given.
        updates: as given.
        values: what came out of it; every NaN that takes part goes on.
        hits: how many updates hit each element.

    Returns:
        Booleans of the shape of data.
    """
    nowhere = numpy.zeros(data.shape, numpy.bool_)
    if task.reduction not in {Reduction.MIN, Reduction.MAX} or data.dtype.kind in "biu":
        return nowhere
    is_nan = (values != values) & (hits > 0)
    if not is_nan.any():
        return nowhere
    every = replace(task, reduction=Reduction.SUM)
    found: Array = is_nan & scatter(every, data == data, indices, updates == updates)
    return found
