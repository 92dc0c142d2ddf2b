"""Twins of cases: an answer is compared with an answer, so that no reference is needed."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from ir_scatter.cases.case import Case, repeats
from ir_scatter.core.arrays import Array
from ir_scatter.ops.spec import Layout, Reduction, Role


def _other_constants(case: Case) -> Case:
    """Return the case with constants in the place of inputs that flow in, or the other way round."""
    inputs = case.constants - {Role.AXIS}
    others = frozenset({Role.INDICES, Role.UPDATES} if not inputs and case.indices is not None else ())
    return replace(case, constants=others | (case.constants & {Role.AXIS}))


def _other_order(case: Case) -> Case | None:
    """Return the case with its updates, and their indices, back to front; None where two meet."""
    if case.indices is None or not case.indices.ndim or repeats(case):
        return None
    layout, axis = case.spec.layout, case.axis_from_front
    if layout is Layout.SEQUENCE or (layout is Layout.TUPLES and case.indices.ndim < 2):
        return None
    of_indices = axis if layout is Layout.ELEMENTS else 0
    indices = np.ascontiguousarray(np.flip(case.indices, of_indices))
    of_updates = 0 if layout is Layout.TUPLES else axis
    return replace(case, indices=indices, updates=np.ascontiguousarray(np.flip(case.updates, of_updates)))


def _nothing_new(case: Case) -> Case | None:
    """Return the case with updates that leave data as it is: old values, or zeros that are added."""
    indices, axis = case.indices, case.axis_from_front
    if case.reduction in {Reduction.SUM, Reduction.SUB} and case.attribute("use_init_val") is not False:
        is_text = case.data.dtype.kind in "OU"
        return None if is_text else replace(case, updates=np.zeros_like(case.updates))
    if case.reduction is not Reduction.NONE or indices is None or case.spec.layout is Layout.SEQUENCE:
        return None
    numbers, old = indices.astype(np.int64), case.data
    if case.spec.layout is Layout.SLICES:
        updates = np.take(old, numbers, axis)
    elif case.spec.layout is Layout.TUPLES:
        updates = old[tuple(np.moveaxis(numbers, -1, 0))]
    else:
        grid: list[Array] = list(np.indices(numbers.shape, sparse=True))
        grid[axis] = numbers
        updates = old[tuple(grid)]
    return replace(case, updates=np.asarray(updates, old.dtype).reshape(case.updates.shape))


TWINS: Mapping[str, Callable[[Case], Case | None]] = {
    "with other constants": _other_constants,
    "in another order": _other_order,
    "with nothing new": _nothing_new,
}
"""By what differs: each gives what the case gives, but for the last, which gives data."""


def twin(case: Case, name: str) -> Case | None:
    """Return the twin of a legal case, None where it has none; it follows from the same decisions."""
    found = TWINS[name](case)
    return None if found is None else replace(found, twin=name)


def promised(case: Case, of_the_other: Array | None) -> Array | None:
    """Return what a twin must give, from the answer to the other; None if that is not known."""
    return case.data if case.twin == "with nothing new" else of_the_other
