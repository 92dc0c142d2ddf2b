"""Draws further inputs, so that every branch and loop body of interest runs, and that indices repeat.

Conditions and trip counts decide which bodies run. The inputs that they depend on get values that were not
tried yet: both booleans, and numbers on both sides of the constants in comparisons.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, product

import numpy as np

from ir_scatter.analysis.interpreter import Plan
from ir_scatter.core.arrays import Array
from ir_scatter.core.dataflow import Call, Choice, Dataflow, Repeat
from ir_scatter.core.errors import NoInputs
from ir_scatter.core.words import listed
from ir_scatter.evaluate.model import Sketch
from ir_scatter.inputs.constraints import InputUse
from ir_scatter.inputs.model import Drawn
from ir_scatter.inputs.numbers import clip_to_type, dtype_of
from ir_scatter.inputs.search import Body, Run
from ir_scatter.ops.lookup import Lookup

REPEATED = "repeated indices were not tried"
"""Remark if only one of two models forbids repeated indices, and no inputs with repeated indices were
found."""

_MOST_DRAWS = 64
"""Maximum draws to make bodies run, for one or two models: each takes about as long as a case."""

_MOST_CASES = 16
"""Maximum cases that are added to make bodies run."""

_MOST_CANDIDATES = 24
"""Maximum combinations of input values that are tried to make one body run."""

_MOST_BOOLEANS = 4
"""Maximum inputs for which all combinations of values are tried."""

_SMALL = (1, 0, 2, 3, -1)
"""Numbers that are tried for an input with one element."""

DrawCase = Callable[..., Drawn]
"""Draws one case from a seed; accepts `fixed` and `may_repeat` like `draw_feeds`."""


@dataclass(slots=True, eq=False)
class Coverage:
    """The additional cases, and the conditions that no case covers.

    Attributes:
        cases: the additional cases.
        never: bodies that run for no input at all.
        not_tried: remarks on conditions that no case tried, so that a difference under them stays unseen.
        unspecified: scatter nodes without a reduction whose indices repeat in no case.
    """

    cases: list[Drawn] = field(default_factory=list)
    never: set[Body] = field(default_factory=set)
    not_tried: list[str] = field(default_factory=list)
    unspecified: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class OptionalBody:
    """A body that may not run: a loop body, or a branch of If."""

    scope: str
    is_branch: bool
    plan: Plan

    @property
    def name(self) -> str:
        """The name for messages: "branch if:else_branch"."""
        return f"{'branch' if self.is_branch else 'body'} {self.scope.rstrip('/')}"


def optional_bodies(model: Sketch, *, has_scatter: bool) -> list[OptionalBody]:
    """Return the bodies that may not run; with `has_scatter`, only those that contain a scatter node.

    A function that the body calls belongs to the body; a body nested in it does not.
    """

    def holds(plan: Plan) -> bool:
        works = [step.work for step in plan.steps]
        calls = [model.plans[work.body] for work in works if isinstance(work, Call)]
        return any(isinstance(work, Lookup) for work in works) or any(map(holds, calls))

    bodies = []
    for step in (step for plan in model.plans.values() for step in plan.steps):
        flows: list[Dataflow] = []
        if isinstance(step.work, Choice):
            flows = [call.body for call in step.work.branches.values()]
        elif isinstance(step.work, Repeat):
            flows = [step.work.body]
        for flow in flows:
            if not has_scatter or holds(model.plans[flow]):
                is_branch = isinstance(step.work, Choice)
                bodies.append(OptionalBody(flow.graph.scope, is_branch, model.plans[flow]))
    return bodies


def draw_further(draw: DrawCase, drawn: Sequence[Drawn], bodies: Collection[Body], seed: int) -> Coverage:
    """Draw cases for the bodies that have not run yet, and a case with repeated indices.

    Repeated indices are drawn only if one of two models allows them and the other does not. The draws use the
    seeds `seed`, `seed` + 1, ...
    """
    coverage = Coverage()
    runs = [case.run for case in drawn if case.run is not None]
    missing = dict.fromkeys(bodies)
    for run in runs:
        _remove_entered(missing, run)
    coverage.never = _never_entered(missing, runs)
    for body in coverage.never:
        del missing[body]
    draws = 0
    candidates = _candidates(missing, runs, seed)
    while missing and draws < _MOST_DRAWS and len(coverage.cases) < _MOST_CASES:
        fixed = next(candidates, None)
        if fixed is None:
            break
        draws += 1
        with suppress(NoInputs):
            case = draw(seed + len(coverage.cases), fixed=fixed)
            assert case.run is not None
            if not case.run.is_legal or not _remove_entered(missing, case.run):
                continue
            coverage.cases.append(case)
            runs.append(case.run)
            candidates = _candidates(missing, runs, seed)
    plain = [name for name in drawn[0].plain if all(name in case.plain for case in (*drawn, *coverage.cases))]
    if plain:
        coverage.not_tried.append(f"edge values of {listed(plain)} were not tried")
    if any(len(run.uses_of_models) == 2 and _differ_on_repeats(run) for run in runs):
        with suppress(NoInputs):
            case = draw(seed + len(coverage.cases), may_repeat=True)
            assert case.run is not None
            uses = [use for use in case.run.uses if use.is_scatter]
            if case.run.is_legal and any(use.has_repeats for use in uses):
                coverage.cases.append(case)
                return coverage
        coverage.not_tried.append(REPEATED)
        return coverage
    uses = [use for run in runs for use in run.uses if _can_repeat(use) and use.is_unique]
    coverage.unspecified = list(dict.fromkeys(use.name for use in uses if not use.has_repeats))
    return coverage


def are_repeats_untried(drawn: Run, actual: Run) -> bool:
    """Return whether just one of two models allows repeated indices, and the actual inputs contain none.

    `drawn` is a run on drawn inputs of the same shapes; it shows which inputs the indices are computed from.
    """
    is_between = len(drawn.uses_of_models) == 2 and _differ_on_repeats(drawn)
    return is_between and not any(use.has_repeats for use in actual.uses if use.is_scatter)


def _remove_entered(missing: dict[Body, None], run: Run) -> bool:
    """Remove the bodies that ran from `missing`; return whether there were any."""
    entered = [body for body in missing if body in run.entered]
    for body in entered:
        del missing[body]
    return bool(entered)


def _never_entered(missing: Collection[Body], runs: Sequence[Run]) -> set[Body]:
    """Return the missing bodies that never run because of constants, and the bodies nested in them."""
    controlled = {body for run in runs for body in run.controls}
    uncertain = {body for run in runs for body in run.unsure}
    input_dependent = {body for run in runs for body, inputs in run.controls.items() if inputs}
    constant = [body for body in missing if body in controlled - input_dependent - uncertain]
    return {
        body
        for body in missing
        if any(body[0] == outer[0] and body[1].startswith(outer[1]) for outer in constant)
    }


def _candidates(missing: Collection[Body], runs: Sequence[Run], seed: int) -> Iterator[Mapping[int, Array]]:
    """Yield input arrays, by input number, with which missing bodies may run.

    The first candidate inverts all booleans that had the same value in every case.
    """
    run_of_body = {
        body: next((run for run in reversed(runs) if body in run.controls), None) for body in missing
    }
    flipped: dict[int, Array] = {}
    for body, run in run_of_body.items():
        for number in _deciding_inputs(run, body) if run is not None else ():
            values = {earlier.arrays[number].item() for earlier in runs if earlier.arrays[number].size == 1}
            if run is not None and run.arrays[number].dtype == bool and len(values) == 1:
                flipped[number] = np.full_like(run.arrays[number], not values.pop())
    if len(flipped) > 1:
        yield flipped
    for body, run in run_of_body.items():
        if run is None:
            continue
        numbers = _deciding_inputs(run, body)
        around = _inputs_of_outer_bodies(run, body)
        options = [list(_values_to_try(run, number)) for number in numbers]
        for chosen in islice(product(*options) if len(numbers) <= _MOST_BOOLEANS else (), _MOST_CANDIDATES):
            yield around | dict(zip(numbers, chosen, strict=True))


def _deciding_inputs(run: Run, body: Body) -> list[int]:
    return [number for number in range(len(run.arrays)) if run.controls.get(body, 0) >> number & 1]


def _inputs_of_outer_bodies(run: Run, body: Body) -> dict[int, Array]:
    """Return the inputs that made the surrounding bodies run; new cases keep them."""
    outer = [entered for entered in run.entered if entered[0] == body[0] and body[1].startswith(entered[1])]
    return {number: run.arrays[number] for entered in outer for number in _deciding_inputs(run, entered)}


def _values_to_try(run: Run, number: int) -> Iterator[Array]:
    """Yield arrays to try for one input, the likeliest to change a condition first."""
    array, type = run.arrays[number], run.search.types[number]
    if type.kind == "boolean":
        yield ~array
        yield from (np.full_like(array, value) for value in (True, False) if array.size > 1)
        yield array
        return
    if type.kind not in {"signed", "unsigned", "float"}:
        yield array
        return
    numpy_type = dtype_of(type)
    thresholds = dict.fromkeys((*run.thresholds, 0))
    if array.size == 1:
        numbers = dict.fromkeys(
            [
                *(limit + more for limit in thresholds for more in (1, -1, 0)),
                *_SMALL,
                *(-limit for limit in thresholds),
            ]
        )
        for value in numbers:
            if clip_to_type(type, value, value) == (value, value):
                yield np.full(array.shape, value).astype(numpy_type)
        return
    ranks = np.argsort(np.argsort(array, axis=None, kind="stable")).reshape(array.shape)
    for limit in thresholds if run.search.positions >> number & 1 else ():  # which may be positions
        yield from ((limit + more + ranks).astype(numpy_type) for more in (1, 0, 2))
    size = np.minimum(np.abs(array.astype(np.float64)), 8)
    for limit in thresholds:
        for changed in (limit + 1 + size, limit - 1 - size, np.full(array.shape, float(limit))):
            low, high = clip_to_type(type, -(2**31), 2**31 - 1)
            yield changed.clip(low, high).astype(numpy_type)
    yield array


def _can_repeat(use: InputUse) -> bool:
    """Return whether a use holds scatter indices that drawn inputs can make repeat."""
    return use.is_scatter and use.has_terms and use.lane_size > 1


def _differ_on_repeats(run: Run) -> bool:
    """Return whether just one of two models forbids repeated indices from some input."""
    before, after = _repeats_by_input(run, 0), _repeats_by_input(run, 1)
    nothing = (False, False)
    pairs = [(before.get(number, nothing), after.get(number, nothing)) for number in before | after]
    return any(
        kinds_before != kinds_after and (kinds_before[0] or kinds_after[0])
        for kinds_before, kinds_after in pairs
    )


def _repeats_by_input(run: Run, model: int) -> dict[int, tuple[bool, bool]]:
    """Return, by number of the input, whether some indices must not repeat, and whether some may."""
    kinds: dict[int, tuple[bool, bool]] = {}
    for use in run.uses_of_models[model]:
        if _can_repeat(use):
            for number in run.inputs_of(use):
                forbidden, allowed = kinds.get(number, (False, False))
                kinds[number] = forbidden or use.is_unique, allowed or not use.is_unique
    return kinds
