"""Random legal cases of every row of the table, for the tests of the kernels."""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from ir_scatter.cases.case import Case
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import OpSpec, Reduction, Role
from tests.models.cases import random_case

Array = Any


def numbers(generator: np.random.Generator, kind: Any, shape: tuple[int, ...]) -> Array:
    """Make elements of any dtype, extremes and special values among them."""
    return np.asarray(_numbers(generator, kind, shape))


def _numbers(generator: np.random.Generator, kind: Any, shape: tuple[int, ...]) -> Any:
    if kind.kind == "O":
        return generator.choice(np.array(["", "a", "längerer Text", "b c"], object), shape)
    if kind.kind == "b":
        return generator.random(shape) < 0.5
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        small = generator.integers(max(-3, limits.min), 9, shape)
        wide = generator.integers(limits.min, limits.max, shape, dtype=kind, endpoint=True)
        return np.where(generator.random(shape) < 0.5, small.astype(kind), wide).astype(kind)
    if kind.kind == "V" and "int" in kind.name:
        return generator.integers(-8, 16, shape).astype(kind)
    if kind.kind == "c":
        real, imaginary = generator.integers(-4, 5, (2, *shape)).astype(np.float64)
        return (real + 1j * imaginary).astype(kind)
    plain = generator.standard_normal(shape) * 10.0 ** generator.integers(-3, 4, shape)
    special = generator.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 448.0, 6e4], shape)
    with np.errstate(all="ignore"):
        return np.where(generator.random(shape) < 0.9, plain, special).astype(np.float32).astype(kind)


@st.composite
def cases(
    draw: st.DrawFn,
    spec: OpSpec,
    reductions: frozenset[Reduction] | None = None,
    types: frozenset[str] | None = None,
    index_type: str | None = None,
    smallest: int = 0,
) -> Case:
    """Draw a legal case of a row, of some reductions and types or of all, maybe without empty tensors."""
    known = sorted(set(spec.reductions.values()) or {Reduction.NONE})
    reduction = draw(st.sampled_from([one for one in known if reductions is None or one in reductions]))
    port = spec.port(Role.DATA)
    assert port is not None
    allowed = port.element_types - spec.reduction_excludes.get(reduction, frozenset())
    allowed = allowed if types is None else allowed & types
    type = draw(st.sampled_from([name for name in sorted(allowed) if dtype(ELEMENT_TYPES[name])]))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    case = random_case(
        spec, generator, reduction=reduction, element_type=type, index_type=index_type,
        may_repeat=True, is_wild=True,
    )  # fmt: skip
    assume(not smallest or (case.data.size and case.updates.size))
    data, updates = (numbers(generator, array.dtype, array.shape) for array in (case.data, case.updates))
    return replace(case, data=data, updates=updates)


ROWS = {str(key): spec for key, spec in SPECS.items()}
