"""Converts the probe of a known defect (a recorded test input) to a case that can be run."""

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
"""First value of generated updates: far from the values of generated data, which begin with 1."""


def case_of(probe: Probe) -> Case:
    """Return the case that a probe describes.

    Raises:
        ValueError: the probe names an unknown operator.
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


def _array(numbers: Numbers, type: Any, first: int | None = None) -> Array:
    """Return the array for numbers of a probe: a list of values, or a tuple that is a shape.

    An array of a shape counts up from `first`, or has zeros without it.
    """
    if isinstance(numbers, tuple):
        values = (
            np.zeros(numbers) if first is None else np.arange(first, first + prod(numbers)).reshape(numbers)
        )
    else:
        values = np.array(numbers)
    return values.astype(str).astype(object) if type == np.dtype(object) else values.astype(type)
