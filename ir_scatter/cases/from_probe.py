"""The case that a probe of a known defect describes."""

from math import prod
from typing import Any

import numpy as np

from ir_scatter.cases.case import Case
from ir_scatter.core.arrays import Array
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from ir_scatter.defects.base import Numbers, Probe
from ir_scatter.ops.lookup import by_text
from ir_scatter.ops.spec import Reduction

_FIRST_UPDATE = 101
"""Where the numbers of updates begin that are to count, apart from those of data."""


def case_of(probe: Probe) -> Case:
    """Return a probe as a case of the table.

    Raises:
        ValueError: it is no case of an operator that there is.
    """
    spec = by_text(probe.operator)
    if spec is None:
        raise ValueError(f"{probe.name}: there is no operator {probe.operator}")
    row = spec.attribute("reduction")
    word = probe.attributes.get("reduction", row.default if row else None)
    element_type, index_type = ELEMENT_TYPES[probe.element_type], ELEMENT_TYPES[probe.index_type]
    return Case(
        spec,
        _array(probe.data, dtype(element_type), 1),
        None if probe.indices is None else _array(probe.indices, dtype(index_type)),
        _array(probe.updates, dtype(element_type), _FIRST_UPDATE),
        probe.axis,
        dict(probe.attributes),
        element_type,
        index_type,
        spec.reductions.get(word, Reduction.NONE) if isinstance(word, str) else Reduction.NONE,
        probe.breaks or None,
        probe.constants,
        probe.shapes,
        axis_shape=probe.axis_shape,
        iterations=probe.iterations,
        before=probe.before,
        keeps_state=probe.keeps_state,
        in_function=probe.in_function,
    )


def _array(given: Numbers, type: Any, first: int | None = None) -> Array:
    """Return numbers as an array; a shape is filled with numbers that count from the first, or zeros."""
    if isinstance(given, tuple):
        numbers = np.zeros(given) if first is None else np.arange(first, first + prod(given)).reshape(given)
    else:
        numbers = np.array(given)
    return numbers.astype(str).astype(object) if type == np.dtype(object) else numbers.astype(type)
