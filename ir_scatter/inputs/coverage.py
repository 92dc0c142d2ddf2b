"""Draws further inputs, so that every body of interest runs, and repeated indices are tried.

Which bodies run follows from conditions and trip counts. The inputs that decide them are set to values that
had no part in the cases so far: both values of a boolean, and numbers on both sides of the constants that
the model compares with.
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
from ir_scatter.inputs.constraints import Use
from ir_scatter.inputs.model import Drawn
from ir_scatter.inputs.numbers import clip_to_type, dtype_of
from ir_scatter.inputs.search import Body, Run
from ir_scatter.ops.lookup import Lookup

REPEATED = "repeated indices were not tried"
"""What is said where one of two models forbids them, and none were found that the other one takes."""

_MOST_DRAWS = 64
"""Draws for the bodies of one model, or of two: each costs about as much as a case."""

_MOST_CASES = 16
"""Cases that are added so that bodies run."""

_MOST_CANDIDATES = 24
"""Choices of values that are tried for the inputs that decide about one body."""

_MOST_BOOLEANS = 4
"""Up to so many boolean elements or inputs all choices of values are tried."""

_SMALL = (1, 0, 2, 3, -1)
"""Numbers that are tried where a single number decides."""

DrawCase = Callable[..., Drawn]
"""Draws one case; takes the seed, and `fixed` and `may_repeat` as `draw_feeds` does."""


@dataclass(slots=True, eq=False)
class Coverage:
    """Further cases, and what none of all cases tries.

    Attributes:
        never: bodies that no input can make run.
        not_tried: what may hide a difference.
        unspecified: scatter nodes whose targets do not repeat, as they have no reduction.
    """

    cases: list[Drawn] = field(default_factory=list)
    never: set[Body] = field(default_factory=set)
    not_tried: list[str] = field(default_factory=list)
    unspecified: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class OptionalBody:
    """A body that may not run: of a loop, or a branch of a choice."""

    scope: str
    is_branch: bool
    plan: Plan

    @property
    def name(self) -> str:
        """How it is called in a sentence: "branch if:else_branch"."""
        return f"{'branch' if self.is_branch else 'body'} {self.scope.rstrip('/')}"


def optional_bodies(model: Sketch, *, has_scatter: bool) -> list[OptionalBody]:
    """Return the bodies that may not run; only those with a scatter node if asked for.

    A body has the scatter nodes of the functions that it calls, and not those of bodies inside it.
    """

    def holds(plan: Plan) -> bool:
        works = [step.work for step in plan.steps]
        calls = [model.plans[work.body] for work in works if isinstance(work, Call)]
        return any(isinstance(work, Lookup) for work in works) or any(map(holds, calls))

    found = []
    for step in (step for plan in model.plans.values() for step in plan.steps):
        flows: list[Dataflow] = []
        if isinstance(step.work, Choice):
            flows = [call.body for call in step.work.branches.values()]
        elif isinstance(step.work, Repeat):
            flows = [step.work.body]
        for flow in flows:
            if not has_scatter or holds(model.plans[flow]):
                is_branch = isinstance(step.work, Choice)
                found.append(OptionalBody(flow.graph.scope, is_branch, model.plans[flow]))
    return found


def draw_further(draw: DrawCase, drawn: Sequence[Drawn], bodies: Collection[Body], seed: int) -> Coverage:
    """Draw cases in which bodies run that do not run in what was drawn, and one in which indices repeat.

    Indices are repeated where the targets of one of two models may not repeat and those of the other one
    may. Seeds are counted from `seed` on.
    """
    found = Coverage()
    runs = [case.run for case in drawn if case.run is not None]
    missing = dict.fromkeys(bodies)
    for run in runs:
        _remove(missing, run)
    found.never = _excluded(missing, runs)
    for body in found.never:
        del missing[body]
    draws = 0
    candidates = _candidates(missing, runs, seed)
    while missing and draws < _MOST_DRAWS and len(found.cases) < _MOST_CASES:
        fixed = next(candidates, None)
        if fixed is None:
            break
        draws += 1
        with suppress(NoInputs):
            case = draw(seed + len(found.cases), fixed=fixed)
            assert case.run is not None
            if not case.run.is_legal or not _remove(missing, case.run):
                continue
            found.cases.append(case)
            runs.append(case.run)
            candidates = _candidates(missing, runs, seed)
    plain = [name for name in drawn[0].plain if all(name in case.plain for case in (*drawn, *found.cases))]
    if plain:
        found.not_tried.append(f"edge values of {listed(plain)} were not tried")
    if any(len(run.uses_of_models) == 2 and _are_forbidden_once(run) for run in runs):
        with suppress(NoInputs):
            case = draw(seed + len(found.cases), may_repeat=True)
            assert case.run is not None
            uses = [use for use in case.run.uses if use.is_scatter]
            if case.run.is_legal and any(use.has_repeats for use in uses):
                found.cases.append(case)
                return found
        found.not_tried.append(REPEATED)
        return found
    uses = [use for run in runs for use in run.uses if _is_of_targets(use) and use.is_unique]
    found.unspecified = list(dict.fromkeys(use.name for use in uses if not use.has_repeats))
    return found


def are_repeats_untried(drawn: Run, given: Run) -> bool:
    """Tell whether targets that only one of two models lets repeat do not repeat in the inputs given.

    Where targets come from is known of inputs that were drawn, of the same shapes.
    """
    is_between = len(drawn.uses_of_models) == 2 and _are_forbidden_once(drawn)
    return is_between and not any(use.has_repeats for use in given.uses if use.is_scatter)


def _remove(missing: dict[Body, None], run: Run) -> bool:
    """Leave out the bodies that ran; tell whether there were any."""
    entered = [body for body in missing if body in run.entered]
    for body in entered:
        del missing[body]
    return bool(entered)


def _excluded(missing: Collection[Body], runs: Sequence[Run]) -> set[Body]:
    """Return bodies that depend on constants alone, and those inside them."""
    seen = {body for run in runs for body in run.controls}
    unsure = {body for run in runs for body in run.unsure}
    free = {body for run in runs for body, inputs in run.controls.items() if inputs}
    fixed = [body for body in missing if body in seen - free - unsure]
    return {
        body
        for body in missing
        if any(body[0] == outer[0] and body[1].startswith(outer[1]) for outer in fixed)
    }


def _candidates(missing: Collection[Body], runs: Sequence[Run], seed: int) -> Iterator[Mapping[int, Array]]:
    """Yield choices of values for the inputs that decide whether missing bodies run.

    The first changes all that had the same value in each case so far.
    """
    reached = {body: next((run for run in reversed(runs) if body in run.controls), None) for body in missing}
    whole: dict[int, Array] = {}
    for body, run in reached.items():
        for number in _deciding(run, body) if run is not None else ():
            values = {other.arrays[number].item() for other in runs if other.arrays[number].size == 1}
            if run is not None and run.arrays[number].dtype == bool and len(values) == 1:
                whole[number] = np.full_like(run.arrays[number], not values.pop())
    if len(whole) > 1:
        yield whole
    for body, run in reached.items():
        if run is None:
            continue
        numbers = _deciding(run, body)
        around = _around(run, body)
        options = [list(_values(run, number)) for number in numbers]
        for chosen in islice(product(*options) if len(numbers) <= _MOST_BOOLEANS else (), _MOST_CANDIDATES):
            yield around | dict(zip(numbers, chosen, strict=True))


def _deciding(run: Run, body: Body) -> list[int]:
    """Return the numbers of the inputs that decide about a body."""
    return [number for number in range(len(run.arrays)) if run.controls.get(body, 0) >> number & 1]


def _around(run: Run, body: Body) -> dict[int, Array]:
    """Return the inputs that decide that the node of a body is computed, as they are in a run."""
    outer = [other for other in run.entered if other[0] == body[0] and body[1].startswith(other[1])]
    return {number: run.arrays[number] for other in outer for number in _deciding(run, other)}


def _values(run: Run, number: int) -> Iterator[Array]:
    """Yield arrays that an input may be, the likeliest to change a condition first."""
    array, type = run.arrays[number], run.search.types[number]
    if type.kind == "boolean":
        yield ~array
        yield from (np.full_like(array, value) for value in (True, False) if array.size > 1)
        yield array
        return
    if type.kind not in {"signed", "unsigned", "float"}:
        yield array
        return
    wanted = dtype_of(type)
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
                yield np.full(array.shape, value).astype(wanted)
        return
    places = np.argsort(np.argsort(array, axis=None, kind="stable")).reshape(array.shape)
    for limit in thresholds if run.search.positions >> number & 1 else ():  # numbers that may be positions
        yield from ((limit + more + places).astype(wanted) for more in (1, 0, 2))
    size = np.minimum(np.abs(array.astype(np.float64)), 8)
    for limit in thresholds:
        for other in (limit + 1 + size, limit - 1 - size, np.full(array.shape, float(limit))):
            low, high = clip_to_type(type, -(2**31), 2**31 - 1)
            yield other.clip(low, high).astype(wanted)
    yield array


def _is_of_targets(use: Use) -> bool:
    """Whether targets that an input decides can meet."""
    return use.is_scatter and use.has_terms and use.lane_size > 1


def _are_forbidden_once(run: Run) -> bool:
    """Tell whether targets from some input may repeat in one of two models only."""
    before, after = _kinds_of_uses(run, 0), _kinds_of_uses(run, 1)
    nothing = (False, False)
    pairs = [(before.get(number, nothing), after.get(number, nothing)) for number in before | after]
    return any(one != other and (one[0] or other[0]) for one, other in pairs)


def _kinds_of_uses(run: Run, model: int) -> dict[int, tuple[bool, bool]]:
    """Return for inputs that targets come from whether some may not repeat, and whether others may."""
    found: dict[int, tuple[bool, bool]] = {}
    for use in run.uses_of_models[model]:
        if _is_of_targets(use):
            for number in run.inputs_of(use):
                forbidden, allowed = found.get(number, (False, False))
                found[number] = forbidden or use.is_unique, allowed or not use.is_unique
    return found
