"""Every rewrite on every small shape, axis and index, against a loop that was written from the documents.

By default a sample that is the same each time; with HYPOTHESIS_PROFILE=nightly everything.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ir_scatter.analysis.conditions import Condition
from ir_scatter.convert.rewriter import Rewriter, Rewritten
from ir_scatter.core.model import ONNX
from ir_scatter.core.shapes import UNKNOWN_DIM, Shape
from ir_scatter.ops.spec import Layout, OpSpec, Reduction, Role
from ir_scatter.rewrites import all_rewrites
from ir_scatter.rewrites.base import Rewrite
from ir_scatter.rewrites.refusals import Refusal
from tests.rewrites.forms import (
    Array,
    engine_for,
    indices_equal,
    numbers,
    opset_of,
    rewritten,
    run,
    site_for,
    targets_differ,
    wrong_elements,
)
from tests.rewrites.refusal_truth import Refused, demand_true
from tests.rewrites.small_cases import Small, attribute_sets, every_small, index_values, wraps

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
SAMPLE = 40
"""Shapes of one pair in one way to know them, unless all are wanted."""

WAYS = ("static", "dimensions", "ranks", "axis", "nothing", "constant")
"""What is known: all shapes; ranks only; not even those; all but the axis; nothing; indices too."""

PAIRS = all_rewrites()
_OF_INPUT = {"axis", "nothing"}


def is_possible(rewrite: Rewrite, way: str) -> bool:
    """An axis that is no input is always known."""
    source = rewrite.source.axis
    if way in _OF_INPUT:
        return source is not None and source.attribute is None
    return way != "constant" or rewrite.source.layout is not Layout.SEQUENCE


def known(shape: Shape, way: str) -> Shape:
    if shape is None or way in {"static", "axis", "constant"}:
        return shape
    return None if way in {"ranks", "nothing"} else (UNKNOWN_DIM,) * len(shape)


def chosen(rewrite: Rewrite, attributes: int, seed: Sequence[int]) -> Iterator[tuple[Small, int]]:
    """Yield shapes with the number of a set of attributes; in a sample most of those that must reach do."""
    every = every_small(rewrite.source)
    if NIGHTLY:
        for place, small in enumerate(every):
            # The forms of ONNX's rows differ in their opsets only: there the sets take turns.
            is_turn = rewrite.source.key.domain == ONNX
            yield from ((small, n) for n in ([place % attributes] if is_turn else range(attributes)))
        return
    random = np.random.default_rng(seed)
    taken = 0
    for place in random.permutation(len(every)):
        small = every[int(place)]
        if becomes_slices(rewrite) and not reaches_all(small) and random.random() < 0.98:
            continue
        yield small, int(random.integers(attributes))
        taken += 1
        if taken == SAMPLE:
            return


def becomes_slices(rewrite: Rewrite) -> bool:
    return rewrite.source.layout is Layout.ELEMENTS and rewrite.target.layout is Layout.SLICES


def reaches_all(small: Small) -> bool:
    """Tell whether indices reach every position of the other axes, and there is one."""
    assert small.indices is not None
    assert small.axis is not None
    places = [place for place in range(len(small.data)) if place != small.axis % len(small.data)]
    return all(small.data[place] == small.indices[place] > 0 for place in places)


@pytest.mark.timeout(14400)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "number", range(len(PAIRS)), ids=[f"{rewrite.source.key}-to-{rewrite.target.key}" for rewrite in PAIRS]
)
def test_every_small_case_is_equal_or_refused_for_a_true_reason(number: int, way: str) -> None:
    rewrite = PAIRS[number]
    if not is_possible(rewrite, way):
        return
    trial = _Trial(rewrite, way, np.random.default_rng([number, WAYS.index(way)]))
    sets = attribute_sets(rewrite.source)
    for small, attributes in chosen(rewrite, len(sets), [number, WAYS.index(way), 1]):
        trial.take(small, sets[attributes])
    assert trial.counts["equal"] > 0


class _Trial:
    """Runs the cases of one rewrite; what is known decides the form, so that cases share it."""

    def __init__(self, rewrite: Rewrite, way: str, random: np.random.Generator) -> None:
        self.rewrite, self.way, self.random = rewrite, way, random
        self.spec = rewrite.source
        promised = () if way == "constant" else (Condition.UNIQUE, Condition.EQUAL)
        self.engine: Rewriter = engine_for(self.spec.key.domain, promised)
        self.counts: Counter[str] = Counter()
        self._forms: dict[Any, Any] = {}

    def take(self, small: Small, attributes: Mapping[str, Any]) -> None:
        mode = attributes.get("mode", "linear")
        spec = self.spec
        for indices in self._values(small, mode):
            kind = "float32" if attributes.get("reduction") == "mean" and small.data[0] % 2 else "int32"
            is_narrow = "i32" in _index_types(spec) and small.data[0] == 2
            arrays = {
                Role.DATA: numbers(small.data, 0, kind),
                Role.INDICES: indices.astype(np.int32) if is_narrow and indices is not None else indices,
                Role.UPDATES: numbers(small.updates, 31, kind),
            }
            if spec.axis is not None and spec.axis.attribute is None:
                shape = (1,) if small.updates and small.updates[0] % 2 else ()
                arrays[Role.AXIS] = np.full(shape, small.axis, np.int64)
            self._run(small, attributes, arrays)

    def _values(self, small: Small, mode: str) -> Iterator[Array | None]:
        """Yield indices; where they must be equal along the other axes, such first."""
        spec, random = self.spec, self.random
        if becomes_slices(self.rewrite) and small.indices is not None and small.axis is not None:
            place = small.axis % len(small.data)
            column = tuple(dim if n == place else min(dim, 1) for n, dim in enumerate(small.indices))
            one = replace(small, indices=column)
            for indices in index_values(spec, one, random, wraps=wraps(spec)):
                yield None if indices is None else np.broadcast_to(indices, small.indices)
        yield from index_values(spec, small, random, wraps=wraps(spec), mode=mode)

    def _run(self, small: Small, attributes: Mapping[str, Any], arrays: dict[Role, Array]) -> None:
        form = self._form(small, attributes, arrays)
        if self._cannot_run(small, attributes):
            return
        if not isinstance(form, Rewritten):
            self.counts["refused" if form is not None else "done"] += 1
            return
        if Condition.UNIQUE in form.assumptions and not targets_differ(self.spec, arrays, small.axis):
            return
        if Condition.EQUAL in form.assumptions and not indices_equal(arrays, small.axis or 0):
            return
        found = run(form, self.spec, arrays)
        wrong = wrong_elements(self.spec, found, arrays, small.axis, attributes)
        assert not wrong.any(), (self.rewrite.name, self.way, small, attributes, arrays, found)
        self.counts["equal"] += 1

    def _cannot_run(self, small: Small, attributes: Mapping[str, Any]) -> bool:
        """Tell what plain operators cannot say of sizes that are only known when the model runs."""
        data, indices = small.data, small.indices or (1,)
        if attributes.get("mode") == "circular" and data[small.axis or 0] == 0:
            return True  # a remainder of nothing
        if self.way in {"static", "axis", "constant"}:
            return False
        reduction = self.spec.reductions.get(attributes.get("reduction", "none"), Reduction.NONE)
        is_lost = reduction is not Reduction.NONE and reduction not in self.rewrite.target.reductions.values()
        if self.spec.layout is Layout.TUPLES and indices[-1] == 0 and is_lost:
            return True  # slices named by no coordinates cannot be taken
        opset = opset_of(self.rewrite.target)
        return opset is not None and opset < 14 and 0 in data + indices  # a reshape to 0 copies a dimension

    def _form(self, small: Small, attributes: Mapping[str, Any], arrays: dict[Role, Array]) -> Any:
        shapes: dict[Role, Shape] = {
            role: known(shape, self.way)
            for role, shape in (
                (Role.DATA, small.data),
                (Role.INDICES, small.indices),
                (Role.UPDATES, small.updates),
            )
            if role is not Role.INDICES or small.indices is not None
        }
        axis: Any = small.axis if small.axis is not None else 0
        if self.way in _OF_INPUT:
            axis = arrays[Role.AXIS].shape if self.way == "axis" else None
        element_type = "f32" if arrays[Role.DATA].dtype == np.float32 else "i32"
        indices = arrays[Role.INDICES]
        index_type = "i32" if indices is not None and indices.dtype == np.int32 else "i64"
        key = (tuple(shapes.items()), axis, tuple(attributes.items()), element_type, index_type)
        if self.way == "constant":
            key = (*key, arrays[Role.INDICES].tobytes())  # type: ignore[assignment]
        if key not in self._forms:
            constants = {Role.INDICES: arrays[Role.INDICES]} if self.way == "constant" else None
            site = site_for(
                self.engine,
                self.spec,
                shapes,
                attributes=attributes,
                axis=axis,
                element_type=element_type,
                index_type=index_type,
                constants=constants,
            )
            outcome = rewritten(self.engine, site, self.rewrite)
            if isinstance(outcome, Refusal):
                promises = self.engine.promises.conditions
                demand_true(Refused(outcome, site, self.rewrite, promises, arrays, small.axis))
            if outcome is None:
                assert self.rewrite.source is self.rewrite.target
            self._forms[key] = outcome
        return self._forms[key]


def _index_types(spec: OpSpec) -> frozenset[str]:
    port = spec.port(Role.INDICES)
    return frozenset() if port is None else port.element_types
