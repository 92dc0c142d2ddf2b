"""Other forms of a node (`rewrites.forms`) on small nodes, held against a loop that was written from the documents.

Each form of each operator version is tried on shapes, axes, attributes and index values that are counted out, in the
element types that it is for, with any part of the node unknown. By default a few cases of the newest versions of OpenVINO,
in the long profile more of all versions; with HYPOTHESIS_PROFILE=nightly every small case.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import islice, product
from math import prod
from typing import Any

import numpy as np
import pytest

from ir_scatter.analysis.conditions import Condition
from ir_scatter.cases.case import Case
from ir_scatter.convert.rewriter import Rewriter
from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype
from ir_scatter.core.model import OPENVINO, OpKey
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import IndexRange, Layout, OpSpec, Reduction, Role
from ir_scatter.rewrites.forms import NodeForm, alternative_forms
from ir_scatter.rewrites.refusals import Reason, Refusal
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
from tests.rewrites.test_nodes import (
    WAYS,
    Small,
    arrays_of,
    attribute_sets,
    every_small,
    is_possible,
    with_indices,
)
from tests.rewrites.test_nodes import site_in as plain_site
from tests.scale import NIGHTLY

SAMPLE, WHOLE, PART = 40, 8, 1
"""Shapes for each form: at most, and in the long and the default profile once so many were computed."""

SHAPES: Mapping[str, Callable[[Small], bool]] = {
    "left-out": lambda small: 0 in (*small.data, *(small.indices or ()), *small.updates),
    "as-column": lambda small: len(small.data) == 1,
    "one-tuple": lambda small: len(small.indices or ()) == 1,
}
"""Shapes of nodes that a form is for; for the others those with elements, and a few of all."""

TYPES: Mapping[str, tuple[str, ...]] = {
    "mean-counted": ("i8", "u16", "i32", "u32", "i64"),
    "difference-counted": ("boolean",),
    "cast-to-i32": ("boolean", "i8", "u16"),
    "cast-to-f32": ("f16", "bf16"),
    "u32-as-i32": ("u32",),
    "by-positions": ("string", "i64", "f32"),
    "extreme-from-updates": ("f32", "i32"),
    "copied-before": ("boolean", "i32"),
}
"""Element types that a form is for; i32 and f32 for all others."""

REDUCTIONS = {
    "mean-counted": {Reduction.MEAN},
    "difference-counted": {Reduction.SUB},
    "extreme-from-updates": {Reduction.MIN, Reduction.MAX},
    "u32-as-i32": {Reduction.NONE},
    "by-positions": {Reduction.NONE},
}
"""Reductions that a form is for; all for the others."""

REASONS = {
    Reason.NO_FORM, Reason.NO_SUCH_REDUCTION, Reason.TYPE_UNKNOWN, Reason.CONDITION_UNKNOWN,
    Reason.CONDITION_VIOLATED, Reason.TARGET_BREAKS_RULES, Reason.BREAKS_RULES,
}  # fmt: skip


def of_rows() -> Iterator[Any]:
    newest = dict[tuple[str, str], int]()
    for key, spec in SPECS.items():
        if spec.layout is not Layout.SEQUENCE and not spec.is_removed:
            newest[key[:2]] = max(key.version, newest.get(key[:2], 0))
    for key in SPECS:
        for form in filter(
            partial(is_useful, SPECS[key]), alternative_forms(key) if key[:2] in newest else ()
        ):
            is_first = newest[key[:2]] == key.version and key.domain == OPENVINO and len(form.rewrites) == 1
            if is_first:
                yield pytest.param(key, form, False, id=f"{key}-{form.name}-part")
            yield pytest.param(key, form, True, id=f"{key}-{form.name}-whole", marks=pytest.mark.long)


def is_useful(spec: OpSpec, form: NodeForm) -> bool:
    """Return whether a form may be for some node of an operator version."""
    name, port = main_name(form), spec.port(Role.INDICES)
    if name == "axis-found":
        return spec.axis is not None and spec.axis.attribute is None
    if name == "indices-cast":
        return port is not None and "i8" in port.element_types
    if name == "reduced-before":
        return len(spec.reductions) > 1
    return bool(sets_for(spec, form))


def sets_for(spec: OpSpec, form: NodeForm) -> list[tuple[str, dict[str, Any]]]:
    """Return the element types and attributes of nodes that a form is for."""
    return [
        (type, attributes)
        for type in TYPES.get(main_name(form), ("i32", "f32"))
        for attributes in attribute_sets(spec)
        if is_for(form, spec, type, attributes)
    ]


def main_name(form: NodeForm) -> str:
    """Return the rewrite of a form that decides for which nodes it is."""
    return next((rewrite.name for rewrite in form.rewrites if rewrite.name in TYPES), form.rewrites[-1].name)


@cache
def shapes_for(key: OpKey, name: str) -> tuple[Small, ...]:
    """Return small shapes; larger ranks where dimensions are merged."""
    if name != "merged":
        is_meant = SHAPES.get(name, lambda small: not SHAPES["left-out"](small) or sum(small.data) == 5)
        return tuple(filter(is_meant, every_small(key)))
    spec, smalls = SPECS[key], list[Small]()
    for data in (shape for rank in (4, 5) for shape in product((1, 2), repeat=rank)):
        if spec.layout is Layout.TUPLES:
            for depth, leading in product(range(1, len(data) + 1), ((), (1,), (2,), (1, 2))):
                smalls.append(Small(data, (*leading, depth), leading + data[depth:]))
            continue
        for axis in range(-len(data), len(data)):
            place = axis % len(data)
            if spec.layout is Layout.SLICES:
                shapes = [(), (1,), (2,), (2, 1)]
                smalls += [
                    Small(data, each, data[:place] + each + data[place + 1 :], axis) for each in shapes
                ]
            else:
                less = tuple(max(1, size - 1) for size in data)
                whole = (*data[:place], 2, *data[place + 1 :])
                smalls += [Small(data, each, each, axis) for each in {data, less, whole}]
    return tuple(smalls)


def numbers(shape: tuple[int, ...], start: int, type: ElementType) -> Array:
    """Return numbers that differ, among them the least and the greatest of the type."""
    count = np.arange(start, start + prod(shape)).reshape(shape)
    kind = dtype(type)
    if type.kind == "boolean":
        return count % 3 == 1
    if type.name == "string":
        return count.astype(kind)
    if type.kind in {"signed", "unsigned"}:
        limits: Any = np.iinfo(kind)
        ends = np.where(count % 2 == 0, limits.max - count % 4, limits.min + count % 3)
        small = np.where(type.kind == "signed", count % 97 - 11, count % 97)
        return np.where(count % 5 == 0, ends, small.astype(kind)).astype(kind)
    return (count % 97 - 11).astype(kind)


def cases_of(
    spec: OpSpec, small: Small, attributes: Mapping[str, Any], type: ElementType, random: Any
) -> Iterator[Case]:
    port = spec.port(Role.INDICES)
    is_narrow = port is not None and "i8" in port.element_types and small.data[0] == 2
    index_type = ELEMENT_TYPES["i8" if is_narrow else "i64"]
    reduction = spec.reductions.get(attributes.get("reduction", ""), Reduction.NONE)
    data, updates = numbers(small.data, 0, type), numbers(small.updates, 31, type)
    zeros = np.zeros(small.indices or (), dtype(index_type))
    case = Case(spec, data, zeros, updates, small.axis, attributes, type, index_type, reduction)
    for legal in with_indices(case, random):
        assert legal.indices is not None
        if spec.index_range is IndexRange.WRAPPING or not (legal.indices < 0).any():
            yield legal  # a form keeps the operator, and so indices that it forbids but runtimes accept


def site_in(way: str, engine: Rewriter, case: Case, arrays: Any) -> Any:
    if way != "held":
        return plain_site(way, engine, case, arrays)
    shapes = {role: array.shape for role, array in arrays.items() if array is not None}
    constants = {Role.DATA: case.data, Role.UPDATES: case.updates}
    return site_for(
        engine, case.spec, shapes, attributes=case.attributes, axis=case.axis or 0, constants=constants,
        element_type=case.element_type.name, index_type=case.index_type.name,
    )  # fmt: skip


def is_for(form: NodeForm, spec: OpSpec, type: str, attributes: Mapping[str, Any]) -> bool:
    port, name = spec.port(Role.DATA), main_name(form)
    reduction = spec.reductions.get(attributes.get("reduction", ""), Reduction.NONE)
    is_left_out = name == "extreme-from-updates" and attributes.get("use_init_val") is not False
    return (
        port is not None
        and type in port.element_types
        and reduction in REDUCTIONS.get(name, {reduction})
        and not is_left_out
    )


@pytest.mark.timeout(14400)
@pytest.mark.parametrize(("key", "form", "is_whole"), [*of_rows()])
def test_every_small_case(key: OpKey, form: NodeForm, is_whole: bool) -> None:
    spec, name, computed = SPECS[key], main_name(form), 0
    sets = sets_for(spec, form)
    ways = [way for way in (*WAYS, "held") if way == "held" or is_possible(form.rewrites[0], way)]
    for number, way in enumerate(ways):
        if computed and not is_whole:
            break
        random = np.random.default_rng([number])
        every = shapes_for(key, "as-column" if "as-column" in form.name else name)
        order = range(len(every)) if NIGHTLY else random.permutation(len(every))[:SAMPLE]
        equal = 0
        for place in order:
            if equal >= (WHOLE if is_whole else PART) and not NIGHTLY:
                break
            type, attributes = sets[int(random.integers(len(sets)))]
            for case in islice(
                cases_of(spec, every[int(place)], attributes, ELEMENT_TYPES[type], random),
                None if NIGHTLY else 3,
            ):
                equal += demand_form(form, way, case)
        computed += equal
    assert computed


def demand_form(form: NodeForm, way: str, case: Case) -> bool:
    """Demand that the form of a node is equal to it, or refused; return whether it was computed."""
    promised = () if way == "constant" else (Condition.UNIQUE,)
    engine = engine_for(case.spec.key.domain, promised)
    arrays = arrays_of(case, ())
    site = site_in(way, engine, case, arrays)
    outcome = engine.rewrite((site,), None, opset_of(case.spec), is_anew=True, form=form)
    assert outcome is not None
    if isinstance(outcome, Refusal):
        assert outcome.code in REASONS, outcome
        return False
    relied_on = engine.promises.conditions & set(outcome.assumptions)
    if not relied_on <= true_conditions(case, arrays) or not can_run(form.rewrites[-1], case, site):
        return False
    demand_equal(run(outcome, case.spec, arrays), case)
    return True
