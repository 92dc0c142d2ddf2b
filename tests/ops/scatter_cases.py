"""Random legal cases of every row of the table, for the tests of the kernels."""

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import IndexRange, IndicesLimit, Layout, OpSpec, Reduction, Role

Array = Any


@dataclass
class Case:
    """What a test gives to `evaluate`, and to the loop."""

    operator: str
    data: Array
    indices: Array
    updates: Array
    axis: int | None = None
    attributes: dict[str, Any] = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        given = {"data": self.data, "indices": self.indices, "updates": self.updates, **self.attributes}
        return given if self.axis is None else given | {"axis": self.axis}

    @property
    def spec(self) -> OpSpec:
        return ROWS[self.operator]


def dtypes(names: frozenset[str]) -> list[Any]:
    found = [dtype(ELEMENT_TYPES[name]) for name in sorted(names)]
    return [row for row in found if row is not None]


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
    index_types: frozenset[str] | None = None,
    smallest: int = 0,
) -> Case:
    """Draw a legal case of a row, of some reductions and types or of all, no dimension below `smallest`."""
    data_port, index_port = spec.port(Role.DATA), spec.port(Role.INDICES)
    assert data_port is not None
    assert index_port is not None
    words = [w for w, r in spec.reductions.items() if reductions is None or r in reductions] or ["none"]
    word = draw(st.sampled_from(words))
    excluded = spec.reduction_excludes.get(spec.reductions.get(word, Reduction.NONE), frozenset())
    allowed = data_port.element_types - excluded
    kind = draw(st.sampled_from(dtypes(allowed if types is None else allowed & types)))
    index_kind = draw(st.sampled_from(dtypes(index_types or index_port.element_types)))
    least = 2 if spec.layout is Layout.SEQUENCE else data_port.min_rank
    rank = draw(st.one_of(st.integers(least, 4), st.integers(least, 8)))
    size = st.integers(smallest, 4) if rank < 5 else st.integers(1, 2)
    shape = tuple(draw(st.lists(size, min_size=rank, max_size=rank)))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    case: Case = _DRAWERS[spec.layout](draw, spec, shape, kind, index_kind, generator, smallest)
    if word != "none" or draw(st.booleans()):
        case.attributes |= {"reduction": word} if spec.reductions else {}
    if spec.attribute("use_init_val") and draw(st.booleans()):
        case.attributes["use_init_val"] = draw(st.booleans())
    return case


def index_values(
    spec: OpSpec, generator: np.random.Generator, kind: Any, size: int, shape: tuple[int, ...]
) -> Array:
    info = (ml_dtypes if kind.kind == "V" else np).iinfo(kind)
    low = -size if spec.index_range is IndexRange.WRAPPING else 0
    values = generator.integers(max(low, int(info.min)), min(size - 1, int(info.max)) + 1, shape)
    return values.astype(kind)


def _draw_axis(draw: st.DrawFn, spec: OpSpec, rank: int) -> tuple[int | None, int]:
    """Return the axis as written, None where the default is meant, and counted from 0."""
    default = spec.attribute("axis")
    legal = [axis for axis in range(-rank, rank) if spec.layout is not Layout.SEQUENCE or axis % rank]
    if default is not None and int(default.default) in legal and draw(st.booleans()):
        return None, int(default.default) % rank
    axis = draw(st.sampled_from(legal))
    return axis, axis % rank


def _elements(
    draw: Any, spec: OpSpec, shape: Any, kind: Any, index_kind: Any, generator: Any, smallest: int
) -> Case:
    written, axis = _draw_axis(draw, spec, len(shape))
    part = [draw(st.integers(smallest, size)) for size in shape]
    if shape[axis] == 0:
        part[axis] = 0
    elif spec.indices_limit is not IndicesLimit.EVERYWHERE:
        part[axis] = draw(st.integers(smallest, 7))
    indices = index_values(spec, generator, index_kind, max(1, shape[axis]), tuple(part))
    data, updates = numbers(generator, kind, shape), numbers(generator, kind, tuple(part))
    return Case(str(spec.key), data, indices, updates, written)


def _slices(
    draw: Any, spec: OpSpec, shape: Any, kind: Any, index_kind: Any, generator: Any, smallest: int
) -> Case:
    written, axis = _draw_axis(draw, spec, len(shape))
    form = tuple(draw(st.lists(st.integers(smallest, 4), max_size=3)))
    if shape[axis] == 0 and 0 not in form:
        form = (*form, 0)
    indices = index_values(spec, generator, index_kind, max(1, shape[axis]), form)
    updates = numbers(generator, kind, shape[:axis] + form + shape[axis + 1 :])
    return Case(str(spec.key), numbers(generator, kind, shape), indices, updates, written)


def _tuples(
    draw: Any, spec: OpSpec, shape: Any, kind: Any, index_kind: Any, generator: Any, smallest: int
) -> Case:
    depth = draw(st.integers(0, len(shape)))
    form = tuple(draw(st.lists(st.integers(smallest, 4), max_size=3)))
    if 0 in shape[:depth] and 0 not in form:
        form = (*form, 0)
    columns = [index_values(spec, generator, index_kind, max(1, size), form) for size in shape[:depth]]
    indices = np.stack(columns, -1) if columns else np.zeros((*form, 0), index_kind)
    updates = numbers(generator, kind, form + shape[depth:])
    if spec.scalar_updates and updates.shape == ():
        updates = updates.reshape(draw(st.sampled_from([(), (1,), (1, 1)])))
    return Case(str(spec.key), numbers(generator, kind, shape), indices, updates)


def _sequence(
    draw: Any, spec: OpSpec, shape: Any, kind: Any, index_kind: Any, generator: Any, smallest: int
) -> Case:
    if len(shape) == 2:
        written, axis = draw(st.sampled_from([1, -1])), 1
    else:
        chosen, axis = _draw_axis(draw, spec, len(shape))
        written = -2 if chosen is None else chosen
    new = draw(st.integers(smallest, shape[axis]))
    form = (*shape[:axis], new, *shape[axis + 1 :])
    data, updates = numbers(generator, kind, shape), numbers(generator, kind, form)
    is_circular = draw(st.booleans())
    far = 2**62 if is_circular else shape[axis] - new
    indices = generator.integers(-far if is_circular else 0, far + 1, shape[0]).astype(index_kind)
    attributes = {"mode": "circular"} if is_circular else {}
    return Case(str(spec.key), data, None if draw(st.booleans()) else indices, updates, written, attributes)


_DRAWERS: dict[Layout, Any] = {
    Layout.ELEMENTS: _elements, Layout.SLICES: _slices, Layout.TUPLES: _tuples, Layout.SEQUENCE: _sequence,
}  # fmt: skip
ROWS = {str(key): spec for key, spec in SPECS.items()}
