"""Single nodes of which any part may be known: rewritten into what is equal, or refused for a true reason.

What is equal is held against a loop that was written from the documents. By default every rewrite gets a few
small cases, the same each time, in the long profile more; with HYPOTHESIS_PROFILE=nightly every small case.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, islice, product, repeat
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ir_scatter.analysis.conditions import Condition
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.cases.case import Case
from ir_scatter.convert.proof import prove
from ir_scatter.convert.rewriter import Rewriter, Rewritten
from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.core.model import ONNX, OPENVINO, OpKey
from ir_scatter.core.shapes import UNKNOWN_DIM, Bounds, Dim, Shape
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import NEGATIVE_INDEX, IndexRange, IndicesLimit, Layout, OpSpec, Reduction, Role
from ir_scatter.rewrites import all_rewrites
from ir_scatter.rewrites.base import Rewrite
from ir_scatter.rewrites.refusals import Refusal
from tests.models.cases import random_case
from tests.rewrites.forms import (
    Array,
    can_run,
    demand_equal,
    engine_for,
    opset_of,
    run,
    site_for,
    true_conditions,
)
from tests.rewrites.refusal_truth import Refused, demand_true
from tests.scale import NIGHTLY, in_part_and_whole

Dims = tuple[int, ...]
Arrays = dict[Role, Array | None]

REWRITES = all_rewrites()


def arrays_of(case: Case, axis_shape: Dims) -> Arrays:
    found = {Role.DATA: case.data, Role.INDICES: case.indices, Role.UPDATES: case.updates}
    if case.axis is not None and case.spec.axis is not None and case.spec.axis.attribute is None:
        found[Role.AXIS] = np.full(axis_shape, case.axis, np.int64)
    return found


def check(
    rewrite: Rewrite, case: Case, arrays: Arrays, engine: Rewriter, site: ScatterNode
) -> Rewritten | None:
    """Demand what is true of a node that a case is one of; return the new form if it was computed."""
    outcome = engine.rewrite((site,), rewrite.target, opset_of(rewrite.target))
    if isinstance(outcome, Refusal):
        demand_true(Refused(outcome, site, rewrite, engine.promises.conditions, arrays, case.axis))
        return None
    if outcome is None:
        assert rewrite.source is rewrite.target
        assert case.indices is not None
        assert case.indices.ndim == 1
        return None
    relied_on = engine.promises.conditions & set(outcome.assumptions)
    if not relied_on <= true_conditions(case, arrays) or not can_run(rewrite, case, site):
        return None
    demand_equal(run(outcome, case.spec, arrays), case)
    return outcome


# Every small case of every layout: shapes, axes and index values, counted out one after the other

SAMPLE, WHOLE, PART, SIZES = 40, 12, 2, range(4)
"""Shapes for each rewrite: at most, and in the long and the default profile once one of them was computed."""
FEW, SOME = 9, 3
"""So many index values of one shape are all tried; of more so many."""

WAYS = ("static", "dimensions", "ranks", "axis", "nothing", "constant")
"""What is known: all shapes; ranks only; not even those; all but the axis; nothing; indices too."""


class Small(NamedTuple):
    """Shapes that belong together; no indices where they are left out."""

    data: Dims
    indices: Dims | None
    updates: Dims
    axis: int | None = None


def shapes_of(ranks: Sequence[int]) -> Iterator[Dims]:
    return chain.from_iterable(product(SIZES, repeat=rank) for rank in ranks)


@cache
def every_small(key: OpKey) -> tuple[Small, ...]:
    """Return all shapes of a row."""
    spec, found = SPECS[key], list[Small]()
    for data in shapes_of((1, 2, 3)):
        if spec.layout is Layout.TUPLES:
            for depth, leading in product(range(len(data) + 1), shapes_of(range(3))):
                updates, indices = leading + data[depth:], (*leading, depth)
                shapes = [updates, *([(1,), (1, 1)] if spec.scalar_updates and updates == () else [])]
                found += [Small(data, indices, shape) for shape in shapes]
            continue
        for axis in range(-len(data), len(data)):
            place = axis % len(data)
            if spec.layout is Layout.SLICES:
                shapes = list(shapes_of(range(3)))
                found += [Small(data, one, data[:place] + one + data[place + 1 :], axis) for one in shapes]
            elif spec.layout is Layout.ELEMENTS:
                highest = list(data)
                if spec.indices_limit is not IndicesLimit.EVERYWHERE:
                    highest[axis] = SIZES[-1]
                shapes = list(product(*(range(size + 1) for size in highest)))
                found += [Small(data, one, one, axis) for one in shapes]
            elif place:
                lengths = range(data[place] + 1)
                shapes = [(*data[:place], length, *data[place + 1 :]) for length in lengths]
                found += [Small(data, one, shape, axis) for shape in shapes for one in (None, data[:1])]
    return tuple(found)


def attribute_sets(spec: OpSpec) -> list[dict[str, Any]]:
    """Return every way to write the attributes, the axis left out."""
    found: list[dict[str, Any]] = [{"reduction": word} for word in spec.reductions] or [{}]
    if spec.attribute("use_init_val") is not None:
        found = [one | {"use_init_val": keeps} for one in found for keeps in (True, False)]
    if spec.attribute("mode") is not None:
        found = [one | {"mode": mode} for one in found for mode in ("linear", "circular")]
    return found


def numbers(shape: Dims, start: int, kind: str) -> Array:
    """Return numbers that are all different and small."""
    return (np.arange(start, start + prod(shape)) % 97 - 11).astype(kind).reshape(shape)


def blank_case(spec: OpSpec, small: Small, attributes: Mapping[str, Any]) -> Case:
    kind = "float32" if attributes.get("reduction") == "mean" and small.data[0] % 2 else "int32"
    data, updates = numbers(small.data, 0, kind), numbers(small.updates, 31, kind)
    indices, port = small.indices, spec.port(Role.INDICES)
    is_narrow = port is not None and "i32" in port.element_types and small.data[0] == 2
    types = ELEMENT_TYPES["f32" if kind == "float32" else "i32"], ELEMENT_TYPES["i32" if is_narrow else "i64"]
    reduction = spec.reductions.get(attributes.get("reduction", ""), Reduction.NONE)
    zeros = None if indices is None else np.zeros(indices, "int32" if is_narrow else "int64")
    return Case(spec, data, zeros, updates, small.axis, attributes, *types, reduction)


def with_indices(case: Case, random: np.random.Generator) -> Iterator[Case]:
    """Yield a case with all of its legal indices if they are few, otherwise with a sample.

    That begins with some that are all different, where there is room for them.
    """
    if case.indices is None:
        yield case
        return
    limits, spec = case.limits, case.spec
    wraps = spec.index_range is IndexRange.WRAPPING or NEGATIVE_INDEX in spec.tolerated
    ranges = [
        range(-5, 6) if size is None else range(-size if wraps else 0, size)
        for _ in range(case.indices.size // max(len(limits), 1))
        for size in limits
    ]
    if not all(ranges):
        return
    every: Iterator[Sequence[int]] = product(*ranges)
    if prod(map(len, ranges)) > FEW:
        different = [row[-1 - place % len(row)] for place, row in enumerate(ranges)]
        drawn = ([int(random.choice(row)) for row in ranges] for _ in repeat(None))
        every = islice(chain([different], drawn), SOME)
    for values in every:
        indices = np.array(values, case.indices.dtype).reshape(case.indices.shape)
        yield replace(case, indices=indices)


def small_cases(rewrite: Rewrite, small: Small, attributes: Any, random: Any) -> Iterator[Case]:
    """Yield cases; where indices must be equal along the other axes, such first."""
    case = blank_case(rewrite.source, small, attributes)
    if becomes_slices(rewrite) and case.indices is not None:
        first = [
            slice(None) if place == case.axis_from_front else slice(1) for place in range(case.data.ndim)
        ]
        for one in with_indices(replace(case, indices=case.indices[tuple(first)]), random):
            yield replace(one, indices=np.broadcast_to(np.asarray(one.indices), case.indices.shape))
    yield from with_indices(case, random)


def chosen(rewrite: Rewrite, attributes: int, seed: Sequence[int]) -> Iterator[tuple[Small, int]]:
    """Yield shapes with the number of a set of attributes; in a sample most of those that must reach do."""
    every = every_small(rewrite.source.key)
    if NIGHTLY:
        for place, small in enumerate(every):
            # The forms of ONNX's rows differ in their opsets only: there the sets take turns.
            is_turn = rewrite.source.key.domain == ONNX
            yield from ((small, n) for n in ([place % attributes] if is_turn else range(attributes)))
        return
    random = np.random.default_rng(seed)
    order = (every[int(place)] for place in random.permutation(len(every)))
    fitting = (
        one for one in order if not becomes_slices(rewrite) or reaches_all(one) or random.random() > 0.98
    )
    yield from ((small, int(random.integers(attributes))) for small in islice(fitting, SAMPLE))


def becomes_slices(rewrite: Rewrite) -> bool:
    return rewrite.source.layout is Layout.ELEMENTS and rewrite.target.layout is Layout.SLICES


def reaches_all(small: Small) -> bool:
    """Tell whether indices reach every position of the other axes, and there is one."""
    data, indices, axis = small.data, small.indices or (), (small.axis or 0) % len(small.data)
    return all(data[place] == indices[place] > 0 for place in range(len(data)) if place != axis)


def is_possible(rewrite: Rewrite, way: str) -> bool:
    """An axis that is no input is always known."""
    source = rewrite.source.axis
    if way in {"axis", "nothing"}:
        return source is not None and source.attribute is None
    return way != "constant" or rewrite.source.layout is not Layout.SEQUENCE


def site_in(way: str, engine: Rewriter, case: Case, arrays: Arrays) -> ScatterNode:
    def known(array: Array | None) -> Shape:
        if array is None or way in {"static", "axis", "constant"}:
            return None if array is None else array.shape
        return (UNKNOWN_DIM,) * array.ndim if way == "dimensions" else None

    axis: Any = 0 if case.axis is None else case.axis
    if way in {"axis", "nothing"}:
        axis = arrays[Role.AXIS].shape if way == "axis" else None  # type: ignore[union-attr]
    shapes = {role: known(arrays[role]) for role in Role if arrays.get(role) is not None}
    constants = {Role.INDICES: case.indices} if way == "constant" else None
    return site_for(
        engine, case.spec, shapes, attributes=case.attributes, axis=axis, constants=constants,
        element_type=case.element_type.name, index_type=case.index_type.name,
    )  # fmt: skip


@pytest.mark.timeout(14400)
@in_part_and_whole
@pytest.mark.parametrize(
    "number", range(len(REWRITES)), ids=[f"{one.source.key}-to-{one.target.key}" for one in REWRITES]
)
def test_every_small_case(number: int, is_whole: bool) -> None:
    for way in WAYS:
        if is_possible(REWRITES[number], way):
            demand_small_cases(number, way, is_whole=is_whole)


def demand_small_cases(number: int, way: str, *, is_whole: bool) -> None:
    """Of the cases that are chosen a part is enough if one of them was computed."""
    rewrite, seed, equal = REWRITES[number], [number, WAYS.index(way)], 0
    promised = () if way == "constant" else (Condition.UNIQUE, Condition.EQUAL, Condition.FULL)
    engine, random = engine_for(rewrite.source.key.domain, promised), np.random.default_rng(seed)
    sets = attribute_sets(rewrite.source)
    for place, (small, attributes) in enumerate(chosen(rewrite, len(sets), [*seed, 1])):
        if equal and place >= (WHOLE if is_whole else PART) and not NIGHTLY:
            break
        for case in small_cases(rewrite, small, sets[attributes], random):
            arrays = arrays_of(case, (1,) if small.updates and small.updates[0] % 2 else ())
            equal += check(rewrite, case, arrays, engine, site_in(way, engine, case, arrays)) is not None
    assert equal


# Random cases of any type, of which any part may be known


def partial(draw: st.DrawFn, shape: Dims) -> Shape:
    """Forget a part of a shape."""
    how = draw(st.sampled_from(["all", "some", "some", "ranks", "nothing"]))
    return None if how == "nothing" else tuple(_partial_dim(draw, size, how) for size in shape)


def _partial_dim(draw: st.DrawFn, size: int, how: str) -> Dim:
    if how == "all" or (how == "some" and draw(st.booleans())):
        return size
    if how == "ranks" or draw(st.booleans()):
        return Bounds()
    return Bounds(max(size - draw(st.integers(0, 2)), 0), size + draw(st.integers(0, 3)))


@st.composite
def trials(draw: st.DrawFn, domain: str) -> tuple[Rewrite, Case, Arrays, Rewriter, ScatterNode]:
    """Draw a rewrite, a case of its source, and a node that the case is one of."""
    rewrite = draw(st.sampled_from([one for one in REWRITES if one.source.key.domain == domain]))
    case = random_case(rewrite.source, draw(st.integers(0, 2**32)))
    assume(case.element_type.name != "f8e8m0")  # arithmetic on powers of two alone is not computed
    axis_shape = draw(st.sampled_from([(), (1,)]))
    arrays = arrays_of(case, axis_shape)
    holding = sorted(true_conditions(case, arrays))
    promised = draw(st.sets(st.sampled_from(holding))) if holding else set[Condition]()
    keeps = Condition.NON_NEGATIVE in holding and draw(st.booleans())
    engine = engine_for(domain, promised, keeps_negative=keeps)
    given = {role: array for role, array in arrays.items() if role is not Role.AXIS and array is not None}
    is_constant = Role.INDICES in given and case.spec.layout is not Layout.SEQUENCE and draw(st.booleans())
    axis: Any = 0 if case.axis is None else case.axis
    if Role.AXIS in arrays and draw(st.booleans()):
        axis = partial(draw, axis_shape)
    site = site_for(
        engine,
        case.spec,
        {role: partial(draw, array.shape) for role, array in given.items()},
        attributes=case.attributes,
        axis=axis,
        element_type=draw(st.sampled_from([case.element_type.name] * 7 + [None])),
        index_type=case.index_type.name,
        constants={Role.INDICES: case.indices} if is_constant else None,
    )
    return rewrite, case, arrays, engine, site


@pytest.mark.parametrize("domain", [OPENVINO, ONNX], ids=["openvino", "onnx"])
def test_random_nodes(domain: str) -> None:
    @given(trials(domain))
    def demand(trial: Any) -> None:
        rewrite, _, _, engine, site = trial
        outcome = check(*trial)
        assert outcome is None or prove(engine, site, outcome, opset_of(rewrite.target), 2, 0) == 2

    demand()
