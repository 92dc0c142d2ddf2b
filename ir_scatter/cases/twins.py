"""Twins: changed copies of a case with a known effect on the output, for checking a runner against itself.

Such metamorphic tests need no reference.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from ir_scatter.cases.case import Case, repeats_targets
from ir_scatter.core.arrays import Array
from ir_scatter.ops.spec import Layout, Reduction, Role


def _swap_constants(case: Case) -> Case:
    """Make indices and updates constants; if some input is constant already, make all runtime inputs."""
    constant_inputs = case.constants - {Role.AXIS}
    constants = frozenset(
        {Role.INDICES, Role.UPDATES} if not constant_inputs and case.indices is not None else ()
    )
    return replace(case, constants=constants | (case.constants & {Role.AXIS}))


def _reverse_updates(case: Case) -> Case | None:
    """Reverse the order of updates together with their indices; None if two updates share a target."""
    if case.indices is None or not case.indices.ndim or repeats_targets(case):
        return None
    layout, axis = case.spec.layout, case.axis_from_front
    if layout is Layout.SEQUENCE or (layout is Layout.TUPLES and case.indices.ndim < 2):
        return None
    of_indices = axis if layout is Layout.ELEMENTS else 0
    indices = np.ascontiguousarray(np.flip(case.indices, of_indices))
    of_updates = 0 if layout is Layout.TUPLES else axis
    return replace(case, indices=indices, updates=np.ascontiguousarray(np.flip(case.updates, of_updates)))


def _rewrite_data(case: Case) -> Case | None:
    """Choose updates with which the output equals data: the old values, or zeros for a sum."""
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
    "with other constants": _swap_constants,
    "in another order": _reverse_updates,
    "with nothing new": _rewrite_data,
}
"""Functions that make a twin, by the name of the change.

The output of a twin is that of the original case; with the last change it equals data.
"""


def twin(case: Case, name: str) -> Case | None:
    """Return a legal case changed as `name` says, a key of `TWINS`; None if that is not possible."""
    twin_case = TWINS[name](case)
    return None if twin_case is None else replace(twin_case, twin=name)


def expected_of_twin(case: Case, output: Array | None) -> Array | None:
    """Return the output that a twin must have, given that of the original case; None if unknown."""
    return case.data if case.twin == "with nothing new" else output
