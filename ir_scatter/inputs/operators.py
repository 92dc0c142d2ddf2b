"""Makes random cases of one operator, legal ones and ones that break one rule."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype
from ir_scatter.core.errors import UsageError
from ir_scatter.inputs.breaking import WAYS, break_case, index_limits
from ir_scatter.inputs.case import Case
from ir_scatter.inputs.features import Planner
from ir_scatter.inputs.numbers import clip_to_type, draw
from ir_scatter.inputs.shapes import CaseShapes, draw_shapes
from ir_scatter.inputs.targets import lanes_of
from ir_scatter.inputs.terms import Terms, Use
from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.ops.spec import Attribute, IndexRange, Kind, Layout, OpSpec, Reduction, Role

BROKEN = tuple(WAYS)
"""The rules that a case can break on purpose."""

_TRIES = 200
_MANY = 1000
_FARTHEST = 2**31 - 1
_NEGATIVE, _WRITTEN = 0.3, 0.5
"""How often an index that may be negative is, and how often a default is written."""


def random_case(
    spec: OpSpec,
    seed: "int | np.random.Generator" = 0,
    *,
    reduction: Reduction | None = None,
    element_type: str | None = None,
    index_type: str | None = None,
    broken: str | None = None,
    may_repeat: bool = False,
) -> Case:
    """Draw a case of an operator; what is not given is drawn too.

    Shapes are small: rank 1 to 4, dimensions 0 to 5, indices of any rank that the document allows.
    Indices of operators that count from the end are negative now and then. With reduction none the
    targets differ, unless `may_repeat`; with another one they may repeat.

    Args:
        spec: the row of the operator.
        seed: for the random numbers, or where they come from.
        reduction: one that the row has.
        element_type: of data and updates, "f32".
        index_type: of indices, "i64".
        broken: a rule to break, one of `BROKEN`; None for a legal case.
        may_repeat: whether targets may repeat with reduction none.

    Raises:
        UsageError: the row lacks the reduction or a type, or no case of it breaks the rule.
    """
    random = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
    if broken is not None and broken not in WAYS:
        raise UsageError(f"broken is {broken!r}, expected one of {', '.join(BROKEN)}")
    for _ in range(_TRIES):
        case = _legal(random, spec, reduction, element_type, index_type, may_repeat=may_repeat)
        if broken is None:
            return case
        found = break_case(random, case, broken)
        if found is not None:
            return found
    raise UsageError(f"no case of {spec.key} breaks {broken}")


def _legal(
    random: np.random.Generator,
    spec: OpSpec,
    reduction: Reduction | None,
    element_type: str | None,
    index_type: str | None,
    *,
    may_repeat: bool,
) -> Case:
    chosen, word = _draw_reduction(random, spec, reduction)
    data_types = _types(spec, Role.DATA, spec.reduction_excludes.get(chosen, frozenset()))
    type = _draw_type(random, data_types, element_type, f"{spec.key} with reduction {chosen}")
    of_indices = _draw_type(random, _types(spec, Role.INDICES), index_type, f"indices of {spec.key}")
    is_unique = chosen is Reduction.NONE and not may_repeat
    _, largest = clip_to_type(of_indices, 0, _MANY)
    shapes = draw_shapes(random, spec, is_unique=is_unique, largest_index=largest)
    attributes = dict(word) | _draw_attributes(random, spec, set(word))
    axis = shapes.axis
    if axis is not None and random.random() < _NEGATIVE:
        axis -= len(shapes.data)
    data, updates = draw(random, type, shapes.data), draw(random, type, shapes.updates)
    blank = None if shapes.indices is None else np.zeros(shapes.indices, np.int64)
    case = Case(spec, data, blank, updates, axis, attributes, type, of_indices, chosen)
    indices = None if blank is None else draw_indices(random, case, shapes, is_unique=is_unique)
    return Case(spec, data, indices, updates, axis, attributes, type, of_indices, chosen)


def _draw_reduction(
    random: np.random.Generator, spec: OpSpec, wanted: Reduction | None
) -> tuple[Reduction, dict[str, str]]:
    """Return a reduction and the attribute that says so, which may be left out if it is the default."""
    row = spec.attribute("reduction")
    known = dict(spec.reductions) if row is not None else {}
    fitting = [word for word, found in known.items() if wanted is None or found is wanted]
    if not fitting:
        if wanted not in {None, Reduction.NONE}:
            raise UsageError(f"reduction is {wanted}, which {spec.key} does not have")
        return Reduction.NONE, {}
    word = str(random.choice(fitting))
    assert row is not None
    is_written = word != row.default or random.random() < _WRITTEN
    return known[word], {row.name: word} if is_written else {}


def _draw_attributes(random: np.random.Generator, spec: OpSpec, done: set[str]) -> dict[str, Any]:
    """Return the attributes but axis and reduction; a default may be left out."""
    axis = None if spec.axis is None else spec.axis.attribute
    rest = [row for row in spec.attributes if row.name not in {*done, axis, "reduction"}]
    return {row.name: _draw_value(random, row) for row in rest if random.random() < _WRITTEN}


def _draw_value(random: np.random.Generator, row: Attribute) -> Any:
    if row.kind is Kind.BOOLEAN:
        return bool(random.integers(2))
    return str(random.choice(row.choices)) if row.choices else row.default


def _types(spec: OpSpec, role: Role, excluded: frozenset[str] = frozenset()) -> list[ElementType]:
    """Return the element types of a port that NumPy has a type for."""
    port = spec.port(role)
    allowed = frozenset() if port is None else port.element_types - excluded
    return [row for name, row in ELEMENT_TYPES.items() if name in allowed and dtype(row) is not None]


def _draw_type(
    random: np.random.Generator, types: Sequence[ElementType], wanted: str | None, what: str
) -> ElementType:
    fitting = [row for row in types if wanted is None or row.name == wanted]
    if not fitting:
        raise UsageError(f"the type of {what} is {wanted}, expected {', '.join(row.name for row in types)}")
    return fitting[int(random.integers(len(fitting)))]


def draw_indices(random: np.random.Generator, case: Case, shapes: CaseShapes, *, is_unique: bool) -> Array:
    """Draw legal indices for a case whose other parts are there.

    Args:
        random: where randomness comes from.
        case: its indices are replaced.
        shapes: those of the case.
        is_unique: whether targets must differ.
    """
    assert shapes.indices is not None
    limits = _limits(case)
    if 0 in shapes.indices or not limits:
        found = np.zeros(shapes.indices, np.int64)
    elif case.spec.layout is Layout.TUPLES:
        count, room = int(np.prod(shapes.indices[:-1])), int(np.prod(limits))
        flat = random.permutation(room)[:count] if is_unique else random.integers(0, room, count)
        found = np.stack(np.unravel_index(flat, limits), axis=-1).reshape(shapes.indices)
    elif is_unique and case.spec.layout is Layout.ELEMENTS:
        axis, size = case.axis_from_front, limits[0]
        others = [size if n == axis else dim for n, dim in enumerate(shapes.indices)]
        places = random.random(others).argsort(axis=axis)
        found = places.take(range(shapes.indices[axis]), axis=axis)
    elif is_unique and case.spec.layout is Layout.SLICES:
        found = random.permutation(limits[0])[: int(np.prod(shapes.indices))].reshape(shapes.indices)
    else:
        found = random.integers(0, limits[0], shapes.indices)
    if case.spec.index_range is IndexRange.WRAPPING and case.index_type.kind == "signed" and limits:
        is_negative = random.random(found.shape) < _NEGATIVE
        sizes = np.array(limits if case.spec.layout is Layout.TUPLES else limits[0], np.int64)
        found = np.where(is_negative, found - sizes, found)
    return np.asarray(found).astype(dtype(case.index_type))


def _limits(case: Case) -> list[int]:
    """Return the sizes that indices count on; that of the dimension where any is legal."""
    return [max(case.data.shape[case.axis_from_front], 1) if s is None else s for s in index_limits(case)]


def try_features(
    random: np.random.Generator, case: Case, indices: Array, number: int, *, is_unique: bool
) -> Array:
    """Return indices that try what the operator allows: three draws in a row hold all that there is.

    Args:
        random: where randomness comes from.
        case: what the indices belong to.
        indices: legal ones, with which it is begun.
        number: of the draw.
        is_unique: whether targets must differ.
    """
    layout = case.spec.layout
    depth = indices.shape[-1] if layout is Layout.TUPLES else 1
    if not indices.size:
        return indices
    sizes = _limits(case)
    flat, numbers = indices.astype(np.int64).reshape(-1), np.arange(indices.size).reshape(-1, depth)
    use = Use(
        name="",
        terms=numbers + 1,
        values=flat.reshape(-1, depth),
        lows=np.zeros(depth, np.int64),
        highs=np.array(sizes, np.int64) - 1,
        lanes=lanes_of(layout, case.axis_from_front, indices),
        shape=indices.shape,
        is_legal=True,
        is_unique=is_unique,
        is_scatter=True,
        wraps=case.spec.index_range is IndexRange.WRAPPING,
        may_repeat=not is_unique and case.reduction is not Reduction.NONE,
    )
    low, high = clip_to_type(case.index_type, -_FARTHEST, _FARTHEST)
    ends = (np.full(indices.size, end, np.int64) for end in (low, high))
    planner = Planner(random, Terms(flat), [use], *ends)
    for _ in planner.changes(number):
        pass
    return planner.values.reshape(indices.shape).astype(indices.dtype)
