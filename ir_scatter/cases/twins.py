"""Twins: changed copies of a case whose output follows from the output of the original case.

They check a runner against itself (metamorphic tests), without a reference.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from ir_scatter.cases.case import Case, repeats_targets
from ir_scatter.core.arrays import Array
from ir_scatter.ops.spec import Layout, Reduction, Role


def _swap_constants(case: Case) -> Case:
    """Make runtime indices and updates constants, or constants of the case runtime inputs."""
    constant_inputs = case.constants - {Role.AXIS}
    constants = frozenset(
        {Role.INDICES, Role.UPDATES} if not constant_inputs and case.indices is not None else ()
    )
    return replace(case, constants=constants | (case.constants & {Role.AXIS}))


def _reverse_updates(case: Case) -> Case | None:
    """Reverse the order of updates and their indices; None if two updates share a target."""
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
    """Replace updates so that the output equals data: by the old values, or by zeros for a sum."""
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
"""Functions that make a twin, by the name of the change. Each twin has the output of the original case;
the last one outputs data.
"""


def twin(case: Case, name: str) -> Case | None:
    """Return the twin of a legal case with a named change; None if the change is not possible."""
    twin_case = TWINS[name](case)
    return None if twin_case is None else replace(twin_case, twin=name)


def expected_of_twin(case: Case, output: Array | None) -> Array | None:
    """Return the expected output of a twin, given the output of the original case; None if unknown."""
    return case.data if case.twin == "with nothing new" else output
